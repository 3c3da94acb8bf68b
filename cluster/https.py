"""The certificate that a server shows to clients of HTTPS, read again when its files change."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Sequence

from cluster.settings import SettingsError

HANDSHAKE_SECONDS = 10.0
"""How long a client may take for it."""

_log = logging.getLogger(__name__)


class TlsError(SettingsError):
    """Files that cannot be used; the text is one plain sentence."""


class HttpsContext:
    """`context` stays the same object; connections made after `refresh` see new files."""

    def __init__(self, certificate: str, key: str) -> None:
        """Read the files. Raises TlsError."""
        self._paths = (certificate, key)
        self._seen = file_times(self._paths)
        self.context = _new_context()
        self.context.set_alpn_protocols(["http/1.1"])
        _load(self.context, *self._paths)

    def refresh(self) -> None:
        """Look at the files. What is broken changes nothing."""
        times = file_times(self._paths)
        if times == self._seen:
            return
        self._seen = times
        try:
            _load(_new_context(), *self._paths)  # a context that was given half of a pair could serve nobody
            _load(self.context, *self._paths)
            _log.info("the certificate for HTTPS was read anew", extra={"file": self._paths[0]})
        except TlsError as error:
            _log.error("the old certificate for HTTPS stays in use: %s", error)


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    for path in (certificate, key):
        read_or_tell(path)
    try:
        # A key with a password would ask for it at the terminal.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (ssl.SSLError, OSError) as error:
        raise TlsError(f"{certificate} and {key} are no certificate with its private key.") from error


def read_or_tell(path: str) -> bytes:
    """A file's content. Raises TlsError."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise TlsError(f"Cannot read {path}: {error.strerror}.") from error


def file_times(paths: Sequence[str]) -> tuple[object, ...]:
    """Changes when one of the files is replaced or written."""
    found: list[object] = []
    for path in paths:
        try:
            status = os.stat(path)
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
        except OSError:
            found.append(None)
    return tuple(found)
