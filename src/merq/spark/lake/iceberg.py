"""Lakes as Iceberg tables: Spark writes the files, and PyIceberg adds them to the table.

The catalog is an SQLite file in the lake by default. Any other of PyIceberg's serves: name it, and
configure it as PyIceberg's documentation says (`.pyiceberg.yaml` or `PYICEBERG_CATALOG__...`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from merq.spark.lake.committing import NewFile
from merq.spark.lake.description import DAY, QUEUE, Description
from merq.spark.lake.folder import Folder, LakeError

NAMESPACE: Final = "merq"
TABLE: Final = "merq.messages"
OWN_CATALOG: Final = "_iceberg/catalog.db"
_BATCH_OF: Final = "merq.batch."
"""A property of the table for each writer: its last batch."""


class IcebergLake:
    """An Iceberg table whose files are in the lake's folder.

    Raises:
        LakeError: There has to be a catalog, and none is named.
    """

    def __init__(self, folder: Folder, catalog: str = "") -> None:
        if not (catalog or folder.is_local):
            raise LakeError(
                f"the lake {folder.url} is not on this machine, and an Iceberg table needs a "
                "catalog there: name one of PyIceberg's with --catalog"
            )
        self._folder = folder
        self._name = catalog
        self._known: Catalog | None = None

    def _catalog(self) -> Catalog:
        if self._known is None:
            if self._name:
                self._known = load_catalog(self._name)
            else:
                self._folder.make_folder(OWN_CATALOG.rpartition("/")[0])
                self._known = load_catalog(
                    "merq",
                    type="sql",
                    uri=f"sqlite:///{self._folder.path(OWN_CATALOG)}",
                    warehouse=f"file://{self._folder.path('_iceberg')}",
                )
        return self._known

    def _table(self) -> Table:
        return self._catalog().load_table(TABLE)

    def prepare(self, description: Description) -> None:
        """Makes the table, or gives it columns that it does not have."""
        catalog = self._catalog()
        try:
            table = catalog.load_table(TABLE)
        except NoSuchTableError:
            catalog.create_namespace_if_not_exists(NAMESPACE)
            table = catalog.create_table(TABLE, description.arrow)
            with table.update_spec() as spec:
                spec.add_identity(DAY)
                spec.add_identity(QUEUE)
            return
        with table.update_schema() as update:
            update.union_by_name(description.arrow)

    def add(self, files: Sequence[NewFile], writer: str, batch: int) -> None:
        """Adds files; the table's properties remember the last batch of a writer."""
        table = self._table()
        key = _BATCH_OF + writer
        if int(table.properties.get(key, -1)) >= batch or not files:
            return
        with table.transaction() as change:
            change.add_files([self._url(each.name) for each in files], check_duplicate_files=False)
            change.set_properties({key: str(batch)})

    def _url(self, name: str) -> str:
        return f"file://{self._folder.path(name)}" if self._folder.is_local else self._spark(name)

    def _spark(self, name: str) -> str:
        return self._folder.spark_path(name)

    def paths(self) -> list[str] | None:
        """The files of the table's newest snapshot."""
        found = [each.file.file_path for each in self._table().scan().plan_files()]
        return [each.removeprefix("file://") for each in found]
