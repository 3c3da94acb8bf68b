"""`trizone up --regions A,B`: several regions on one machine, each a whole cluster with an endpoint of its own.

Each region lives in a folder of its own below the data directory, exactly as a cluster of `trizone up` does; beside
them regions.json keeps the ports at which their replicators find each other. With `--only` one region is run by itself,
so that regions can be stopped and started one by one.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trizone import ports
from trizone.composition import RegionPlan
from trizone.data_directory import DataDirectory, write_json
from trizone.errors import CommandError
from trizone.launcher import Launcher, UpOptions, found_or_founded, on_signals
from trizone.temporary import temporary_folder

FILE = "regions.json"
FORMAT = 1


@dataclass(frozen=True)
class RegionPorts:
    """Ports of the loopback address: of a region's endpoint (0: a free one), and of its replicator."""

    endpoint: int
    replicator: int


def up_regions(options: UpOptions, names: Sequence[str], only: str | None) -> int:
    """Run these regions, or `only` one of them, until SIGINT or SIGTERM; the command's exit code. Raises CommandError
    when one of them cannot start."""
    if len(set(names)) != len(names) or len(names) < 2:
        raise CommandError("--regions names at least two regions, each of them once.")
    if only is not None and only not in names:
        raise CommandError(f"Region {only} is not among those that --regions names.")
    if options.region is not None:
        raise CommandError("Use either --region or --regions.")
    with ExitStack() as stack:
        path = options.data.absolute()
        if options.ephemeral:
            path = stack.enter_context(temporary_folder()) / "data"
        try:
            found = region_ports(path, names, options.port)
            launchers = [_launcher(stack, path, name, options, found) for name in names if only is None or name == only]
        except OSError as error:
            raise CommandError(f"{path} cannot be written to: {error.strerror}.") from None
        return asyncio.run(_run(launchers))


def _launcher(stack: ExitStack, path: Path, name: str, options: UpOptions, found: dict[str, RegionPorts]) -> Launcher:
    """One region, ready to be run; its folder is taken."""
    directory = DataDirectory(path / name)
    directory.lock()
    stack.callback(directory.unlock)
    holder = stack.enter_context(ports.hold(found[name].endpoint))
    options = replace(options, region=name)
    if options.ephemeral:
        options = replace(options, key_file=options.key_file or path / f"{name}.key")
    return Launcher(directory, found_or_founded(directory, options), options, holder, plan_of(name, found))


def plan_of(name: str, found: dict[str, RegionPorts]) -> RegionPlan:
    """What a region's processes are told of the others."""
    addresses = {region: f"{ports.HOST}:{each.replicator}" for region, each in found.items()}
    peers = tuple(f"{region}={address}" for region, address in addresses.items() if region != name)
    return RegionPlan(tuple(found), addresses[name], peers)


async def _run(launchers: Sequence[Launcher]) -> int:
    """Run all; one that ends by itself ends all."""

    def stop() -> None:
        for launcher in launchers:
            launcher.on_signal()

    on_signals(stop)
    tasks = [asyncio.create_task(launcher.serve()) for launcher in launchers]
    greeting = asyncio.create_task(_greet(launchers))
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    greeting.cancel()
    for launcher, task in zip(launchers, tasks, strict=True):
        if not task.done():
            launcher.end()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return max(result for result in results if isinstance(result, int))


async def _greet(launchers: Sequence[Launcher]) -> None:
    await asyncio.gather(*(launcher.is_ready.wait() for launcher in launchers))
    width = max(len(launcher.region) for launcher in launchers)
    lines = [f"    {launcher.region:<{width}}  {launcher.endpoint}" for launcher in launchers]
    first = launchers[0]
    print(
        f"Trizone is ready at {first.endpoint}  (region {first.region}, and so on; a whole cluster for each)\n\n"
        + "\n".join(lines)
        + "\n\nA table gets a replica in another region by UpdateTable with ReplicaUpdates.\nCtrl-C stops all.",
        flush=True,
    )


# --- regions.json ---


def region_ports(path: Path, names: Sequence[str], endpoint: int) -> dict[str, RegionPorts]:
    """The ports of all regions, in the order of `names`: replicators keep theirs, new ones get free ones. Raises
    CommandError, OSError."""
    path.mkdir(parents=True, exist_ok=True)
    if (path / "cluster.json").exists():
        raise CommandError(f"The folder {path} holds a cluster of a single region; name another with --data.")
    with _locked(path):
        known = known_replicators(path)
        wanted = dict.fromkeys(names, ("replicator",))
        taken = {name: {"replicator": port} for name, port in known.items()}
        running = {name for name in known if DataDirectory(path / name).in_use()}
        chosen = ports.choose({name: purposes for name, purposes in wanted.items() if name not in running}, taken)
        replicators = {name: purposes["replicator"] for name, purposes in chosen.items()}
        write_json(path / FILE, {"format": FORMAT, "replicators": replicators})
    return {
        name: RegionPorts(endpoint + number if endpoint else 0, replicators[name]) for number, name in enumerate(names)
    }


def known_replicators(path: Path) -> dict[str, int]:
    """The replicators' ports by region, as the last start had them. Raises CommandError."""
    try:
        content: Any = json.loads((path / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        raise CommandError(f"{path / FILE} cannot be read as JSON.") from None
    found = content.get("replicators") if isinstance(content, dict) and content.get("format") == FORMAT else None
    if not isinstance(found, dict) or not all(isinstance(port, int) for port in found.values()):
        raise CommandError(f"{path / FILE} does not hold what Trizone writes there.")
    return found


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Nobody else chooses ports meanwhile."""
    descriptor = os.open(path / "regions.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
