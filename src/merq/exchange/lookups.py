"""Host names that are to be looked up: how many at the same time, and whose first.

A name service that does not answer keeps a lookup waiting for many seconds. Names that other queue
managers' messages brought have a share of their own, so that they do not hold up those to which
applications send.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

LOOKUPS_MAX: Final = 16
"""Names that are looked up at the same time because applications send there."""

OTHERS_LOOKUPS_MAX: Final = 4
"""Names that are looked up at the same time because of other queue managers' messages alone."""


class Lookups:
    """Names that wait to be looked up, and those that are being looked up."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, bool] = OrderedDict()
        self._under_way: dict[str, bool] = {}

    def add(self, host: str, *, is_for_others: bool) -> None:
        """A name is to be looked up, unless it is being looked up already."""
        if host in self._under_way:
            return
        self._waiting[host] = is_for_others and self._waiting.get(host, True)

    def take(self) -> list[str]:
        """Those that are to be looked up now."""
        room = {False: LOOKUPS_MAX, True: OTHERS_LOOKUPS_MAX}
        for is_for_others in self._under_way.values():
            room[is_for_others] -= 1
        taken = []
        for host, is_for_others in self._waiting.items():
            if room[is_for_others] > 0:
                room[is_for_others] -= 1
                taken.append(host)
            elif not any(each > 0 for each in room.values()):
                break
        for host in taken:
            self._under_way[host] = self._waiting.pop(host)
        return taken

    def is_for_others(self, host: str) -> bool:
        """Whether a name is looked up because of other queue managers' messages alone."""
        return self._under_way.get(host, False)

    def ended(self, host: str) -> None:
        """A name was looked up."""
        self._under_way.pop(host, None)
