"""What a member of auto-admin keeps durably, as keys and values.

| key | value |
| --- | --- |
| `member` | who this member is, what it has promised, and where its log begins: JSON |
| `l`, position (8 bytes) | an entry of the log: epoch (8 bytes), kind (1 byte), payload |
| `catalog` | format, cluster id, epoch, version and the next ids, as JSON |
| `t`, `p`, `n`, `u`, id (8 bytes) | a table, partition, node or user: a record of proto/common.proto |

Before each value stands a CRC-32 of key and value. All but the first two are the catalog as of the log's position
`MemberRecord.applied`; what the log holds after it is applied again at each start.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field

import msgspec

from autoadmin.catalog import Catalog, Change, Counters
from cluster import convert
from cluster.topology import CatalogUpdate, Topology
from cluster.wire import common_pb2
from replication.messages import Entry

FORMAT = 2
"""Format 1 was a catalog without members and log; it is read as well."""
MEMBER, CATALOG = b"member", b"catalog"
LOG, TABLE, PARTITION, NODE, USER = b"l", b"t", b"p", b"n", b"u"
_KINDS = (TABLE, PARTITION, NODE, USER)
_CHECKSUM_BYTES = 4
_ID_BYTES = 8
_ENTRY = struct.Struct("<QB")


class Damaged(Exception):  # noqa: N818
    """A record is not what was written. The text says which."""


class MemberRecord(msgspec.Struct, frozen=True):
    """`replica` is drawn at the first start on an empty disk and never reused; `incarnation` rises at each start.

    `group` names the founding that this member belongs to; empty: none yet. `membership` is the one at `base_position`,
    an encoded `Membership`; the log says how it went on. The log's entries follow (`base_position`, `base_epoch`).
    """

    cluster_id: str
    replica: int
    incarnation: int = 0
    group: str = ""
    membership: bytes = b""
    epoch: int = 0
    vote: int = 0
    base_position: int = 0
    base_epoch: int = 0
    applied: int = 0
    format: int = FORMAT


class _Head(msgspec.Struct, frozen=True):
    """The record of the catalog as a whole."""

    format: int
    cluster_id: str
    epoch: int
    version: int
    next_table: int
    next_partition: int
    next_replica: int


@dataclass(frozen=True)
class Stored:
    """What was found: `member` is None on an empty disk, and where only an auto-admin before there were members has
    been; `catalog` is as of `member.applied`, None while there is none."""

    member: MemberRecord | None = None
    entries: tuple[Entry, ...] = ()
    catalog: Catalog | None = None


@dataclass(frozen=True)
class Write:
    """One transaction. `entries` replace those at their positions and all after; `restarts`: nothing is left of the
    log that was; what lies up to `member.base_position` goes; `changes` bring the catalog to `member.applied`."""

    member: MemberRecord
    entries: tuple[Entry, ...] = ()
    restarts: bool = False
    changes: tuple[Change, ...] = field(default=())


def writes(write: Write) -> Iterator[tuple[bytes, bytes | None]]:
    """The keys to be put (None: deleted), in order; ranges of the log and of the catalog are `cleared`."""
    for entry in write.entries:
        key = log_key(entry.position)
        yield key, with_checksum(key, _ENTRY.pack(entry.epoch, entry.kind) + entry.payload)
    for change in write.changes:
        yield from _catalog_writes(change)
    yield MEMBER, with_checksum(MEMBER, msgspec.json.encode(write.member))


def cleared(write: Write) -> Iterator[tuple[bytes, bytes]]:
    """Ranges of keys, from the first up to but not including the second, that go before anything is put."""
    if write.restarts:
        yield LOG, _after(LOG)
    else:
        yield LOG, log_key(write.member.base_position + 1)
        if write.entries:
            yield log_key(write.entries[0].position), _after(LOG)
    if any(change.update.from_version == 0 for change in write.changes):
        for kind in _KINDS:
            yield kind, _after(kind)


def _after(kind: bytes) -> bytes:
    """A key after all of this kind."""
    return kind + b"\xff" * (_ID_BYTES + 1)


def log_key(position: int) -> bytes:
    """The key of the entry at `position`."""
    return LOG + position.to_bytes(_ID_BYTES, "big")


def _catalog_writes(change: Change) -> Iterator[tuple[bytes, bytes | None]]:
    update = change.update
    removed = (update.removed_tables, update.removed_partitions, update.removed_nodes, update.removed_users)
    for kind, ids in zip(_KINDS, removed, strict=True):
        yield from ((_key(kind, id), None) for id in ids)  # noqa: A001
    for key, body in _bodies(update):
        yield key, with_checksum(key, body)
    counters = {f"next_{kind}": count for kind, count in asdict(change.counters).items()}
    head = _Head(FORMAT, update.cluster_id, update.epoch, update.version, **counters)
    yield CATALOG, with_checksum(CATALOG, msgspec.json.encode(head))


def _key(kind: bytes, id: int) -> bytes:  # noqa: A002
    return kind + id.to_bytes(_ID_BYTES, "big")


def _bodies(update: CatalogUpdate) -> Iterator[tuple[bytes, bytes]]:
    for record in update.tables:
        yield _key(TABLE, record.table.id), convert.table_to_wire(record.table, record.version).SerializeToString()
    for partition in update.partitions:
        yield _key(PARTITION, partition.id), convert.partition_to_wire(partition).SerializeToString()
    for node in update.nodes:
        yield _key(NODE, node.id), convert.node_to_wire(node).SerializeToString()
    for user in update.users:
        yield _key(USER, user.user.id), convert.user_to_wire(user.user, user.version).SerializeToString()


def with_checksum(key: bytes, body: bytes) -> bytes:
    """The value that is stored for `body` under `key`."""
    return zlib.crc32(body, zlib.crc32(key)).to_bytes(_CHECKSUM_BYTES, "little") + body


def _checked(key: bytes, value: bytes) -> bytes:
    body = value[_CHECKSUM_BYTES:]
    if with_checksum(key, body) != value:
        raise Damaged(f"the record {key!r} is not what was written")
    return body


def read(found: Iterable[tuple[bytes, bytes]]) -> Stored:
    """What all keys and values, in order of the keys, say. Raises Damaged."""
    records = {key: _checked(key, value) for key, value in found}
    member = msgspec.json.decode(records[MEMBER], type=MemberRecord) if MEMBER in records else None
    if member is not None and member.format != FORMAT:
        raise Damaged(f"it is of format {member.format}, and this auto-admin reads format {FORMAT}")
    entries = tuple(_entry(key, body) for key, body in records.items() if _is(key, LOG))
    if member is not None:
        _check_log(member, entries)
    return Stored(member, entries, _catalog(records))


def _is(key: bytes, kind: bytes) -> bool:
    return key[:1] == kind and len(key) == 1 + _ID_BYTES


def _entry(key: bytes, body: bytes) -> Entry:
    epoch, kind = _ENTRY.unpack_from(body)
    return Entry(epoch, int.from_bytes(key[1:], "big"), body[_ENTRY.size :], kind)


def _check_log(member: MemberRecord, entries: tuple[Entry, ...]) -> None:
    """A log has no gap, and epochs never fall along it."""
    position, epoch = member.base_position, member.base_epoch
    for entry in entries:
        if entry.position != position + 1 or entry.epoch < epoch:
            raise Damaged(f"entry {entry.position} of the log does not follow entry {position}")
        position, epoch = entry.position, entry.epoch
    if not member.base_position <= member.applied <= position:
        raise Damaged(f"the catalog is of position {member.applied}, and the log ends at {position}")


def _catalog(records: Mapping[bytes, bytes]) -> Catalog | None:
    if CATALOG not in records:
        return None
    head = msgspec.json.decode(records[CATALOG], type=_Head)
    if head.format not in (1, FORMAT):
        raise Damaged(f"its catalog is of format {head.format}, and this auto-admin reads format {FORMAT}")
    tables, partitions, nodes, users = ([body for key, body in records.items() if _is(key, kind)] for kind in _KINDS)
    update = CatalogUpdate(
        head.cluster_id,
        head.epoch,
        0,
        head.version,
        tables=tuple(convert.table_from_wire(common_pb2.TableRecord.FromString(body)) for body in tables),
        partitions=tuple(
            convert.partition_from_wire(common_pb2.PartitionRecord.FromString(body)) for body in partitions
        ),
        nodes=tuple(convert.node_from_wire(common_pb2.NodeRecord.FromString(body)) for body in nodes),
        users=tuple(convert.user_from_wire(common_pb2.UserRecord.FromString(body)) for body in users),
    )
    counters = Counters(head.next_table, head.next_partition, head.next_replica)
    return Catalog(Topology().with_update(update), counters)
