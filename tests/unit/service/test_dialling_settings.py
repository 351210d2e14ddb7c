"""What settings say about connections that are made, and about who is told."""

from __future__ import annotations

import pytest

from merq.errors import SettingsError
from merq.exchange import AllowedAdminQueues, ExchangeSettings
from merq.service.exchanging import ExchangeSection
from merq.service.settings import load_settings


def test_the_defaults_are_those_of_the_exchange() -> None:
    assert ExchangeSection().exchange_settings() == ExchangeSettings()


@pytest.mark.parametrize("value", list(AllowedAdminQueues))
def test_who_is_told_is_a_word(value: AllowedAdminQueues) -> None:
    found = load_settings(None, {"exchange.allowed_admin_queues": value.value}, {})
    assert found.exchange.exchange_settings().allowed_admin_queues is value


def test_another_word_is_refused() -> None:
    with pytest.raises(SettingsError, match="one of peer, known, any"):
        load_settings(None, {"exchange.allowed_admin_queues": "everybody"}, {})


def test_all_of_them_reach_the_exchange() -> None:
    flags = {
        "exchange.retry_max_s": "30",
        "exchange.dialled_links_max": "7",
        "exchange.dials_max": "5",
        "exchange.trust_inbound_s": "60",
        "exchange.acknowledgment_lifetime_s": "1000",
        "exchange.lookup_s": "3",
    }
    section = load_settings(None, flags, {}).exchange
    found = section.exchange_settings()
    assert (found.retry_max_s, found.dialled_links_max, found.dials_max) == (30.0, 7, 5)
    assert (found.trust_inbound_s, found.acknowledgment_lifetime_s) == (60.0, 1000)
    assert section.linking_settings("127.0.0.1").lookup_s == 3.0
