"""Where replicas' sums are compared, and what is concluded."""

from __future__ import annotations

import pytest

from replication.messages import Entry
from storagenode.row_agreement import COMPARED_EVERY, REMEMBERED, RowSums, Verdict, judge, runs


def positions(first: int, last: int) -> list[list[int]]:
    entries = [Entry(1, position, b"") for position in range(first, last + 1)]
    return [[entry.position for entry in run] for run in runs(entries)]


def test_entries_are_cut_where_every_replica_can_be_compared() -> None:
    assert positions(1, 3) == [[1, 2, 3]]
    assert positions(COMPARED_EVERY, COMPARED_EVERY) == [[COMPARED_EVERY]]
    cut = positions(COMPARED_EVERY - 1, 2 * COMPARED_EVERY + 1)
    assert [run[-1] for run in cut] == [COMPARED_EVERY, 2 * COMPARED_EVERY, 2 * COMPARED_EVERY + 1]
    assert [position for run in cut for position in run] == list(range(COMPARED_EVERY - 1, 2 * COMPARED_EVERY + 2))


def test_replicas_that_apply_in_other_runs_have_positions_in_common() -> None:
    one, other = RowSums(0, 0), RowSums(0, 0)
    for position in range(1, 5 * COMPARED_EVERY):
        if position % 3 == 0 or position % COMPARED_EVERY == 0:
            one.add(position, position * 7)
        if position % 5 == 0 or position % COMPARED_EVERY == 0:
            other.add(position, position * 7)
    assert judge({1: one.known(), 2: other.known()}) == Verdict(1)
    assert len(one.known()) <= REMEMBERED + 1


@pytest.mark.parametrize(
    ("sums", "verdict"),
    [
        ({}, Verdict(0)),
        ({1: {5: 9}}, Verdict(0)),
        ({1: {5: 9}, 2: {6: 9}}, Verdict(0)),
        ({1: {5: 9}, 2: {5: 9, 6: 1}}, Verdict(1)),
        ({1: {5: 9}, 2: {5: 8}}, Verdict(1, undecided=True)),
        ({1: {5: 9}, 2: {5: 9}, 3: {5: 9}}, Verdict(2)),
        ({1: {5: 8}, 2: {5: 9}, 3: {5: 9}}, Verdict(2, odd=1)),
        ({1: {5: 9}, 2: {5: 8}, 3: {5: 9}}, Verdict(2, odd=2)),
        ({1: {5: 7}, 2: {5: 8}, 3: {5: 9}}, Verdict(2, undecided=True)),
        ({1: {5: 1, 6: 2}, 2: {5: 0, 6: 2}, 3: {5: 0, 6: 2}}, Verdict(2)),
    ],
)
def test_of_three_replicas_the_odd_one_is_wrong(sums: dict[int, dict[int, int]], verdict: Verdict) -> None:
    assert judge(sums) == verdict
