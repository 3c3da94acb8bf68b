"""A network of the test's own: a network namespace for each zone, and one, the hub, that joins them by a bridge.

The test itself moves into the hub (`inside`), where clients, routers and auto-admin are; a node's process is started in
its zone's namespace. Faults are rules of nftables inside a zone. The machine's own interfaces and firewall are never
touched. Namespaces bear the test's process id in their name: what a test that was killed left behind is removed by the
next one.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

PREFIX = "trizone-chaos-"
HUB_ADDRESS = "10.77.0.1"
RUN = Path("/run/netns")
_CLONE_NEWNET = 0x40000000  # linux/sched.h
_TABLE = "inet faults"
_RULES = """
table {table} {{}}
delete table {table}
table {table} {{
    chain arriving {{ type filter hook input priority 0; {arriving} }}
    chain leaving {{ type filter hook output priority 0; {leaving} }}
}}
"""


def require_zones() -> None:
    """Skip where a test cannot have a network of its own."""
    if missing := [tool for tool in ("ip", "nft", "nsenter") if shutil.which(tool) is None]:
        pytest.skip(f"{missing[0]} is missing (Debian: iproute2, nftables, util-linux): no links can be cut")
    tried = ["unshare", "--net", "sh", "-c", "ip link add name bridge type bridge && nft list ruleset"]
    if os.geteuid() or subprocess.run(tried, capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made (root is needed): no links can be cut")


class Zones:
    """The network. Rules of one zone hold until the next call for it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._mark = f"{PREFIX}{os.getpid()}-"
        self.hub = f"{self._mark}hub"

    def namespace(self, zone: str) -> str:
        """The zone's namespace."""
        return self._mark + zone

    def address(self, zone: str) -> str:
        """The address of everything in the zone."""
        return f"10.77.0.{10 * (self._names.index(zone) + 1)}"

    def create(self) -> None:
        """Make all namespaces and join them."""
        remove_namespaces(self._mark)
        _ip("netns", "add", self.hub)
        _ip("-n", self.hub, "link", "add", "bridge", "type", "bridge")
        _ip("-n", self.hub, "address", "add", f"{HUB_ADDRESS}/24", "dev", "bridge")
        _up(self.hub, "lo", "bridge")
        for number, zone in enumerate(self._names):
            namespace, port = self.namespace(zone), f"zone{number}"
            _ip("netns", "add", namespace)
            _ip("-n", self.hub, "link", "add", port, "type", "veth", "peer", "name", "wire", "netns", namespace)
            _ip("-n", self.hub, "link", "set", port, "master", "bridge")
            _ip("-n", namespace, "address", "add", f"{self.address(zone)}/24", "dev", "wire")
            _up(self.hub, port)
            _up(namespace, "lo", "wire")

    def remove(self) -> None:
        """Remove all namespaces."""
        remove_namespaces(self._mark)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """This thread, and whatever threads and processes it starts, are in the hub."""
        with Path("/proc/self/ns/net").open("rb") as home:
            _enter(RUN / self.hub)
            try:
                yield
            finally:
                _enter_descriptor(home.fileno())

    # --- faults ---

    def heal(self, zone: str) -> None:
        """Everything passes."""
        self._set(zone, "", "")

    def partition(self, zone: str) -> None:
        """Nothing enters or leaves the zone."""
        self._set(zone, _drop("iif != lo"), _drop("oif != lo"))

    def deafen(self, zone: str, *others: str) -> None:
        """Nothing from the other zones (from anywhere, if none is named) arrives; what the zone sends does."""
        self._set(zone, self._rules(others, "saddr", "iif != lo"), "")

    def mute(self, zone: str, *others: str) -> None:
        """Nothing that the zone sends to the other zones (to anybody, if none is named) leaves; it hears them."""
        self._set(zone, "", self._rules(others, "daddr", "oif != lo"))

    def lose(self, zone: str, percent: int) -> None:
        """So many of all packets get lost, each way."""
        chance = f"numgen random mod 100 < {percent}"
        self._set(zone, _drop(f"iif != lo {chance}"), _drop(f"oif != lo {chance}"))

    def _rules(self, others: Sequence[str], field: str, anything: str) -> str:
        rules = [f"ip {field} {self.address(other)}" for other in others] or [anything]
        return " ".join(map(_drop, rules))

    def _set(self, zone: str, arriving: str, leaving: str) -> None:
        rules = _RULES.format(table=_TABLE, arriving=arriving, leaving=leaving)
        command = ["ip", "netns", "exec", self.namespace(zone), "nft", "-f", "-"]
        subprocess.run(command, input=rules, text=True, check=True)


def remove_namespaces(mark: str) -> None:
    """Remove the namespaces whose names begin so, and those of test processes that are gone."""
    for path in sorted(RUN.glob(f"{PREFIX}*")):
        owner = re.match(rf"{PREFIX}(\d+)-", path.name)
        if path.name.startswith(mark) or (owner and not Path("/proc", owner[1]).exists()):
            subprocess.run(["ip", "netns", "delete", path.name], check=False, capture_output=True)


def _drop(rule: str) -> str:
    return f"{rule} drop;"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def _up(namespace: str, *interfaces: str) -> None:
    for interface in interfaces:
        _ip("-n", namespace, "link", "set", interface, "up")


def _enter(path: Path) -> None:
    with path.open("rb") as namespace:
        _enter_descriptor(namespace.fileno())


def _enter_descriptor(descriptor: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(descriptor, _CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
