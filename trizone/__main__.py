"""The command `trizone`. Each command's work is imported when it is asked for, so that children start fast."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NoReturn

from trizone.cluster_commands import add_commands
from trizone.errors import CommandError
from trizone.node_commands import add_node_commands
from trizone.parent import die_with_parent
from trizone.region_commands import add_region_commands
from trizone.user_commands import add_user_commands

SERVICES = ("router", "storagenode", "autoadmin", "replicator")
DATA_DEFAULT = Path("data")
NODES_PER_ZONE_MAX = 20
ROUTERS_MAX = 64


class _Parser(argparse.ArgumentParser):
    """Answers wrong arguments with one sentence and exit code 2."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message.rstrip('.')}; {self.prog} --help says what there is.\n")
        sys.exit(2)


def _number(low: int, high: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{value} is not between {low} and {high}")
        return value

    return whole_number


def _region(text: str) -> str:
    if not text or not all(character.isascii() and (character.isalnum() or character == "-") for character in text):
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a region, such as eu-central-1")
    return text


def _regions(text: str) -> tuple[str, ...]:
    return tuple(_region(name) for name in text.split(","))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = _Parser(prog="trizone", description="A DynamoDB-compatible store that runs as a real cluster.")
    top.add_argument("--version", action="version", version=f"trizone {_version()}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    up = commands.add_parser("up", help="start a cluster on this machine and stay in the foreground")
    up.add_argument("--port", type=_number(0, 65_535), default=8000, help="of the endpoint; 0: a free one (8000)")
    up.add_argument("--data", type=Path, metavar="DIR", help="where the cluster lives (./data)")
    up.add_argument("--nodes-per-zone", type=_number(1, NODES_PER_ZONE_MAX), metavar="N", help="may grow later (1)")
    up.add_argument(
        "--auto-admins", type=int, choices=(1, 3), metavar="N", help="members of auto-admin, 1 or 3; may grow later (1)"
    )
    up.add_argument("--routers", type=_number(1, ROUTERS_MAX), default=1, metavar="N", help="that share the port (1)")
    up.add_argument("--ephemeral", action="store_true", help="keep nothing; in memory where there is room")
    up.add_argument("--region", type=_region, help="of a new cluster (us-east-1)")
    up.add_argument(
        "--regions", type=_regions, metavar="A,B", help="a cluster for each, at this port and the next ones"
    )
    up.add_argument("--only", type=_region, metavar="REGION", help="of --regions run this one by itself")
    up.add_argument("--leaders", choices=("spread", "gathered"), help="over all nodes or on one (as suits the cores)")
    up.add_argument(
        "--replace-after",
        type=_number(3, 86_400),
        default=300,
        metavar="SECONDS",
        help="a silent node is given up (300)",
    )
    up.add_argument("--auth", choices=("off", "warn", "enforce"), help="whether requests are verified (as before; off)")
    up.add_argument("--credentials", type=Path, metavar="FILE", help="users beside those of trizone user (TOML)")
    up.add_argument("--key-file", type=Path, metavar="FILE", help="the key that seals secrets (in ~/.config/trizone)")
    up.add_argument(
        "--set",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of docs/configuration.md, for all processes that have it; may be repeated",
    )
    up.add_argument("--tls", action="store_true", help="mutual TLS between processes, HTTPS for clients; stays so")
    up.set_defaults(run=_up)

    status = commands.add_parser("status", help="show a running cluster's processes and partitions")
    status.add_argument("--json", action="store_true", help="for programs")
    status.add_argument(
        "--data", type=Path, metavar="DIR", default=DATA_DEFAULT, help="where the cluster lives (./data)"
    )
    status.set_defaults(run=_status)

    add_commands(commands, _Parser, _region)
    add_user_commands(commands, _Parser, DATA_DEFAULT)
    add_region_commands(commands, _Parser, DATA_DEFAULT)
    add_node_commands(commands, _Parser, DATA_DEFAULT)

    for service in SERVICES:
        command = commands.add_parser(service, help=f"run one {service} process")
        command.add_argument("--config", metavar="FILE", action="append", default=[], help="its settings (TOML)")
        command.set_defaults(run=_service)
    return top


def _setting(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def _version() -> str:
    try:
        return version("trizone")
    except PackageNotFoundError:
        return "(not installed)"


def _up(arguments: argparse.Namespace) -> int:
    from trizone.launcher import UpOptions, up

    if arguments.ephemeral and arguments.data is not None:
        raise CommandError("Use either --data or --ephemeral: an ephemeral cluster keeps no data.")
    options = UpOptions(
        data=arguments.data or DATA_DEFAULT,
        port=arguments.port,
        nodes_per_zone=arguments.nodes_per_zone,
        auto_admins=arguments.auto_admins,
        routers=arguments.routers,
        region=arguments.region,
        leaders=arguments.leaders,
        replace_after=arguments.replace_after,
        ephemeral=arguments.ephemeral,
        auth=arguments.auth,
        credentials=arguments.credentials,
        key_file=arguments.key_file,
        tls=arguments.tls,
        settings=dict(arguments.set),
    )
    if arguments.only and not arguments.regions:
        raise CommandError("--only needs --regions.")
    if arguments.regions:
        if arguments.tls:
            raise CommandError("--tls does not go with --regions.")
        from trizone.regions import up_regions

        return up_regions(options, arguments.regions, arguments.only)
    return up(options)


def _status(arguments: argparse.Namespace) -> int:
    from trizone.report import show
    from trizone.status import read_status

    show(read_status(arguments.data), as_json=arguments.json)
    return 0


def _service(arguments: argparse.Namespace) -> int:
    """Become `python -m SERVICE --config FILE …`."""
    die_with_parent()
    sys.argv = [f"trizone {arguments.command}", *(part for path in arguments.config for part in ("--config", path))]
    runpy.run_module(arguments.command, run_name="__main__", alter_sys=True)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except CommandError as error:
        print(error, file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
