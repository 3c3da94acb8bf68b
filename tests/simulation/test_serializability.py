"""The serializability checker on histories whose verdict is known."""

from __future__ import annotations

from random import Random

import pytest

from tests.simulation.checkers.linearizability import Undecided
from tests.simulation.checkers.serializability import check_transactions, violations
from tests.simulation.workloads.transactions import FOREVER, Transaction, Value


def one(
    invoked: float, returned: float, *, alone: bool = False, writes: dict[str, Value] | None = None, **reads: Value
) -> Transaction:
    """A transaction that read and wrote this, in this time."""
    return Transaction("c", invoked, dict(reads), writes or {}, returned, alone)


def both(invoked: float, returned: float, value: str) -> Transaction:
    """It writes x and y without looking."""
    return one(invoked, returned, writes={"x": value, "y": value})


GOOD = {
    "nothing": [],
    "one after the other": [both(0, 1, "a"), one(2, 3, x="a", y="a"), both(4, 5, "b"), one(6, 7, x="b", y="b")],
    "at once, in one order": [both(0, 9, "a"), both(0, 9, "b"), one(10, 11, x="a", y="a")],
    "at once, in the other": [both(0, 9, "a"), both(0, 9, "b"), one(10, 11, x="b", y="b")],
    "seen before it returns": [both(0, 9, "a"), one(1, 2, x="a", y="a")],
    "not seen before it returns": [both(0, 9, "a"), one(1, 2, x=None, y=None), one(3, 4, x="a", y="a")],
    "unknown, and happened": [both(0, FOREVER, "a"), one(5, 6, x="a", y="a")],
    "unknown, and happened late": [both(0, FOREVER, "a"), one(1, 2, x=None), both(3, 4, "b"), one(5, 6, x="a")],
    "unknown, and never happened": [both(0, FOREVER, "a"), one(5, 6, x=None, y=None)],
    "on condition": [one(0, 9, x=None, writes={"y": "a"}), one(0, 9, y="a", writes={"x": "b"})],
    "deleted": [both(0, 1, "a"), one(2, 3, x="a", writes={"x": None}), one(4, 5, x=None, y="a")],
    "single reads see a commit on its way": [
        both(0, 9, "a"),
        one(1, 2, x="a", alone=True),
        one(3, 4, y=None, alone=True),
    ],
}
BAD = {
    "half of it": [both(0, 1, "a"), one(2, 3, x="a", y=None)],
    "half of it while it happens": [both(0, 9, "a"), one(2, 3, x="a", y=None)],
    "half of it, and nobody heard": [both(0, FOREVER, "a"), one(2, 3, x="a", y=None)],
    "lost": [both(0, 1, "a"), one(2, 3, x=None, y=None)],
    "old": [both(0, 1, "a"), both(2, 3, "b"), one(4, 5, x="a", y="a")],
    "seen, then not": [both(0, 9, "a"), one(1, 2, x="a"), one(3, 4, x=None)],
    "seen, then not, on another item": [both(0, 9, "a"), one(1, 2, x="a"), one(3, 4, y=None)],
    "before it was sent": [one(0, 1, x="a"), both(2, 3, "a")],
    "unknown, before it was sent": [one(0, 1, x="a"), both(2, FOREVER, "a")],
    "invented": [one(0, 1, x="a")],
    "mixed": [both(0, 9, "a"), both(0, 9, "b"), one(10, 11, x="a", y="b")],
    "twice": [both(0, 1, "a"), both(2, 3, "b"), one(4, 5, x="b"), one(6, 7, x="a")],
    "twice, and nobody heard": [both(0, FOREVER, "a"), one(1, 2, x="a"), both(2, 3, "b"), one(4, 5, y="b", x="a")],
    "write skew": [
        one(0, 9, x=None, writes={"y": "a"}),
        one(0, 9, y=None, writes={"x": "b"}),
    ],
    "lost update": [
        both(0, 1, "a"),
        one(2, 9, x="a", writes={"x": "b"}),
        one(2, 9, x="a", writes={"x": "c"}),
    ],
    "two readers see two orders": [
        one(0, 9, writes={"x": "a"}),
        one(0, 9, writes={"y": "b"}),
        one(1, 2, x="a", y=None),
        one(1, 2, x=None, y="b"),
    ],
    "a single read after the answer": [both(0, 1, "a"), one(2, 3, y=None, alone=True)],
}


@pytest.mark.parametrize("name", GOOD)
def test_serializable(name: str) -> None:
    assert list(violations(GOOD[name])) == []


@pytest.mark.parametrize("name", BAD)
def test_not_serializable(name: str) -> None:
    found = list(violations(BAD[name]))
    assert found
    assert "fits" in found[0]


@pytest.mark.parametrize("seed", range(20))
def test_made_up_histories(seed: int) -> None:
    """Done one after the other, with times around that order, they are serializable; with one value changed not."""
    random = Random(seed)
    history = _made_up(random, 120)
    assert check_transactions(history) is None
    reader = random.choice([each for each in history if each.returned < FOREVER and any(each.reads.values())])
    key = next(key for key, value in reader.reads.items() if value is not None)
    reader.reads[key] = "never written"
    assert check_transactions(history) is not None


def _made_up(random: Random, length: int) -> list[Transaction]:
    state: dict[str, Value] = dict.fromkeys("vwxyz")
    history = []
    for number in range(length):
        keys = random.sample(sorted(state), random.randint(1, 3))
        reads = {key: state[key] for key in keys if random.random() < 0.6}
        writes: dict[str, Value] = {key: f"{number}" for key in keys if random.random() < 0.5}
        happens = random.random() > 0.1
        if happens:
            state.update(writes)
        known = happens and random.random() > 0.1
        returned = number + random.uniform(0, 4) if known else FOREVER
        history.append(Transaction("c", number - random.uniform(0, 4), reads, writes, returned))
    history.append(Transaction("c", length + 5, dict(state), {}, length + 6))
    return history


def test_the_search_is_bounded() -> None:
    history = [one(0, 100, writes={"x": f"{number}"}) for number in range(12)] + [one(200, 201, x="none of them")]
    with pytest.raises(Undecided):
        check_transactions(history, steps_max=500)
