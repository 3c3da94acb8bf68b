"""Networks that fall apart in every shape, and streams that do what no TCP connection would."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.simulation.faults.storm import Storm


async def zone_cut_off(storm: Storm) -> None:
    """A whole zone is gone; its nodes still reach each other."""
    zone = storm.random.choice([node.zone for node in storm.cluster.nodes])
    here = {node.name for node in storm.cluster.nodes if node.zone == zone}
    there = {member.name for member in storm.cluster.members} - here
    await storm.cut(_between(here, there))


async def bridge(storm: Storm) -> None:
    """Two sides, and one machine that both still reach."""
    names = [member.name for member in storm.cluster.members]
    middle = storm.random.choice(names)
    here = {name for name in names if name != middle and storm.random.random() < 0.5}
    await storm.cut(_between(here, set(names) - here - {middle}))


async def ring(storm: Storm) -> None:
    """Each node reaches its two neighbours alone."""
    nodes = [node.name for node in storm.cluster.nodes]
    storm.random.shuffle(nodes)
    count = len(nodes)
    apart = {
        (nodes[one], nodes[other])
        for one in range(count)
        for other in range(count)
        if (one - other) % count not in (0, 1, count - 1)
    }
    # Of three nodes all are neighbours: there the ring is broken at one place.
    await storm.cut(apart or _between({nodes[0]}, {nodes[1]}))


async def deaf_or_mute(storm: Storm) -> None:
    """A machine is not heard by any other, or hears none."""
    machine = storm.machine().name
    others = [member.name for member in storm.cluster.members if member.name != machine]
    mute = storm.random.random() < 0.5
    await storm.cut({(machine, other) if mute else (other, machine) for other in others})


async def any_links(storm: Storm) -> None:
    """Each direction of each link is cut or not."""
    names = [member.name for member in storm.cluster.members]
    share = storm.random.choice((0.1, 0.3, 0.6))
    pairs = [(one, other) for one in names for other in names if one != other]
    await storm.cut({pair for pair in pairs if storm.random.random() < share})


async def mixed_up_messages(storm: Storm) -> None:
    """Messages arrive twice, or after later ones."""
    weather = storm.cluster.network.weather
    weather.repeat_share = storm.random.choice((0.0, 0.02, 0.2))
    weather.overtake_share = storm.random.choice((0.0, 0.02, 0.2))
    await storm.last(0.5, 4.0)
    weather.repeat_share = weather.overtake_share = 0.0


def _between(here: set[str], there: set[str]) -> set[tuple[str, str]]:
    """Both directions of all links between two sides."""
    return {pair for one in here for other in there for pair in ((one, other), (other, one))}


KINDS: Final[dict[str, Callable[[Storm], Coroutine[Any, Any, None]]]] = {
    "zone cut off": zone_cut_off,
    "bridge": bridge,
    "ring": ring,
    "deaf or mute": deaf_or_mute,
    "any links": any_links,
    "mixed up messages": mixed_up_messages,
}
