"""Query and Scan over the rows of one partition, or the entries of one of its local indexes, a slice at a time, so that
the event loop is never held for long.

An index's entries and the items they stand for change together, so reads of an index are as strong as those of the
table.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field

import orjson

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.capacity import read_units
from dynamo.expressions import tree
from dynamo.expressions.condition import holds
from dynamo.expressions.projection import project
from dynamo.keys import next_key, row_key
from dynamo.table import Table
from dynamo.values import AttributeValue, dump, load
from storagenode.storage import layout
from storagenode.storage.store import Store

SLICE_ROWS = 256
SLICE_BYTES = 256 * 1024
"""A slice ends after so many rows or bytes: about 2 ms without a filter. Counted, not timed, so that a run can be
repeated."""


@dataclass(slots=True)
class Page:
    """A page as it grows. `more`: it ended for a limit, and rows may follow `last_key`.

    `last_body` is the last row of the table, or entry of the local index with the number `index`. The items fetched for
    entries are not in `size`: each is charged by itself. They do count for how much a page may hold.
    """

    items: list[bytes] = field(default_factory=list)
    count: int = 0
    scanned_count: int = 0
    size: int = 0
    last_key: bytes = b""
    last_body: bytes = b""
    more: bool = False
    fetched_units: int = 0
    fetched_size: int = 0
    index: int = 0


class _Evaluation:
    """What a query does to each row."""

    def __init__(self, request: storage_pb2.Query) -> None:
        self._count_only = request.count_only
        self._condition = tree.decode_condition(request.filter) if request.filter else None
        self._paths = tree.decode_projection(request.projection) if request.projection else None
        self._values: list[AttributeValue] = orjson.loads(request.values) if request.values else []

    def take(self, body: bytes, page: Page) -> None:
        """Add the row to the page if the filter lets it pass; its bytes are decoded only where filter or projection
        ask."""
        if self._condition is not None or self._paths is not None:
            item = load(body)
            if self._condition is not None and not holds(self._condition, item, self._values):
                return
            if self._paths is not None:
                body = dump(project(self._paths, item))
        page.count += 1
        if not self._count_only:
            page.items.append(body)


def _fetched(store: Store, schema: Table, entry: bytes, page: Page) -> bytes:
    """The whole item that an entry of a local index stands for, as canonical JSON."""
    key = row_key(schema.keys, schema.attribute_types, load(entry))
    stored = store.get(key)
    if stored is None:
        raise codec.CorruptItem(f"an entry of a local index stands for no item: {key.hex()}")
    codec.verify(key, stored)
    size = codec.size_of(stored)
    page.fetched_units += int(read_units(size, consistent=True))
    page.fetched_size += size
    return codec.body_of(stored)


def run_slice(store: Store, request: storage_pb2.Query, page: Page, schema: Table) -> bool:
    """Evaluate the next rows of `request` into `page`. True when the page is finished. Raises CorruptItem."""
    start, end = _bounds(request, page)
    evaluation, fetch = _Evaluation(request), request.fetch
    page.index = request.index
    prefix = layout.index_key(request.index, b"") if request.index else b""
    rows, bytes_before = 0, page.size + page.fetched_size
    with closing(store.scan(start, end, reverse=request.reverse, index=request.index)) as found:
        for key, stored in found:
            codec.verify(prefix + key, stored)
            size = codec.size_of(stored)
            if page.scanned_count and request.max_bytes and page.size + page.fetched_size + size > request.max_bytes:
                page.more = True
                return True
            page.last_key, page.last_body = key, codec.body_of(stored)
            page.scanned_count += 1
            page.size += size
            body = page.last_body
            evaluation.take(_fetched(store, schema, body, page) if fetch else body, page)
            if request.limit and page.scanned_count >= request.limit:
                page.more = True
                return True
            rows += 1
            if rows >= SLICE_ROWS or page.size + page.fetched_size - bytes_before >= SLICE_BYTES:
                return False
    return True


def _bounds(request: storage_pb2.Query, page: Page) -> tuple[bytes, bytes]:
    after = page.last_key or request.after
    if not after:
        return request.start, request.end
    if request.reverse:
        return request.start, min(request.end, after) if request.end else after
    return max(request.start, next_key(after)), request.end


def reply_of(page: Page, schema: Table) -> storage_pb2.QueryReply:
    """The finished page's reply."""
    reply = storage_pb2.QueryReply(
        items=b",".join(page.items),
        count=page.count,
        scanned_count=page.scanned_count,
        size=page.size,
        fetched_units=page.fetched_units,
    )
    if page.more:
        item = load(page.last_body)
        reply.last_key = page.last_key
        names = schema.paging_attributes
        if page.index:
            names += schema.local_indexes[page.index - 1].keys.attributes
        reply.last_key_attributes = dump({name: item[name] for name in names})
    return reply
