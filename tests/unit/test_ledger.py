"""The ledger's rows move as its diagram says, and attempts that were left are brought to their end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster import ledger
from cluster.ledger import Place, Row
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

    def commit(self, attempt: bytes = A, now: int = NOW) -> Row | None:
        return self.do(ledger.commit(ONE, attempt, PAYLOAD, ITEMS, (5, 0), now))

    def refuse(self, attempt: bytes = A) -> Row | None:
        return self.do(ledger.refuse(ONE, attempt, NOW))

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


def test_what_was_committed_is_told(partition: LedgerPartition) -> None:
    assert partition.commit() is None
    assert partition.row() == Row(ONE, A, PAYLOAD, ITEMS, (5, 0), at_ms=NOW, version=1)
    in_the_way = partition.commit()
    assert in_the_way is not None
    assert in_the_way.attempt == A, "a coordinator that asks again finds its own attempt"


def test_one_attempt_alone_is_committed(partition: LedgerPartition) -> None:
    partition.commit()
    in_the_way = partition.commit(B)
    assert in_the_way is not None
    assert (in_the_way.attempt, in_the_way.payload, in_the_way.sizes) == (A, PAYLOAD, (5, 0))


def test_a_committed_attempt_is_not_refused_and_others_are(partition: LedgerPartition) -> None:
    partition.commit()
    assert partition.refuse() is not None
    assert partition.refuse(B) is None
    row = partition.row()
    assert row is not None
    assert (row.attempt, row.refused) == (A, frozenset({B}))


def test_a_refused_attempt_is_never_committed_and_another_one_may_be(partition: LedgerPartition) -> None:
    assert partition.refuse() is None
    in_the_way = partition.commit()
    assert in_the_way is not None
    assert (in_the_way.attempt, in_the_way.refused) == (b"", frozenset({A}))
    assert partition.commit(B) is None
    in_the_way = partition.commit()
    assert in_the_way is not None
    assert in_the_way.attempt == B


def test_a_token_is_free_again_after_ten_minutes() -> None:
    row = Row(ONE, A, PAYLOAD, at_ms=NOW)
    assert not row.expired(NOW + ledger.ROW_MS)
    assert row.expired(NOW + ledger.ROW_MS + 1)


def test_a_row_is_forgotten_only_as_it_was_read(partition: LedgerPartition) -> None:
    partition.refuse()
    row = partition.row()
    assert row is not None
    partition.commit(B)
    partition.do(ledger.forget(row))
    row = partition.row()
    assert row is not None
    partition.do(ledger.forget(row))
    assert partition.row() is None


def with_ledger() -> Topology:
    table = CatalogTable(ledger.ledger_table(0.0), 1)
    return Topology().with_update(CatalogUpdate("test", 1, 0, 1, tables=(table,)))


@pytest.mark.parametrize("before", ["nothing", "committed", "refused", "another", "another after it"])
async def test_whatever_state_an_attempt_was_left_in_it_comes_to_an_end(
    partition: LedgerPartition, before: str
) -> None:
    if before == "committed":
        partition.commit()
    if before in ("refused", "another after it"):
        partition.refuse()
    if before.startswith("another"):
        partition.commit(B)
    committed = await settle(partition, with_ledger(), ONE, A, NOW)
    assert committed is (before == "committed")
    assert await settle(partition, with_ledger(), ONE, A, NOW) is committed
    if not committed:
        assert partition.commit() is not None, "what was settled is not committed any more"
    row = partition.row()
    assert row is not None
    assert row.attempt == {"committed": A, "another": B, "another after it": B}.get(before, b"")


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
