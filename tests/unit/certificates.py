"""Certificates for tests: an authority of a cluster, and files of processes' certificates."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from cluster.grpc_security import Security
from cluster.grpc_transport import GrpcTransport
from cluster.tls import Credentials, TlsFiles
from trizone.certificates import Pair, new_authority, new_certificate, now, write_pair

CLUSTER = "a-cluster"


class Authority:
    """An authority in a folder of its own, and what it signs."""

    def __init__(self, folder: Path, cluster_id: str = CLUSTER) -> None:
        self.folder = folder
        self.cluster_id = cluster_id
        self.pair: Pair = new_authority(cluster_id, now())
        write_pair(folder, "ca", self.pair)

    def files(
        self, role: str, *, name: str = "", hosts: Sequence[str] = (), made: datetime | None = None, days: int = 365
    ) -> TlsFiles:
        """A new certificate of this role, made at `made` (now)."""
        name = name or role
        write_pair(
            self.folder, name, new_certificate(self.pair, self.cluster_id, role, name, hosts, made or now(), days)
        )
        return TlsFiles(
            str(self.folder / f"{name}.pem"), str(self.folder / f"{name}-key.pem"), str(self.folder / "ca.pem")
        )

    def expired(self, role: str) -> TlsFiles:
        """A certificate that ended an hour ago."""
        return self.files(role, name=f"expired-{role}", made=now() - timedelta(days=1, hours=1), days=1)

    def transport(self, role: str, join_token: str = "") -> GrpcTransport:
        """A transport of a process of this role."""
        return GrpcTransport(Security(join_token, self.credentials(self.files(role), role)))

    def credentials(self, files: TlsFiles, role: str, *, at: datetime | None = None) -> Credentials:
        """Credentials that were read at `at` (now)."""
        moment = (at or now()).timestamp()
        return Credentials(files, role, self.cluster_id, lambda: moment)


def replace(old: TlsFiles, new: TlsFiles) -> None:
    """Put new files in the place of old ones, as an operator would."""
    for source, target in zip(new.paths(), old.paths(), strict=True):
        if source != target:
            shutil.copyfile(source, f"{target}.new")
            os.replace(f"{target}.new", target)


def bundle(target: Path, *sources: str | Path) -> str:
    """A file with what all `sources` hold, put in place in one step; its path."""
    draft = target.with_suffix(".new")
    draft.write_bytes(b"".join(Path(source).read_bytes() for source in sources))
    draft.replace(target)
    return str(target)
