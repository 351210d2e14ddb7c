"""TLS of clients, and the checks of certificate files that the service shares.

Python's own errors for a wrong file name neither the file nor the way out, and a key with a
passphrase would make it ask on the terminal; so files are looked at before they are used. Not in
here: tokens, which are no matter of TLS.
"""

from __future__ import annotations

import os
import re
import ssl
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn

from merq.errors import CertificateError

FILE_BYTES_MAX: Final = 1 << 20
"""A file of certificates or a key is not larger."""

CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2: those with forward secrecy and authenticated encryption. TLS 1.3 has no others."""

_CERTIFICATE = re.compile(
    r"-----BEGIN CERTIFICATE-----\s[!-~\s]*?-----END CERTIFICATE-----", re.ASCII
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")

_SEQUENCE = 0x30
_EXPLICIT_VERSION = 0xA0
_TIME_FORMS = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """From when to when a certificate counts (RFC 5280, 4.1.2.5)."""

    begins: datetime
    ends: datetime


def client_context(
    ca: Path | None = None, cert: Path | None = None, key: Path | None = None
) -> ssl.SSLContext:
    """What a client connects with: it trusts one authority, or those of the system.

    The service's name is always checked.

    Args:
        ca: PEM file with the authorities to trust; None for the system's.
        cert: PEM file with the client's own certificate, for a service that wants one.
        key: PEM file with its private key.

    Raises:
        CertificateError: A file cannot be used; the text says which and why.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    harden(context)
    if ca is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        load_authorities(context, ca)
    if (cert is None) != (key is None):
        there, missing = ("key", "certificate") if cert is None else ("certificate", "key")
        raise CertificateError(
            f"a client {there} is given without its {missing}; both or none belong there"
        )
    if cert is not None and key is not None:
        load_pair(context, cert, key)
        check_validity(cert, datetime.now(UTC))
    return context


def harden(context: ssl.SSLContext) -> None:
    """TLS 1.2 at least, 1.3 where both can; no compression, no renegotiation."""
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION


def load_authorities(context: ssl.SSLContext, ca: Path) -> None:
    """The context trusts what these authorities have signed.

    Raises:
        CertificateError: The file holds no authority.
    """
    blocks = _CERTIFICATE.findall(_read(ca, "the authorities"))
    if not blocks:
        raise CertificateError(
            f"{ca} holds no certificate; a PEM file with those of authorities belongs there"
        )
    try:
        context.load_verify_locations(cadata="\n".join(blocks))
    except (ssl.SSLError, ValueError) as wrong:
        raise CertificateError(f"the authorities in {ca} cannot be read: {wrong}") from wrong


def load_pair(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    """The context shows this certificate, and proves with the key that it is its own.

    Raises:
        CertificateError: A file is missing, not what it should be, or open to others; or the key
            is another certificate's.
    """
    if not _CERTIFICATE.search(_read(cert, "the certificate")):
        raise CertificateError(f"{cert} holds no certificate; a PEM file with one belongs there")
    if not _PRIVATE_KEY.search(_read(key, "the key")):
        raise CertificateError(f"{key} holds no private key; a PEM file with one belongs there")
    require_private(key)

    def refuse_passphrase() -> NoReturn:
        raise CertificateError(
            f"the key in {key} has a passphrase, which nobody could type at every start; "
            f"`openssl pkey -in {key} -out NEW` writes it without one"
        )

    try:
        context.load_cert_chain(cert, key, password=refuse_passphrase)
    except ssl.SSLError as wrong:
        if wrong.reason == "KEY_VALUES_MISMATCH":
            raise CertificateError(
                f"the key in {key} does not belong to the certificate in {cert}, which must be "
                "the first in its file"
            ) from wrong
        raise CertificateError(
            f"the certificate in {cert} and the key in {key} cannot be used: "
            f"{wrong.reason or wrong}"
        ) from wrong


def require_private(key: Path) -> None:
    """A key that others can read is none.

    A key of root's may be readable by a group: that is how systems hand keys to services.

    Raises:
        CertificateError: Others can.
    """
    if os.name != "posix":
        return
    found = key.stat()
    mode = stat.S_IMODE(found.st_mode)
    if mode & (0o037 if found.st_uid == 0 else 0o077):
        raise CertificateError(
            f"the key in {key} is open to others (its mode is {mode:04o}); "
            f"close it with `chmod 600 {key}`"
        )


def check_validity(cert: Path, now: datetime) -> Validity:
    """When the certificates of a file count, all of them; the first that ends decides.

    Raises:
        CertificateError: One has ended or has not begun.
    """
    found = list(validities(cert))
    whole = Validity(
        begins=max(each.begins for each in found), ends=min(each.ends for each in found)
    )
    if now >= whole.ends:
        raise CertificateError(
            f"the certificate in {cert} has expired at {whole.ends}; have a new one signed"
        )
    if now < whole.begins:
        raise CertificateError(
            f"the certificate in {cert} counts from {whole.begins} on, and it is {now}; "
            "wait, or set the clock right"
        )
    return whole


def validities(cert: Path) -> Iterator[Validity]:
    """When each certificate in a PEM file counts.

    Raises:
        CertificateError: One cannot be read.
    """
    blocks = _CERTIFICATE.findall(_read(cert, "the certificate"))
    if not blocks:
        raise CertificateError(f"{cert} holds no certificate; a PEM file with one belongs there")
    for block in blocks:
        try:
            yield _validity_of(ssl.PEM_cert_to_DER_cert(block))
        except (ValueError, IndexError) as wrong:
            raise CertificateError(f"a certificate in {cert} cannot be read: {wrong}") from wrong


def _validity_of(certificate: bytes) -> Validity:
    """RFC 5280, 4.1: version, serial number, algorithm and issuer stand before it."""
    inside = _value(certificate, 0, _SEQUENCE)[0]
    signed = _value(inside, 0, _SEQUENCE)[0]
    place = _value(signed, 0)[1] if signed[0] == _EXPLICIT_VERSION else 0
    for _ in ("serial number", "algorithm", "issuer"):
        place = _value(signed, place)[1]
    times = _value(signed, place, _SEQUENCE)[0]
    end_of_first = _value(times, 0)[1]
    return Validity(begins=_time(times, 0), ends=_time(times, end_of_first))


def _value(data: bytes, place: int, tag: int | None = None) -> tuple[bytes, int]:
    """The value that begins at a place, by its DER length, and where the next one begins."""
    if tag is not None and data[place] != tag:
        raise ValueError(f"{data[place]:#x} at {place} instead of {tag:#x}")
    size, start = data[place + 1], place + 2
    if size & 0x80:
        count = size & 0x7F
        size, start = int.from_bytes(data[start : start + count], "big"), start + count
    if start + size > len(data):
        raise ValueError(f"{size} bytes at {start}, of {len(data)}")
    return data[start : start + size], start + size


def _time(data: bytes, place: int) -> datetime:
    form = _TIME_FORMS.get(data[place])
    if form is None:
        raise ValueError(f"{data[place]:#x} is no kind of time")
    text = _value(data, place)[0].decode("ascii")
    moment = datetime.strptime(text, form).replace(tzinfo=UTC)
    # RFC 5280, 4.1.2.5.1: years of two digits from 50 on are of the last century.
    if data[place] == 0x17 and moment.year >= 2050:
        moment = moment.replace(year=moment.year - 100)
    return moment


def _read(path: Path, what: str) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as wrong:
        raise CertificateError(
            f"{what} {path} cannot be read: {wrong.strerror}; a PEM file that this user may read "
            "belongs there"
        ) from wrong
    if len(data) > FILE_BYTES_MAX:
        raise CertificateError(f"{what} {path} has more than {FILE_BYTES_MAX} bytes")
    return data.decode("latin-1")
