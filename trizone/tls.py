"""The certificates of `trizone up --tls`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cluster.access import AUTO_ADMIN, OPERATOR, ROUTER, STORAGE_NODE
from cluster.settings import RouterSettings
from trizone.composition import Member
from trizone.operator_access import files_of

HOSTS = ("localhost", "127.0.0.1", "::1")
"""What clients on this machine may call the endpoint."""


def make_certificates(folder: Path, cluster_id: str) -> None:
    """An authority, if the folder has none, and new certificates for all roles and for HTTPS. Raises CommandError."""
    from trizone.certificates import HTTPS, new_authority, new_certificate, now, read_authority, write_pair

    if not (folder / "ca.pem").exists():
        write_pair(folder, "ca", new_authority(cluster_id, now()))
    authority, identity = read_authority(folder)
    for role in (ROUTER, STORAGE_NODE, AUTO_ADMIN, OPERATOR):
        write_pair(folder, role, new_certificate(authority, identity, role, role, (), now()))
    write_pair(folder, HTTPS, new_certificate(authority, identity, HTTPS, HTTPS, HOSTS, now()))


def secured(member: Member, folder: Path) -> Member:
    """The member with the certificates of its role."""
    settings = msgspec.structs.replace(member.settings, **files_of(folder, member.record.role))
    if isinstance(settings, RouterSettings):
        settings = msgspec.structs.replace(
            settings, https_certificate=f"{folder}/https.pem", https_key=f"{folder}/https-key.pem"
        )
        member.record.https = True
    return Member(member.record, settings)
