"""[MS-MQMQ] 2.2.9: the identifier of a distribution list, as it travels in calls.

These are the octets of NDR 2.0 ([MS-RPCE] 2.2.4): the structure with a pointer that is not null,
then the text that it points to, which has its size, its start and its length before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self
from uuid import UUID

from merq.wire.layout import Layout, constant, guid_field, layout, number
from merq.wire.reader import Reader, pack_wide

DOMAIN_MAX: Final = 255
"""Characters of a domain name: the most that DNS has."""

REFERENT: Final = 0x00020000
"""What stands for the pointer; any number but 0 would do."""


@layout("MS-MQMQ 2.2.9", size=32)
class DistributionListFields(Layout):
    """[MS-MQMQ] 2.2.9: a DL_ID before the characters of its domain."""

    dl_guid: UUID = guid_field()
    referent: int = number(4, low=1)
    max_count: int = number(4, low=1, high=DOMAIN_MAX + 1)
    offset: int = constant(4, default=0)
    actual_count: int = number(4, low=1, high=DOMAIN_MAX + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionListId:
    """[MS-MQMQ] 2.2.9: DL_ID: a distribution list, and the domain in whose directory it is."""

    dl_guid: UUID
    domain: str

    def pack(self) -> bytes:
        """The octets."""
        text = pack_wide(self.domain, "DL_ID.m_pwzDomain")
        count = len(text) // 2
        fields = DistributionListFields(
            dl_guid=self.dl_guid, referent=REFERENT, max_count=count, actual_count=count
        )
        return fields.pack() + text

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The identifier of exactly these octets."""
        reader = Reader(data)
        with reader.part("DL_ID"):
            fields = DistributionListFields.unpack(reader)
            if fields.actual_count > fields.max_count:
                reason = f"{fields.actual_count} characters where {fields.max_count} have room"
                raise reader.fail(reason, "actual_count", offset=28)
            domain = reader.wide(2 * fields.actual_count, "domain")
            reader.finish()
        return cls(dl_guid=fields.dl_guid, domain=domain)
