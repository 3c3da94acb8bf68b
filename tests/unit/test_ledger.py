"""The ledger's rows move as its diagram says, and attempts that were left are brought to their end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster import ledger
from cluster.ledger import Place, Row, State
from cluster.requests.call import Call
from cluster.settlement import finish_calls, settle
from cluster.topology import CatalogTable, CatalogUpdate, Topology
from cluster.wire import storage_pb2
from dynamo.errors import ApiError
from dynamo.keys import split_hashes
from dynamo.table import encode_table
from replication.messages import NORMAL, Entry
from storagenode import commands
from storagenode.decisions import Answer, Propose
from storagenode.partition import Partition
from storagenode.storage.memory_store import MemoryStore
from tests.unit.router_tables import Catalog, on_demand
from tests.unit.transaction_samples import identity

NOW = 1_800_000_000_000
ONE, A, B = identity("transaction"), identity("a"), identity("b")
PAYLOAD = identity("payload")
ITEMS = (Place(7, b"h" * 16 + b"key"), Place(8, b"i" * 16))


class LedgerPartition:
    """The ledger's only partition."""

    def __init__(self) -> None:
        self._partition = Partition(MemoryStore())
        self._position = 0
        self._apply(commands.encode_schema(encode_table(ledger.ledger_table(0.0))))

    def _apply(self, payload: bytes) -> None:
        self._position += 1
        self._partition.apply([Entry(1, self._position, payload, NORMAL)])

    def do(self, operation: storage_pb2.Update | storage_pb2.Delete) -> Row | None:
        """Write, and the row that was in the way, if any."""
        request = storage_pb2.Request()
        if isinstance(operation, storage_pb2.Update):
            request.update.CopyFrom(operation)
        else:
            request.delete.CopyFrom(operation)
        decision = self._partition.decide(request, NOW, self._position + 1)
        reply = storage_pb2.Reply()
        if isinstance(decision, Propose):
            self._apply(decision.payload)
        elif isinstance(decision, Answer) and isinstance(decision.reply, storage_pb2.Failure):
            reply.failure.CopyFrom(decision.reply)
        return ledger.row_in_the_way(reply)

    def row(self) -> Row | None:
        return ledger.row_of(self._partition.get(ledger.look(ONE)).item)

    def begin(self, attempt: bytes = A, now: int = NOW) -> Row | None:
        return self.do(ledger.begin(ONE, attempt, PAYLOAD, ITEMS, now))

    # --- as `settlement.Caller` ---

    async def call(self, call: Call) -> storage_pb2.Reply:
        operation = call.operation
        if isinstance(operation, storage_pb2.Get):
            return storage_pb2.Reply(item=self._partition.get(operation))
        assert isinstance(operation, storage_pb2.Update)
        if (row := self.do(operation)) is None:
            return storage_pb2.Reply(write=storage_pb2.WriteReply())
        item = self._partition.get(ledger.look(row.transaction)).item
        return storage_pb2.Reply(failure=storage_pb2.Failure(type="ConditionalCheckFailedException", item=item))

    async def call_all(self, calls: Sequence[Call]) -> list[storage_pb2.Reply | ApiError]:
        return [await self.call(call) for call in calls]


@pytest.fixture
def partition() -> LedgerPartition:
    return LedgerPartition()


def test_an_attempt_is_begun_committed_and_done(partition: LedgerPartition) -> None:
    assert partition.begin() is None
    assert partition.row() == Row(ONE, A, PAYLOAD, State.PENDING, items=ITEMS, version=1)
    assert partition.do(ledger.commit(ONE, A, (5, 0), NOW)) is None
    assert partition.do(ledger.done(ONE, A, NOW)) is None
    assert partition.row() == Row(ONE, A, PAYLOAD, State.COMMITTED, True, ITEMS, (5, 0), version=3)


def test_a_second_attempt_begins_only_after_the_first_was_cancelled(partition: LedgerPartition) -> None:
    partition.begin()
    in_the_way = partition.begin(B)
    assert in_the_way is not None
    assert in_the_way.attempt == A
    partition.do(ledger.cancel(ONE, A, NOW))
    assert partition.begin(B) is None
    row = partition.row()
    assert row is not None
    assert (row.attempt, row.state, row.refused) == (B, State.PENDING, frozenset({A}))


def test_a_cancelled_attempt_is_neither_committed_nor_begun_again(partition: LedgerPartition) -> None:
    partition.begin()
    partition.do(ledger.cancel(ONE, A, NOW))
    assert partition.do(ledger.commit(ONE, A, (), NOW)) is not None
    assert partition.begin() is not None
    partition.begin(B)
    partition.do(ledger.cancel(ONE, B, NOW))
    assert partition.begin() is not None


def test_a_committed_attempt_is_not_cancelled(partition: LedgerPartition) -> None:
    partition.begin()
    partition.do(ledger.commit(ONE, A, (1,), NOW))
    assert partition.do(ledger.cancel(ONE, A, NOW)) is not None
    assert partition.do(ledger.refuse(ONE, A, NOW)) is not None


def test_a_refused_attempt_never_begins(partition: LedgerPartition) -> None:
    assert partition.do(ledger.refuse(ONE, A, NOW)) is None
    in_the_way = partition.begin()
    assert in_the_way is not None
    assert in_the_way.state is None
    assert in_the_way.refused == {A}
    assert partition.begin(B) is None


def test_a_token_is_free_again_ten_minutes_after_the_transaction_was_done(partition: LedgerPartition) -> None:
    partition.begin()
    partition.do(ledger.commit(ONE, A, (1,), NOW))
    assert partition.begin(B, NOW + ledger.ROW_MS + 1) is not None, "not every participant has applied"
    partition.do(ledger.done(ONE, A, NOW))
    assert partition.begin(B, NOW + ledger.ROW_MS) is not None
    assert partition.begin(B, NOW + ledger.ROW_MS + 1) is None
    row = partition.row()
    assert row is not None
    assert (row.attempt, row.state, row.done, row.sizes) == (B, State.PENDING, False, ())


def test_a_row_is_forgotten_only_as_it_was_read(partition: LedgerPartition) -> None:
    partition.begin()
    row = partition.row()
    assert row is not None
    partition.do(ledger.cancel(ONE, A, NOW))
    partition.do(ledger.forget(row))
    row = partition.row()
    assert row is not None
    partition.do(ledger.forget(row))
    assert partition.row() is None


def with_ledger() -> Topology:
    table = CatalogTable(ledger.ledger_table(0.0), 1)
    return Topology().with_update(CatalogUpdate("test", 1, 0, 1, tables=(table,)))


@pytest.mark.parametrize("before", ["nothing", "pending", "committed", "cancelled", "refused", "another", "after"])
async def test_whatever_state_an_attempt_was_left_in_it_comes_to_an_end(
    partition: LedgerPartition, before: str
) -> None:
    if before in ("pending", "committed", "cancelled", "after"):
        partition.begin()
    if before == "committed":
        partition.do(ledger.commit(ONE, A, (1,), NOW))
    if before in ("cancelled", "after"):
        partition.do(ledger.cancel(ONE, A, NOW))
    if before == "refused":
        partition.do(ledger.refuse(ONE, A, NOW))
    if before in ("another", "after"):
        partition.begin(B)
    committed = await settle(partition, with_ledger(), ONE, A, NOW)
    assert committed is (before == "committed")
    assert await settle(partition, with_ledger(), ONE, A, NOW) is committed
    if not committed:
        assert partition.begin() is not None, "what was settled cannot begin any more"
        assert partition.do(ledger.commit(ONE, A, (1,), NOW)) is not None
    if before in ("another", "after"):
        assert partition.do(ledger.commit(ONE, B, (1,), NOW)) is None


def test_participants_are_told_by_partition() -> None:
    topology = Catalog(on_demand()).topology  # a table of two partitions
    (low, _), (_, high) = split_hashes(2)
    table = next(iter(topology.tables))
    items = [Place(table, low + b"a"), Place(table, high + b"b"), Place(table, low + b"c"), Place(99, low)]
    calls = finish_calls(topology, A, items, commit=True)
    assert [list(call.operation.keys) for call in calls] == [[low + b"a", low + b"c"], [high + b"b"]]  # type: ignore[union-attr]


def test_a_write_that_was_done_before_and_is_not_told_of_any_longer_is_not_taken_for_refused() -> None:
    reply = storage_pb2.Reply(failure=storage_pb2.Failure(type="InternalServerError", message="done before"))
    with pytest.raises(ApiError, match="done before"):
        ledger.row_in_the_way(reply)
