"""A partition over a store in memory, driven as a leader drives it: decide, then apply what was proposed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cluster.wire import storage_pb2
from dynamo.expressions.compile import compile_expressions
from dynamo.item import item_size
from dynamo.keys import row_key
from dynamo.table import Index, KeySchema, Table, encode_table
from dynamo.values import AttributeValue, Item, dump, load
from replication.messages import FIRST_OF_EPOCH, NORMAL, Entry
from storagenode import commands
from storagenode.partition import Answer, Partition, Propose, Repeat
from storagenode.storage.memory_store import MemoryStore
from storagenode.storage.store import Store

TABLE = Table(
    id=7,
    name="shop",
    schema_version=1,
    attribute_types={"pk": "S", "sk": "N"},
    keys=KeySchema(hash=("pk",), range=("sk",)),
    created=0.0,
)
INDEXED = msgspec.structs.replace(
    TABLE,
    attribute_types={"pk": "S", "sk": "N", "a": "S", "b": "N"},
    local_indexes=(
        Index("all", KeySchema(("pk",), ("a",)), "ALL"),
        Index("keys", KeySchema(("pk",), ("b",)), "KEYS_ONLY"),
        Index("include", KeySchema(("pk",), ("b",)), "INCLUDE", ("c",)),
    ),
)
"""TABLE with local indexes: 1 all, 2 keys, 3 include."""
NOW_MS = 1_800_000_000_000


def item(pk: str, sk: int, **attributes: AttributeValue) -> Item:
    """An item of TABLE."""
    return {"pk": {"S": pk}, "sk": {"N": str(sk)}, **attributes}


def key(pk: str, sk: int) -> bytes:
    """Its row key."""
    return row_key(TABLE.keys, TABLE.attribute_types, item(pk, sk))


class Leader:
    """Decides and applies, with positions counted up as a log would."""

    def __init__(self, store: Store | None = None, table: Table = TABLE, **options: int) -> None:
        self.store = store or MemoryStore()
        self.partition = Partition(self.store, **options)
        self.position = self.partition.applied.position
        self.log: list[Entry] = []
        self._next_id = self.position
        if self.partition.schema is None:
            self._append(b"", FIRST_OF_EPOCH)
            self._append(commands.encode_schema(encode_table(table)))
            self.apply()

    def _append(self, payload: bytes, kind: int = NORMAL) -> None:
        self.position += 1
        self.log.append(Entry(1, self.position, payload, kind))

    def apply(self, *, together: bool = True) -> None:
        """Apply what was proposed and is not applied, in one transaction or entry by entry."""
        waiting = [entry for entry in self.log if entry.position > self.partition.applied.position]
        for group in [waiting] if together else [[entry] for entry in waiting]:
            if group:
                self.partition.apply(group)

    def decide(self, request: storage_pb2.Request, wall_ms: int = NOW_MS) -> Propose | Answer | Repeat:
        """Decide one write, and propose it if it goes ahead."""
        decision = self.partition.decide(request, wall_ms, self.position + 1)
        if isinstance(decision, Propose):
            self._append(decision.payload)
        return decision

    def put(self, new: Item, *, operation_id: int = 0, **options: object) -> Propose | Answer | Repeat:
        """Decide a PutItem."""
        return self.decide(put(new, operation_id=operation_id or self._fresh_id(), **options))

    def delete(self, pk: str, sk: int, *, return_old: bool = False) -> Propose | Answer | Repeat:
        """Decide a DeleteItem."""
        operation = storage_pb2.Delete(key=key(pk, sk), return_old=return_old)
        return self.decide(storage_pb2.Request(operation_id=self._fresh_id(), delete=operation))

    def update(
        self,
        pk: str,
        sk: int,
        update: str | None,
        values: dict[str, AttributeValue] | None = None,
        *,
        condition: str | None = None,
        returning: storage_pb2.Update.Return = storage_pb2.Update.NONE,
    ) -> Propose | Answer | Repeat:
        """Decide an UpdateItem."""
        compiled = compile_expressions(update=update, condition=condition, names=None, values=values)
        operation = storage_pb2.Update(
            key=key(pk, sk),
            key_attributes=dump(item(pk, sk)),
            tree=compiled.encoded_update or b"",
            condition=compiled.encoded_condition or b"",
            values=values_json(compiled.values),
            return_values=returning,
        )
        return self.decide(storage_pb2.Request(operation_id=self._fresh_id(), update=operation))

    def get(self, pk: str, sk: int) -> Item | None:
        """The item as reads see it."""
        reply = self.partition.get(storage_pb2.Get(key=key(pk, sk)))
        return load(reply.item) if reply.item else None

    def _fresh_id(self) -> int:
        self._next_id += 1
        return self._next_id


def values_json(values: Sequence[AttributeValue]) -> bytes:
    """Values as they travel: a JSON array."""
    return b"[" + b",".join(dump(value) for value in values) + b"]"


def put(new: Item, *, operation_id: int, **options: object) -> storage_pb2.Request:
    """A PutItem as the router sends it."""
    operation = storage_pb2.Put(
        key=row_key(TABLE.keys, TABLE.attribute_types, new),
        item=dump(new),
        size=item_size(new),
        **options,  # type: ignore[arg-type]
    )
    return storage_pb2.Request(operation_id=operation_id, put=operation)
