from __future__ import annotations

import os
import pickle
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.engine.limits import Limits
from merq.errors import SettingsError
from merq.host import HostSettings
from merq.service.settings import (
    BulkSettings,
    Described,
    EngineSettings,
    LimitSettings,
    ListenSettings,
    ServiceSettings,
    SocketSettings,
    TlsSettings,
    as_toml,
    describe,
    load_settings,
)
from merq.store.log import LogSettings as SegmentSettings


def written(folder: Path, text: str) -> Path:
    path = folder / "merq.toml"
    path.write_text(text, encoding="utf-8")
    return path


def faults(
    config: Path | None = None,
    flags: dict[str, object] | None = None,
    environment: dict[str, str] | None = None,
) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as found:
        load_settings(config, flags or {}, environment or {})
    return found.value.faults


def test_without_any_settings_only_this_user_is_served_over_a_unix_socket() -> None:
    settings = load_settings(None, {}, {})
    assert settings == ServiceSettings()
    assert settings.socket_path == Path("data/merq.sock")
    assert settings.socket.mode == 0o600
    assert settings.tcp.port is None
    assert settings.address == settings.tcp_host == "127.0.0.1"
    assert settings.computer_name == socket.gethostname().partition(".")[0]
    assert settings.stop_s == 5
    assert settings.warnings == ()


def test_reading_and_writing_in_batches_has_its_times_in_whole_seconds() -> None:
    settings = load_settings(
        None, {}, {"MERQ_BULK_LEASE_S": "1.5 s", "MERQ_BULK_STAGE_KEEP_S": "2 d"}
    )
    limits = settings.bulk.added_to(settings.engine.limits())
    assert (limits.lease_s, limits.stage_keep_s) == (2, 2 * 86400)
    assert BulkSettings().added_to(Limits()) == Limits()
    (fault,) = faults(environment={"MERQ_BULK_LEASE_S": "0.5 s"})
    assert "MERQ_BULK_LEASE_S is '0.5 s'" in fault


@pytest.mark.spec("MS-MQDMPR 3.1.1.1")
@pytest.mark.spec("MS-MQSO note 13")
def test_a_failed_initialisation_is_retried_after_120_and_then_every_900_seconds() -> None:
    retry = load_settings(None, {}, {}).retry
    assert (retry.first_s, retry.later_s) == (120, 900)


def test_the_defaults_of_engine_and_store_are_their_own() -> None:
    settings = ServiceSettings()
    assert settings.engine.limits() == Limits()
    host = settings.store.host_settings()
    assert host == HostSettings(log=SegmentSettings())


def test_a_flag_wins_over_a_variable_and_that_over_the_file(tmp_path: Path) -> None:
    config = written(
        tmp_path, 'name = "file"\naddress = "127.0.0.2"\n[limits]\nconnections_max = 7\n'
    )
    environment = {"MERQ_NAME": "variable", "MERQ_ADDRESS": "127.0.0.3", "HOME": "elsewhere"}
    settings = load_settings(config, {"name": "flag", "data": None}, environment)
    assert settings.name == "flag"
    assert settings.address == "127.0.0.3"
    assert settings.tcp_host == "127.0.0.3"
    assert settings.limits.connections_max == 7


def test_sizes_and_times_have_units_wherever_they_are_written(tmp_path: Path) -> None:
    config = written(tmp_path, '[engine]\nmemory_bytes = "2 GiB"\n[limits]\nidle_s = "2 min"\n')
    settings = load_settings(config, {"stop_s": "500 ms"}, {"MERQ_STORE_CACHE_BYTES": "64 MiB"})
    assert settings.engine.limits().memory_bytes == 2 << 30
    assert settings.limits.idle_s == 120
    assert settings.stop_s == 0.5
    assert settings.store.host_settings().cache_bytes == 64 << 20


def test_a_variable_names_the_file_if_no_flag_does(tmp_path: Path) -> None:
    config = written(tmp_path, 'name = "alpha"\n')
    assert load_settings(None, {}, {"MERQ_CONFIG": str(config)}).name == "alpha"
    (fault,) = faults(environment={"MERQ_CONFIG": str(tmp_path / "none.toml")})
    assert "none.toml" in fault
    assert "MERQ_CONFIG" in fault
    assert "No such file" in fault


def test_an_empty_variable_sets_nothing() -> None:
    assert load_settings(None, {}, {"MERQ_TCP_PORT": "", "MERQ_CONFIG": ""}) == ServiceSettings()


def test_everything_that_is_wrong_is_listed_at_once_with_place_finding_and_remedy(
    tmp_path: Path,
) -> None:
    config = written(
        tmp_path,
        """
        dta = "x"
        socket = "here.sock"
        frame_bytes_max = 5
        [limit]
        [limits]
        conections_max = 4
        window_bytes = "64 XiB"
        keepalive_s = "5 min"
        idle_s = 40
        """,
    )
    found = faults(config, {"tcp_prt": 1, "stop_s": "-5"}, {"MERQ_LOG_LEVEL": "loud"})
    assert found == (
        f"{config}: there is no key dta; did you mean data?",
        f"{config}: socket is 'here.sock'; a table, [socket], belongs there",
        f"{config}: there is no key frame_bytes_max; did you mean limits.frame_bytes_max?",
        f"{config}: there is no key limit; did you mean limits?",
        f"{config}: there is no key limits.conections_max; did you mean limits.connections_max?",
        "there is no flag --tcp-prt; did you mean tcp.port?",
        (
            f"{config}: limits.window_bytes is '64 XiB'; a size from 4 KiB to 1 GiB, in bytes or "
            'such as "64 MiB", belongs there'
        ),
        "MERQ_LOG_LEVEL is 'loud'; one of debug, info, warning, error belongs there",
        (
            "--stop-s is '-5'; a time from 0.1 s to 10 min, in seconds or such as \"30 s\", "
            "belongs there"
        ),
        (
            "limits.keepalive_s is 300 s; less than limits.idle_s, 40 s, belongs there, or silent "
            f"connections die before they are asked ({config}: limits.keepalive_s, "
            f"{config}: limits.idle_s)"
        ),
    )
    text = str(SettingsError(found))
    assert text.splitlines() == ["10 settings are wrong:", *found]


def test_one_mistake_is_told_without_a_heading() -> None:
    assert str(SettingsError(("this",))) == "this"


@pytest.mark.limit("merq.service.sources.FILE_BYTES_MAX")
@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"a = ", "no TOML"), (b"\xff", "no TOML"), (b"#" * (1 << 20) + b"\n", "more than")],
)
def test_a_file_that_is_no_settings_file_is_refused(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "merq.toml"
    path.write_bytes(content)
    (fault,) = faults(path)
    assert str(path) in fault
    assert reason in fault


def test_a_folder_is_no_settings_file(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path)
    assert "Is a directory" in fault


def test_variables_of_the_client_are_let_be_and_others_warned_about() -> None:
    environment = {"MERQ_URL": "x", "MERQ_TOKEN": "y", "MERQ_CA": "z", "MERQ_TCPPORT": "9"}
    environment |= {"MERQ_CLIENT_CERT": "c", "MERQ_CLIENT_KEY": "k", "OTHER_NAME": "n"}
    settings = load_settings(None, {}, environment)
    assert settings.warnings == (
        "the variable 'MERQ_TCPPORT' sets nothing; did you mean MERQ_TCP_PORT?",
    )


TLS: dict[str, object] = {"tls_cert": "c.pem", "tls_key": "k.pem"}


@pytest.mark.limit("merq.service.settings.SOCKET_PATH_BYTES_MAX")
@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"tcp_port": 5}, "tcp.port is given without TLS"),
        ({"tcp_port": 5, "tls_cert": "c.pem"}, "tls.cert is given without tls.key"),
        ({"tcp_port": 5, "tls_key": "k.pem"}, "tls.key is given without tls.cert"),
        ({"tls_client_ca": "c.pem"}, "tls.client_ca is given without"),
        ({**TLS, "tcp_port": 5, "insecure_tcp": True}, "remove one of them"),
        ({"tcp_port": 5, "insecure_tcp": True, "address": "10.0.0.7"}, "only a loopback address"),
        ({"tcp_port": 5, "insecure_tcp": True, "tcp_host": "10.0.0.8"}, "only a loopback address"),
        ({"tcp_port": 5, "insecure_tcp": True, "tcp_host": "::"}, "only a loopback address"),
        ({"tcp_port": 5, "insecure_tcp": True, "tcp_host": "::ffff:10.0.0.7"}, "loopback"),
        ({"store_segment_bytes": "2 MiB"}, "store.reserve_bytes is larger"),
        ({"data": "x" * 100}, "at most 107 are possible"),
    ],
)
def test_what_does_not_go_together_is_refused(flags: dict[str, object], reason: str) -> None:
    (fault,) = faults(flags=flags)
    assert reason in fault
    name = list(flags)[-1].replace("_", "-")
    assert f"--{name}" in fault


def test_what_follows_from_a_wrong_value_is_not_told_too() -> None:
    found = faults(flags={"tcp_port": 5, "tls_cert": "c.pem", "tls_key": "a\0b"})
    assert found == ("--tls-key is 'a\\x00b'; a path belongs there",)


def test_tcp_without_tls_is_possible_on_purpose_on_loopback_and_warned_about() -> None:
    for host in ("127.0.0.2", "::1"):
        flags = {"tcp_port": 5, "insecure_tcp": True, "address": host}
        settings = load_settings(None, flags, {})
        assert settings.tcp_host == host
        assert "can be read on their way" in settings.warnings[0]


def test_tls_without_a_port_and_a_socket_for_all_are_warned_about() -> None:
    settings = load_settings(None, {**TLS, "socket_mode": "0666"}, {})
    assert "nothing listens on TCP" in settings.warnings[0]
    assert "every user of this machine" in settings.warnings[1]


def test_settings_made_by_hand_keep_to_the_same_rules() -> None:
    with pytest.raises(SettingsError, match=r"limits\.connections_max is 0; a whole number from 1"):
        LimitSettings(connections_max=0)
    with pytest.raises(SettingsError, match=r"engine\.memory_bytes"):
        EngineSettings(memory_bytes=-1)
    with pytest.raises(SettingsError, match=r"socket\.mode"):
        SocketSettings(mode=0o1777)
    with pytest.raises(SettingsError, match="name is"):
        ServiceSettings(name="a\\b")
    with pytest.raises(SettingsError, match="without TLS") as found:
        ServiceSettings(tcp=ListenSettings(port=0))
    assert pickle.loads(pickle.dumps(found.value)).faults == found.value.faults  # noqa: S301
    ServiceSettings(tcp=ListenSettings(port=0), tls=TlsSettings(cert=Path("c"), key=Path("k")))


def test_printed_settings_read_the_same(tmp_path: Path) -> None:
    flags = {**TLS, "tcp_port": 1801, "data": 'o"d\\d ü\x7f', "stop_s": 1.25, "name": "alpha"}
    flags |= {"engine_memory_bytes": 12345, "log_format": "json", "socket_mode": "0660"}
    settings = load_settings(None, flags, {})
    assert load_settings(written(tmp_path, as_toml(settings)), {}, {}) == settings


def test_every_key_is_described_and_its_names_are_its_own() -> None:
    described = describe()
    for names in (
        [each.key for each in described],
        [each.variable for each in described],
        [each.flag for each in described],
    ):
        assert len(set(names)) == len(names)
    by_key = {each.key: each for each in described}
    frame = by_key["limits.frame_bytes_max"]
    assert frame.variable == "MERQ_LIMITS_FRAME_BYTES_MAX"
    assert frame.flag == "--limits-frame-bytes-max"
    assert (frame.type_name, frame.default) == ("size", '"16 MiB"')
    assert by_key["tcp.port"].default == "no TCP"
    assert all(each.meaning.endswith(".") for each in described)


def test_every_key_can_be_set_by_its_variable_to_its_default() -> None:
    shown = {each.variable: each.default.strip('"') for each in describe() if each.is_value}
    assert load_settings(None, {}, shown) == ServiceSettings()


@given(st.sampled_from(describe()), st.text(max_size=20).filter(lambda text: "\0" not in text))
def test_any_variable_gives_settings_or_an_error_that_names_it(key: Described, value: str) -> None:
    variable = key.variable
    told = ""
    try:
        load_settings(None, {}, {variable: value})
    except SettingsError as wrong:
        told = str(wrong)
    assert not told or variable in told


def test_the_systems_own_variables_do_not_disturb() -> None:
    environment = {name: value for name, value in os.environ.items() if "MERQ" not in name}
    assert load_settings(None, {}, environment) == ServiceSettings()
