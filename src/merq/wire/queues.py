"""[MS-MQMQ] 2.2.18.1.4, 2.2.18.1.5, 2.2.18.1.7: the forms in which packets name queues.

Names are carried, not judged: whether the text of a direct format name makes sense is for
`merq.model.names` to say, when somebody has to act on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from merq.errors import WireError
from merq.wire.layout import Layout, guid_field, layout, number
from merq.wire.reader import Reader, pack_wide, padding_for

NO_QUEUE = 0
SAME_AS_ADMIN = 1
PRIVATE_ON_SOURCE = 2
PRIVATE_ON_DESTINATION = 3
PRIVATE_ON_ADMIN_HOST = 4
PUBLIC = 5
PRIVATE_ELSEWHERE = 6
DIRECT = 7

DIRECT_NAME_BYTES_MAX = 0xFFFF
"""The Count of a DirectQueueFormatName is 16 bits wide."""


@layout("MS-MQMQ 2.2.18.1.5.1", size=4)
class PrivateQueueFormatNameId(Layout):
    """[MS-MQMQ] 2.2.18.1.5.1: a private queue on a host that the packet implies."""

    private_queue_identifier: int = number(4)


@layout("MS-MQMQ 2.2.18.1.7.1", size=16)
class PublicQueueFormatName(Layout):
    """[MS-MQMQ] 2.2.18.1.7.1: a public queue."""

    public_queue_identifier: UUID = guid_field()


@layout("MS-MQMQ 2.2.18.1.7.2", size=20)
class PrivateQueueFormatName(Layout):
    """[MS-MQMQ] 2.2.18.1.7.2: a private queue and its host."""

    source_queue_manager: UUID = guid_field()
    private_queue_identifier: int = number(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectQueueFormatName:
    r"""[MS-MQMQ] 2.2.18.1.5.2: a direct format name without its prefix, `OS:host\queue`."""

    direct_format_name: str
    padding: bytes = field(default=b"", compare=False, repr=False)

    def pack(self) -> bytes:
        """The bytes; the name starts on a 4-byte boundary and ends on one."""
        data = self.pack_unpadded()
        return data + padding_for(len(data), self.padding)

    def pack_unpadded(self) -> bytes:
        """The same without what fills it up to the boundary."""
        name = pack_wide(self.direct_format_name, "DirectQueueFormatName")
        if len(name) > DIRECT_NAME_BYTES_MAX:
            raise WireError(
                f"the name takes {len(name)} bytes, at most {DIRECT_NAME_BYTES_MAX} fit",
                field="DirectQueueFormatName",
            )
        return len(name).to_bytes(2, "little") + name

    @classmethod
    def unpack(cls, reader: Reader) -> DirectQueueFormatName:
        """The name at the reader's position."""
        start = reader.position
        count = reader.u16("count")
        name = reader.wide(count, "direct_format_name")
        return cls(direct_format_name=name, padding=reader.pad(start))


QueueFormat = (
    PrivateQueueFormatNameId
    | PublicQueueFormatName
    | PrivateQueueFormatName
    | DirectQueueFormatName
)

FORMS: dict[int, type[QueueFormat] | None] = {
    NO_QUEUE: None,
    SAME_AS_ADMIN: None,
    PRIVATE_ON_SOURCE: PrivateQueueFormatNameId,
    PRIVATE_ON_DESTINATION: PrivateQueueFormatNameId,
    PRIVATE_ON_ADMIN_HOST: PrivateQueueFormatNameId,
    PUBLIC: PublicQueueFormatName,
    PRIVATE_ELSEWHERE: PrivateQueueFormatName,
    DIRECT: DirectQueueFormatName,
}
"""[MS-MQMQ] 2.2.19.2: the form of a queue's name by its type in UserHeader.Flags."""

DESTINATION_TYPES = (NO_QUEUE, PRIVATE_ON_DESTINATION, PUBLIC, DIRECT)
ADMIN_TYPES = (
    NO_QUEUE,
    PRIVATE_ON_SOURCE,
    PRIVATE_ON_DESTINATION,
    PUBLIC,
    PRIVATE_ELSEWHERE,
    DIRECT,
)


def read_queue(reader: Reader, kind: int, name: str) -> QueueFormat | None:
    """The queue of this type at the reader's position, or None where the type has no bytes."""
    form = FORMS[kind]
    if form is None:
        return None
    with reader.part(name):
        return form.unpack(reader)


def write_queue(queue: QueueFormat | None, kind: int, name: str) -> bytes:
    """The bytes of a queue's name, which must have the form that its type asks for."""
    form = FORMS[kind]
    if form is None:
        if queue is not None:
            raise WireError(f"type {kind} has no name, {queue!r} was given", field=name)
        return b""
    if not isinstance(queue, form):
        raise WireError(f"type {kind} needs a {form.__name__}, found {queue!r}", field=name)
    return queue.pack()
