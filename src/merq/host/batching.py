"""What is asked for by whoever reads and writes in batches, and how it is carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, final

from merq.engine.staging import StageLabel
from merq.errors import MessageQueueError
from merq.host import bulk
from merq.host.host import Host
from merq.hresult import HResult
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import (
    Acknowledge,
    CreateStage,
    DescribeSpan,
    DropStages,
    ListClaims,
    ListRanges,
    ListStages,
    Publish,
    ReadRows,
    ReleaseClaim,
    Reserve,
    SendRows,
)

NUMBER_MAX: Final = (1 << 56) - 1
"""The largest number that a message can have in the order of arrival, and a batch."""


@final
class Pending:
    """The answer comes later, from the engine."""


PENDING: Final = Pending()

Reply: TypeAlias = Result | Pending


def bulk_rules(host: Host) -> dict[type, Callable[[int, Any], Reply]]:
    """For each kind of request what carries it out."""
    desk = _Batches(host)
    return {
        DescribeSpan: desk.describe_span,
        ReadRows: desk.read_rows,
        Reserve: desk.reserve,
        Acknowledge: desk.acknowledge,
        ListRanges: desk.list_ranges,
        ListClaims: desk.list_claims,
        ReleaseClaim: desk.release,
        CreateStage: desk.create_stage,
        SendRows: desk.send_rows,
        Publish: desk.publish,
        DropStages: desk.drop_stages,
        ListStages: desk.list_stages,
    }


def _check(**numbers: int) -> None:
    """Whoever asks may say any number; the store has room for some."""
    for name, number in numbers.items():
        if not 0 <= number <= NUMBER_MAX:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                f"{name} is {number}; it has to be from 0 to {NUMBER_MAX}",
            )


class _Batches:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._engine = host.engine

    def describe_span(self, _number: int, request: DescribeSpan) -> Reply:
        _check(since=request.since, after=request.after)
        _check(most=request.most, most_bytes=request.most_bytes)
        return bulk.describe_span(self._engine, request)

    def read_rows(self, _number: int, request: ReadRows) -> Reply:
        _check(start=request.start, end=request.end, skip=request.skip)
        return bulk.read_rows(self._engine, self._host.packets, request)

    def reserve(self, number: int, request: Reserve) -> Reply:
        _check(after=request.after, upto=request.upto, floor=request.floor)
        _check(most=request.most, most_bytes=request.most_bytes)
        self._engine.reservations.reserve(
            number,
            self._engine.queue(request.queue),
            request.group,
            request.owner,
            request.after,
            most=request.most,
            most_bytes=request.most_bytes,
            upto=request.upto,
            floor=request.floor,
        )
        return PENDING

    def acknowledge(self, number: int, request: Acknowledge) -> Reply:
        _check(upto=request.upto)
        queue = self._engine.queue(request.queue)
        self._engine.reservations.acknowledge(
            number, queue, request.group, request.owner, request.upto, leave=request.leave
        )
        return PENDING

    def list_ranges(self, _number: int, request: ListRanges) -> Reply:
        return self._engine.reservations.ranges(self._engine.queue(request.queue), request.group)

    def list_claims(self, _number: int, _request: ListClaims) -> Reply:
        return self._engine.reservations.all()

    def release(self, number: int, request: ReleaseClaim) -> Reply:
        queue = self._engine.queue(request.queue)
        self._engine.reservations.release(number, queue, request.group, forget=request.forget)
        return PENDING

    def create_stage(self, number: int, request: CreateStage) -> Reply:
        _check(batch=request.batch)
        label = StageLabel(request.writer, request.batch, request.part)
        self._engine.stages.create(number, self._engine.queue(request.queue), label)
        return PENDING

    def send_rows(self, number: int, request: SendRows) -> Reply:
        stages = self._engine.stages
        stages.send_rows(number, self._engine.stage(request.stage), request.rows)
        return PENDING

    def publish(self, number: int, request: Publish) -> Reply:
        _check(batch=request.batch)
        self._engine.stages.publish(number, request.writer, request.batch, request.stages)
        return PENDING

    def drop_stages(self, number: int, request: DropStages) -> Reply:
        self._engine.stages.drop(
            number, writer=request.writer, batch=request.batch, stage=request.stage
        )
        return PENDING

    def list_stages(self, _number: int, _request: ListStages) -> Reply:
        return self._engine.stages.all()
