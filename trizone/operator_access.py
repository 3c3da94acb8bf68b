"""How trizone's commands show themselves to a cluster: with the operator's certificate, if it has certificates."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from cluster.access import OPERATOR
from cluster.grpc_security import Security, security_of
from cluster.settings import Settings, SettingsError
from trizone.errors import CommandError

FOLDER = "certs"
"""Where `trizone up --tls` keeps certificates in the data directory."""


def files_of(folder: Path, role: str) -> dict[str, str]:
    """The settings that name the files of a role's certificate."""
    return {
        "tls_certificate": f"{folder}/{role}.pem",
        "tls_key": f"{folder}/{role}-key.pem",
        "tls_authorities": f"{folder}/ca.pem",
    }


def operator_security(settings: Settings) -> Security:
    """How a command shows itself to the cluster that these settings are of: with the operator's certificate, which lies
    beside the one that they name. Raises CommandError."""
    if settings.tls_certificate:
        folder = Path(settings.tls_certificate).parent
        if not (folder / "operator.pem").exists():
            raise CommandError(
                f"There is no {folder}/operator.pem, which commands need: make it with trizone certs issue operator."
            )
        files = {**files_of(folder, OPERATOR), "tls_authorities": settings.tls_authorities}
        settings = msgspec.structs.replace(settings, **files)
    try:
        return security_of(settings, OPERATOR, time.time)
    except SettingsError as error:
        raise CommandError(str(error)) from None


def security_in(data: Path, cluster_id: str, *, tls: bool) -> Security:
    """The same for the cluster that `trizone up` keeps in a folder. Raises CommandError."""
    settings = Settings(cluster_id=cluster_id)
    if tls:
        settings = msgspec.structs.replace(settings, **files_of(data / FOLDER, OPERATOR))
    return operator_security(settings)
