"""`trizone regions status` and `trizone regions compare`: asked of the replicators that run."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from trizone.errors import CommandError

if TYPE_CHECKING:
    from cluster.grpc_transport import GrpcTransport
    from cluster.settings import ReplicatorSettings

Parser = TypeVar("Parser", bound=argparse.ArgumentParser)
ANSWER_S = 3.0
COMPARE_S = 3_600.0


@dataclass(frozen=True)
class Asked:
    """A replicator, and the cluster that it is of; its settings, unless `trizone up` runs it."""

    region: str
    cluster_id: str
    address: str
    settings: ReplicatorSettings | None = None

    def transport(self) -> GrpcTransport:
        """The way to it. Raises CommandError."""
        from cluster.grpc_transport import GrpcTransport
        from trizone.operator_access import operator_security

        return GrpcTransport() if self.settings is None else GrpcTransport(operator_security(self.settings))


def add_region_commands(
    commands: argparse._SubParsersAction[Parser], parser_class: type[Parser], data_default: Path
) -> None:
    """Add the commands to the command line."""
    regions = commands.add_parser("regions", help="look after global tables")
    actions = regions.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=parser_class)
    status = actions.add_parser("status", help="show how far tables' changes have come in other regions")
    status.add_argument("--json", action="store_true", help="for programs")
    status.set_defaults(run=_status)
    compare = actions.add_parser("compare", help="compare a table in all regions now, and mend what differs")
    compare.add_argument("table", help="its name")
    compare.add_argument("--json", action="store_true", help="for programs")
    compare.set_defaults(run=_compare)
    for command in (status, compare):
        command.add_argument(
            "--data", type=Path, metavar="DIR", default=data_default, help="of trizone up --regions (./data); or:"
        )
        command.add_argument("--config", metavar="FILE", action="append", default=[], help="a replicator's settings")


def _status(arguments: argparse.Namespace) -> int:
    from trizone.region_report import show_status

    return show_status(asyncio.run(_statuses(_asked(arguments))), as_json=arguments.json)


def _compare(arguments: argparse.Namespace) -> int:
    asked = _asked(arguments)
    return _show_comparisons(asyncio.run(_compared(asked, arguments.table)), as_json=arguments.json)


def _asked(arguments: argparse.Namespace) -> list[Asked]:
    """The replicators that are meant. Raises CommandError."""
    return [configured(arguments.config)] if arguments.config else replicators(arguments.data)


def configured(paths: list[str]) -> Asked:
    """The replicator that runs with these settings. Raises CommandError."""
    from cluster.configuration import read_settings
    from cluster.settings import ReplicatorSettings, SettingsError

    try:
        settings = read_settings(ReplicatorSettings, paths, os.environ)
    except SettingsError as error:
        raise CommandError(str(error)) from None
    return Asked(settings.region, settings.cluster_id, settings.listen, settings)


def replicators(data: Path) -> list[Asked]:
    """The replicators that run below a data directory. Raises CommandError when there are none."""
    from trizone.data_directory import DataDirectory
    from trizone.regions import known_replicators

    names = sorted(known_replicators(data))
    if not names:
        raise CommandError(f"There are no regions in {data.absolute()}; name their folder with --data.")
    found = []
    for name in names:
        directory = DataDirectory(data / name)
        cluster, run = directory.cluster(), directory.run_file()
        if cluster is not None and run is not None and directory.in_use():
            found += [
                Asked(name, cluster.cluster_id, process.address)
                for process in run.processes
                if process.role == "replicator"
            ]
    if not found:
        raise CommandError(f"The regions in {data.absolute()} are not running.", code=1)
    return found


async def _statuses(asked: list[Asked]) -> dict[str, Any]:
    """By region its replicator's answer, or None where there is none."""
    from cluster.transport import TransportError
    from cluster.wire import regions_pb2

    found: dict[str, Any] = {}
    for each in asked:
        request = regions_pb2.StatusRequest(cluster_id=each.cluster_id).SerializeToString()
        transport = each.transport()
        try:
            answer = await transport.call(each.address, "Regions/Status", request, ANSWER_S)
            found[each.region] = regions_pb2.StatusReply.FromString(answer)
        except (TransportError, OSError):
            found[each.region] = None
        finally:
            await transport.close()
    return found


async def _compared(asked: list[Asked], table: str) -> dict[str, Any]:
    """By region what its replicator found. Raises CommandError when none answers."""
    from cluster.transport import TransportError
    from cluster.wire import regions_pb2

    found: dict[str, Any] = {}
    for each in asked:
        request = regions_pb2.CompareRequest(cluster_id=each.cluster_id, table=table).SerializeToString()
        transport = each.transport()
        try:
            answer = await transport.call(each.address, "Regions/Compare", request, COMPARE_S)
        except (TransportError, OSError) as error:
            raise CommandError(f"The replicator of {each.region} does not answer: {error}.", code=1) from None
        finally:
            await transport.close()
        found[each.region] = regions_pb2.CompareReply.FromString(answer)
    return found


def _show_comparisons(found: dict[str, Any], *, as_json: bool) -> int:
    """Print what was found; 0 if all regions hold the same, or hold it now."""
    lines, failed, rows = [], False, []
    for region, reply in found.items():
        if reply.error:
            failed = True
            lines.append(f"{region}: {reply.error}.")
            rows.append({"region": region, "error": reply.error})
        for each in reply.comparisons:
            failed = failed or bool(each.error)
            rows.append(
                {
                    "region": region,
                    "other": each.region,
                    "items_here": each.items_here,
                    "items_there": each.items_there,
                    "ranges": each.ranges,
                    "differing": each.differing,
                    "mended_here": each.mended_here,
                    "mended_there": each.mended_there,
                    "error": each.error,
                }
            )
            lines.append(_comparison_line(region, each))
    if as_json:
        json.dump(rows, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        print("\n".join(lines) or "The table has no replicas.")
    return int(failed)


def _comparison_line(region: str, each: Any) -> str:
    if each.error:
        return f"{region} and {each.region}: not compared: {each.error}"
    counts = f"{each.items_here} and {each.items_there} items, {each.ranges} ranges"
    if not each.differing:
        return f"{region} and {each.region} hold the same ({counts})"
    mended = f"mended {each.mended_here} items here and {each.mended_there} there"
    return f"{region} and {each.region} differed in {each.differing} ranges ({counts}); {mended}"
