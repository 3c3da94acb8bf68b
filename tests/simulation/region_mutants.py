"""Patches that break one rule of global tables each, which the scenario of regions must find.

Each has a plan that brings it out with few seeds: links that are cut for longer than tombstones stay, late copies,
clocks that step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final
from unittest.mock import patch

from dynamo.regions import Version
from replicator.horizon import Horizon
from replicator.link import Link, LinkError
from replicator.peers import PeerError
from storagenode import regional_reads
from storagenode.partition import Partition
from storagenode.regional import Regional
from tests.simulation.mutants import Mutant, patched
from tests.simulation.scenarios.regions import RegionsPlan, run_regions

REGION_MUTANTS: Final[dict[str, Mutant]] = {}
REGION_PLANS: Final[dict[str, RegionsPlan]] = {}

_CUTS: Final = {"calls refused one way": 4.0, "region cut off": 1.0}
_CALM: Final = {"hand over": 1.0}
"""Within regions next to nothing happens: what is looked for lies between them."""
_SHORT: Final = {"tombstone_seconds": 0.5, "compared": False, "grain": 0.0}


def mutant(**plan: Any) -> Callable[[Callable[[], Iterator[None]]], Mutant]:
    """Register a mutant with what its runs consist of."""

    def register(function: Callable[[], Iterator[None]]) -> Mutant:
        name = function.__name__.replace("_", " ")
        REGION_MUTANTS[name] = contextmanager(function)
        members = {"seconds": 15.0, "within": _CALM, "pause_between": (0.3, 1.5), "think": (0.01, 0.15), **plan}
        REGION_PLANS[name] = RegionsPlan(**members)
        return REGION_MUTANTS[name]

    return register


@mutant(between=_CUTS, lasts=(2.0, 6.0), **_SHORT)
def tombstones_go_one_way() -> Iterator[None]:
    """A tombstone goes once the others have the delete, although they may have sent what it overrules."""

    async def nothing(_self: Horizon, *_: Any) -> list[int]:
        return []

    with patched(Horizon, "_settled_there", lambda _: nothing):
        yield


@mutant(between=_CUTS, lasts=(2.0, 6.0), **_SHORT)
def tombstones_go_by_the_clock() -> Iterator[None]:
    """A tombstone goes after a while, whoever has the delete."""

    def make(_: Any) -> Any:
        async def round_(self: Horizon, table: Any) -> None:
            stamp = int((self._clock.wall() - self._delay) * 1000) << 16
            await self._let_go(table, stamp, orphans=True)

        return round_

    with patched(Horizon, "_round", make):
        yield


@mutant(**_SHORT)
def stamps_below_what_came_from_elsewhere() -> Iterator[None]:
    """A leader stamps above its own writes alone, not above those, and deletes, that it took from other regions."""
    with patched(Partition, "saw", lambda _: lambda _self, _stamp: None):
        yield


@mutant()
def everything_is_sent_on() -> Iterator[None]:
    """Changes from elsewhere are told to all, too."""
    with patch.object(regional_reads, "_is_own", lambda _stored: True):
        yield


@mutant(between={**_CUTS, "kill replicator": 2.0}, compared=False)
def cursor_before_the_write() -> Iterator[None]:
    """What was sent counts as taken, whatever became of it."""

    def make(send: Any) -> Any:
        async def sent(self: Link, *arguments: Any) -> None:
            try:
                await send(self, *arguments)
            except (PeerError, LinkError):
                return

        return sent

    with patched(Link, "_send", make):
        yield


@mutant(
    grain=0.5,
    skew=0.0,
    tombstone_seconds=300.0,
    compared=False,
    between={"slow link": 1.0},
    think=(0.05, 0.5),
    seconds=8.0,
    regions=2,
)
def equal_stamps_are_not_told_apart() -> Iterator[None]:
    """Of two writes with one stamp the one that comes last wins, whatever its region."""

    def make(held: Any) -> Any:
        def stamp_alone(self: Regional, *arguments: Any) -> Version | None:
            found: Version | None = held(self, *arguments)
            return None if found is None else Version(found.stamp, "")

        return stamp_alone

    with patched(Regional, "held", make):
        yield


@mutant()
def tombstones_count_for_nothing() -> Iterator[None]:
    """What comes in counts against items alone, not against deletes."""

    def make(held: Any) -> Any:
        def of_items(self: Regional, key: bytes, table: Any) -> Version | None:
            old, _ = self._ground.current(key)
            return None if old.stored is None else held(self, key, table)

        return of_items

    with patched(Regional, "held", make):
        yield


@mutant(between={"late copies": 3.0, "calls refused one way": 1.0}, lasts=(3.0, 8.0), **_SHORT)
def late_copies_are_taken() -> Iterator[None]:
    """Nobody remembers what was taken of a source."""

    def make(decide: Any) -> Any:
        def decided(self: Regional, *arguments: Any) -> Any:
            self._in_flight.clear()
            with patch.object(Regional, "taken", lambda _self, _source: 0):
                return decide(self, *arguments)

        return decided

    with patched(Regional, "decide", make):
        yield


def seeds_until_found(name: str, seeds: Sequence[int]) -> tuple[int, str] | None:
    """How many of these seeds it took to find the mutant, and by what; None when none did."""
    mutate: Callable[[], AbstractContextManager[object]] = REGION_MUTANTS[name]
    for number, seed in enumerate(seeds, 1):
        outcome = run_regions(seed, REGION_PLANS[name], mutate)
        if outcome.violations:
            return number, outcome.violations[0]
    return None
