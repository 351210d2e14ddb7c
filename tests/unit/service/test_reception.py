from __future__ import annotations

from dataclasses import replace
from itertools import count
from uuid import UUID

import pytest

from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.delivered import Delivered
from merq.model.selecting import First
from merq.protocol.application.codec import decode_result, encode_request
from merq.protocol.application.frames import Kind
from merq.protocol.application.greeting import Hello, decode_welcome, encode_hello
from merq.protocol.application.reports import QueueReport, Result, Status
from merq.protocol.application.requests import (
    AskStatus,
    Begin,
    Cancel,
    DescribeQueue,
    End,
    Ending,
    EndReceive,
    Read,
    Send,
)
from merq.protocol.application.server import ServerLimits
from merq.service.reception import (
    REQUESTS_AT_ONCE,
    REQUESTS_S,
    RESUMES_MAX,
    RESUMES_S,
    ReceptionLimits,
)
from unit.service.serving import Client, Service, packet

LIMITS = ReceptionLimits()
STRANGER = UUID(int=99)


@pytest.fixture
def service() -> Service:
    return Service()


def count_in(service: Service, queue: int) -> int:
    return service.host.engine.state.queues[queue].positions.count


def again(client: Client) -> Client:
    """The client's next connection, gone on with its conversation."""
    other = Client(client.service)
    welcome = other.hello(client.connection.conversation)
    assert welcome.resumed
    assert welcome.conversation == client.connection.conversation
    return other


def lost(client: Client) -> Client:
    """The same when the server knows already that the old connection is gone."""
    client.leave()
    return again(client)


def code_of(result: Result) -> int:
    assert isinstance(result, MessageQueueError), result
    return result.code


def nothing_is_left(service: Service) -> None:
    service.settle()
    service.reception.forget(service.now + LIMITS.resume_s)
    assert not len(service.reception)
    assert not service.reception._departed
    assert not service.reception._lost
    assert not service.reception._conversations
    assert service.hall.connections == 0


# Coming and going.


def test_clients_are_counted(service: Service) -> None:
    first, second = service.client(), service.client()
    assert (len(service.reception), service.hall.connections) == (2, 2)
    status = second.ask(AskStatus())
    assert isinstance(status, Status)
    assert status.connections == 2
    first.leave()
    first.leave()
    assert len(service.reception) == 1
    second.leave()
    nothing_is_left(service)


@pytest.mark.limit("limits.connections_max")
def test_there_are_no_more_connections_than_may_be() -> None:
    service = Service(replace(LIMITS, connections_max=2))
    first, _ = service.client(), service.client()
    assert service.reception.connected("a third", is_local=True) is None
    first.leave()
    assert service.reception.connected("a third", is_local=True) is not None


def test_who_is_not_let_in_is_told_so_and_no_more(service: Service) -> None:
    client = Client(service, is_local=False)
    client.say(encode_hello(Hello(protocol="merq", oldest=1, newest=1)))
    (found,) = client.hear()
    assert code_of(decode_result(found)) == HResult.MQ_ERROR_ACCESS_DENIED
    assert client.connection.closing == "only local clients are let in here"
    client.say(encode_request(1, AskStatus()))
    assert client.hear() == []
    client.leave()
    nothing_is_left(service)


def test_who_breaks_the_rules_is_told_why_and_is_to_be_closed(service: Service) -> None:
    client = service.client()
    client.say(encode_request(0, AskStatus()))
    (found,) = client.hear()
    assert found.number == 0
    assert "number 0" in str(decode_result(found))
    assert client.connection in service.reception.dirty
    assert "number 0" in client.connection.closing


def test_everybody_gets_his_own_answer(service: Service) -> None:
    queue = service.queue("q")
    clients = [service.client() for _ in range(5)]
    for client in clients:
        client.begin(Send(queue, [packet()]), number=7)
    service.settle()
    ids = [client.heard()[7] for client in clients]
    assert len({each for each in ids if isinstance(each, bytes)}) == 5


def test_a_client_cancels_only_what_is_its_own(service: Service) -> None:
    queue = service.queue("q")
    owner, stranger = service.client(), service.client()
    owner.begin(Read(queue, First(), wait=True), number=3)
    assert stranger.ask(Cancel(3)) == 0
    owner.begin(Cancel(3))
    service.settle()
    answers = owner.heard()
    assert answers[4] == 1
    assert code_of(answers[3]) == HResult.MQ_ERROR_IO_TIMEOUT


def test_a_message_that_the_disk_spoilt_is_passed_over_and_others_go_on(service: Service) -> None:
    queue, other = service.queue("q"), service.queue("other")
    client = service.client()
    client.ask(Send(queue, [packet(b"to be spoilt"), packet(b"whole")]))
    service.host.packets._cache.clear()
    for name in service.disk.files():
        at = service.disk.content(name).find(b"to be spoilt")
        if at >= 0:
            service.disk.damage(name, at)
    read = client.ask(Read(queue, First()))
    assert isinstance(read, Delivered)
    assert b"whole" in bytes(read.packet)
    assert any(name.startswith("aside/damaged-") for name in service.disk.files())
    assert isinstance(client.ask(Send(other, [packet()])), bytes)


# Slow clients.


def test_who_leaves_answers_unread_is_not_listened_to_until_he_has_read() -> None:
    service = Service(replace(LIMITS, outbox_high_bytes=600))
    client = service.client()
    for number in range(1, 30):
        client.begin(AskStatus(), number)
    assert service.reception.is_congested(client.connection)
    answered = len(client.connection.outbox)
    assert 0 < answered < 29
    assert client.connection.session.waiting_bytes
    seen = 0
    for _ in range(29):
        seen += len(client.heard())
        service.reception.go_on(client.connection)
    assert seen + len(client.heard()) == 29
    assert not client.connection.closing


def test_what_is_on_its_way_counts_as_unread() -> None:
    service = Service(replace(LIMITS, outbox_high_bytes=600))
    client = service.client()
    client.connection.unread_bytes = 601
    client.begin(AskStatus())
    assert client.heard() == {}
    client.connection.unread_bytes = 0
    service.reception.go_on(client.connection)
    assert list(client.heard()) == [1]


@pytest.mark.limit("merq.service.reception.ReceptionLimits.outbox_bytes_max")
def test_who_reads_nothing_at_all_is_cut_off() -> None:
    service = Service(replace(LIMITS, outbox_high_bytes=400, outbox_bytes_max=3000))
    queue = service.queue("q")
    client, sender = service.client(), service.client()
    for number in range(1, 31):
        client.begin(Read(queue, First(), wait=True), number)
    for _ in range(30):
        sender.ask(Send(queue, [packet(bytes(100))]))
    assert client.connection.closing == "it does not read its answers"
    assert client.connection in service.reception.dirty


@pytest.mark.limit("limits.answer_bytes_max")
def test_a_read_stops_at_the_size_of_an_answer() -> None:
    service = Service(replace(LIMITS, client=ServerLimits(answer_bytes_max=500)))
    queue, client = service.queue("q"), service.client()
    client.ask(Send(queue, [packet(bytes(200))] * 5))
    found = client.ask(Read(queue, First(), most=5, held=True))
    assert isinstance(found, list)
    assert len(found) == 2


# Conversations that go on.


def test_an_answer_that_was_lost_is_given_again_and_nothing_happens_twice(
    service: Service,
) -> None:
    queue, client = service.queue("q"), service.client()
    ids = client.ask(Send(queue, [packet()]), number=5)
    client = lost(client)
    assert client.ask(Send(queue, [packet()]), number=5) == ids
    assert count_in(service, queue) == 1


def test_what_was_under_way_is_answered_on_the_next_connection(service: Service) -> None:
    queue, client = service.queue("q"), service.client()
    client.begin(Send(queue, [packet()]), number=5)
    client = lost(client)
    client.begin(Send(queue, [packet()]), number=5)
    assert client.heard() == {}
    service.settle()
    assert isinstance(client.heard()[5], bytes)
    assert count_in(service, queue) == 1
    client.leave()
    nothing_is_left(service)


def test_what_ends_while_nobody_is_connected_is_known_later(service: Service) -> None:
    queue, client = service.queue("q"), service.client()
    client.begin(Send(queue, [packet()]), number=5)
    client.leave()
    service.settle()
    assert not service.reception._departed
    client = again(client)
    assert isinstance(client.ask(Send(queue, [packet()]), number=5), bytes)
    assert count_in(service, queue) == 1


def test_what_ends_before_it_is_asked_again_is_known_then(service: Service) -> None:
    queue, client = service.queue("q"), service.client()
    client.begin(Send(queue, [packet()]), number=5)
    client = lost(client)
    service.settle()
    assert client.heard() == {}
    assert isinstance(client.ask(Send(queue, [packet()]), number=5), bytes)
    assert count_in(service, queue) == 1


@pytest.mark.parametrize("is_settled", [True, False])
@pytest.mark.parametrize("asks_between", [True, False])
def test_nothing_happens_twice_over_three_connections(
    service: Service, is_settled: bool, asks_between: bool
) -> None:
    queue, client = service.queue("q"), service.client()
    send = Send(queue, [packet()])
    client.begin(send, number=5)
    if is_settled:
        service.settle()
    client = lost(client)
    if asks_between:
        client.begin(send, number=5)
    client = lost(client)
    client.begin(send, number=5)
    service.settle()
    assert isinstance(client.heard()[5], bytes)
    assert count_in(service, queue) == 1
    client.leave()
    nothing_is_left(service)


def test_a_welcome_that_never_came_costs_nothing(service: Service) -> None:
    queue, client = service.queue("q"), service.client()
    client.ask(Send(queue, [packet()]), number=5)
    name = client.connection.conversation
    client.leave()
    Client(service).hello(name)  # and its connection is lost before it is heard
    third = Client(service)
    assert third.hello(name).resumed
    assert isinstance(third.ask(Send(queue, [packet()]), number=5), bytes)
    assert count_in(service, queue) == 1


def test_a_client_knows_before_the_server_that_its_connection_is_gone(service: Service) -> None:
    queue, old = service.queue("q"), service.client()
    old.ask(Send(queue, [packet()]), number=5)
    old.begin(Read(queue, First(), held=True), number=6)
    service.settle()
    client = again(old)
    assert old.connection.is_lost
    assert old.connection.closing
    assert old.connection in service.reception.dirty, "its socket is to be closed"
    assert len(service.reception) == 1
    old.say(encode_request(7, Send(queue, [packet()])))
    assert isinstance(client.ask(Send(queue, [packet()]), number=5), bytes)
    assert count_in(service, queue) == 1
    found = client.ask(Read(queue, First(), held=True), number=6)
    assert isinstance(found, Delivered), "what the old one held went back"
    old.leave()
    assert len(service.reception) == 1


def test_who_asks_for_a_conversation_that_nobody_knows_begins_another(service: Service) -> None:
    client = Client(service)
    welcome = client.hello(STRANGER)
    assert not welcome.resumed
    assert welcome.conversation != STRANGER


def test_a_conversation_is_forgotten_when_its_time_is_over(service: Service) -> None:
    client = service.client()
    name = client.connection.conversation
    client.leave()
    service.now += LIMITS.resume_s - 1
    service.reception.forget(service.now)
    assert service.reception._lost
    service.now += 1
    service.reception.forget(service.now)
    assert not Client(service).hello(name).resumed


@pytest.mark.limit("merq.service.reception.ReceptionLimits.conversations_max")
def test_the_oldest_conversations_are_forgotten_when_there_are_too_many() -> None:
    service = Service(replace(LIMITS, conversations_max=2))
    clients = [service.client() for _ in range(3)]
    for client in clients:
        client.leave()
    assert not Client(service).hello(clients[0].connection.conversation).resumed
    assert Client(service).hello(clients[2].connection.conversation).resumed


@pytest.mark.limit("merq.service.reception.RESUMES_MAX")
def test_an_old_client_that_asks_for_ever_for_what_it_cannot_read_is_told_that_it_is_too_old(
    service: Service,
) -> None:
    client = service.client()
    for _ in range(RESUMES_MAX):
        client = lost(client)
    name = client.connection.conversation
    client.leave()
    refused = Client(service)
    refused.say(encode_hello(Hello(protocol="merq", oldest=1, newest=1, resume=name)))
    (told,) = refused.heard().values()
    assert code_of(told) == HResult.MQ_ERROR_ACCESS_DENIED
    assert "too old to read the answer" in str(told)
    assert "too old" in refused.connection.closing
    assert not service.client().hear(), "others are let in"


def test_a_client_whose_connections_break_now_and_then_goes_on_however_often_that_is(
    service: Service,
) -> None:
    client = service.client()
    for _ in range(2 * RESUMES_MAX):
        client = lost(client)
        service.now += 2 * RESUMES_S / RESUMES_MAX
    newer = service.client()
    for _ in range(2 * RESUMES_MAX):
        name = newer.connection.conversation
        newer.leave()
        newer = Client(service)
        newer.say(encode_hello(Hello(protocol="merq", oldest=1, newest=2, resume=name)))
        assert decode_welcome(newer.hear()[0]).resumed, "it looks after itself"


def test_what_ends_after_its_conversation_is_forgotten_leaves_nothing(service: Service) -> None:
    queue, client = service.queue("q"), service.client()
    client.begin(Send(queue, [packet()]))
    client.leave()
    service.reception.forget(service.now + 1e6)
    assert service.reception._departed
    service.settle()
    assert count_in(service, queue) == 1
    nothing_is_left(service)


def test_what_the_client_says_it_has_is_not_kept_for_it(service: Service) -> None:
    queue, client = service.queue("q"), service.client()
    for number in range(1, 6):
        client.ask(Send(queue, [packet()]), number, received=number - 1)
    assert set(client.connection.session.memory.answers) == {5}


# What belongs to a connection.


def test_a_transaction_ends_with_its_connection_even_if_its_client_goes_on(
    service: Service,
) -> None:
    queue, client = service.queue("t", transactional=True), service.client()
    client.ask(Begin(1), number=1)
    client.ask(Send(queue, [packet()], 1), number=2)
    client = lost(client)
    # The client has heard nothing: it asks for all of it again, and then commits.
    assert client.ask(Begin(1), number=1) is None
    for number, request in ((2, Send(queue, [packet()], 1)), (3, End(1, Ending.COMMIT))):
        said = client.ask(request, number)
        assert code_of(said) == HResult.MQ_ERROR_TRANSACTION_SEQUENCE
    assert count_in(service, queue) == 0
    assert not service.host.engine.state.transactions


def test_a_commit_that_was_under_way_is_told_on_the_next_connection(service: Service) -> None:
    queue, client = service.queue("t", transactional=True), service.client()
    client.ask(Begin(1))
    client.ask(Send(queue, [packet()], 1))
    client.begin(End(1, Ending.COMMIT), number=3)
    client = lost(client)
    assert client.ask(End(1, Ending.COMMIT), number=3) is None
    assert count_in(service, queue) == 1


def test_a_held_message_goes_back_with_its_connection(service: Service) -> None:
    queue, client = service.queue("q"), service.client()
    client.ask(Send(queue, [packet()]))
    found = client.ask(Read(queue, First(), held=True))
    assert isinstance(found, Delivered)
    client = lost(client)
    said = client.ask(EndReceive(queue, [found.lookup_id], delete=True), number=9)
    assert code_of(said) == HResult.MQ_ERROR_TRANSACTION_SEQUENCE
    assert isinstance(client.ask(Read(queue, First(), held=True)), Delivered)


def test_a_message_that_was_ended_on_a_lost_connection_is_ended_once(service: Service) -> None:
    queue, client = service.queue("q"), service.client()
    client.ask(Send(queue, [packet()]))
    found = client.ask(Read(queue, First(), held=True))
    assert isinstance(found, Delivered)
    end = EndReceive(queue, [found.lookup_id], delete=True)
    client.begin(end, number=9)
    client = lost(client)
    assert client.ask(end, number=9) is None
    assert count_in(service, queue) == 0


def test_a_message_that_was_being_handed_out_when_the_connection_went_goes_back(
    service: Service,
) -> None:
    queue, reader, sender = service.queue("q"), service.client(), service.client()
    reader.begin(Read(queue, First(), wait=True, held=True))
    sender.begin(Send(queue, [packet(recoverable=False)]))
    reader.leave()
    service.settle()
    assert isinstance(sender.heard()[1], bytes)
    assert isinstance(sender.ask(Read(queue, First(), held=True)), Delivered)


def test_who_waited_and_is_gone_gets_no_message(service: Service) -> None:
    queue, reader, sender = service.queue("q"), service.client(), service.client()
    reader.begin(Read(queue, First(), wait=True, held=True))
    service.settle()
    reader.leave()
    sender.ask(Send(queue, [packet()]))
    report = sender.ask(DescribeQueue(queue))
    assert isinstance(report, QueueReport)
    assert (report.messages, report.locked, report.readers) == (1, 0, 0)


def test_nothing_is_written_for_whoever_is_gone(service: Service) -> None:
    queue, client = service.queue("q"), service.client()
    client.begin(Send(queue, [packet()]))
    client.leave()
    service.settle()
    assert client.connection.outbox == []
    assert client.connection not in service.reception.dirty


def test_requests_may_follow_a_hello_at_once(service: Service) -> None:
    client = Client(service)
    hello = encode_hello(Hello(protocol="merq", oldest=1, newest=1))
    client.say(hello + encode_request(1, AskStatus()) + encode_request(2, AskStatus()))
    assert [each.kind for each in client.hear()] == [Kind.WELCOME, Kind.TOLD, Kind.TOLD]


def test_whoever_asks_for_what_takes_long_lets_others_have_their_turn(service: Service) -> None:
    ticks = count()
    service.reception.clock = lambda: next(ticks) * 2 * REQUESTS_S  # whatever is asked takes long
    greedy, other = service.client(), service.client()
    greedy.say(b"".join(encode_request(number, AskStatus()) for number in range(1, 101)))
    heard = list(greedy.heard())
    assert len(heard) == REQUESTS_AT_ONCE
    assert isinstance(other.ask(AskStatus()), Status)
    while greedy.connection in service.reception.unfinished:
        del service.reception.unfinished[greedy.connection]
        service.reception.go_on(greedy.connection)
        heard += greedy.heard()
    assert heard == list(range(1, 101)), "each was carried out, once and in its turn"
