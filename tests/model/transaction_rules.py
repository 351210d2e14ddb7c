"""Rules about transactions: preparing, committing and aborting them."""

from __future__ import annotations

from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from model.engine_machine import Both, picks
from model.reference_queue import DELETED, OUT_OF_SEQUENCE, Tx


class TransactionRules(Both):
    """Transactions end, some in two steps."""

    @precondition(lambda self: self.model.txs)
    @rule(pick=picks, name=st.integers(1, 3))
    def prepare(self, pick: int, name: int) -> None:
        tx = self.some_tx(pick, "open", "open", "prepared")
        taken = [each.name for each in self.model.txs if each.phase != "open"]
        code = None
        if tx.phase != "open" or name in taken:
            code = OUT_OF_SEQUENCE
        elif any(queue.closing for queue in tx.queues):
            code = DELETED
        request = self.call(
            code,
            lambda request: self.world.engine.transactions.prepare(
                request, tx.number, UUID(int=name)
            ),
        )
        if request is not None:
            self.model.prepare(request, tx, name)
            self.model.perform()

    @precondition(lambda self: self.model.txs)
    @rule(pick=picks)
    def commit(self, pick: int) -> None:
        tx = self.some_tx(pick, "open", "preparing", "prepared", "ending")
        code = self.refusal_to_end(tx)
        if tx.phase == "open" and any(queue.closing for queue in tx.queues):
            code = DELETED
        request = self.call(
            code, lambda request: self.world.engine.transactions.commit(request, tx.number)
        )
        if request is not None:
            self.model.commit(request, tx)
            self.model.perform()

    @precondition(lambda self: self.model.txs)
    @rule(pick=picks)
    def abort(self, pick: int) -> None:
        tx = self.some_tx(pick, "open", "preparing", "prepared", "ending")
        request = self.call(
            self.refusal_to_end(tx),
            lambda request: self.world.engine.transactions.abort(request, tx.number),
        )
        if request is not None:
            self.model.abort(request, tx)
            self.model.perform()

    def refusal_to_end(self, tx: Tx) -> int | None:
        return OUT_OF_SEQUENCE if tx.phase in {"preparing", "ending"} else None
