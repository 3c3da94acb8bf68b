"""The folder in which `trizone up` keeps a cluster.

cluster.json   the cluster's id and shape; made once, by the first start
ports.json     loopback ports of every process, chosen once and kept while they are free
run.json       the endpoint and the processes of the start that is running; removed when it ends
lock           held by the launcher and all its children, for as long as one of them lives
config/ logs/  one file per process
nodes/ auto-admin*/  what the services store
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from trizone.errors import CommandError

FORMAT = 1
OWN_NAMES = {"lock", "config", "logs"}
"""What a first start makes before it writes cluster.json."""
LOCK_PATIENCE_S = 3.0
"""After a launcher was killed, its children need a moment to follow it."""

T = TypeVar("T")
Auth: TypeAlias = Literal["off", "warn", "enforce"]
Ports = dict[str, dict[str, Annotated[int, Meta(ge=1, le=65_535)]]]
"""What ports.json says: ports by process and purpose."""


@dataclass
class ClusterFile:
    """What cluster.json says. `zones` are full names, such as us-east-1a."""

    cluster_id: str
    region: str
    zones: Annotated[list[str], Meta(min_length=1)]
    nodes_per_zone: Annotated[int, Meta(ge=1)]
    auto_admins: Annotated[int, Meta(ge=1)] = 1
    format: int = FORMAT
    auth: Auth = "off"
    tls: bool = False


@dataclass
class ProcessRecord:
    """A process as run.json and `trizone status` show it. Addresses are host:port; `pid` is None while it is down."""

    name: str
    role: str
    region: str
    zone: str | None
    pid: int | None
    address: str
    metrics: str
    https: bool = False


@dataclass
class RunFile:
    """What run.json says."""

    endpoint: str
    launcher: int
    processes: list[ProcessRecord] = field(default_factory=list)


def write_json(path: Path, content: Any, *, durable: bool = True) -> None:
    """Replace a file in one step, so that no reader ever sees half of it; with `durable` no crash either."""
    draft = path.with_suffix(".new")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
        if durable:
            file.flush()
            os.fsync(file.fileno())
    draft.replace(path)


class DataDirectory:
    """A cluster's folder. Nothing is made or changed before `lock` has returned."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock: int | None = None

    def __str__(self) -> str:
        return str(self.path)

    @property
    def config(self) -> Path:
        """Where the settings files are."""
        return self.path / "config"

    @property
    def logs(self) -> Path:
        """Where the processes log to."""
        return self.path / "logs"

    @property
    def lock_descriptor(self) -> int:
        """The open lock, to be handed down to children. Only while locked."""
        if self._lock is None:
            raise AssertionError("the data directory is not locked")
        return self._lock

    def lock(self, patience_s: float = LOCK_PATIENCE_S) -> None:
        """Make the folder if need be and take it. Raises CommandError when it is in use or cannot be used."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            strangers = {entry.name for entry in self.path.iterdir()} - OWN_NAMES
            if strangers and not self._cluster_file.exists():
                raise CommandError(
                    f"The folder {self} is not empty and holds no Trizone cluster; name another with --data."
                )
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            for folder in (self.config, self.logs):
                folder.mkdir(exist_ok=True)
        except OSError as error:
            raise CommandError(f"The data directory {self} cannot be used: {error.strerror}.") from None
        self._take(time.monotonic() + patience_s)

    def _take(self, deadline: float) -> None:
        while not _try_lock(self.lock_descriptor):
            if time.monotonic() > deadline or self._has_living_owner():
                self.unlock()
                raise CommandError(f"The data directory {self} is in use by another Trizone.")
            time.sleep(0.05)

    def _has_living_owner(self) -> bool:
        run = self.run_file()
        return run is not None and Path(f"/proc/{run.launcher}").exists()

    def unlock(self) -> None:
        """Give the folder back. It stays taken while a child lives."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def in_use(self) -> bool:
        """Whether a cluster runs on this folder."""
        try:
            descriptor = os.open(self.path / "lock", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return not _try_lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    @property
    def _cluster_file(self) -> Path:
        return self.path / "cluster.json"

    def cluster(self) -> ClusterFile | None:
        """What the first start laid down, or None before it. Raises CommandError when it cannot be understood."""
        content = self._read(self._cluster_file, dict[str, Any])
        if content is None:
            return None
        if content.get("format") != FORMAT:
            raise CommandError(
                f"{self._cluster_file} has format {content.get('format')}, and this Trizone reads {FORMAT}."
            )
        return _converted(content, ClusterFile, self._cluster_file)

    def write_cluster(self, cluster: ClusterFile) -> None:
        """Lay down the cluster's id and shape."""
        write_json(self._cluster_file, asdict(cluster))

    def ports(self) -> Ports:
        """Ports of the last start. Empty when the file is damaged: others can be chosen."""
        try:
            return self._read(self.path / "ports.json", Ports) or {}
        except CommandError:
            return {}

    def write_ports(self, ports: Ports) -> None:
        """Keep the ports for later starts."""
        write_json(self.path / "ports.json", ports)

    def run_file(self) -> RunFile | None:
        """The start that is running, or that was killed; see `in_use`."""
        return self._read(self.path / "run.json", RunFile)

    def write_run(self, run: RunFile) -> None:
        """Tell others, `trizone status` above all, what runs."""
        write_json(self.path / "run.json", asdict(run), durable=False)

    def clear_run(self) -> None:
        """Nothing runs any more."""
        (self.path / "run.json").unlink(missing_ok=True)

    def _read(self, path: Path, kind: type[T]) -> T | None:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError):
            raise CommandError(f"{path} cannot be read as JSON.") from None
        return _converted(content, kind, path)


def _converted(content: Any, kind: type[T], path: Path) -> T:
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError:
        raise CommandError(f"{path} does not hold what Trizone writes there.") from None


def _try_lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
