"""Which nodes can be counted on, which are awaited, and which are given up. Pure: time is an argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from autoadmin.view import SILENT_SECONDS, View
from cluster.topology import Topology

TAKEN_OVER_SECONDS = 2 * SILENT_SECONDS
"""For how long nobody must have heard of a node before another of its name is its successor, not its double."""
SETTLED_SECONDS = 10.0
"""How long a node must have reported without a break before it is given leaders: one that dies again and again would
cost an election each time."""


@dataclass(frozen=True)
class Health:
    """The known nodes, by id.

    `live` report; `settled` have done so for a while; `silent` are those heard by nobody, with the seconds; `lost` are
    those of them whose replicas are to be made anew elsewhere; `successors` names, for a lost one, the node that came
    under its name with an empty disk.
    """

    live: frozenset[int] = frozenset()
    settled: frozenset[int] = frozenset()
    silent: Mapping[int, float] = field(default_factory=dict)
    lost: frozenset[int] = frozenset()
    draining: frozenset[int] = frozenset()
    successors: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def usable(self) -> frozenset[int]:
        """Nodes that may be given replicas."""
        return self.live - self.draining - self.lost

    def state(self, node: int) -> str:
        """One word for people: live, draining, silent, or lost."""
        if node in self.lost:
            return "lost"
        if node in self.live:
            return "draining" if node in self.draining else "live"
        return "silent"


def health(topology: Topology, seen: View, now: float, replace_after: float) -> Health:
    """The nodes as they are at `now`. A node that nobody has heard for `replace_after` seconds is lost."""
    live = seen.live(now) & frozenset(topology.nodes)
    silence = {node: seen.silence(node, now) for node in topology.nodes if node not in live}
    successors = dict(_successors(topology, live, silence))
    return Health(
        live,
        frozenset(node for node in live if now - seen.nodes[node].since >= SETTLED_SECONDS),
        {node: seconds for node, seconds in silence.items() if seconds > SILENT_SECONDS},
        frozenset(node for node, seconds in silence.items() if seconds >= replace_after) | frozenset(successors),
        frozenset(node.id for node in topology.nodes.values() if node.draining),
        successors,
    )


def _successors(topology: Topology, live: frozenset[int], silence: Mapping[int, float]) -> Iterator[tuple[int, int]]:
    """Silent nodes under whose name another one lives: its disk was emptied or replaced, and the old one never returns.

    Names tell this, and addresses do not: where addresses are handed out anew, as to containers, the next node at an
    address is any node.
    """
    names = {topology.nodes[node].name: node for node in sorted(live)}
    for node, seconds in silence.items():
        successor = names.get(topology.nodes[node].name)
        if successor is not None and seconds >= TAKEN_OVER_SECONDS:
            yield node, successor
