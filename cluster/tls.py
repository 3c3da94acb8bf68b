"""A process's certificate, key and authorities: read from files, checked, and read again when the files change.

A broken set of files never replaces a good one. Wrong files at the start are a sentence for whoever wrote the settings.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import ExtensionOID

from cluster.access import CLUSTER_ID, internal_name
from cluster.https import TlsError, file_times, read_or_tell

__all__ = ["Credentials", "Material", "TlsError", "TlsFiles", "alternative_names"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TlsFiles:
    """Paths of PEM files. `authorities` may hold several certificates: the old and the new while they are changed."""

    certificate: str
    key: str
    authorities: str

    def paths(self) -> tuple[str, str, str]:
        """All three."""
        return self.certificate, self.key, self.authorities


@dataclass(frozen=True)
class Material:
    """What the files hold, in PEM. `serial` counts how often they were taken."""

    certificate: bytes
    key: bytes
    authorities: bytes
    serial: int


class Credentials:
    """The credentials of one process. Safe to use from several threads."""

    def __init__(self, files: TlsFiles, role: str, cluster_id: str, wall: Callable[[], float]) -> None:
        """Read the files. `wall` gives seconds since 1970. Raises TlsError."""
        if not CLUSTER_ID.match(cluster_id):
            raise TlsError(f"The cluster id {cluster_id!r} cannot stand in certificates: make one with cluster init.")
        self.cluster_id = cluster_id
        self._files = files
        self._name = internal_name(role, cluster_id)
        self._wall = wall
        self._lock = threading.Lock()
        self._seen = _signature(files)
        self._material = self._load(1)

    @property
    def material(self) -> Material:
        """What to show and to trust now."""
        return self._material

    def refresh(self) -> Material:
        """What to show and to trust now, after a look at the files."""
        with self._lock:
            signature = _signature(self._files)
            if signature != self._seen:
                try:
                    self._material = self._load(self._material.serial + 1)
                    _log.info("the certificate was read anew", extra={"file": self._files.certificate})
                except TlsError as error:
                    _log.error("the old certificate stays in use: %s", error)
                self._seen = signature
        return self._material

    def _load(self, serial: int) -> Material:
        certificate, key, authorities = (read_or_tell(path) for path in self._files.paths())
        own, trusted = (
            _certificates(certificate, self._files.certificate),
            _certificates(authorities, self._files.authorities),
        )
        _check_key(own[0], key, self._files)
        _check_times(own[0], self._wall(), self._files.certificate)
        _check_issuer(own, trusted, self._files)
        if self._name not in alternative_names(own[0]):
            raise TlsError(f"{self._files.certificate} is not the certificate of {self._name}.")
        return Material(certificate, key, authorities, serial)


# --- files ---


def _signature(files: TlsFiles) -> tuple[object, ...]:
    return file_times(files.paths())


def _certificates(content: bytes, path: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError as error:
        raise TlsError(f"{path} holds no certificate in PEM form.") from error


# --- checks ---


def alternative_names(certificate: x509.Certificate) -> list[str]:
    """The DNS names among a certificate's alternative names."""
    try:
        extension = certificate.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME)
    except x509.ExtensionNotFound:
        return []
    assert isinstance(extension.value, x509.SubjectAlternativeName)
    return extension.value.get_values_for_type(x509.DNSName)


def _check_key(own: x509.Certificate, key: bytes, files: TlsFiles) -> None:
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    try:
        public = load_pem_private_key(key, password=None).public_key().public_bytes(*form)
    except (ValueError, TypeError) as error:
        raise TlsError(f"{files.key} holds no private key in PEM form without a password.") from error
    if public != own.public_key().public_bytes(*form):
        raise TlsError(f"{files.key} is not the private key of {files.certificate}.")


def _check_times(own: x509.Certificate, now: float, path: str) -> None:
    moment = datetime.fromtimestamp(now, UTC)
    if moment > own.not_valid_after_utc:
        raise TlsError(f"The certificate in {path} expired at {own.not_valid_after_utc:%Y-%m-%d %H:%M} UTC.")
    if moment < own.not_valid_before_utc:
        raise TlsError(
            f"The certificate in {path} is valid from {own.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on only."
        )


def _check_issuer(own: Sequence[x509.Certificate], trusted: Sequence[x509.Certificate], files: TlsFiles) -> None:
    """The last certificate of the chain must be one that others, with the same authorities, accept."""
    for authority in trusted:
        try:
            own[-1].verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return
    raise TlsError(f"The certificate in {files.certificate} is not signed by an authority in {files.authorities}.")
