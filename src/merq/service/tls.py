"""TLS of the service's TCP listener. Files are checked before the first client comes."""

from __future__ import annotations

import ssl
from datetime import datetime, timedelta
from typing import Final

from merq.client.security import (
    check_validity,
    harden,
    load_authorities,
    load_pair,
    validities,
)
from merq.errors import CertificateError
from merq.service.logs import Log
from merq.service.sections import TlsSettings

ENDING: Final = timedelta(days=14)
"""A certificate that ends within this time is warned about."""


def server_context(settings: TlsSettings, *, now: datetime, log: Log) -> ssl.SSLContext:
    """What the service listens with; with `client_ca` every client must show a certificate.

    Args:
        settings: The files.
        now: The time, with its zone.
        log: Is told of a certificate that ends soon.

    Raises:
        CertificateError: A file is missing, not what it should be, over, or open to others.
    """
    if settings.cert is None or settings.key is None:
        raise CertificateError("TLS needs tls.cert and tls.key; set both")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    harden(context)
    load_pair(context, settings.cert, settings.key)
    if settings.client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        load_authorities(context, settings.client_ca)
        if all(now >= each.ends for each in validities(settings.client_ca)):
            raise CertificateError(
                f"every authority in {settings.client_ca} has expired, so no client could come in"
            )
    warn_of_ending(settings, now=now, log=log)
    return context


def warn_of_ending(settings: TlsSettings, *, now: datetime, log: Log) -> None:
    """Tells the log of certificates that end soon: at the start, and once a day after it.

    Raises:
        CertificateError: The service's own has ended, or cannot be read any more.
    """
    if settings.cert is not None:
        ends = check_validity(settings.cert, now).ends
        if ends - now <= ENDING:
            log.warning("the certificate ends soon", file=settings.cert, ends=ends)
    if settings.client_ca is not None:
        ends = min(each.ends for each in validities(settings.client_ca))
        if ends - now <= ENDING:
            log.warning("an authority of clients ends soon", file=settings.client_ca, ends=ends)
