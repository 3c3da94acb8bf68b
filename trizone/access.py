"""How the routers of `trizone up` come to know their callers: the key file, and where it may lie."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cluster.random_source import SystemRandom
from trizone.errors import CommandError
from trizone.users import KEY_VARIABLE, default_key_file, keyring_at


@dataclass(frozen=True)
class Access:
    """What routers are told: paths of the key file and of the file with users are empty for none."""

    auth: Literal["off", "warn", "enforce"] = "off"
    key_file: str = ""
    credentials_file: str = ""


def access_of(auth: str, cluster_id: str, data: Path, key_file: Path | None, credentials: Path | None) -> Access:
    """The access of a cluster in the folder `data`. A missing key file is made. Raises CommandError."""
    if auth == "off":
        if credentials is not None:
            raise CommandError("--credentials is of no use with --auth off; say --auth enforce.")
        return Access()
    named = key_file or os.environ.get(KEY_VARIABLE) or default_key_file(cluster_id)
    path = Path(named).absolute()
    if path.resolve().is_relative_to(data.resolve()):
        raise CommandError(f"The key file {path} must not lie in the data directory, whose secrets it seals.")
    keyring_at(path, SystemRandom())
    file = "" if credentials is None else str(credentials.absolute())
    return Access("warn" if auth == "warn" else "enforce", str(path), file)
