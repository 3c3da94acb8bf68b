"""The brain of one replica of a partition: decides writes on the leader, applies the log on every replica, answers
reads.

Deterministic: it knows its store, the entries of its log and what is passed in, and nothing else. Writes are decided
on the
applied state plus the *overlay*, the outcomes that are proposed and not yet applied. Reads see the applied state alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.codec import make_stamp
from dynamo.errors import ApiError, item_collection_too_large
from dynamo.expiry import expires_at, is_expired, needle_of
from dynamo.expressions import tree
from dynamo.expressions.projection import project
from dynamo.regions import is_global
from dynamo.table import Table, decode_table, encode_table
from dynamo.values import dump, load
from replication.messages import Entry
from storagenode import commands
from storagenode.applying import Taken, last_delete
from storagenode.change_readers import load_readers
from storagenode.decisions import Answer, Decision, Propose, Repeat, Result, failure
from storagenode.expiry import load_expiry
from storagenode.index_rows import IndexRows
from storagenode.indexes import (
    Indexed,
    IndexEntries,
    LocalIndexes,
    global_indexes_of,
    local_indexes_of,
    write_units,
)
from storagenode.item_collections import ITEM_COLLECTION_BYTES_MAX, ItemCollections
from storagenode.operation_ids import OperationIds
from storagenode.query import Page, run_slice
from storagenode.regional import Regional
from storagenode.row_agreement import RowSums, runs
from storagenode.storage import layout
from storagenode.storage.store import SCHEMA, Applied, Store
from storagenode.transaction_marks import Mark
from storagenode.transactions import KINDS as TRANSACTION_KINDS
from storagenode.transactions import Transactions, Weighed
from storagenode.unwritten_answers import UnwrittenAnswers
from storagenode.writes import Changed, Old, Outcome, Refused, decide_delete, decide_put, decide_update

__all__ = ["Answer", "Decision", "Partition", "Propose", "Repeat"]


class Partition:
    """One replica's state machine over its store."""

    def __init__(self, store: Store, *, item_collection_bytes_max: int = ITEM_COLLECTION_BYTES_MAX) -> None:
        self._store = store
        self._overlay: dict[bytes, tuple[int, bytes | None]] = {}
        self._collections = ItemCollections(store, item_collection_bytes_max)
        self._in_flight: dict[int, tuple[int, Result]] = {}
        self._unwritten = UnwrittenAnswers()
        self._transactions = Transactions(store, self, self._remember)
        self._last_delete = last_delete(store)
        self._operations = OperationIds()
        for row in store.operation_ids():
            self._operations.add_all(row.first_position, row.stamp_ms, row.ids)
        schema = store.meta(SCHEMA)
        self._applied_schema = None if schema is None else decode_table(schema)
        self._applied_local = local_indexes_of(self._applied_schema)
        self.readers = load_readers(store, self._applied_schema)
        self.expiry = load_expiry(store, self._applied_schema)
        self._index_rows = IndexRows(store)
        self._regional = Regional(store, self)
        self._may_have_changes = True
        self._set_schema(self._applied_schema, self._applied_local)
        self._last_stamp = store.applied().stamp
        self.row_sums = RowSums(store.applied().position, store.row_sum())

    def _set_schema(self, schema: Table | None, local: LocalIndexes | None) -> None:
        """What requests are held to from here on."""
        self.schema, self._local, self._global = schema, local, global_indexes_of(schema)

    @property
    def applied_schema(self) -> Table | None:
        """The table's description as of the applied state."""
        return self._applied_schema

    @property
    def applied(self) -> Applied:
        """How far the log is applied, with the counts and the highest stamp of the applied state."""
        return self._store.applied()

    # --- writes, on the leader ---

    def decide(self, request: storage_pb2.Request, wall_ms: int, position: int) -> Decision:
        """What becomes of a write. `position` is where its entry will stand if it is proposed; the caller proposes it
        at once.

        Raises CorruptItem when the item's row fails its checksum.
        """
        if joined := self._in_flight.get(request.operation_id):
            return Answer(joined[1], joined[0])
        if (applied_at := self._operations.find(request.operation_id)) is not None:
            return Repeat(applied_at)
        kind = request.WhichOneof("operation")
        if kind == "index_write":
            return self._index_rows.decide(request.index_write, self.current, self._overlay, position)
        if kind == "regional_write":
            return self._regional.decide(request.regional_write, wall_ms, position)
        if kind == "finish":  # what it finds depends on what has come before it, and it may come again for that
            return self._transactions.decide(request, wall_ms, position)
        if (answered := self._unwritten.find(request.operation_id, self._store.applied().position)) is not None:
            return answered
        if kind in TRANSACTION_KINDS:
            decision = self._transactions.decide(request, wall_ms, position)
        else:
            decision = self._decide_single(request, kind, wall_ms, position)
        if isinstance(decision, Answer):
            self._unwritten.add(request.operation_id, decision)
        return decision

    def _decide_single(self, request: storage_pb2.Request, kind: str, wall_ms: int, position: int) -> Propose | Answer:
        key: bytes = getattr(request, kind).key
        if self._transactions.marks and (conflict := self._transactions.conflict(key)) is not None:
            return conflict
        old, resting_on = self.current(key)
        if kind == "put":
            outcome: Outcome = decide_put(request.put, old)
        elif kind == "update":
            outcome = decide_update(request.update, old, self.schema)
        else:
            outcome = decide_delete(request.delete, old)
        if isinstance(outcome, Changed):
            weighed = self.weigh(key, old, outcome)
            if isinstance(weighed, ApiError):
                return Answer(failure(weighed, old.size), self._collections.rests_on(key))
            return self._propose(request.operation_id, key, outcome, weighed, self.next_stamp(wall_ms), position)
        if isinstance(outcome, Refused):
            return Answer(failure(outcome.error, old.size), resting_on)
        reply = storage_pb2.WriteReply(attributes=outcome.attributes, old_size=old.size)
        if self._local is not None:
            reply.collection_size = self._collections.size(key)
        return Answer(reply, resting_on)

    def expire(self, key: bytes, wall_ms: int, position: int) -> Propose | None:
        """The delete of an item whose time to live is over; None if it is not, or not any more, or a transaction is
        under way on it. `position` as for `decide`. Raises CorruptItem."""
        attribute = "" if self.schema is None else self.schema.ttl_attribute
        if self._transactions.marks and self._transactions.conflict(key) is not None:
            return None
        old, _ = self.current(key)
        time = expires_at(old.body, attribute, needle_of(attribute))
        if time is None or not is_expired(time, wall_ms // 1000):
            return None
        deleted = Changed(None, 0, b"")
        weighed = Weighed(storage_pb2.WriteReply(old_size=old.size), self.growth(key, old, deleted))
        return self._propose(0, key, deleted, weighed, self.next_stamp(wall_ms), position, codec.WRITTEN_BY_SERVICE)

    def _propose(
        self,
        operation_id: int,
        key: bytes,
        changed: Changed,
        weighed: Weighed,
        stamp: int,
        position: int,
        flags: int = 0,
    ) -> Propose:
        stored = self.put_in_flight(key, changed, weighed.growth, stamp, position, flags)
        reply = weighed.reply
        self._remember(operation_id, position, reply)
        payload = commands.encode_write(operation_id, key, stored, reply.old_size, reply.SerializeToString())
        return Propose(payload, reply)

    def _remember(self, operation_id: int, position: int, reply: Result) -> None:
        """A retry of this request joins it."""
        if operation_id:
            self._in_flight[operation_id] = (position, reply)

    def weigh(self, key: bytes, old: Old, changed: Changed) -> Weighed | ApiError:
        """What a change would do; an error if the item collection has no room for it."""
        reply = storage_pb2.WriteReply(attributes=changed.attributes, old_size=old.size, new_size=changed.size)
        if self._global is not None:
            reply.global_index_units.extend(write_units(*_indexed(self._global, key, old, changed)))
        if self._local is None:
            return Weighed(reply, 0)
        before, after = _indexed(self._local, key, old, changed)
        growth = after.size - before.size
        if not self._collections.may_grow(key, growth):
            return item_collection_too_large()
        reply.local_index_units.extend(write_units(before, after))
        reply.collection_size = self._collections.size(key) + growth
        return Weighed(reply, growth)

    def growth(self, key: bytes, old: Old, changed: Changed) -> int:
        """By how many bytes a change makes the item collection grow; 0 where there is none."""
        if self._local is None:
            return 0
        before, after = _indexed(self._local, key, old, changed)
        return after.size - before.size

    def put_in_flight(
        self, key: bytes, changed: Changed, growth: int, stamp: int, position: int, flags: int = 0, origin: int = 0
    ) -> bytes:
        """The entry proposed at `position` changes the item. The bytes to be stored, a tombstone for a delete.

        `origin`: the number of the region that the change is from."""
        if changed.body is None:
            flags |= codec.TOMBSTONE
        header = codec.ItemHeader(flags=flags, origin=origin, size=changed.size, stamp=stamp, position=position)
        stored = codec.encode(key, changed.body or b"", header)
        self._overlay[key] = (position, None if changed.body is None else stored)
        if is_global(self.schema):
            self._regional.written(key, stored, position, gone=changed.body is None)
        if self._local is not None:
            self._collections.change(key, growth, position)
        return stored

    def propose_schema(self, table: Table) -> bytes:
        """The payload that makes `table` the schema; from here on requests are held to it."""
        self._set_schema(table, local_indexes_of(table))
        return commands.encode_schema(encode_table(table))

    def next_stamp(self, wall_ms: int) -> int:
        """A hybrid-logical-clock stamp above the clock's and above every stamp that this partition has seen."""
        self._last_stamp = max(make_stamp(wall_ms, 0), self._last_stamp + 1)
        return self._last_stamp

    def saw(self, stamp: int) -> None:
        """Stamp above this from now on."""
        self._last_stamp = max(self._last_stamp, stamp)

    def is_marked(self, key: bytes) -> bool:
        """Whether a transaction is under way on the item."""
        return bool(self._transactions.marks) and self._transactions.conflict(key) is not None

    def current(self, key: bytes) -> tuple[Old, int]:
        """The item after all writes in flight, and the position that this rests on (0: it is applied)."""
        if (pending := self._overlay.get(key)) is not None:
            return Old(pending[1]), pending[0]
        return Old(self._row(key)), 0

    def abandon(self) -> None:
        """Leadership is lost: what was proposed and is not applied may or may not come back through the log."""
        self._overlay.clear()
        self._in_flight.clear()
        self._unwritten.clear()
        self._transactions.abandon()
        self._collections.abandon()
        self._index_rows.abandon()
        self._regional.abandon()
        self._set_schema(self._applied_schema, self._applied_local)

    # --- the log, on every replica ---

    def apply(self, entries: Sequence[Entry]) -> None:
        """Take committed entries into the store. Raises what the store raises: `applied` then tells what was taken."""
        for run in runs(entries):
            self._apply(run)

    def _apply(self, entries: Sequence[Entry]) -> None:
        taken = Taken(
            self._store,
            self._applied_local,
            self._transactions.marks,
            self.readers,
            self.expiry,
            self._applied_schema,
        )
        for entry in entries:
            taken.take(entry)
        batch = taken.finish()
        batch.forget_operation_ids_before = self._operations.first_position
        batch.forget_changes_to = self._changes_passed(taken)
        self._store.write(batch)
        self.row_sums.add(entries[-1].position, self._store.row_sum())
        self._after_apply(taken)

    def _changes_passed(self, taken: Taken) -> int:
        """Up to where change rows may go: all of them, once nobody reads them any more. 0: there are none."""
        if taken.readers:
            self._may_have_changes = True
            return taken.readers.passed
        if self._may_have_changes:
            left = self._store.rows(layout.CHANGE, layout.prefix_end(layout.CHANGE))
            with closing(left):
                self._may_have_changes = next(left, None) is not None
        return taken.batch.applied.position if self._may_have_changes else 0

    def _after_apply(self, taken: Taken) -> None:
        row = taken.batch.operation_ids
        if row is not None:
            self._operations.add_all(row.first_position, row.stamp_ms, row.ids)
        for operation_id in taken.ids:
            self._in_flight.pop(operation_id, None)
        last = taken.batch.applied.position
        if self._overlay:
            self._overlay = {key: pending for key, pending in self._overlay.items() if pending[0] > last}
        self._transactions.applied_to(taken.marks.changes, last)
        self._last_delete = taken.last_delete or self._last_delete
        self._collections.applied_to(last)
        self._index_rows.applied_to(taken.sources, last)
        self._regional.applied_to(taken.regional, last)
        self.readers, self.expiry = taken.readers, taken.expiry
        self._last_stamp = max(self._last_stamp, taken.batch.applied.stamp)
        if taken.schema is not None:
            self._applied_schema, self._applied_local = taken.schema, taken.local
            if self.schema is None or self.schema.schema_version < taken.schema.schema_version:
                self._set_schema(taken.schema, taken.local)

    # --- reads, of the applied state ---

    def get(self, request: storage_pb2.Get) -> storage_pb2.ItemReply:
        """GetItem. Raises CorruptItem."""
        return _read(self._row(request.key), request.projection)

    @property
    def marks(self) -> Mapping[bytes, Mark]:
        """The marks of transactions in the applied state, by row key."""
        return self._transactions.marks.applied

    def transact_get(self, request: storage_pb2.TransactGet) -> storage_pb2.TransactGetReply:
        """This partition's part of TransactGetItems, all at one moment. Raises CorruptItem."""
        reply = storage_pb2.TransactGetReply()
        for get in request.gets:
            stored = self._row(get.key)
            version = self._last_delete if stored is None else codec.header_of(stored).position
            marked = get.key in self._transactions.marks.applied
            item = None if request.versions_only else _read(stored, get.projection)
            reply.reads.add(item=item, version=version, marked=marked)
        return reply

    def query_slice(self, request: storage_pb2.Query, page: Page) -> bool:
        """Evaluate some more rows into `page`; whether the page is finished. Raises CorruptItem."""
        assert self.schema is not None, "a partition without a schema serves nothing"
        return run_slice(self._store, request, page, self.schema)

    def statistics(self) -> storage_pb2.StatisticsReply:
        """Items and bytes of the applied state."""
        applied = self._store.applied()
        indexes = [storage_pb2.IndexStatistics(items=count.items, size=count.size) for count in applied.indexes]
        return storage_pb2.StatisticsReply(items=applied.items, size=applied.size, local_indexes=indexes)

    def _row(self, key: bytes) -> bytes | None:
        stored = self._store.get(key)
        if stored is not None:
            codec.verify(key, stored)
        return stored


def _indexed(indexes: IndexEntries, key: bytes, old: Old, changed: Changed) -> tuple[Indexed, Indexed]:
    """The item before and after a change, with its entries in these indexes."""
    return indexes.of_stored(key, old.stored), indexes.of(key, changed.body, changed.size)


def _read(stored: bytes | None, projection: bytes) -> storage_pb2.ItemReply:
    if stored is None:
        return storage_pb2.ItemReply()
    body = codec.body_of(stored)
    if projection:
        body = dump(project(tree.decode_projection(projection), load(body)))
    return storage_pb2.ItemReply(item=body, size=codec.size_of(stored))
