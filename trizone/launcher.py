"""`trizone up`: a cluster on one machine, one process per service, in the foreground.

It does what a supervisor and a load balancer's health check would do, and nothing that the services need it for: it
writes a settings file for each, starts them with `trizone router|storagenode|autoadmin --config FILE`, starts again
what dies, and stops all in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from cluster.ids import cluster_id
from cluster.random_source import SystemRandom
from trizone import ports
from trizone.access import access_of
from trizone.composition import (
    REPLACE_AFTER_S,
    REPLICATOR,
    Leaders,
    Member,
    RegionPlan,
    compose,
    leaders_for,
    ports_wanted,
    with_settings,
    write_settings,
    zones_of,
)
from trizone.data_directory import Auth, ClusterFile, DataDirectory, RunFile
from trizone.errors import CommandError
from trizone.log_tail import LogTail, follow
from trizone.operator_access import FOLDER
from trizone.readiness import wait_until_ready
from trizone.supervisor import Child, Command
from trizone.temporary import temporary_folder
from trizone.tls import make_certificates, secured

GRACE_S = {"router": 5.0, "replicator": 5.0, "storagenode": 10.0, "autoadmin": 5.0}
"""Stop order, and how long each has to end by itself."""
PATIENCE_S = 15.0
"""How long a start may take before the launcher says what it waits for."""
IMPATIENCE_S = 0.5
"""A second Ctrl-C later than this ends everything at once. An earlier one is the first, come twice (under make)."""


@dataclass(frozen=True)
class UpOptions:
    """What `trizone up` was asked for. None: as the cluster is, or the default when it is new."""

    data: Path
    port: int = 8000
    nodes_per_zone: int | None = None
    auto_admins: int | None = None
    routers: int = 1
    region: str | None = None
    leaders: Leaders | None = None  # None: as suits the machine's cores
    replace_after: float = REPLACE_AFTER_S
    ephemeral: bool = False
    auth: Auth | None = None
    credentials: Path | None = None
    key_file: Path | None = None
    tls: bool = False  # and for ever after
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of docs/configuration.md, for all processes that have them."""


def say(line: str) -> None:
    """One line about what happens, on standard error."""
    with contextlib.suppress(OSError):  # a terminal that went away is no reason to stop
        print(line, file=sys.stderr, flush=True)


def up(options: UpOptions) -> int:
    """Run a cluster until SIGINT or SIGTERM; the command's exit code. Raises CommandError when it cannot start."""
    with contextlib.ExitStack() as stack:
        path = options.data
        if options.ephemeral:
            folder = stack.enter_context(temporary_folder())
            path, options = folder / "data", replace(options, key_file=options.key_file or folder / "cluster.key")
        directory = DataDirectory(path)
        directory.lock()
        stack.callback(directory.unlock)
        holder = stack.enter_context(ports.hold(options.port))
        try:
            cluster = found_or_founded(directory, options)
            launcher = Launcher(directory, cluster, options, holder)
        except OSError as error:
            raise CommandError(f"{directory} cannot be written to: {error.strerror}.") from None
        return asyncio.run(launcher.run())


def found_or_founded(directory: DataDirectory, options: UpOptions) -> ClusterFile:
    """The cluster in the folder, grown if more nodes are asked for, or a new one.

    Raises CommandError when the options contradict what the cluster is.
    """
    cluster = directory.cluster()
    if cluster is None:
        region = options.region or "us-east-1"
        cluster = ClusterFile(cluster_id(SystemRandom()), region, zones_of(region), options.nodes_per_zone or 1)
        cluster.auth, cluster.auto_admins = options.auth or "off", options.auto_admins or 1
        cluster.tls = options.tls
        directory.write_cluster(cluster)
        return cluster
    if options.region not in (None, cluster.region):
        raise CommandError(f"The cluster in {directory} is of region {cluster.region}, which cannot be changed.")
    wanted = options.nodes_per_zone or cluster.nodes_per_zone
    if wanted < cluster.nodes_per_zone:
        raise CommandError(
            f"The cluster in {directory} has {cluster.nodes_per_zone} nodes per zone; nodes cannot be taken away here."
        )
    admins = options.auto_admins or cluster.auto_admins
    if admins < cluster.auto_admins:
        raise CommandError(
            f"The cluster in {directory} has {cluster.auto_admins} auto-admins; they cannot be taken away here."
        )
    auth = options.auth or cluster.auth
    tls = options.tls or cluster.tls
    if (wanted, admins, auth, tls) != (cluster.nodes_per_zone, cluster.auto_admins, cluster.auth, cluster.tls):
        cluster.nodes_per_zone, cluster.auto_admins, cluster.auth, cluster.tls = wanted, admins, auth, tls
        directory.write_cluster(cluster)
    return cluster


class Launcher:
    """One run of the cluster."""

    def __init__(
        self,
        directory: DataDirectory,
        cluster: ClusterFile,
        options: UpOptions,
        holder: socket.socket,
        regions: RegionPlan | None = None,
    ) -> None:
        """`regions`: the cluster is one of several, and does not greet the user by itself."""
        self.region = cluster.region
        self._regions = regions
        self._directory = directory
        self._options = options
        self._port = int(holder.getsockname()[1])
        wanted = ports_wanted(cluster, options.routers)
        if regions is not None:
            wanted[REPLICATOR] = ("metrics",)
        chosen = ports.choose(wanted, directory.ports())
        directory.write_ports(chosen)
        leaders = options.leaders or leaders_for(cluster, len(os.sched_getaffinity(0)))
        self._access = access_of(
            cluster.auth, cluster.cluster_id, directory.path, options.key_file, options.credentials
        )
        self._members = compose(
            cluster,
            directory.path,
            chosen,
            options.routers,
            self._port,
            leaders,
            self._access,
            regions,
            options.replace_after,
        )
        if options.settings:
            self._members = [with_settings(member, options.settings) for member in self._members]
        self._certificates = directory.path / FOLDER if cluster.tls else None
        if self._certificates is not None:
            make_certificates(self._certificates, cluster.cluster_id)
            self._members = [secured(member, self._certificates) for member in self._members]
        self._run = RunFile(self.endpoint, os.getpid(), [member.record for member in self._members])
        self._children = {member.name: self._child(member) for member in self._members}
        self._asked_to_stop = 0.0
        self._run_file_is_old = False
        self._stop = asyncio.Event()
        self.is_ready = asyncio.Event()

    @property
    def endpoint(self) -> str:
        """Where clients connect."""
        return f"http{'s' if self._certificates else ''}://{ports.HOST}:{self._port}"

    def _child(self, member: Member) -> Child:
        settings = write_settings(self._directory, member)
        command = Command(
            member.name,
            [sys.executable, "-P", "-m", "trizone", member.record.role, "--config", str(settings)],
            self._directory.logs / f"{member.name}.log",
            inherit=(self._directory.lock_descriptor,),
            environment={"PYTHONPATH": _import_path()},
            spare=member.record.role == "storagenode",
        )
        return Child(command, say, lambda: self._publish(member))

    def _is_unfit(self, name: str) -> bool:
        return bool(self._children[name].unfit)

    def _too_few_run(self) -> bool:
        """Whether so many storage nodes cannot use their data that the others cannot serve."""
        spare = [child for child in self._children.values() if child.command.spare]
        return 2 * sum(bool(child.unfit) for child in spare) > len(spare)

    def _publish(self, member: Member) -> None:
        if not self.is_ready.is_set() and self._too_few_run():
            self._stop.set()
        member.record.pid = self._children[member.name].pid
        try:
            self._directory.write_run(self._run)
            self._run_file_is_old = False
        except OSError as error:  # a full disk must not end the supervision
            if not self._run_file_is_old:
                say(f"{self._directory} cannot be written to: {error.strerror}. What `trizone status` says is old.")
            self._run_file_is_old = True

    async def run(self) -> int:
        """Start everything, report, wait for the end, stop everything; the exit code."""
        on_signals(self.on_signal)
        return await self.serve()

    async def serve(self) -> int:
        """The same, told by whoever handles signals when to stop. Raises CommandError."""
        tails = asyncio.create_task(
            follow([LogTail(child.command.name, child.command.log, say) for child in self._children.values()])
        )
        tasks = [asyncio.create_task(self._keep(child)) for child in self._children.values()]
        try:
            await self._start_up()
            await self._stop.wait()
        finally:
            await self._shut_down()
            await asyncio.gather(*tasks)
            tails.cancel()
            self._directory.clear_run()
        failures = [f"{name}: {child.failure}" for name, child in self._children.items() if child.failure]
        if self._too_few_run():
            failures += [f"{name}: {child.unfit}" for name, child in self._children.items() if child.unfit]
        if failures:
            raise CommandError(failures[0])
        return 0

    def end(self) -> None:
        """Stop in order."""
        self._stop.set()

    def on_signal(self) -> None:
        """Stop; at once if asked again."""
        now = time.monotonic()
        if not self._stop.is_set():
            self._stop.set()
            self._asked_to_stop = now
        elif now - self._asked_to_stop > IMPATIENCE_S:
            for child in self._children.values():
                child.kill()

    async def _keep(self, child: Child) -> None:
        """A child that cannot use its settings ends the whole run: whoever started it has to change something."""
        await child.run()
        if child.failure:
            self._stop.set()

    async def _start_up(self) -> None:
        """Report when the cluster is ready, unless it is stopped before."""
        waiting = list(self._run.processes)
        ready = asyncio.create_task(wait_until_ready(self._run.processes, waiting, self._is_unfit))
        stop = asyncio.create_task(self._stop.wait())
        try:
            while not ready.done() and not stop.done():
                done, _ = await asyncio.wait((ready, stop), timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    names = ", ".join(process.name for process in waiting)
                    say(f"Still waiting for {names}; their logs are in {self._directory.logs}.")
        finally:
            stop.cancel()
            ready.cancel()
        if not self._stop.is_set():
            self.is_ready.set()
            if self._regions is None:
                print(self._greeting(), flush=True)

    def _greeting(self) -> str:
        roles = [member.record.role for member in self._members]
        nodes, routers = _counted(roles.count("storagenode"), "storage node"), _counted(roles.count("router"), "router")
        place = "data is gone when it stops" if self._options.ephemeral else f"data in {self._directory}"
        region = self._members[0].record.region
        return (
            f"Trizone is ready at {self.endpoint}  ({nodes} in 3 zones, {routers}; {place})\n\n"
            f"{self._trust()}    import boto3\n"
            f'    dynamodb = boto3.resource("dynamodb", endpoint_url="{self.endpoint}", region_name="{region}",\n'
            f"                              {self._credentials()}\n\n"
            f"Ctrl-C stops it."
        )

    def _trust(self) -> str:
        """What makes clients believe the endpoint's certificate."""
        return f"    export AWS_CA_BUNDLE={self._certificates}/ca.pem\n\n" if self._certificates else ""

    def _credentials(self) -> str:
        """What to put into the call: anything, unless requests are verified."""
        if self._access.auth != "enforce":
            return 'aws_access_key_id="any", aws_secret_access_key="any")'
        return "aws_access_key_id=…, aws_secret_access_key=…)  # trizone user create root --admin"

    async def _shut_down(self) -> None:
        """Routers first, so that nobody asks any more; nodes hand over and flush; auto-admin last."""
        for role, grace_s in GRACE_S.items():
            names = [member.name for member in self._members if member.record.role == role]
            await asyncio.gather(*(self._children[name].stop(grace_s) for name in names))


def on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` when the process is asked to end."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _import_path() -> str:
    """PYTHONPATH for children: our packages first. With `-P` never the user's folder, which may hold a `router` too."""
    home = str(Path(__file__).resolve().parents[1])
    return os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
