"""`format("msmq")`: what Spark asks first. Everything heavy is imported when it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


class MsmqSource(DataSource):
    """Queues of Merq: read and written, in batches and as streams."""

    @classmethod
    def name(cls) -> str:
        """What Spark calls it."""
        return "msmq"

    def schema(self) -> str:
        """The columns, unless the user names others."""
        from merq.spark.columns import chosen, ddl  # noqa: PLC0415
        from merq.spark.options import read_options  # noqa: PLC0415

        return ddl(chosen(read_options(self.options).columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads what is there."""
        from merq.spark.reading import BatchReader  # noqa: PLC0415

        return BatchReader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Reads what is there and what comes."""
        from merq.spark.streaming import StreamReader  # noqa: PLC0415

        return StreamReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001
        """Sends rows as messages."""
        from merq.spark.writing import BatchWriter  # noqa: PLC0415

        return BatchWriter(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001
        """Sends rows as messages, each batch once."""
        from merq.spark.writing import StreamWriter  # noqa: PLC0415

        return StreamWriter(self.options, schema, overwrite=overwrite)


def register(spark: Any) -> None:
    """Makes the source known to a session that does not find it by itself."""
    spark.dataSource.register(MsmqSource)
