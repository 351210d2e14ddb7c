"""The file of peers: queue managers that are known by their GUID, and where they are.

A TOML file with a table `[[peer]]` for each. Everything that is wrong with it is told at once, with
its line where that can be found: the service starts with all of it or not at all.
"""

from __future__ import annotations

import difflib
import re
import reprlib
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from merq.errors import SettingsError
from merq.exchange import Peer, TlsMode
from merq.exchange.routes import NULL_GUID
from merq.model.queue_settings import BASE_PRIORITY_MAX, BASE_PRIORITY_MIN
from merq.service.kinds import ReachableHost, WrongValue

PEERS_MAX: Final = 100_000
"""Peers that a file may name."""

PEERS_FILE_BYTES_MAX: Final = 32 << 20
"""A file of peers is not larger: room for as many as there may be."""

FAULTS_MAX: Final = 20
"""Mistakes of one file that are told; of more it is told how many there are."""

EXAMPLE: Final = "a table [[peer]] with name, guid and host belongs there for each queue manager"
"""What a file of peers is to have."""

_HEADER: Final = re.compile(r"^[ \t]*\[\[[ \t]*peer[ \t]*\]\]", re.MULTILINE)


class _Fault(ValueError):
    """What is wrong with a table, and at which key."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


def read_peers(path: Path) -> list[Peer]:
    """Reads a file of peers.

    Raises:
        SettingsError: It cannot be read, or says what it cannot mean; all of it.
    """
    text = _text_of(path)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise _refused(path, f"is no TOML: {wrong}; {EXAMPLE}") from wrong
    tables = found.get("peer", [])
    if not isinstance(tables, list) or len(tables) > PEERS_MAX:
        raise _refused(path, f"at most {PEERS_MAX} tables [[peer]] belong there")
    faults = [f"{path}: {key} is unknown{_nearest(key)}" for key in found if key != "peer"]
    places = _Places(path, text)
    peers: dict[int, Peer] = {}
    for number, table in enumerate(tables):
        try:
            peers[number] = _peer(table)
        except _Fault as wrong:
            faults.append(f"{places.of(number, table, wrong.key)}: {wrong}")
    faults += _contradictions(peers, places)
    if faults:
        more = len(faults) - FAULTS_MAX
        told = faults[:FAULTS_MAX] + ([f"{path}: and {more} more mistakes"] if more > 0 else [])
        raise SettingsError(tuple(told))
    return list(peers.values())


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(PEERS_FILE_BYTES_MAX + 1)
    except OSError as wrong:
        raise _refused(path, f"cannot be read: {wrong.strerror}; a TOML file belongs there") from (
            wrong
        )
    if len(data) > PEERS_FILE_BYTES_MAX:
        raise _refused(path, f"has more than {PEERS_FILE_BYTES_MAX} bytes; is it the right file?")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as wrong:
        line = data.count(b"\n", 0, wrong.start) + 1
        raise _refused(
            path, f"is not UTF-8 in line {line}: byte {data[wrong.start]:#04x}; save it as UTF-8"
        ) from wrong


def _refused(path: Path, sentence: str) -> SettingsError:
    return SettingsError((f"exchange.peers: {path} {sentence}",))


class _Places:
    """Where tables and keys stand in the file, for people."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text
        self._starts: list[int] | None = None

    def of(self, number: int, table: object, key: str = "") -> str:
        """A table, counted from 0, or one of its keys."""
        if self._starts is None:
            self._starts = [each.start() for each in _HEADER.finditer(self._text)]
        name = table.get("name") if isinstance(table, dict) else None
        who = f"peer {number + 1}" + (f" ({name:.40})" if isinstance(name, str) and name else "")
        if number >= len(self._starts):  # written as an array of inline tables
            return f"{self._path}, {who}"
        start = self._starts[number]
        end = (*self._starts[number + 1 : number + 2], len(self._text))[0]
        if key and (
            found := re.compile(rf"^[ \t]*{key}\b", re.MULTILINE).search(self._text, start, end)
        ):
            start = found.start()
        return f"{self._path}, line {self._text.count(chr(10), 0, start) + 1}, {who}"


def _contradictions(peers: Mapping[int, Peer], places: _Places) -> Iterator[str]:
    """What each may say alone, but not together."""
    names: dict[str, int] = {}
    guids: dict[UUID, int] = {}
    for number, peer in peers.items():
        table = {"name": peer.name}
        if (other := names.setdefault(peer.name.lower(), number)) != number:
            yield (
                f"{places.of(number, table, 'name')}: peer {other + 1} has the same name; "
                "each needs its own"
            )
        if peer.guid != NULL_GUID and (other := guids.setdefault(peer.guid, number)) != number:
            yield (
                f"{places.of(number, table, 'guid')}: peer {other + 1} ({peers[other].name:.40}) "
                "has the same guid; `merq status` shows that of each"
            )
    for number, peer in peers.items():
        if peer.via and peer.via.lower() not in names:
            yield (
                f"{places.of(number, {'name': peer.name}, 'via')}: via is {peer.via!r:.80}, which "
                "is no peer of this file"
            )


def _peer(table: Any) -> Peer:
    if not isinstance(table, dict):
        raise _Fault("", f"it is {reprlib.repr(table)}; a table belongs there")
    for key in table:
        if key not in _KEYS:
            raise _Fault(re.escape(key), f"{key:.40} is unknown{_nearest(key)}")
    for key, value in table.items():
        kind, form = _KEYS[key]
        if not kind(value):
            raise _Fault(key, f"{key} is {reprlib.repr(value)}; {form} belongs there")
    if not table.get("name"):
        raise _Fault("name", f"name is missing; {_KEYS['name'][1]} belongs there")
    host, via = table.get("host", ""), table.get("via", "")
    inbound = table.get("trust_inbound", False)
    if (host and via) or not (host or via or inbound):
        raise _Fault(
            "via" if via else "",
            "either host or via belongs there: where it is, or who passes on to it; or "
            "trust_inbound = true, if it connects to us and nobody can connect to it",
        )
    queues = tuple(UUID(each) for each in table.get("public_queues", []))
    tls = table.get("tls")
    # Of who is named for TLS alone nothing else need be known.
    is_for_tls = tls is not None and host and not queues and not inbound
    if not table.get("guid") and not is_for_tls:
        raise _Fault(
            "guid",
            f"guid is missing; {_GUID_FORM} belongs there, unless there are only name, host and "
            "tls",
        )
    return Peer(
        name=table["name"],
        guid=UUID(table["guid"]) if table.get("guid") else NULL_GUID,
        host=host,
        via=via,
        public_queues=queues,
        base_priorities=_base_priorities(table.get("base_priorities", {}), frozenset(queues)),
        tls=None if tls is None else TlsMode(tls),
        trust_inbound=inbound,
    )


def _base_priorities(table: Mapping[str, Any], queues: frozenset[UUID]) -> dict[UUID, int]:
    """[MS-MQMQ] 2.3.1.6: by the GUIDs of public queues."""
    found: dict[UUID, int] = {}
    for key, value in table.items():
        if not _is_guid(key) or UUID(key) not in queues:
            raise _Fault(
                "base_priorities", f"base_priorities names {key:.80}, which is not in public_queues"
            )
        if not isinstance(value, int) or isinstance(value, bool):
            raise _Fault(
                "base_priorities",
                f"base_priorities has {reprlib.repr(value)} for {key}; a number belongs there",
            )
        if not BASE_PRIORITY_MIN <= value <= BASE_PRIORITY_MAX:
            raise _Fault(
                "base_priorities",
                f"base_priorities has {value} for {key}; "
                f"it is from {BASE_PRIORITY_MIN} to {BASE_PRIORITY_MAX}",
            )
        found[UUID(key)] = value
    return found


def _nearest(key: str) -> str:
    """What somebody may have meant by a key that is unknown."""
    if key.rstrip("s") == "peer":
        return "; did you mean [[peer]]?"
    near = difflib.get_close_matches(key, _KEYS, n=1)
    known = ", ".join(sorted(_KEYS))
    return f"; did you mean {near[0]}?" if near else f"; a [[peer]] has {known}"


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_switch(value: object) -> bool:
    return isinstance(value, bool)


def _is_guid(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        UUID(value)
    except ValueError:
        return False
    return True


def _is_host(value: object) -> bool:
    try:
        ReachableHost().read(value)
    except WrongValue:
        return False
    return True


def _are_guids(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_guid, value))


_TLS_WORDS: Final = tuple(each.value for each in TlsMode)
_GUID_FORM: Final = "a GUID such as 7b2f5c1e-93d4-4f0a-8a61-2d9be0c4f513 (`merq status` shows it)"

_KEYS: Final[dict[str, tuple[Callable[[object], bool], str]]] = {
    "name": (_is_text, "text, the computer's name,"),
    "guid": (_is_guid, _GUID_FORM),
    "host": (_is_host, "a host name or an address without a port, such as 10.0.0.8,"),
    "via": (_is_text, "text, the name of another peer,"),
    "public_queues": (_are_guids, "a list of GUIDs in quotation marks"),
    "base_priorities": (
        lambda value: isinstance(value, dict),
        "a table, a number for the GUID of a public queue,",
    ),
    "tls": (
        lambda value: value in _TLS_WORDS,
        f"one of {', '.join(_TLS_WORDS)}",
    ),
    "trust_inbound": (_is_switch, "true or false"),
}
"""What a table may have: a test of the value, and what belongs there."""
