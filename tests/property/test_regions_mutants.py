"""Broken rules of global tables that the random worlds must find."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dynamo.codec import make_stamp
from dynamo.regions import Version, readers_of
from storagenode import regional, regional_reads
from storagenode.partition import Partition
from tests.property.region_world import RegionWorld
from tests.property.test_regions import STEPS, world

SEEDS_MAX = 60


def put_over_later_delete(patch: pytest.MonkeyPatch) -> None:
    """What comes in counts against items alone, not against tombstones."""
    held = regional.Regional.held

    def without_tombstones(self: regional.Regional, key: bytes, table: object) -> Version | None:
        old, _ = self._ground.current(key)
        return None if old.stored is None else held(self, key, table)  # type: ignore[arg-type]

    patch.setattr(regional.Regional, "held", without_tombstones)


def tombstones_go_one_way(patch: pytest.MonkeyPatch) -> None:
    """A tombstone goes once the others have the delete, although they may have sent what it overrules."""

    def one_way(self: RegionWorld) -> int:
        name = self.names[0]
        leader = self.regions[name]
        return min(
            regional_reads.state_of(leader.store, leader.partition.readers, replica.number).settled
            for replica in readers_of(self.tables[name])
        )

    patch.setattr(RegionWorld, "horizon", one_way)


def stamps_below_what_was_taken(patch: pytest.MonkeyPatch) -> None:
    """A leader stamps by its clock and its own last stamp alone."""

    def by_the_clock(self: Partition, wall_ms: int) -> int:
        return make_stamp(wall_ms, self.applied.position % 1_000)

    patch.setattr(Partition, "next_stamp", by_the_clock)


def everything_is_sent_on(patch: pytest.MonkeyPatch) -> None:
    """Changes from elsewhere are told to all, too."""
    patch.setattr(regional_reads, "_is_own", lambda _stored: True)


def cursor_before_the_write(patch: pytest.MonkeyPatch) -> None:
    """What is sent counts as taken."""
    send = RegionWorld.send

    def send_and_forget(self: RegionWorld) -> None:
        send(self)
        if self.network:
            sent = self.network[-1]
            self.taken[sent.source, sent.to] = max(self.taken.get((sent.source, sent.to), 0), sent.write.position)
            if self.random.random() < 0.3:
                self.network.pop()

    patch.setattr(RegionWorld, "send", send_and_forget)


def late_copies_are_taken(patch: pytest.MonkeyPatch) -> None:
    """Nobody remembers what was taken of a source."""
    patch.setattr(regional.Regional, "taken", lambda _self, _source: 0)


def the_last_to_come_wins(patch: pytest.MonkeyPatch) -> None:
    """Every change is applied."""
    patch.setattr(regional.Regional, "held", lambda _self, _key, _table: None)


MUTANTS: list[Callable[[pytest.MonkeyPatch], None]] = [
    put_over_later_delete,
    tombstones_go_one_way,
    stamps_below_what_was_taken,
    everything_is_sent_on,
    cursor_before_the_write,
    late_copies_are_taken,
    the_last_to_come_wins,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_rule_is_found(mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    for seed in range(SEEDS_MAX):
        made = world(seed)
        copies: list[object] = []
        try:
            for _ in range(STEPS):
                made.step()
                copies += made.network
            made.check()
            made.let_go()
            made.network = list(copies)  # type: ignore[arg-type]
            made.check()
        except AssertionError:
            return
    pytest.fail(f"{mutant.__name__} was not noticed in {SEEDS_MAX} worlds")
