"""The formats of lakes, by name."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from merq.spark.lake.committing import NewFile, Table
from merq.spark.lake.description import DELTA, ICEBERG, Description
from merq.spark.lake.folder import Folder, LakeError


class ParquetTable:
    """Files in folders; nobody else has to be told."""

    def prepare(self, description: Description) -> None:
        """There is nothing to make."""

    def add(self, files: Sequence[NewFile], writer: str, batch: int) -> None:
        """They are in their places already."""

    def paths(self) -> list[str] | None:
        """All that the folder has."""
        return None


def table_of(folder: Folder, wanted_format: str, catalog: str = "") -> Table:
    """The table of a lake.

    Raises:
        LakeError: What the format needs is not installed, or not named.
    """
    if wanted_format == DELTA:
        _check("deltalake", DELTA)
        from merq.spark.lake.delta import DeltaLake  # noqa: PLC0415 - an extra

        return DeltaLake(folder)
    if wanted_format == ICEBERG:
        _check("pyiceberg", ICEBERG)
        from merq.spark.lake.iceberg import IcebergLake  # noqa: PLC0415 - an extra

        return IcebergLake(folder, catalog)
    return ParquetTable()


def _check(package: str, wanted_format: str) -> None:
    if find_spec(package) is None:
        raise LakeError(
            f"the format {wanted_format} needs {package}, which is not installed: "
            "pip install merq[lake]"
        )
