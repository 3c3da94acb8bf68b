"""Rules of propagation broken on purpose: the property that indexes equal their tables has to notice."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from cluster.wire import storage_pb2
from storagenode import index_feed, index_rows, propagation
from storagenode.index_commands import encode_touch
from storagenode.index_feed import FedBatch, FedRow, IndexFeed
from storagenode.index_rows import IndexRows
from tests.property.index_world import World
from tests.property.test_index_propagation import shrink_limits

SEEDS = 60


def nothing(*_: Any) -> None:
    """Stands in for what a mutant leaves out."""


def cursor_before_the_write(patch: pytest.MonkeyPatch) -> None:
    """Progress is noted when rows are read, not when they are taken."""
    patch.setattr(IndexFeed, "cursor", property(lambda self: self.read_to))


def next_before_the_answer(patch: pytest.MonkeyPatch) -> None:
    """Requests to one partition follow each other without waiting."""
    batches = IndexFeed.batches

    def eager(self: IndexFeed) -> list[FedBatch]:
        for destination in self._destinations.values():
            destination.sent = None
        return batches(self)

    patch.setattr(IndexFeed, "batches", eager)
    patch.setattr(IndexFeed, "taken", nothing)
    patch.setattr(IndexFeed, "failed", nothing)


def give_up_after_a_failure(patch: pytest.MonkeyPatch) -> None:
    """A request that failed is taken for done."""
    patch.setattr(IndexFeed, "failed", IndexFeed.taken)


def rows_out_of_order(patch: pytest.MonkeyPatch) -> None:
    """A row that changes again keeps its place among those that wait."""

    def add(self: IndexFeed, row: FedRow, route: Callable[[bytes], int]) -> None:
        destination = self._destinations.setdefault(route(row.key[:16]), index_feed._Destination())
        destination.waiting[row.key] = row

    patch.setattr(IndexFeed, "_add", add)
    patch.setattr(IndexFeed, "_count", nothing)


def rows_taken_twice(patch: pytest.MonkeyPatch) -> None:
    """A partition of the index takes whatever comes, old or new."""

    class Everything(dict[int, Any]):
        def get(self, *_: Any) -> Any:
            return (0, 0)

    decide = IndexRows.decide

    def forgetful(self: IndexRows, *arguments: Any) -> Any:
        self._in_flight = Everything()
        return decide(self, *arguments)

    patch.setattr(IndexRows, "decide", forgetful)


def requests_in_flight_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Only what is applied counts as taken: a request that comes twice is counted twice."""
    decide = IndexRows.decide

    def forgetful(self: IndexRows, write: storage_pb2.IndexWrite, current: Any, _: Any, position: int) -> Any:
        self._in_flight.clear()
        return decide(self, write, current, {}, position)

    patch.setattr(IndexRows, "decide", forgetful)


def taken_positions_not_kept(patch: pytest.MonkeyPatch) -> None:
    """What was taken from a source is known only while it is in flight."""
    applied_to = IndexRows.applied_to
    patch.setattr(IndexRows, "applied_to", lambda self, _, position: applied_to(self, {}, position))
    patch.setattr(index_rows, "load_taken", lambda *_: 0)


def old_entries_left(patch: pytest.MonkeyPatch) -> None:
    """An item that moves in the index leaves its old row behind."""
    put = IndexFeed._add

    def add(self: IndexFeed, row: FedRow, route: Callable[[bytes], int]) -> None:
        if row.stored:
            put(self, row, route)

    patch.setattr(IndexFeed, "_add", add)


def fill_without_touches(patch: pytest.MonkeyPatch) -> None:
    """A new index is taken for filled at once."""

    def done(_: Any, index: int, through: bytes) -> bytes:
        return encode_touch(index, [], through, done=True)

    patch.setattr(propagation, "_next_touch", done)


MUTANTS = [
    cursor_before_the_write,
    next_before_the_answer,
    give_up_after_a_failure,
    rows_out_of_order,
    rows_taken_twice,
    requests_in_flight_forgotten,
    taken_positions_not_kept,
    old_entries_left,
    fill_without_touches,
]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_rule_is_noticed(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert any(not _holds(seed, monkeypatch) for seed in range(SEEDS)), f"in {SEEDS} runs nothing was noticed"


def _holds(seed: int, patch: pytest.MonkeyPatch) -> bool:
    dice = Random(seed)
    shrink_limits(patch, dice)
    world = World(dice, indexed=dice.random() < 0.5)
    try:
        for _ in range(150):
            world.step()
        world.settle()
    except AssertionError:
        return False
    return world.is_right()
