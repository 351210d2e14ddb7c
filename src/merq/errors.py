"""Words for failure: every error that others may cause, by name.

What we must never do is an assertion. What a peer, a file or a person may do is one of these, and
its text says what was found and what was expected. They can be pickled: what fails in another
process arrives as what it is.
"""

from __future__ import annotations

from functools import partial


class MerqError(Exception):
    """The root of all failures that Merq names."""


class WireError(MerqError):
    """Bytes that do not have the form that the documents give them, or a value that has no bytes.

    Attributes:
        reason: What was found and what was expected.
        offset: Where, counted in bytes from the start of the packet or stream; None if it is about
            no single place, as with a value that has no bytes yet, or with a count.
        field: The structure and field as the documents name them, where it is known.
    """

    def __init__(self, reason: str, *, offset: int | None = None, field: str = "") -> None:
        super().__init__(reason, offset, field)
        self.reason = reason
        self.offset = offset
        self.field = field

    def __reduce__(self) -> tuple[partial[WireError], tuple[str]]:
        return partial(type(self), offset=self.offset, field=self.field), (self.reason,)

    def __str__(self) -> str:
        what = f"{self.field}: " if self.field else ""
        where = "" if self.offset is None else f" (at offset {self.offset})"
        return f"{what}{self.reason}{where}"


class NameSyntaxError(MerqError):
    """A path name or format name that does not follow [MS-MQMQ] 2.1.

    Attributes:
        text: The name as it was given.
        position: The character, counted from 0, where it stops making sense.
        reason: What was found there and what was expected.
    """

    def __init__(self, text: str, position: int, reason: str) -> None:
        super().__init__(text, position, reason)
        self.text = text
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason} (at character {self.position} of {self.text!r})"


class CaptureError(MerqError):
    """A capture file that cannot be read.

    Attributes:
        reason: What was found and what was expected.
        offset: Where, counted in bytes from the start of the file.
    """

    def __init__(self, reason: str, *, offset: int) -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset

    def __reduce__(self) -> tuple[partial[CaptureError], tuple[str]]:
        return partial(type(self), offset=self.offset), (self.reason,)

    def __str__(self) -> str:
        return f"{self.reason} (at offset {self.offset})"


class StoreError(MerqError):
    """The root of what can go wrong with the store; the text says what was being done."""


class StoreInUse(StoreError):
    """Another process has the store open."""


class StoreFull(StoreError):
    """There was no room; the operation did not happen, and the store goes on."""


class StoreShort(StoreFull):
    """The system gave no descriptor for a file; nothing happened, and the store goes on."""


class StoreFailed(StoreError):
    """The disk failed: what it holds is known again only after the store is opened anew."""


class StoreCorrupt(StoreError):
    """Bytes that had become durable are not what was written.

    Attributes:
        file: The file's name within the store.
        offset: Where in the file.
        reason: What was found and what was expected.
    """

    def __init__(self, file: str, offset: int, reason: str) -> None:
        super().__init__(file, offset, reason)
        self.file = file
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.file} is corrupt at offset {self.offset}: {self.reason}"


class SettingsError(MerqError):
    """Settings that the service cannot start with.

    Attributes:
        faults: Everything that is wrong with them, one sentence each: where it stands, what was
            found, what belongs there.
    """

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__(faults)
        self.faults = faults

    def __str__(self) -> str:
        if len(self.faults) == 1:
            return self.faults[0]
        return "\n".join((f"{len(self.faults)} settings are wrong:", *self.faults))


class ListenError(MerqError):
    """An address or a socket's file that cannot be listened on.

    Attributes:
        place: Which one.
        reason: What was found there.
        advice: What to do about it; empty where only the caller knows.
    """

    def __init__(self, place: str, reason: str, advice: str = "") -> None:
        super().__init__(place, reason, advice)
        self.place = place
        self.reason = reason
        self.advice = advice

    def __str__(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.place} cannot be listened on: {self.reason}{advice}"


class TokenError(MerqError):
    """Tokens that cannot be kept or found: the text says which, why, and what to do."""


class CertificateError(MerqError):
    """A certificate, key or authority that cannot be used: the text says which, and what to do."""


class MessageQueueError(MerqError):
    """An operation on queues or messages that was refused, and changed nothing.

    Attributes:
        code: The MQ status code, as in `merq.hresult`.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = int(code)
        self.text = text

    def __str__(self) -> str:
        return self.text


class InDoubt(MessageQueueError):
    """The connection was lost before the answer came: whether it happened is not known.

    MQ_ERROR_SERVICE_NOT_AVAILABLE. Nothing is asked a second time then, lest it happen twice.

    Attributes:
        received: A message that was on its way to be received, a `ReceivedMessage`, or a list of
            them if several were asked for: they may be gone from their queue or not. None if
            something else was asked for.
    """

    def __init__(self, text: str, received: object = None) -> None:
        super().__init__(0xC00E000B, text)
        self.received = received

    def __reduce__(self) -> tuple[type[InDoubt], tuple[str, object]]:
        return type(self), (self.text, self.received)


class ReceiveTimeout(MessageQueueError):
    """No message came in time: MQ_ERROR_IO_TIMEOUT."""

    def __init__(self, text: str) -> None:
        super().__init__(0xC00E001B, text)

    def __reduce__(self) -> tuple[type[ReceiveTimeout], tuple[str]]:
        return type(self), (self.text,)
