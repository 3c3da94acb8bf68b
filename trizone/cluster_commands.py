"""`trizone cluster init` and `trizone certs`: what a cluster on several machines needs before its first process."""

from __future__ import annotations

import argparse
import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cluster.access import OPERATOR, ROLES
from cluster.ids import cluster_id
from cluster.random_source import SystemRandom
from trizone.errors import CommandError

TOKEN_BYTES = 32
KEY_ID_BYTES = 10
SECRET_BYTES = 30

Parser = TypeVar("Parser", bound=argparse.ArgumentParser)


def add_commands(
    commands: argparse._SubParsersAction[Parser],
    parser_class: type[Parser],
    region: Callable[[str], str],
) -> None:
    """Add both commands to the command line; `region` checks the name of one."""
    cluster = commands.add_parser("cluster", help="make what all processes of a new cluster share")
    actions = cluster.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=parser_class)
    init = actions.add_parser("init", help="write a settings file with a new cluster's id and join token")
    init.add_argument("--file", type=Path, default=Path("cluster.toml"), metavar="FILE", help="(./cluster.toml)")
    init.add_argument("--region", type=region, default="us-east-1", help="that clients name (us-east-1)")
    init.add_argument("--admin", action="store_true", help="also make a first user (admin.toml) and access-keys.key")
    init.add_argument("--keep", action="store_true", help="do nothing if the file is there already")
    init.set_defaults(run=_init)

    certs = commands.add_parser("certs", help="make certificates for mutual TLS between processes, and for HTTPS")
    actions = certs.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=parser_class)
    authority = actions.add_parser("init", help="make an authority for a cluster")
    authority.add_argument("--directory", type=Path, default=Path("certs"), metavar="DIR", help="(./certs)")
    authority.add_argument("--cluster-id", metavar="ID", help="of the cluster; or:")
    authority.add_argument("--file", type=Path, metavar="FILE", help="what cluster init wrote (./cluster.toml)")
    authority.add_argument("--keep", action="store_true", help="do nothing if there is an authority already")
    authority.set_defaults(run=_authority)
    issue = actions.add_parser("issue", help="make a certificate for a process, or for HTTPS at the router")
    issue.add_argument("role", choices=(*ROLES, "https"), help="what its owner is")
    issue.add_argument("name", nargs="?", help="of the files, and of the process in logs (the role)")
    issue.add_argument("--directory", type=Path, default=Path("certs"), metavar="DIR", help="(./certs)")
    issue.add_argument("--host", action="append", default=[], metavar="NAME", help="name or address that clients use")
    issue.add_argument("--days", type=_days, default=365, metavar="N", help="how long it is valid (365)")
    issue.add_argument("--keep", action="store_true", help="do nothing if the certificate is there already")
    issue.set_defaults(run=_issue)


def _days(text: str) -> int:
    days = int(text)
    if not 1 <= days <= 3_650:
        raise argparse.ArgumentTypeError(f"{days} is not between 1 and 3650")
    return days


def _init(arguments: argparse.Namespace) -> int:
    path: Path = arguments.file
    if path.exists():
        if arguments.keep:
            return 0
        raise CommandError(f"{path} is there already; a cluster keeps its id for ever.")
    random = SystemRandom()
    content = (
        "# Made by `trizone cluster init`. Every process of the cluster gets this file with --config, beside its own.\n"
        "# Keep it secret: whoever knows the join token can join.\n"
        f'cluster_id = "{cluster_id(random)}"\n'
        f'region = "{arguments.region}"\n'
        f'join_token = "{random.bytes(TOKEN_BYTES).hex()}"\n'
    )
    if arguments.admin:
        _make_admin(path.parent, random)
    _write(path, content)
    print(f"{path} is written. Give it to every process of the cluster: trizone storagenode --config {path} --config …")
    return 0


def _make_admin(folder: Path, random: SystemRandom) -> None:
    """A user who may do everything, as a credentials file for routers, and the key that other users' secrets are sealed
    with in the catalog. What is there already, of a start that was cut off, is kept. Raises CommandError."""
    from cluster.sealing import SealError, make_key_file

    file, key_file = folder / "admin.toml", folder / "access-keys.key"
    access_key = "TRIZ" + base64.b32encode(random.bytes(KEY_ID_BYTES)).decode()
    secret = base64.b64encode(random.bytes(SECRET_BYTES)).decode()
    if not file.exists():
        _write(
            file,
            "# A first user, for the routers' setting credentials_file. Make others with `trizone user create`.\n"
            f'[users.admin]\nadmin = true\nkeys = {{ {access_key} = "{secret}" }}\n',
        )
    if not key_file.exists():
        try:
            make_key_file(key_file, random)
        except SealError as error:
            raise CommandError(str(error)) from None


def _write(path: Path, content: str) -> None:
    """A new file for its owner only, in one step. Raises CommandError."""
    draft = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from None


def _authority(arguments: argparse.Namespace) -> int:
    from trizone.certificates import new_authority, now, write_pair

    directory: Path = arguments.directory
    if (directory / "ca.pem").exists():
        if arguments.keep:
            return 0
        raise CommandError(f"{directory} holds an authority already.")
    identity = arguments.cluster_id or _id_in(arguments.file or Path("cluster.toml"))
    write_pair(directory, "ca", new_authority(identity, now()))
    print(f"{directory}/ca.pem is written. Keep {directory}/ca-key.pem where no process of the cluster can read it.")
    return 0


def _issue(arguments: argparse.Namespace) -> int:
    from trizone.certificates import new_certificate, now, read_authority, write_pair

    directory: Path = arguments.directory
    name = arguments.name or arguments.role
    if name in ("ca", "ca-key") or "/" in name or name.startswith("."):
        raise CommandError(f"{name!r} cannot be the name of a certificate.")
    if arguments.keep and (directory / f"{name}.pem").exists():
        return 0
    authority, identity = read_authority(directory)
    pair = new_certificate(authority, identity, arguments.role, name, arguments.host, now(), arguments.days)
    write_pair(directory, name, pair)
    what = "https_certificate and https_key" if arguments.role == "https" else "tls_certificate and tls_key"
    if arguments.role != OPERATOR:
        print(f"{directory}/{name}.pem and {name}-key.pem are written, for the settings {what}.")
    else:
        print(f"{directory}/{name}.pem and {name}-key.pem are written, for whoever runs trizone's commands.")
    return 0


def _id_in(path: Path) -> str:
    """The cluster id in a settings file. Raises CommandError."""
    import tomllib

    try:
        found = tomllib.loads(path.read_text(encoding="utf-8")).get("cluster_id")
    except OSError as error:
        raise CommandError(f"Cannot read {path} ({error.strerror}); name the cluster with --cluster-id.") from None
    except ValueError:
        raise CommandError(f"{path} is not a TOML file.") from None
    if not isinstance(found, str):
        raise CommandError(f"{path} holds no cluster_id.")
    return found
