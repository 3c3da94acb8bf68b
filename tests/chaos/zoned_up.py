"""`trizone up`, but the storage nodes of each zone run in a network namespace of their own.

    python -m tests.chaos.zoned_up --data DIR --network FILE [--routers N] [--nodes-per-zone N] …

FILE is JSON: `hub` is the address of auto-admin; `zones` gives for each zone its `namespace` and `address`;
`advertised` the address (host:port) that others are told of a node, by name, where it is not its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from cluster.settings import AutoAdminSettings, RouterSettings, Settings, StorageNodeSettings
from tests.chaos.zones import RUN
from trizone import ports
from trizone.composition import Member
from trizone.data_directory import DataDirectory, ProcessRecord
from trizone.launcher import Launcher, UpOptions, found_or_founded
from trizone.supervisor import Child, Command


@dataclass(frozen=True)
class Network:
    """What the file says."""

    hub: str
    zones: Mapping[str, Mapping[str, str]]
    advertised: Mapping[str, str]


class ZonedLauncher(Launcher):
    """Starts each process where it belongs."""

    network: Network

    def _child(self, member: Member) -> Child:
        places = {_port(each.record.address): self._place(each.record) for each in self._members}
        record, settings = member.record, _with_addresses(member.settings, places)
        if record.role != "router":
            told, host = self._place(record), self._host(record)
            record.address, record.metrics = _at(host, record.address), _at(host, record.metrics)
            settings = msgspec.structs.replace(settings, listen=record.address, metrics_listen=record.metrics)
            if isinstance(settings, StorageNodeSettings) and told != record.address:
                settings = msgspec.structs.replace(settings, advertise=told)
        child = super()._child(replace(member, settings=settings))
        if record.role == "storagenode":
            child.command = _in_namespace(child.command, self.network.zones[str(record.zone)]["namespace"])
        return child

    def _host(self, record: ProcessRecord) -> str:
        return self.network.hub if record.zone is None else self.network.zones[record.zone]["address"]

    def _place(self, record: ProcessRecord) -> str:
        """Where others find a process."""
        if record.role == "router":
            return record.address
        return self.network.advertised.get(record.name) or _at(self._host(record), record.address)


def _port(address: str) -> str:
    return address.rpartition(":")[2]


def _at(host: str, address: str) -> str:
    return f"{host}:{_port(address)}"


def _with_addresses(settings: Settings, places: Mapping[str, str]) -> Any:
    """The settings, where other processes, which have ports of their own, are in these places."""

    def there(addresses: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(places[_port(address)] for address in addresses)

    if isinstance(settings, AutoAdminSettings):
        return msgspec.structs.replace(settings, peers=there(settings.peers))
    if isinstance(settings, StorageNodeSettings):
        return msgspec.structs.replace(settings, auto_admins=there(settings.auto_admins))
    assert isinstance(settings, RouterSettings)
    return msgspec.structs.replace(settings, auto_admins=there(settings.auto_admins), seeds=there(settings.seeds))


def _in_namespace(command: Command, namespace: str) -> Command:
    """nsenter becomes the command, so that the process id stays the child's."""
    return replace(command, arguments=["nsenter", f"--net={RUN / namespace}", *command.arguments])


def main() -> int:
    """Run until a signal comes; the exit code."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--network", type=Path, required=True)
    arguments.add_argument("--port", type=int, default=0)
    arguments.add_argument("--routers", type=int, default=1)
    arguments.add_argument("--nodes-per-zone", type=int, default=None)
    arguments.add_argument("--replace-after", type=float, default=300.0)
    arguments.add_argument("--leaders", choices=("spread", "gathered"), default="spread")
    asked = vars(arguments.parse_args())
    network = msgspec.convert(json.loads(asked.pop("network").read_text()), Network)
    options = UpOptions(**asked)
    ZonedLauncher.network = network
    directory = DataDirectory(options.data)
    directory.lock()
    with ports.hold(options.port) as holder:
        launcher = ZonedLauncher(directory, found_or_founded(directory, options), options, holder)
        return asyncio.run(launcher.run())


if __name__ == "__main__":
    sys.exit(main())
