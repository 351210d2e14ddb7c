"""Certificates for tests: an authority of one's own, and what it signs, as files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import trustme

from merq.service.sections import TlsSettings


class Pair(NamedTuple):
    """A certificate and its key, as files."""

    cert: Path
    key: Path

    @classmethod
    def written(cls, folder: Path, name: str, *, cert: bytes, key: bytes) -> Pair:
        """Puts them there; nobody else may read the key."""
        made = cls(folder / f"{name}.pem", folder / f"{name}.key")
        made.cert.write_bytes(cert)
        made.key.write_bytes(key)
        made.key.chmod(0o600)
        return made

    def settings(self, client_ca: Path | None = None) -> TlsSettings:
        """What a service is told of them."""
        return TlsSettings(cert=self.cert, key=self.key, client_ca=client_ca)


@dataclass(frozen=True)
class Authority:
    """Who signs certificates, and the folder where they lie."""

    folder: Path
    ca: trustme.CA

    @classmethod
    def made(cls, folder: Path) -> Authority:
        """A new one, whom nobody trusts yet."""
        folder.mkdir(parents=True, exist_ok=True)
        found = cls(folder, trustme.CA())
        found.ca_file.write_bytes(found.ca.cert_pem.bytes())
        return found

    @property
    def ca_file(self) -> Path:
        """Its own certificate, for those who trust it."""
        return self.folder / "ca.pem"

    def issue(
        self,
        name: str,
        *identities: str,
        begins: datetime | None = None,
        ends: datetime | None = None,
    ) -> Pair:
        """A certificate for these identities, or for the name alone; files of that name hold it."""
        issued = self.ca.issue_cert(*(identities or (name,)), not_before=begins, not_after=ends)
        return Pair.written(
            self.folder,
            name,
            cert=b"".join(blob.bytes() for blob in issued.cert_chain_pems),
            key=issued.private_key_pem.bytes(),
        )
