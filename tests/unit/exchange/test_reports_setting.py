"""Whether the exchange reports on traced messages is a setting."""

from __future__ import annotations

import pytest

from kit.exchange import Town
from merq.exchange import ExchangeSettings, Peer
from merq.model.message_class import MessageClass
from unit.exchange.exchange_world import GUIDS, ONE, PLAIN, TWO, changed, manager


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.spec("MS-MQMQ note 23", "MS-MQQB 3.1.5.8.9", "MS-MQQB 3.1.7.1.7")
def test_a_queue_manager_reports_on_traced_messages_only_if_it_is_to(is_on: bool) -> None:
    sender = manager(ONE, changed(trace_reports=is_on))
    known = Peer(name="m1", guid=GUIDS[ONE], host=ONE)
    receiver = manager(TWO, changed(trace_reports=is_on), peers=(known,))
    receiver.create("q")
    sender.create("other")
    number = sender.create("reports")
    identifier = sender.host.engine.state.queues[number].properties.identifier
    town = Town(sender, receiver)
    sender.send(PLAIN, b"a", report_queue=identifier)
    town.wait(1.0)
    classes = [view.message_class for view in sender.messages(number)]
    assert classes == [MessageClass.MQMSG_CLASS_REPORT] * (2 if is_on else 0)


@pytest.mark.spec("MS-MQMQ note 23")
def test_reports_are_sent_unless_they_are_switched_off() -> None:
    assert ExchangeSettings().trace_reports
