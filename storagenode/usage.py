"""What requests to a table's partitions on this node came to, in the terms of CloudWatch's metrics for DynamoDB.

Counted where the item is known, on the replica that answered; a write counts when it is proposed.
"""

from __future__ import annotations

from typing import Final

from cluster.wire import storage_pb2
from dynamo.capacity import read_units, transactional_read_units, transactional_write_units, write_units
from storagenode.decisions import Result

CONDITION_FAILED: Final = "ConditionalCheckFailedException"
CONFLICT: Final = "TransactionConflictException"


class Usage:
    """Of one table. Units are capacity units, those of its local indexes included."""

    __slots__ = (
        "conditional_check_failed",
        "items_expired",
        "read_units",
        "returned_items",
        "transaction_conflicts",
        "write_units",
    )

    def __init__(self) -> None:
        self.read_units = 0.0
        self.write_units = 0.0
        self.returned_items = 0
        """By Query and Scan."""
        self.conditional_check_failed = 0
        self.transaction_conflicts = 0
        self.items_expired = 0
        """Deleted because their time to live was over."""

    def read(self, reply: storage_pb2.ItemReply, consistent: bool) -> None:
        """A get was answered."""
        self.read_units += read_units(reply.size, consistent)

    def read_in_transaction(self, reply: storage_pb2.TransactGetReply) -> None:
        """A look at a transaction's items was answered; the second look, without the items, costs nothing."""
        for each in reply.reads:
            if each.HasField("item"):
                self.read_units += transactional_read_units(each.item.size)

    def queried(self, reply: storage_pb2.QueryReply, consistent: bool) -> None:
        """A page was answered."""
        units = read_units(reply.size, True) + reply.fetched_units
        self.read_units += units if consistent else units / 2
        self.returned_items += reply.count

    def wrote(self, request: storage_pb2.Request, reply: Result) -> None:
        """A write was proposed."""
        if isinstance(reply, storage_pb2.WriteReply):
            self.write_units += write_units(reply.old_size, reply.new_size)
            if local := reply.local_index_units:
                self.write_units += sum(local)
            return
        units = write_units if request.HasField("batch") else transactional_write_units
        for result in reply.results:
            if result.HasField("failure"):
                self._refused(result.failure)
            else:
                write = result.write
                self.write_units += units(write.old_size, write.new_size) + sum(write.local_index_units)

    def answered(self, reply: Result | storage_pb2.Failure) -> None:
        """A write was answered without an entry: nothing was to be changed, or it was refused."""
        if isinstance(reply, storage_pb2.Failure):
            self._refused(reply)
        elif isinstance(reply, storage_pb2.WriteReply):
            self.write_units += write_units(reply.old_size, reply.new_size)
        else:
            for result in reply.results:
                if result.HasField("failure"):
                    self._refused(result.failure)

    def _refused(self, failure: storage_pb2.Failure) -> None:
        if failure.type == CONDITION_FAILED:
            self.conditional_check_failed += 1
            self.write_units += write_units(failure.size, failure.size)  # DynamoDB charges them, too
        elif failure.type == CONFLICT:
            self.transaction_conflicts += 1


class Usages:
    """Of all tables, by their ids. They stay as long as the node runs, so that counters never fall."""

    def __init__(self) -> None:
        self._of_tables: dict[int, Usage] = {}

    def of(self, table: int) -> Usage:
        """Of this table."""
        usage = self._of_tables.get(table)
        if usage is None:
            usage = self._of_tables[table] = Usage()
        return usage

    def items(self) -> list[tuple[int, Usage]]:
        """(table, usage) of all tables that were ever asked for."""
        return list(self._of_tables.items())
