"""The names of DynamoDB Streams: ARNs, shards, sequence numbers and iterators, and how they are read.

A stream's shards are the partitions of its table. A sequence number is the place of a record in its partition: a 1, the
position of the entry in 20 digits and the number of the record within the entry in 5. So all have the same length, rise
within a shard, and go on rising in the children of a partition that is split, whose logs number on.
"""

from __future__ import annotations

import re
import struct
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from hashlib import blake2b
from typing import Final, NamedTuple
from zlib import crc32

from cluster.topology import Partition
from dynamo.errors import ApiError, resource_not_found, validation
from dynamo.table import Stream, Table
from router.context import ACCOUNT_ID, RequestContext
from router.stream_definitions import is_readable
from router.table_description import table_arn

ITERATOR_SECONDS: Final = 15 * 60
"""How long an iterator can be used."""
GET_RECORDS_BYTES_MAX: Final = 1 << 20

_ARN = re.compile(
    r"(arn:aws[a-z-]*:dynamodb:([^:/]+):(\d{12}):table/([a-zA-Z0-9_.-]{3,255}))/stream/(\d{4}-\d\d-\d\dT[\d:.]+)"
)
_SHARD = re.compile(r"shardId-(\d{20})-([0-9a-f]{8})")
_SEQUENCE = re.compile(r"1(\d{20})(\d{5})")
_TOKEN = struct.Struct(">BQQQIQ")
_TOKEN_VERSION = 1
_DIGEST_BYTES = 8


class Place(NamedTuple):
    """Of a record in its shard. Position 0: the oldest that there is."""

    position: int
    number: int = 0


class ShardIterator(NamedTuple):
    """What an iterator says."""

    table: int
    label: str
    partition: int
    place: Place
    issued_ms: int


HORIZON: Final = Place(0)


def stream_arn(table: Table, stream: Stream, region: str) -> str:
    """The stream's ARN."""
    return f"{table_arn(region, table.name)}/stream/{stream.label}"


async def find_stream(arn: str, context: RequestContext) -> tuple[Table, Stream]:
    """The stream of this ARN, enabled or not, and its table.

    Raises `ValidationException` for what is no stream's ARN, `ResourceNotFoundException` where there is none.
    """
    parts = _ARN.fullmatch(arn)
    if parts is None:
        raise validation(f"Invalid StreamArn: {arn}")
    _, region, account, name, label = parts.groups()
    if (region, account) == (context.region, ACCOUNT_ID):
        found = _find(name, label, context)
        if found is None:
            await context.catalog.refresh()
            found = _find(name, label, context)
        if found is not None:
            return found
    raise resource_not_found(f"Requested resource not found: Stream: {arn} not found")


def _find(name: str, label: str, context: RequestContext) -> tuple[Table, Stream] | None:
    table = context.catalog.topology.table_named(name)
    for stream in readable_streams(table, context) if table is not None else ():
        if stream.label == label:
            assert table is not None
            return table, stream
    return None


def readable_streams(table: Table, context: RequestContext) -> list[Stream]:
    """The table's streams that can be read."""
    now = context.clock.wall()
    return [stream for stream in table.streams if is_readable(stream, now)]


# --- shards ---


def shard_id(partition: Partition, stream: Stream) -> str:
    """The shard that a stream has in a partition. Shards of different streams have different ids."""
    return f"shardId-{partition.id:020d}-{crc32(stream.label.encode()):08x}"


def partition_of_shard(shard: str, table: Table, stream: Stream, context: RequestContext) -> Partition:
    """The partition. Raises `ResourceNotFoundException` if the stream has no such shard."""
    parts = _SHARD.fullmatch(shard)
    if parts is not None and int(parts[2], 16) == crc32(stream.label.encode()):
        for partition in context.catalog.topology.partitions_of(table.id):
            if partition.id == int(parts[1]):
                return partition
    arn = stream_arn(table, stream, context.region)
    raise resource_not_found(f"Requested resource not found: Shard does not exist: {shard} in stream {arn}")


# --- sequence numbers ---


def sequence_number(place: Place) -> str:
    """The sequence number of the record at a place."""
    return f"1{place.position:020d}{place.number:05d}"


def place_of(sequence: str) -> Place | None:
    """The inverse; None for what is no sequence number of ours."""
    parts = _SEQUENCE.fullmatch(sequence)
    return None if parts is None else Place(int(parts[1]), int(parts[2]))


# --- iterators ---


def encode_iterator(iterator: ShardIterator, arn: str) -> str:
    """The text that a client gets: it begins with the stream's ARN, as DynamoDB's do, and the rest is opaque."""
    data = _TOKEN.pack(_TOKEN_VERSION, iterator.table, iterator.partition, *iterator.place, iterator.issued_ms)
    return f"{arn}|{_TOKEN_VERSION}|{b64encode(data + _digest(data, arn)).decode()}"


def decode_iterator(text: str) -> tuple[str, ShardIterator]:
    """The stream's ARN and the iterator. Raises `ValidationException` for what `encode_iterator` did not write."""
    arn, _, rest = text.partition("|")
    parts = _ARN.fullmatch(arn)
    try:
        data = b64decode(rest.partition("|")[2], validate=True)
    except (Base64Error, ValueError):
        raise invalid_iterator() from None
    if parts is None or len(data) != _TOKEN.size + _DIGEST_BYTES:
        raise invalid_iterator()
    _, table, partition, position, number, issued_ms = _TOKEN.unpack_from(data)
    iterator = ShardIterator(table, parts[5], partition, Place(position, number), issued_ms)
    if encode_iterator(iterator, arn) != text:
        raise invalid_iterator()
    return arn, iterator


def check_age(iterator: ShardIterator, now: float) -> None:
    """Raises `ExpiredIteratorException` for an iterator that is too old at `now`, in seconds since the epoch."""
    if now * 1000 > iterator.issued_ms + ITERATOR_SECONDS * 1000:
        raise ApiError(
            "ExpiredIteratorException",
            "The shard iterator has expired. Shard iterators are only valid for 15 minutes",
        )


def invalid_iterator() -> ApiError:
    """For an iterator that nobody gave out."""
    return validation("Invalid ShardIterator")


def trimmed_data() -> ApiError:
    """For a place whose records are gone."""
    return ApiError(
        "TrimmedDataAccessException",
        "The operation attempted to read past the oldest stream record in a shard: it has been trimmed",
    )


def _digest(data: bytes, arn: str) -> bytes:
    return blake2b(data + arn.encode(), digest_size=_DIGEST_BYTES).digest()
