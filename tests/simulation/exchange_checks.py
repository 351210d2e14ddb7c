"""What must hold of every letter when all is quiet: the network whole, all machines up."""

from __future__ import annotations

from merq.model.message_class import ClassKind, MessageClass
from simulation.exchange_ledger import REACHED, RECEIVED, Fate, Kind, Ledger, Letter

POSITIVE_ARRIVAL, POSITIVE_RECEIVE, NEGATIVE_ARRIVAL, NEGATIVE_RECEIVE = 1, 2, 4, 8


def check_letter(ledger: Ledger, letter: Letter) -> None:
    """Each letter is where it must be, and what is told of it is true."""
    if letter.fate is Fate.UNDONE:
        seen = letter.arrivals + letter.received + letter.journaled
        assert not seen + len(letter.dead) + len(letter.acks), f"never sent: {letter}"
        return
    check_limits(ledger, letter)
    check_acknowledgments(ledger, letter)
    if letter.fate is not Fate.DONE:
        return
    if not letter.target:
        return  # it waits for a computer that is not there
    check_arrival(ledger, letter)
    if letter.kind is Kind.TRANSACTIONAL:
        check_transactional(ledger, letter)
    elif letter.kind is Kind.RECOVERABLE or not ledger.has_restarted(letter):
        check_plain(ledger, letter)


def check_limits(ledger: Ledger, letter: Letter) -> None:
    assert letter.arrivals <= 1 or ledger.may_repeat(letter), f"more than once: {letter}"
    assert letter.received <= letter.arrivals, f"received from nowhere: {letter}"
    assert letter.journaled <= 1 or ledger.may_repeat(letter), f"journaled twice: {letter}"
    assert len(letter.dead) <= 1 or ledger.may_tell_twice(letter), f"dead twice: {letter}"
    if letter.received and letter.dead:
        assert ledger.may_be_both(letter) or ledger.may_tell_twice(letter), (
            f"received and dead: {letter}"
        )


def check_arrival(ledger: Ledger, letter: Letter) -> None:
    is_safe = letter.kind is not Kind.EXPRESS or not ledger.has_restarted(letter)
    if letter.is_steady and not letter.expires and not letter.was_purged and is_safe:
        assert letter.arrivals, f"lost: {letter}"
        if not letter.is_purged_target:
            assert letter.received or letter.is_unclear, f"lost from its queue: {letter}"


def check_transactional(ledger: Ledger, letter: Letter) -> None:
    if letter.is_unclear or ledger.may_be_both(letter):
        return
    if letter.positive:
        assert letter.journaled == letter.received, f"the journal does not tell: {letter}"
    if letter.negative:
        assert bool(letter.dead) != bool(letter.received), f"dead letters do not tell: {letter}"


def check_plain(ledger: Ledger, letter: Letter) -> None:
    if letter.is_unclear or ledger.may_be_both(letter) or ledger.may_repeat(letter):
        return
    if letter.positive and letter.arrivals:
        assert letter.journaled == 1, f"the journal does not tell: {letter}"
    is_lost = letter.arrivals and not letter.received
    if letter.negative and is_lost and ledger.keeps_dead_letters(letter):
        assert len(letter.dead) == 1, f"dead letters do not tell: {letter}"


def check_acknowledgments(ledger: Ledger, letter: Letter) -> None:
    if not letter.asked:
        return
    kinds = [each.kind for each in map(MessageClass.of, letter.acks) if each is not None]
    refused = kinds.count(ClassKind.NOT_DELIVERED)
    unreceived = kinds.count(ClassKind.NOT_RECEIVED)
    may_differ = ledger.may_be_both(letter) or ledger.may_tell_twice(letter)
    assert not (refused and letter.arrivals) or may_differ, f"refused, and there: {letter}"
    assert not (unreceived and letter.received) or may_differ, f"not received, and was: {letter}"
    assert refused + unreceived <= 1 or may_differ, f"two reasons: {letter}"
    if not letter.is_unclear and not may_differ:
        assert letter.acks.count(RECEIVED) <= letter.received, f"nobody received it: {letter}"
    if letter.fate is not Fate.DONE or letter.is_unclear or may_differ:
        return
    if letter.kind is Kind.EXPRESS and ledger.has_restarted(letter):
        return
    if ledger.may_lose_answers(letter):
        return
    if letter.asked & POSITIVE_ARRIVAL:
        assert letter.acks.count(REACHED) == letter.arrivals, f"arrival not told: {letter}"
    if letter.asked & POSITIVE_RECEIVE:
        assert letter.acks.count(RECEIVED) == letter.received, f"receipt not told: {letter}"
    both = NEGATIVE_ARRIVAL | NEGATIVE_RECEIVE
    if letter.asked & both == both and not letter.arrivals and letter.is_steady:
        assert refused + unreceived == 1, f"nobody told that it did not arrive: {letter}"
    if letter.asked & NEGATIVE_RECEIVE and letter.arrivals and not letter.received:
        assert unreceived == 1, f"nobody told that it was not received: {letter}"
