"""Lakes as Delta tables: Spark writes the files, and delta-rs commits them to the table's log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import TableNotFoundError
from deltalake.schema import Schema
from deltalake.transaction import AddAction

from merq.spark.lake.committing import NewFile, milliseconds_now
from merq.spark.lake.description import DAY, QUEUE, Description
from merq.spark.lake.folder import Folder


class DeltaLake:
    """A Delta table in the lake's folder."""

    def __init__(self, folder: Folder) -> None:
        self._url = folder.path() if folder.is_local else folder.url

    def _table(self) -> DeltaTable | None:
        try:
            return DeltaTable(self._url)
        except TableNotFoundError:
            return None

    def _there(self) -> DeltaTable:
        table = self._table()
        assert table is not None, "prepare() has made it"
        return table

    def prepare(self, description: Description) -> None:
        """Makes the table, or gives it columns that it does not have."""
        wanted = Schema.from_arrow(description.arrow)
        table = self._table()
        if table is None:
            DeltaTable.create(
                self._url, wanted, mode="ignore", partition_by=[DAY, QUEUE], name="messages"
            )
            return
        there = {each.name for each in table.schema().fields}
        missing = [each for each in wanted.fields if each.name not in there]
        if missing:
            table.alter.add_columns(missing)

    def add(self, files: Sequence[NewFile], writer: str, batch: int) -> None:
        """Commits files; the table's log remembers the last batch of a writer."""
        table = self._there()
        known = table.transaction_version(writer)
        if known is not None and known >= batch:
            return
        now = milliseconds_now()
        actions: list[Any] = [
            AddAction(
                path=each.name,
                size=each.size,
                partition_values={DAY: each.day, QUEUE: each.queue},
                modification_time=now,
                data_change=True,
                stats=json.dumps({"numRecords": each.rows}),
            )
            for each in files
        ]
        if actions:
            table.create_write_transaction(
                actions,
                "append",
                table.schema(),
                partition_by=[DAY, QUEUE],
                commit_properties=CommitProperties(app_transactions=[Transaction(writer, batch)]),
            )

    def paths(self) -> list[str] | None:
        """The files of the table's newest version."""
        return list(self._there().file_uris())

    def compact(self, target_bytes: int) -> tuple[int, int]:
        """Joins small files; gives how many went and how many came.

        The old files stay for those who read an older version, until somebody vacuums the table.
        """
        done = self._there().optimize.compact(target_size=target_bytes)
        return int(done["numFilesRemoved"]), int(done["numFilesAdded"])
