"""Transactions over two partitions, their steps mixed at random with each other and with single writes, come to what
they come to one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.wire import storage_pb2
from storagenode.decisions import Answer, Propose
from storagenode.storage import layout
from tests.unit.partition_samples import Leader, item
from tests.unit.transaction_samples import MISSING, PRESENT, add, check, delete, finish, prepare, put, transact

ITEMS = 3
Place: TypeAlias = tuple[int, int]
"""Partition and item."""
State: TypeAlias = dict[Place, int]
"""The attribute n of the items that are there."""


@dataclass(frozen=True)
class Step:
    """What an action does: `kind` and, for put and add, an amount."""

    kind: str
    amount: int

    def action(self, place: Place) -> storage_pb2.Action:
        """As it is sent."""
        _, number = place
        match self.kind:
            case "put":
                return put(item("a", number, n={"N": str(self.amount)}))
            case "put new":
                return put(item("a", number, n={"N": str(self.amount)}), MISSING)
            case "add":
                return add("a", number, self.amount)
            case "delete":
                return delete("a", number)
            case "delete present":
                return delete("a", number, PRESENT)
            case _:
                return check("a", number, PRESENT if self.kind == "present" else MISSING)

    def on(self, state: State, place: Place) -> bool:
        """Do it to the model; False if its condition fails."""
        present = place in state
        if (self.kind in ("put new", "missing") and present) or (
            self.kind in ("delete present", "present") and not present
        ):
            return False
        if self.kind in ("put", "put new"):
            state[place] = self.amount
        elif self.kind == "add":
            state[place] = state.get(place, 0) + self.amount
        elif self.kind.startswith("delete"):
            state.pop(place, None)
        return True


STEPS = st.builds(
    Step,
    st.sampled_from(["put", "put new", "add", "add", "delete", "delete present", "present", "missing"]),
    st.integers(1, 9),
)
PLACES = st.tuples(st.integers(0, 1), st.integers(0, ITEMS - 1))
TRANSACTIONS = st.dictionaries(PLACES, STEPS, min_size=1, max_size=4)


class World:
    """Two partitions, and a model that does what went ahead, one after the other."""

    def __init__(self) -> None:
        self.partitions = (Leader(), Leader())
        self.model: State = {}
        self.done = self.refused = 0
        self._ids = count(1_000)

    def run(self, number: int, wanted: dict[Place, Step]) -> Iterator[None]:
        """A coordinator; whoever drives it decides when it takes its next step."""
        parts = {partition: [place for place in wanted if place[0] == partition] for partition, _ in wanted}
        if len(parts) == 1:
            yield from self._at_once(wanted)
            return
        held = []
        for partition, places in parts.items():
            actions = [wanted[place].action(place) for place in places]
            decision = self.partitions[partition].decide(
                prepare(*actions, operation_id=next(self._ids), attempt=str(number))
            )
            yield
            self.partitions[partition].apply()  # the answer leaves only then
            if isinstance(decision, Propose):
                held.append(partition)
        commit = len(held) == len(parts)
        self._note(wanted, commit)
        yield
        for partition in held:
            rows = [("a", each) for _, each in parts[partition]]
            self.partitions[partition].decide(finish(str(number), *rows, commit=commit))
            yield

    def _at_once(self, wanted: dict[Place, Step]) -> Iterator[None]:
        (partition, _), *_ = wanted
        actions = [step.action(place) for place, step in wanted.items()]
        decision = self.partitions[partition].decide(transact(*actions, operation_id=next(self._ids)))
        self._note(wanted, isinstance(decision, Propose))
        yield

    def write(self, place: Place, step: Step) -> None:
        """A single write, if it is one."""
        operation = step.action(place)
        request = storage_pb2.Request(operation_id=next(self._ids))
        kind = operation.WhichOneof("action")
        if kind == "check":
            return
        getattr(request, kind).CopyFrom(getattr(operation, kind))
        decision = self.partitions[place[0]].decide(request)
        refused = isinstance(decision, Answer) and isinstance(decision.reply, storage_pb2.Failure)
        self._note({place: step}, not refused)

    def _note(self, wanted: dict[Place, Step], went_ahead: bool) -> None:
        if not went_ahead:
            self.refused += 1
            return
        self.done += 1
        assert all(step.on(self.model, place) for place, step in wanted.items()), "a condition did not hold"

    def state(self) -> State:
        """What is in the partitions."""
        found = {}
        for partition, leader in enumerate(self.partitions):
            leader.apply()
            for number in range(ITEMS):
                if (there := leader.get("a", number)) is not None:
                    found[partition, number] = int(there["n"]["N"])
        return found


@settings(max_examples=300, deadline=None)
@given(
    transactions=st.lists(TRANSACTIONS, min_size=1, max_size=6),
    writes=st.lists(st.tuples(PLACES, STEPS), max_size=6),
    order=st.randoms(use_true_random=False),
)
def test_whatever_the_order_of_steps_there_is_an_order_of_transactions(
    transactions: list[dict[Place, Step]], writes: list[tuple[Place, Step]], order: Random
) -> None:
    world = World()
    running = [world.run(number, wanted) for number, wanted in enumerate(transactions)]
    while running or writes:
        chance = order.randrange(len(running) + len(writes) + 1)
        if chance < len(running):
            if next(running[chance], running) is running:
                del running[chance]
        elif chance < len(running) + len(writes):
            world.write(*writes.pop())
        else:
            world.partitions[order.randrange(2)].apply()
    assert world.state() == world.model
    for leader in world.partitions:
        with_prefix = list(leader.store.rows(layout.PENDING, layout.prefix_end(layout.PENDING)))
        assert with_prefix == [], "an item stays marked"
