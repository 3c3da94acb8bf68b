"""What requests came to, counted as CloudWatch would."""

from __future__ import annotations

from cluster.wire import storage_pb2
from storagenode.usage import Usage, Usages
from tests.unit.partition_samples import Leader, item
from tests.unit.transaction_samples import MISSING, put, transact

KB = 1024


def written(old: int, new: int, local: tuple[int, ...] = ()) -> storage_pb2.WriteReply:
    return storage_pb2.WriteReply(old_size=old, new_size=new, local_index_units=local)


def test_reads_are_counted_as_they_are_charged() -> None:
    usage = Usage()
    usage.read(storage_pb2.ItemReply(size=4 * KB + 1), True)
    assert usage.read_units == 2
    usage.read(storage_pb2.ItemReply(size=4 * KB + 1), False)
    assert usage.read_units == 3
    usage.read(storage_pb2.ItemReply(), False)
    assert usage.read_units == 3.5, "a missing item costs as much as a small one"
    usage.queried(storage_pb2.QueryReply(size=9 * KB, count=7, fetched_units=2), False)
    assert (usage.read_units, usage.returned_items) == (6.0, 7)
    looked = [storage_pb2.TransactRead(item=storage_pb2.ItemReply(size=1)), storage_pb2.TransactRead(version=3)]
    usage.read_in_transaction(storage_pb2.TransactGetReply(reads=looked))
    assert usage.read_units == 8, "the second look is free"


def test_writes_are_counted_by_the_larger_image_with_their_local_indexes() -> None:
    usage = Usage()
    usage.wrote(storage_pb2.Request(put=storage_pb2.Put()), written(2 * KB + 1, 1, (1, 2)))
    assert usage.write_units == 6


def test_transactions_cost_twice_and_batches_do_not() -> None:
    leader, usage = Leader(), Usage()
    for number, request in enumerate(
        (
            transact(put(item("a", 1)), put(item("a", 2)), operation_id=1),
            storage_pb2.Request(
                operation_id=2, batch=storage_pb2.Batch(actions=[put(item("b", 1)), put(item("b", 2))])
            ),
        )
    ):
        decision = leader.decide(request)
        usage.wrote(request, decision.reply)  # type: ignore[union-attr, arg-type]
        assert usage.write_units == (4, 6)[number]


def test_refusals_are_counted_by_their_kind() -> None:
    leader, usage = Leader(), Usage()
    leader.put(item("a", 1))
    leader.apply()
    refused = leader.decide(transact(put(item("a", 1), MISSING), put(item("a", 2)), operation_id=9))
    usage.answered(refused.reply)  # type: ignore[union-attr]
    usage.answered(storage_pb2.Failure(type="TransactionConflictException"))
    usage.answered(storage_pb2.Failure(type="ItemCollectionSizeLimitExceededException"))
    assert (usage.conditional_check_failed, usage.transaction_conflicts, usage.write_units) == (1, 1, 1)


def test_a_table_has_one_count_for_all_its_partitions() -> None:
    usages = Usages()
    usages.of(7).items_expired += 1
    usages.of(7).items_expired += 1
    usages.of(8)
    assert [(table, usage.items_expired) for table, usage in usages.items()] == [(7, 2), (8, 0)]
