"""The checker on histories whose verdict is known, so that it can be trusted on those whose verdict is not."""

from __future__ import annotations

from functools import partial
from itertools import permutations
from random import Random

import pytest

from tests.simulation.checkers.linearizability import Undecided, after, check_item
from tests.simulation.workloads.history import FOREVER, UNKNOWN, Kind, Operation, Unknown, Value


def operation(
    kind: Kind,
    invoked: float,
    returned: float,
    *,
    value: Value = None,
    expected: Value = None,
    found: Value | Unknown = UNKNOWN,
    done: bool = True,
) -> Operation:
    return Operation("client", "key", kind, invoked, value, expected, returned, found, done)


def put(invoked: float, returned: float, value: Value, found: Value | Unknown = UNKNOWN) -> Operation:
    return operation("put", invoked, returned, value=value, found=found)


def get(invoked: float, returned: float, found: Value) -> Operation:
    return operation("get", invoked, returned, found=found)


def add(invoked: float, returned: float, found: Value | Unknown = UNKNOWN) -> Operation:
    return operation("add", invoked, returned, value=1, found=found)


def replace(invoked: float, returned: float, expected: Value, value: Value) -> Operation:
    return operation("replace", invoked, returned, expected=expected, value=value)


def refused(invoked: float, returned: float, expected: Value, found: Value) -> Operation:
    return operation("replace", invoked, returned, expected=expected, value="never", found=found, done=False)


def unknown(operation: Operation) -> Operation:
    operation.returned, operation.done, operation.found = FOREVER, None, UNKNOWN
    return operation


LINEARIZABLE = {
    "nothing": [],
    "a read of nothing": [get(0, 1, None)],
    "one after the other": [put(0, 1, "a"), get(2, 3, "a"), put(4, 5, "b"), get(6, 7, "b")],
    "a read beside a write sees the old item": [put(0, 1, "a"), put(2, 9, "b"), get(3, 4, "a")],
    "a read beside a write sees the new item": [put(0, 1, "a"), put(2, 9, "b"), get(3, 4, "b")],
    "two reads beside a write see the old, then the new": [put(0, 9, "a"), get(1, 2, None), get(3, 4, "a")],
    "two writes at once, in either order": [put(0, 9, "a"), put(0, 9, "b"), get(10, 11, "a"), get(12, 13, "a")],
    "an unknown write is seen": [unknown(put(0, 1, "a")), get(5, 6, None), get(7, 8, "a")],
    "an unknown write is never seen": [unknown(put(0, 1, "a")), get(5, 6, None), get(7, 8, None)],
    "an unknown write comes after later ones": [
        unknown(put(0, 1, "a")), put(2, 3, "b"), get(4, 5, "b"), get(6, 7, "a"),
    ],
    "adds": [add(0, 1, None), add(0, 5, 1), add(2, 9, 2), get(10, 11, 3)],
    "an unknown add among adds": [add(0, 1, None), unknown(add(2, 3)), add(4, 5, 2), get(6, 7, 3)],
    "a put tells the old item": [put(0, 1, "a"), put(2, 3, "b", found="a")],
    "of two replacements one is refused": [
        put(0, 1, "a"), replace(2, 9, "a", "b"), refused(2, 9, "a", found="b"), get(10, 11, "b"),
    ],
    "a replacement of nothing": [replace(0, 1, None, "a"), refused(2, 3, None, found="a")],
    "returns and begins at the same time": [put(0, 1, "a"), get(1, 2, None)],
}  # fmt: skip

NOT_LINEARIZABLE = {
    "a lost write": [put(0, 1, "a"), get(2, 3, None)],
    "a read of nobody's write": [put(0, 1, "a"), get(2, 3, "b")],
    "a stale read": [put(0, 1, "a"), put(2, 3, "b"), get(4, 5, "a")],
    "new, then old": [put(0, 1, "a"), put(2, 9, "b"), get(3, 4, "b"), get(5, 6, "a")],
    "two reads disagree about two writes": [
        put(0, 1, "a"), put(0, 1, "b"), get(2, 3, "a"), get(4, 5, "b"),
    ],
    "an unknown write is seen, then not": [unknown(put(0, 1, "a")), get(5, 6, "a"), get(7, 8, None)],
    "a write is seen before it began": [get(0, 1, "a"), put(2, 3, "a")],
    "an add counts twice": [add(0, 1, None), add(2, 3, 1), get(4, 5, 3)],
    "an unknown add counts twice": [unknown(add(0, 1)), get(4, 5, 2)],
    "an add is lost": [add(0, 1, None), add(2, 3, None)],
    "a put tells a wrong old item": [put(0, 1, "a"), put(2, 3, "b", found=None)],
    "both replacements succeed": [put(0, 1, "a"), replace(2, 9, "a", "b"), replace(2, 9, "a", "c")],
    "a refusal without cause": [put(0, 1, "a"), refused(2, 3, "a", found="a")],
    "a refusal by what never was": [put(0, 1, "a"), refused(2, 3, "a", found="b"), get(4, 5, "a")],
}  # fmt: skip


@pytest.mark.parametrize("history", LINEARIZABLE.values(), ids=LINEARIZABLE)
def test_what_is_linearizable_passes(history: list[Operation]) -> None:
    assert check_item(history) is None


@pytest.mark.parametrize("history", NOT_LINEARIZABLE.values(), ids=NOT_LINEARIZABLE)
def test_what_is_not_is_told(history: list[Operation]) -> None:
    stuck = check_item(history)
    assert stuck is not None
    assert str(stuck)


def _possible(history: list[Operation]) -> bool:
    """The obvious checker: every order of every choice of unknown operations."""
    unknown_ones = [at for at, operation in enumerate(history) if operation.done is None]
    for chosen in range(1 << len(unknown_ones)):
        left_out = {at for bit, at in enumerate(unknown_ones) if not chosen >> bit & 1}
        kept = [operation for at, operation in enumerate(history) if at not in left_out]
        if any(_fits(order) for order in permutations(kept)):
            return True
    return False


def _fits(order: tuple[Operation, ...]) -> bool:
    value: Value = None
    for at, operation in enumerate(order):
        if any(later.returned < operation.invoked for later in order[at + 1 :]):
            return False
        fits, value = after(operation, value)
        if not fits:
            return False
    return True


def _random_history(random: Random) -> list[Operation]:
    """Few values and short, so that about half are linearizable."""
    history: list[Operation] = []
    for _ in range(random.randint(1, 6)):
        invoked = random.randrange(8)
        returned = invoked + random.randint(1, 6)
        value, other = random.choice("ab"), random.choice(("a", "b", None))
        makers = (
            partial(put, invoked, returned, value),
            partial(put, invoked, returned, value, found=other),
            partial(get, invoked, returned, other),
            partial(get, invoked, returned, other),
            partial(replace, invoked, returned, other, value),
            partial(refused, invoked, returned, value, found=other),
        )
        made = random.choice(makers)()
        history.append(unknown(made) if made.kind != "get" and made.done and random.random() < 0.2 else made)
    return history


def test_the_search_equals_the_obvious_one() -> None:
    random, verdicts = Random(1), []
    for _ in range(1500):
        history = _random_history(random)
        verdicts.append(_possible(history))
        assert (check_item(history) is None) is verdicts[-1], "\n".join(map(str, history))
    assert 0.1 < sum(verdicts) / len(verdicts) < 0.9


def test_a_long_history_is_decided_quickly() -> None:
    """Six clients, 600 operations that overlap, and twenty of unknown outcome."""
    random, history, now, value = Random(2), [], 0.0, None
    for number in range(600):
        now += 1
        begun, ended = now - random.uniform(0, 5), now + random.uniform(0, 5)
        if random.random() < 0.5:
            history.append(get(begun, ended, value))
            continue
        value = f"value {number}"
        made = put(begun, ended, value)
        history.append(unknown(made) if random.random() < 0.07 else made)
    assert check_item(history, steps_max=20_000) is None


def test_a_search_without_end_is_given_up() -> None:
    history = [unknown(put(0, 1, f"value {number}")) for number in range(40)]
    with pytest.raises(Undecided):
        check_item([*history, get(2, 3, "value 41")], steps_max=1_000)
