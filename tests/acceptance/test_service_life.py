"""How the service starts, stops, is killed, comes back, and what it says when it cannot start."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import pytest

import merq
from acceptance.service_process import (
    PATIENCE_S,
    STOP_S,
    RawClient,
    ServiceProcess,
    environment,
    serving,
    wait_until,
)
from kit.stations import new_address
from merq.errors import InDoubt
from merq.hresult import HResult
from merq.model.selecting import First
from merq.protocol.application.requests import Read

SENDERS: Final = 4
BUSY_S: Final = 0.7
"""For so long clients send before the service is stopped."""
DISK: Final = "size=24m"
DISK_TIMEOUT_S: Final = 60.0
NAMESPACES: Final = ["unshare", "--user", "--map-root-user", "--mount"]
MOUNTED: Final = f'mount -t tmpfs -o {DISK} tmpfs "$0" && exec "$@"'


class Sender(threading.Thread):
    """Sends until it cannot, and notes what was acknowledged and what is in doubt."""

    def __init__(self, service: ServiceProcess, name: str) -> None:
        super().__init__()
        self._manager = service.connect(reconnect_s=0)
        self._queue = self._manager.queue(r".\private$\load")
        self._who = name
        self.acknowledged: list[str] = []
        self.doubtful: list[str] = []
        self.end: merq.MessageQueueError | None = None

    def run(self) -> None:
        number = 0
        label = ""
        try:
            while True:
                label = f"{self._who}.{number}"
                self._queue.send(b"x" * (number * 37 % 3000), label=label, recoverable=True)
                self.acknowledged.append(label)
                number += 1
        except InDoubt as doubt:
            self.doubtful.append(label)
            self.end = doubt
        except merq.MessageQueueError as refused:
            self.end = refused
        finally:
            self._manager.close()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.spec("MS-MQDMPR 3.1.4.2")
def test_a_stop_under_load_is_quick_and_clean_and_nothing_acknowledged_is_lost(
    tmp_path: Path, ending: signal.Signals
) -> None:
    with serving(tmp_path / "data") as service:
        with service.connect() as manager:
            manager.create_queue(r".\private$\load")
        senders = [Sender(service, f"s{number}") for number in range(SENDERS)]
        for sender in senders:
            sender.start()
        waiting = threading.Thread(target=wait_for_ever, args=(service,))
        waiting.start()
        time.sleep(BUSY_S)
        began = time.monotonic()
        service.signal(ending)
        assert service.ended(STOP_S) == 0
        print(f"stopped after {time.monotonic() - began:.3f} s")
        for thread in (*senders, waiting):
            thread.join()
        assert not service.socket_path.exists()
        assert len(service.events("stopped")) == 1
        acknowledged = [label for sender in senders for label in sender.acknowledged]
        doubtful = {label for sender in senders for label in sender.doubtful}
        assert len(acknowledged) > SENDERS * 10
        service.start()
        with service.connect() as manager:
            there = [each.label for each in manager.queue(r".\private$\load").peek_all()]
        assert len(there) == len(set(there)), "something is there twice"
        assert set(acknowledged) <= set(there), "something acknowledged is lost"
        assert set(there) - set(acknowledged) <= doubtful


def wait_for_ever(service: ServiceProcess) -> None:
    """A receiver that waits when the service stops is told so."""
    with service.connect(reconnect_s=0) as manager:
        empty = manager.create_queue(r".\private$\empty")
        with pytest.raises(merq.MessageQueueError) as refused:
            empty.receive()
        assert refused.value.code == HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE


def test_a_stop_does_not_wait_for_clients_that_read_nothing_or_say_nothing(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "data", "--tcp-port", "0", "--insecure-tcp") as service:
        with service.connect() as manager:
            queue = manager.create_queue(r".\private$\big")
            queue.send(bytes(3 << 20))
            number = queue.number
        silent = RawClient(service.socket_path)
        stranger = RawClient(("127.0.0.1", service.tcp_port))
        deaf = RawClient(service.socket_path).greet()
        for _ in range(3):
            deaf.post(Read(number, First(), peek=True, wait=False))
        time.sleep(0.3)
        assert service.stop() == 0
        for client in (silent, stranger, deaf):
            client.close()


def test_a_killed_service_leaves_its_socket_and_the_next_one_takes_its_place(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "data") as service:
        with service.connect() as manager:
            guid = manager.guid
            manager.create_queue(r".\private$\q").send("kept", recoverable=True)
        service.kill()
        assert service.socket_path.is_socket()
        with pytest.raises(merq.MessageQueueError, match="is `merq serve` running"):
            service.connect()
        service.start()
        with service.connect() as manager:
            assert manager.guid == guid
            assert manager.queue(r".\private$\q").receive(timeout=0).body == "kept"


def refused(service: ServiceProcess) -> str:
    """What a service says that cannot start."""
    service.start(is_awaited=False)
    try:
        assert service.ended() == 1, service.output
    finally:
        service.end()
    return service.output.splitlines()[-1]


def test_a_second_service_on_the_same_folder_is_refused_and_the_first_goes_on(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "data") as first:
        second = ServiceProcess(tmp_path / "data", log=tmp_path / "second.log")
        text = refused(second)
        assert "is open in another process" in text
        assert str(first.pid) in text
        assert first.socket_path.is_socket()
        with first.connect() as manager:
            assert manager.status().connections == 1


@pytest.mark.spec("MS-MQDMPR 3.1.4.1")
def test_a_second_service_begins_once_the_first_has_gone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    often = {"retry.first_s": "0.2s", "retry.later_s": "0.2s"}
    with (
        ServiceProcess(data) as first,
        ServiceProcess.waiting(data, often, tmp_path / "second.log") as second,
    ):
        wait_until(lambda: bool(second.events("initialisation failed")), "it was refused")
        failure = second.events("initialisation failed")[0]
        assert "is open in another process" in failure["error"]
        assert failure["retry_s"] == 0.2
        with first.connect() as manager:
            manager.create_queue(r".\private$\q").send("handed on", recoverable=True)
        assert first.stop() == 0
        second.wait_until_running()
        with second.connect() as manager:
            assert manager.queue(r".\private$\q").receive(timeout=0).body == "handed on"
        assert second.stop() == 0
        second.check_log()


def test_a_service_that_waits_for_its_folder_can_be_stopped_at_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with (
        ServiceProcess(data),
        ServiceProcess.waiting(data, {}, tmp_path / "second.log") as second,
    ):
        wait_until(lambda: bool(second.events("initialisation failed")), "it was refused")
        assert second.stop() == 0


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    text = refused(ServiceProcess(blocked / "data", log=tmp_path / "log"))
    assert str(blocked) in text
    assert "name another folder" in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("settings", "taken", "expected"),
    [
        ({"exchange.listen": "true"}, ("tcp", 1801), ("TCP port 1801 of", "address of its own")),
        ({"exchange.listen": "true"}, ("udp", 3527), ("UDP port 3527 of", "exchange.ping_answer")),
        (
            {"insecure_tcp": "true", "tcp.port": 1888},
            ("tcp", 1888),
            ("TCP port 1888 of", "tcp.port"),
        ),
    ],
)
def test_a_port_that_somebody_has_ends_the_start_with_what_to_do(
    tmp_path: Path, settings: dict[str, object], taken: tuple[str, int], expected: tuple[str, str]
) -> None:
    address, (protocol, port) = new_address(), taken
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as other:
        other.bind((address, port))
        if protocol == "tcp":
            other.listen()
        service = ServiceProcess(tmp_path / "data", "--address", address, settings=settings)
        text = refused(service)
    assert f"{expected[0]} {address} cannot be listened on: another process has it" in text
    assert expected[1] in text
    assert "Errno" not in service.output


def test_an_address_of_another_computer_cannot_be_listened_on(tmp_path: Path) -> None:
    service = ServiceProcess(
        tmp_path / "data", "--address", "192.0.2.7", settings={"exchange.listen": "true"}
    )
    assert "this computer has no such address" in refused(service)


def test_a_missing_certificate_or_a_bad_file_of_peers_is_found_before_a_folder_is_made(
    tmp_path: Path,
) -> None:
    data, missing, bad = tmp_path / "data", tmp_path / "missing.pem", tmp_path / "peers.toml"
    bad.write_text("[[peers]]\n")
    settings = {"tls.cert": missing, "tls.key": missing, "tcp.port": 0}
    text = refused(ServiceProcess(data, settings=settings, log=tmp_path / "first.log"))
    assert f"{missing} cannot be read" in text
    settings = {"exchange.peers": bad}
    text = refused(ServiceProcess(data, settings=settings, log=tmp_path / "second.log"))
    assert "did you mean [[peer]]" in text
    assert not data.exists()


def test_why_it_could_not_start_is_in_the_log_file_too(tmp_path: Path) -> None:
    log, blocked = tmp_path / "merq.log", tmp_path / "file"
    blocked.touch()
    refused(ServiceProcess(blocked / "data", settings={"log.file": log}, log=tmp_path / "errors"))
    assert "initialisation failed" in log.read_text()
    assert "name another folder" in log.read_text()


def test_an_empty_file_of_peers_is_warned_about(tmp_path: Path) -> None:
    empty = tmp_path / "peers.toml"
    empty.touch()
    with serving(tmp_path / "data", exchange__peers=empty) as service:
        (told,) = service.events("settings")
        assert told["level"] == "warning"
        assert f"{empty} names no peer yet: a table [[peer]]" in told["text"]


def test_systemd_is_told_when_the_service_serves_and_not_if_it_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(path))
        told.settimeout(PATIENCE_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        with serving(tmp_path / "data"):
            assert told.recv(4096).split(b"\n")[0] == b"READY=1"
            refused(ServiceProcess(tmp_path / "data", log=tmp_path / "second.log"))
            told.setblocking(False)
            with pytest.raises(BlockingIOError):
                told.recv(4096)
        assert told.recv(4096) == b"STOPPING=1"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o500)
    assert "data" in refused(ServiceProcess(data))


def test_a_socket_path_that_is_too_long_is_refused_with_what_to_do(tmp_path: Path) -> None:
    service = ServiceProcess(tmp_path / ("x" * 100), log=tmp_path / "log")
    text = refused(service)
    assert "107" in text
    assert "socket.path" in text


def test_a_file_where_the_socket_should_be_is_left_alone(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("not a socket")
    service = ServiceProcess(tmp_path / "data", "--socket-path", str(precious))
    assert str(precious) in refused(service)
    assert precious.read_text() == "not a socket"


def test_a_socket_that_somebody_serves_on_is_not_taken_from_him(tmp_path: Path) -> None:
    """Another folder's lock says nothing about a socket outside of it."""
    path = tmp_path / "shared.sock"
    with ServiceProcess(tmp_path / "one", "--socket-path", str(path)) as one:
        two = ServiceProcess(tmp_path / "two", "--socket-path", str(path))
        assert str(path) in refused(two)
        with merq.connect(f"unix:{path}") as manager:
            assert str(manager.guid) == one.events("running")[0]["queue_manager"]
        assert one.stop() == 0
        assert not path.exists()


def test_the_defaults_are_safe(tmp_path: Path) -> None:
    """No TCP port at all, and a socket for its owner alone."""
    with serving(tmp_path / "data") as service:
        assert service.tcp_ports == []
        assert stat.S_IMODE(service.socket_path.stat().st_mode) == 0o600
        with socket.socket() as stranger, pytest.raises(ConnectionError):
            stranger.connect(("127.0.0.1", 1888))


# A disk that fills up.

CHILD: Final = """
import sys
from pathlib import Path
from acceptance.test_service_life import on_a_full_disk
on_a_full_disk(Path(sys.argv[1]))
"""


def on_a_full_disk(place: Path) -> None:
    """What happens behind a socket when there is no room, told in a child that has a small disk."""
    with serving(
        place / "data",
        store__segment_bytes="1MiB",
        store__reserve_bytes="64KiB",
        store__checkpoint_bytes="1MiB",
        store__ballast_bytes="1MiB",
        engine__disk_reserve_bytes="4MiB",
    ) as service:
        with service.connect() as manager:
            queue = manager.create_queue(r".\private$\q")
            (place / "ballast").write_bytes(bytes(6 << 20))
            sent = fill(queue)
            wait_until(lambda: manager.status().low_on_disk, "it is known that the disk runs low")
            for _ in range(5):
                assert is_refused(lambda: queue.send("more", recoverable=True))
                assert is_refused(lambda: queue.send_many(["a", "b"], recoverable=True))
            assert [each.label for each in queue.peek_all()] == sent
            half = len(sent) // 2
            assert [queue.receive(timeout=0).label for _ in range(half)] == sent[:half]
            (place / "ballast").unlink()
            del sent[:half]
            del sent[: len(queue.receive_many(half // 2, timeout=0))]
            wait_until(lambda: not manager.throttled, "there is room again")
            queue.send("room", label="room", recoverable=True)
            assert [each.label for each in queue.peek_all()] == [*sent, "room"]
        service.kill()
        service.start()
        with service.connect() as manager:
            queue = manager.queue(r".\private$\q")
            assert [each.label for each in queue.peek_all()] == [*sent, "room"]


FULL: Final = frozenset(
    {HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED}
)


def is_refused(act: Callable[[], object]) -> bool:
    try:
        act()
    except merq.MessageQueueError as refusal:
        if refusal.code not in FULL:
            raise
        return True
    return False


def fill(queue: merq.Queue) -> list[str]:
    """Sends until the disk runs low; gives what was acknowledged."""
    sent: list[str] = []
    for number in range(10_000):
        label = f"m{number}"
        message = merq.Message(body=bytes(40_000), label=label, recoverable=True)
        if is_refused(partial(queue.send, message)):
            return sent
        sent.append(label)
    raise AssertionError("a small disk that takes everything")


def test_a_full_disk_refuses_what_is_sent_and_gives_out_what_it_holds(tmp_path: Path) -> None:
    probe = [*NAMESPACES, "sh", "-c", MOUNTED, str(tmp_path)]
    try:
        tried = subprocess.run([*probe, "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError as missing:
        pytest.skip(f"a small disk cannot be mounted: {missing}")
    if tried.returncode:
        pytest.skip(f"a small disk cannot be mounted: {tried.stderr.strip()}")
    done = subprocess.run(
        [*probe, sys.executable, "-W", "error", "-c", CHILD, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=DISK_TIMEOUT_S,
        env=environment(),
    )
    assert not done.stderr, done.stderr
    assert done.returncode == 0


def test_what_was_purged_leaves_the_disk_though_nothing_is_written_any_more(tmp_path: Path) -> None:
    def used() -> int:
        total = 0
        for each in (tmp_path / "log").iterdir():
            with suppress(FileNotFoundError):  # it was removed meanwhile
                total += each.stat().st_size
        return total

    with serving(tmp_path) as service, service.connect() as manager:
        kept, purged = (manager.create_queue(rf".\private$\{name}") for name in ("kept", "purged"))
        body = b"x" * 100_000
        kept.send_many([body] * 100, recoverable=True)
        for _ in range(4):
            purged.send_many([body] * 100, recoverable=True)
        before = used()
        purged.purge()
        wait_until(lambda: used() < before // 2, f"less than half of {before} bytes is used")
        assert [each.body for each in kept.peek_all()] == [body] * 100
