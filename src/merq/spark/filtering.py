"""Simple filters that are carried out before rows go to Spark, some before they leave the queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource

from merq.client.bulk import SEQUENCE_MAX

FILTERED: Final = frozenset(
    {"queue", "sent_time", "arrived_time", "label", "priority", "class", "sequence"}
)
"""Columns by which can be filtered here."""

_OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "EqualTo": pc.equal,
    "GreaterThan": pc.greater,
    "GreaterThanOrEqual": pc.greater_equal,
    "LessThan": pc.less,
    "LessThanOrEqual": pc.less_equal,
    "StringStartsWith": lambda column, value: pc.starts_with(column, value.as_py()),
    "StringEndsWith": lambda column, value: pc.ends_with(column, value.as_py()),
    "StringContains": lambda column, value: pc.match_substring(column, value.as_py()),
}


@dataclass(frozen=True, slots=True)
class Filter:
    """A column compared with a value, or with one of several."""

    column: str
    operation: str
    value: Any

    @classmethod
    def of(cls, found: Any) -> Filter | None:
        """What Spark wants, if it is one of these."""
        attribute: tuple[str, ...] = getattr(found, "attribute", ())
        if len(attribute) != 1 or attribute[0] not in FILTERED:
            return None
        name = type(found).__name__
        if isinstance(found, datasource.In):
            if any(each is None for each in found.value):
                return None
            return cls(attribute[0], name, tuple(found.value))
        value = getattr(found, "value", None)
        if name not in _OPERATIONS or value is None:
            return None
        return cls(attribute[0], name, value)

    def apply(self, batch: pa.RecordBatch) -> Any:
        """Which rows are meant."""
        column = batch.column(self.column)
        if self.operation == "In":
            return pc.is_in(column, value_set=pa.array(self.value, column.type))
        value = self.value
        if isinstance(value, datetime) and value.tzinfo is None:
            value = value.astimezone()
        return _OPERATIONS[self.operation](column, pa.scalar(value, column.type))


@dataclass(frozen=True, slots=True)
class Filters:
    """All that have to hold."""

    all: tuple[Filter, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are looked at."""
        return tuple(dict.fromkeys(each.column for each in self.all))

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows for which all hold."""
        for each in self.all:
            batch = batch.filter(each.apply(batch))
        return batch

    def may_have_queue(self, title: str) -> bool:
        """Whether messages of a queue can be meant at all."""
        for each in self.all:
            if each.column == "queue" and each.operation == "EqualTo" and each.value != title:
                return False
            if each.column == "queue" and each.operation == "In" and title not in each.value:
                return False
        return True

    def narrowed(self, after: int, upto: int) -> tuple[int, int]:
        """The numbers that can be meant."""
        for each in self.all:
            if each.column != "sequence" or each.operation == "In":
                continue
            value = int(each.value)
            if each.operation in {"EqualTo", "GreaterThanOrEqual"}:
                after = max(after, value - 1)
            if each.operation == "GreaterThan":
                after = max(after, value)
            if each.operation in {"EqualTo", "LessThanOrEqual"}:
                upto = min(upto, value)
            if each.operation == "LessThan":
                upto = min(upto, value - 1)
        return max(0, min(after, SEQUENCE_MAX)), max(0, min(upto, SEQUENCE_MAX))
