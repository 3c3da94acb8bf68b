"""What gRPC does for `cluster.access`: credentials for its connections, and a gate that every call passes."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

# What gRPC's core would write to stderr by itself is reported here as errors.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc
from grpc import aio

from cluster.access import PROOF_KEY, REGIONS, may_call, proof, proves, roles_named, server_name
from cluster.settings import ReplicatorSettings, Settings

if TYPE_CHECKING:
    from cluster.tls import Credentials, Material

TOLD_MAX = 1_000
"""Refusals that the log tells of; a stranger must not fill the disk."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Security:
    """How a process shows who it is, and whom it lets in. Empty: everybody."""

    join_token: str = ""
    credentials: Credentials | None = None
    regions_token: str = ""

    def token_for(self, method: str) -> str:
        """The secret that a call of the method proves; empty for none."""
        return self.regions_token or self.join_token if method.startswith(REGIONS) else self.join_token


def security_of(settings: Settings, role: str, wall: Callable[[], float]) -> Security:
    """What the settings ask for, for a process of this role. `wall` gives seconds since 1970. Raises TlsError."""
    regions_token = settings.regions_token if isinstance(settings, ReplicatorSettings) else ""
    if not settings.tls_certificate:
        return Security(settings.join_token, regions_token=regions_token)
    from cluster.tls import Credentials, TlsFiles  # the library behind it takes time and memory

    files = TlsFiles(settings.tls_certificate, settings.tls_key, settings.tls_authorities)
    return Security(settings.join_token, Credentials(files, role, settings.cluster_id, wall), regions_token)


def server_credentials(credentials: Credentials) -> grpc.ServerCredentials:
    """Credentials that look at the files at each handshake, and ask every caller for a certificate."""
    shown = [0]

    def configuration() -> grpc.ServerCertificateConfiguration | None:
        material = credentials.refresh()
        if material.serial == shown[0]:
            return None  # as before
        shown[0] = material.serial
        return _configuration(material)

    first = credentials.material
    shown[0] = first.serial
    fetch: Any = configuration  # grpc's stubs do not know that it may return None
    return grpc.dynamic_ssl_server_credentials(_configuration(first), fetch, require_client_authentication=True)


def _configuration(material: Material) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(material.key, material.certificate)], material.authorities)


def secure_channel(
    address: str, name: str, credentials: Credentials, options: Iterable[tuple[str, Any]]
) -> aio.Channel:
    """A channel that accepts a server only whose certificate has this name."""
    material = credentials.material
    return aio.secure_channel(
        address,
        grpc.ssl_channel_credentials(material.authorities, material.key, material.certificate),
        options=[*options, ("grpc.ssl_target_name_override", name)],
    )


class Caller:
    """What a process adds to its own calls."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._told: set[tuple[str, str]] = set()

    def metadata(self, method: str) -> tuple[tuple[str, str], ...] | None:
        """The proof of the join token, if there is one."""
        token = self._security.token_for(method)
        return ((PROOF_KEY, proof(token, method)),) if token else None

    def expected_name(self, method: str) -> str:
        """Of the server, where certificates tell; else nothing."""
        credentials = self._security.credentials
        return "" if credentials is None else server_name(method, credentials.cluster_id)

    def failed(self, address: str, code: grpc.StatusCode, details: str) -> None:
        """Say once that a peer does not want this process, or is not who it should be; it does not get better."""
        refused = code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
        reason = details if refused else "no TLS handshake: other authorities, role or cluster, or no TLS at all"
        if not refused and not (self._security.credentials and "handshake" in details.lower()):
            return
        if (address, reason) not in self._told and len(self._told) < TOLD_MAX:
            self._told.add((address, reason))
            _log.error("%s cannot be called: %s", address, reason)


class Gate:
    """Decides whether a call gets in."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._told: set[tuple[str, str]] = set()
        self.refused = 0
        """Calls that did not get in."""

    def knows_token(self, details: grpc.HandlerCallDetails) -> bool:
        """Whether the caller proves the join token. Asked before anything of its message is read."""
        method = details.method.removeprefix("/")
        token = self._security.token_for(method)
        if not token:
            return True
        return proves(dict(details.invocation_metadata or ()).get(PROOF_KEY), token, method)

    def lets_in(self, method: str, context: aio.ServicerContext[bytes, bytes]) -> bool:
        """Whether the caller's certificate lets it call this."""
        credentials = self._security.credentials
        if credentials is None:
            return True
        names = context.auth_context().get("x509_subject_alternative_name", ())
        roles = roles_named((name.decode("utf-8", "replace") for name in names), credentials.cluster_id, method)
        return any(may_call(role, method) for role in roles)

    async def refuse(self, method: str, context: aio.ServicerContext[bytes, bytes], *, known: bool) -> None:
        """End a call that does not get in. `known`: it had the token, but has not the right role."""
        self.refused += 1
        reason = f"its certificate does not allow it to call {method}" if known else "it has not the join token"
        peer = context.peer().rpartition(":")[0]
        if (peer, reason) not in self._told and len(self._told) < TOLD_MAX:
            self._told.add((peer, reason))
            _log.warning("a call from %s is refused: %s", peer, reason)
        code = grpc.StatusCode.PERMISSION_DENIED if known else grpc.StatusCode.UNAUTHENTICATED
        await context.abort(code, reason)
