"""Cells of CSV files that no spreadsheet takes for a formula.

Labels and names are written by whoever sends a message. A spreadsheet that opens a list of messages
runs a cell that begins with one of `=+-@`, a tab or the end of a line. Such a cell is written with
an apostrophe before it, which spreadsheets show as text; so is one that begins with an apostrophe
itself, so that reading restores exactly what was there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import Column

MARK: Final = "'"
"""What stands before a cell that would be taken for a formula."""

_DANGEROUS: Final = r"[=+\-@\t\r\n']"


def neutral(name: str) -> Column:
    """A column of text as it is written."""
    cell = sql.col(name)
    marked = sql.concat(sql.lit(MARK), cell)
    return sql.when(cell.rlike(f"^{_DANGEROUS}"), marked).otherwise(cell).alias(name)


def restored(name: str) -> Column:
    """A column of text as it was before it was written."""
    return sql.regexp_replace(sql.col(name), f"^{MARK}(?={_DANGEROUS})", "").alias(name)
