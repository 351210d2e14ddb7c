"""Whom a queue manager speaks to inside of TLS: what is tried, and what is remembered."""

from __future__ import annotations

from uuid import UUID

import pytest

from hostile.lowering import lowered
from kit.exchange import Manager
from kit.raw_sessions import RawSession
from merq.exchange import Link, Peer, Peers, TlsMode
from merq.exchange.tls_policy import SILENCES, TlsPolicy, TlsUse
from unit.exchange.exchange_world import GUIDS, ONE, PLAIN, THREE, TWO, changed, manager

HOST = "office.example"
BY_NAME = rf"DIRECT=OS:{HOST}\private$\q"
POLICY = "merq.exchange.tls_policy"


def ignore(_host: str, _why: str) -> None:
    """Nobody listens."""


def policy(*peers: Peer, **fields: object) -> TlsPolicy:
    return TlsPolicy(Peers(peers), changed(is_tls_set_up=True, **fields), ignore)


def named(tls: TlsMode | None, host: str = TWO) -> Peer:
    return Peer(name="two", guid=GUIDS[TWO], host=host, tls=tls)


def sender(*peers: Peer, **fields: object) -> Manager:
    """A queue manager with a certificate, and a message for another one."""
    made = manager(ONE, changed(is_tls_set_up=True, **fields), peers=peers)
    made.send(PLAIN, b"a", recoverable=True)
    return made


def dialled(made: Manager, now: float = 0.0) -> list[Link]:
    """What it wants to connect to."""
    made.exchange.tick(now)
    made.turn(now)
    return made.exchange.take_dialing()


# What is decided.


@pytest.mark.parametrize(
    ("default", "said", "found"),
    [
        (TlsMode.AUTO, None, TlsUse.TRIED),
        (TlsMode.AUTO, TlsMode.ALWAYS, TlsUse.REQUIRED),
        (TlsMode.AUTO, TlsMode.NEVER, TlsUse.CLEAR),
        (TlsMode.ALWAYS, None, TlsUse.REQUIRED),
        (TlsMode.ALWAYS, TlsMode.NEVER, TlsUse.CLEAR),
        (TlsMode.NEVER, None, TlsUse.CLEAR),
        (TlsMode.NEVER, TlsMode.AUTO, TlsUse.TRIED),
    ],
)
def test_the_file_of_peers_decides_and_otherwise_the_setting(
    default: TlsMode, said: TlsMode | None, found: TlsUse
) -> None:
    made = policy(named(said), tls=default)
    assert made.use(TWO, TWO, 0.0) is found
    assert made.use("Two", THREE, 0.0) is found, "by its name"
    assert made.use("alias.example", TWO, 0.0) is found, "by the address of another name"
    assert made.use(THREE, THREE, 0.0) is policy(tls=default).use(THREE, THREE, 0.0)


def test_if_two_entries_fit_the_stricter_counts() -> None:
    by_name = Peer(name=HOST, guid=UUID(int=7), host="", via="two", tls=TlsMode.NEVER)
    made = policy(named(TlsMode.ALWAYS), by_name)
    assert made.use(HOST, TWO, 0.0) is TlsUse.REQUIRED
    assert made.use(HOST, THREE, 0.0) is TlsUse.CLEAR


def test_without_a_certificate_everything_is_as_if_there_were_no_tls() -> None:
    made = TlsPolicy(Peers(), changed(), ignore)
    assert made.use(TWO, TWO, 0.0) is TlsUse.CLEAR
    made.remember([TWO])
    assert made.use(TWO, TWO, 0.0) is TlsUse.REQUIRED, "but not who was reached inside of it"


def test_who_was_reached_by_its_name_is_not_spoken_to_in_clear_at_any_address() -> None:
    made = policy()
    made.reached(HOST.upper())
    made.absent(THREE, 0.0)
    assert made.use(HOST, THREE, 1.0) is TlsUse.REQUIRED, "the name service may lie"
    assert made.use(THREE, THREE, 1.0) is TlsUse.CLEAR, "nobody said that it is the same"


def test_a_port_that_is_silent_is_tried_again_before_it_goes_on_in_clear() -> None:
    made = sender(retry_s=1.0, retry_max_s=1.0)
    now = 0.0
    for _ in range(SILENCES - 1):
        (link,) = dialled(made, now)
        assert link.is_secure
        made.exchange.tls_absent(link, "no answer in time", now, is_certain=False)
        assert dialled(made, now) == [], "it may be busy, or we are"
        now += 1.5
    (link,) = dialled(made, now)
    made.exchange.tls_absent(link, "no answer in time", now, is_certain=False)
    (clear,) = dialled(made, now)
    assert not clear.is_secure


def test_silences_count_only_in_a_row() -> None:
    tls = policy()
    for _ in range(3):
        assert not tls.was_silent(TWO)
        tls.met(TWO)


def test_nobody_at_the_port_is_believed_for_a_while() -> None:
    made = policy(tls_absent_s=100.0)
    made.absent(TWO, 5.0)
    assert made.use(TWO, TWO, 104.0) is TlsUse.CLEAR
    assert made.use(TWO, TWO, 105.0) is TlsUse.TRIED


@pytest.mark.limit("merq.exchange.tls_policy.ABSENT_MAX")
def test_the_oldest_that_had_nobody_at_the_port_is_tried_again() -> None:
    made = policy()
    with lowered({(POLICY, "ABSENT_MAX"): 2}):
        for address in (ONE, TWO, THREE):
            made.absent(address, 0.0)
    uses = [made.use(each, each, 1.0) for each in (ONE, TWO, THREE)]
    assert uses == [TlsUse.TRIED, TlsUse.CLEAR, TlsUse.CLEAR]


@pytest.mark.limit("merq.exchange.tls_policy.REMEMBERED_MAX")
def test_who_was_not_reached_for_longest_is_forgotten_and_that_is_told() -> None:
    told: list[tuple[str, str]] = []
    made = TlsPolicy(
        Peers(), changed(is_tls_set_up=True), lambda host, why: told.append((host, why))
    )
    with lowered({(POLICY, "REMEMBERED_MAX"): 2}):
        for host in (ONE, TWO, ONE, THREE):
            made.reached(host)
        assert told == [(TWO, "2 others were reached inside of TLS since")]
        assert made.take_changed() == (ONE, THREE)
        assert made.take_changed() is None
        again = policy()
        again.remember([TWO, ONE, THREE])
    assert again.use(TWO, TWO, 0.0) is TlsUse.TRIED
    assert again.use(ONE, ONE, 0.0) is TlsUse.REQUIRED


@pytest.mark.limit("merq.exchange.tls_policy.SEEN_MAX")
def test_the_first_who_connected_inside_of_tls_is_forgotten_when_there_are_too_many() -> None:
    made = policy()
    with lowered({(POLICY, "SEEN_MAX"): 1}):
        made.met(ONE)
        made.met(TWO)
    assert [made.use(each, each, 0.0) for each in (ONE, TWO)] == [TlsUse.TRIED, TlsUse.REQUIRED]
    assert made.take_changed() is None, "who connects here is not remembered over a restart"


# What the exchange does.


def test_tls_is_tried_first_and_then_the_same_address_in_clear() -> None:
    made = sender()
    (first,) = dialled(made)
    assert first.is_secure
    assert first.may_be_clear
    made.exchange.tls_absent(first, "refused", 0.0)
    (second,) = dialled(made)
    assert second.address == TWO
    assert not second.is_secure
    assert made.history(PLAIN) == ["InProcess"] * 3
    made.exchange.connected(second, 0.0)
    made.exchange.lost(second, "cut", 1.0)
    (third,) = dialled(made, 10.0)
    assert not third.is_secure, "it is remembered"


def test_if_nobody_answers_in_clear_either_tls_is_tried_first_again() -> None:
    made = sender()
    (first,) = dialled(made)
    made.exchange.tls_absent(first, "refused", 0.0)
    (second,) = dialled(made)
    made.exchange.dial_failed(second, "refused", 0.0)
    (third,) = dialled(made, 10.0)
    assert third.is_secure


def test_each_address_of_a_host_is_tried_inside_of_tls_first() -> None:
    made = manager(ONE, changed(is_tls_set_up=True))
    made.send(BY_NAME, b"a", recoverable=True)
    made.turn(0.0)
    assert made.exchange.take_lookups() == [HOST]
    made.exchange.looked_up(HOST, [TWO, THREE], 0.0)
    (first,) = dialled(made)
    made.exchange.tls_absent(first, "refused", 0.0)
    (second,) = dialled(made)
    assert (second.address, second.is_secure) == (TWO, False)
    made.exchange.dial_failed(second, "refused", 0.0)
    (third,) = dialled(made)
    assert (third.address, third.is_secure, third.host) == (THREE, True, HOST)


def test_a_handshake_that_fails_is_never_followed_by_clear() -> None:
    made = sender()
    for now in (0.0, 10.0, 30.0):
        (link,) = dialled(made, now)
        assert link.is_secure
        made.exchange.dial_failed(link, "a certificate of somebody else", now)
        assert made.exchange.take_dialing() == []
        assert made.exchange.tls_failures == (f"{TWO}: a certificate of somebody else",)
    assert made.waiting(PLAIN) == [b"a"]


def test_a_session_that_is_closed_before_it_is_open_is_never_followed_by_clear() -> None:
    made = sender()
    (link,) = dialled(made)
    made.exchange.connected(link, 0.0)
    made.exchange.lost(link, "the certificate was refused", 0.0)
    (link,) = dialled(made, 10.0)
    assert (link.is_secure, link.may_be_clear) == (True, False), "it was reached inside of TLS"
    assert "the certificate was refused" in made.exchange.tls_failures[0]


def test_who_was_reached_inside_of_tls_is_asked_for_nothing_else() -> None:
    made = sender()
    made.exchange.tls.remember([TWO])
    (link,) = dialled(made)
    assert (link.is_secure, link.may_be_clear) == (True, False)
    made.exchange.dial_failed(link, "refused", 0.0)
    (link,) = dialled(made, 10.0)
    assert link.is_secure


def test_a_queue_joins_a_connection_inside_of_tls_and_its_host_is_remembered_too() -> None:
    made = sender()
    session = RawSession.accept(made, GUIDS[TWO])
    assert session.link.is_secure
    assert made.exchange.tls.take_changed() == (TWO,)
    made.send(BY_NAME, b"b", recoverable=True)
    made.turn(0.0)
    made.exchange.take_lookups()
    made.exchange.looked_up(HOST, [TWO], 0.0)
    assert dialled(made) == []
    assert made.exchange.tls.take_changed() == (TWO, HOST)
    assert made.exchange.tls_failures == ()


def test_who_may_be_reached_in_clear_does_not_wait_for_tls_that_fails() -> None:
    made = manager(
        ONE,
        changed(is_tls_set_up=True),
        peers=(Peer(name="clear", guid=GUIDS[THREE], host=HOST, tls=TlsMode.NEVER),),
    )
    made.send(PLAIN, b"a", recoverable=True)
    (tls,) = dialled(made)
    assert tls.is_secure
    made.send(BY_NAME, b"b", recoverable=True)
    made.turn(0.0)
    made.exchange.take_lookups()
    made.exchange.looked_up(HOST, [TWO], 0.0)
    (clear,) = dialled(made)
    assert not clear.is_secure


def test_acknowledgments_of_messages_in_clear_go_back_in_clear_unless_that_is_forbidden() -> None:
    """A Windows behind the same NAT as a Merq that was reached inside of TLS."""
    for mode, answered in ((None, True), (TlsMode.ALWAYS, False)):
        made = manager(TWO, changed(is_tls_set_up=True), peers=(named(mode, ONE),))
        made.exchange.tls.remember([ONE])
        board = made.exchange.outbound._board
        session = RawSession.connect(made, ONE, GUIDS[THREE]).establish()
        is_demanded = made.exchange.tls.is_demanded(ONE, ONE)
        found = board.find_asker(ONE, GUIDS[THREE], is_secure=is_demanded)
        assert (found is session.link) is answered
