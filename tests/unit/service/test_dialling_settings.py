"""What settings say about connections that are made, and about who is told."""

from __future__ import annotations

import pytest

from merq.errors import SettingsError
from merq.exchange import AllowedAdminQueues, ExchangeSettings, TlsMode
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


FILES = {"exchange.tls_cert": "c", "exchange.tls_key": "k", "exchange.tls_ca": "a"}


@pytest.mark.parametrize("mode", list(TlsMode))
def test_tls_is_a_word_and_used_if_there_are_certificates(mode: TlsMode) -> None:
    flags = FILES | {"exchange.tls": mode.value, "exchange.tls_absent_s": "2 min"}
    found = load_settings(None, flags, {}).exchange.exchange_settings()
    assert (found.tls, found.is_tls_set_up, found.tls_absent_s) == (mode, True, 120.0)
    assert not load_settings(None, {}, {}).exchange.exchange_settings().is_tls_set_up


def test_without_certificates_nothing_listens_for_tls_and_it_cannot_be_demanded() -> None:
    assert ExchangeSection().linking_settings("127.0.0.1").tls_port is None
    with pytest.raises(SettingsError, match=r"is not set up: set exchange\.tls_cert"):
        load_settings(None, {"exchange.tls": "always"}, {})


@pytest.mark.parametrize("missing", FILES)
def test_certificate_key_and_authority_belong_together(missing: str) -> None:
    flags = {key: value for key, value in FILES.items() if key != missing}
    with pytest.raises(SettingsError, match=f"needs {missing} too: all three or none"):
        load_settings(None, flags, {})


def test_both_ports_cannot_be_the_same() -> None:
    with pytest.raises(SettingsError, match="are both 1801"):
        load_settings(None, {"exchange.tls_port": "1801"}, {})
