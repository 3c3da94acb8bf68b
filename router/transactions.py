"""What the replies to a transaction's parts come to: decisions of its coordinator (`router.coordinator` asks and acts).

A transaction is cut into parts, one for each partition that holds some of its items. It is done when every part is; a
part that fails cancels all, and the client hears of every action what it met.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from cluster.ledger import Place
from cluster.requests.call import StalePlanError
from cluster.topology import Topology
from cluster.wire import storage_pb2
from dynamo.errors import ApiError, token_mismatch, transaction_canceled, transaction_conflict, unavailable
from dynamo.keys import HASH_SIZE
from dynamo.table import Table
from dynamo.values import Item, load

VALIDATION = "ValidationError"
_CODES = {
    "ConditionalCheckFailedException": "ConditionalCheckFailed",
    "ItemCollectionSizeLimitExceededException": "ItemCollectionSizeLimitExceeded",
    "TransactionConflictException": "TransactionConflict",
    "ProvisionedThroughputExceededException": "ProvisionedThroughputExceeded",
    "ThrottlingException": "ThrottlingError",
    "ValidationException": VALIDATION,
}
"""The codes of `CancellationReasons` by the error that a single write would have met."""


class Placed(Protocol):
    """The `index`-th action or read of a transaction, on the item with row key `row`."""

    @property
    def index(self) -> int: ...

    @property
    def table(self) -> Table: ...

    @property
    def row(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Member:
    """An action of TransactWriteItems. `key` are the item's key attributes."""

    index: int
    table: Table
    key: Item
    row: bytes
    action: storage_pb2.Action

    @property
    def place(self) -> Place:
        """Where its item is."""
        return Place(self.table.id, self.row)


@dataclass(frozen=True, slots=True)
class Read:
    """A Get of TransactGetItems; `projection` as it goes to the storage node."""

    index: int
    table: Table
    row: bytes
    projection: bytes


M = TypeVar("M", bound=Placed)


@dataclass(frozen=True)
class Part(Generic[M]):
    """Those members of a transaction whose items are in one partition."""

    table: Table
    members: tuple[M, ...]

    @property
    def hash(self) -> bytes:
        """By which the partition is found."""
        return self.members[0].row[:HASH_SIZE]


@dataclass(frozen=True, slots=True)
class Done:
    """Every action is done, or may be; what each does, in order."""

    writes: tuple[storage_pb2.WriteReply, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Replayed:
    """It was done before, under the same token. By action the larger of its item's sizes then."""

    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InProgress:
    """Somebody else is about to do it, under the same token."""


Judged: TypeAlias = Done | Replayed | InProgress | ApiError


def partition_id(topology: Topology, table: int, row: bytes) -> int:
    """The partition that holds a row; 0 if it is not known: whoever carries a call there will see what to do."""
    try:
        return topology.partition_for(table, row[:HASH_SIZE]).id
    except LookupError:
        return 0


def parts_of(members: Sequence[M], topology: Topology) -> list[Part[M]]:
    """The members by partition."""
    parts: dict[tuple[int, int], list[M]] = {}
    for member in members:
        partition = partition_id(topology, member.table.id, member.row)
        parts.setdefault((member.table.id, partition), []).append(member)
    return [Part(each[0].table, tuple(each)) for each in parts.values()]


def judge(parts: Sequence[Part[Member]], results: Sequence[storage_pb2.Reply | ApiError]) -> Judged:
    """What the parts' answers come to. An error other than `TransactionCanceledException` may mean that a part was
    done and nobody knows."""
    if (earlier := _earlier(results)) is not None:
        return earlier
    writes: dict[int, storage_pb2.WriteReply] = {}
    failures: dict[int, storage_pb2.Failure] = {}
    sizes: dict[int, int] = {}
    errors = []
    for part, result in zip(parts, results, strict=True):
        if not isinstance(result, ApiError) and result.HasField("failure"):
            # It was done before, by an earlier try, and what came of it is not kept any longer.
            result = ApiError(result.failure.type, result.failure.message, status=500)
        if isinstance(result, ApiError):
            errors.append(result)
            continue
        for position, (member, each) in enumerate(zip(part.members, result.transact.results, strict=True)):
            if each.HasField("failure"):
                failures[member.index] = each.failure
            else:
                writes[member.index] = each.write
                sizes[member.index] = result.transact.sizes[position]
    count = sum(len(part.members) for part in parts)
    if failures:
        return _canceled(count, failures)
    if errors:
        return next((error for error in errors if isinstance(error, StalePlanError)), errors[0])
    return Done(tuple([writes[index] for index in range(count)]), tuple([sizes[index] for index in range(count)]))


def _earlier(results: Iterable[storage_pb2.Reply | ApiError]) -> Replayed | InProgress | ApiError | None:
    """What a part knows of the same transaction; what it was done with counts more than that it is being done."""
    in_progress = None
    for result in results:
        if isinstance(result, ApiError):
            continue
        if result.transact.earlier == storage_pb2.TransactReply.SAME:
            return Replayed(tuple(result.transact.sizes))
        if result.transact.earlier == storage_pb2.TransactReply.OTHER:
            return token_mismatch()
        if result.transact.earlier == storage_pb2.TransactReply.IN_PROGRESS:
            in_progress = InProgress()
    return in_progress


def _canceled(count: int, failures: Mapping[int, storage_pb2.Failure]) -> ApiError:
    unforeseen = [failure for failure in failures.values() if failure.type not in _CODES]
    if unforeseen:
        return unavailable(unforeseen[0].message)
    return canceled(count, {index: reason_of(failure) for index, failure in failures.items()})


def reason_of(failure: storage_pb2.Failure) -> dict[str, Any]:
    """A member of `CancellationReasons`."""
    reason: dict[str, Any] = {"Code": _CODES[failure.type], "Message": failure.message}
    if failure.item:
        reason["Item"] = load(failure.item)
    return reason


def canceled(count: int, reasons: Mapping[int, dict[str, Any]]) -> ApiError:
    """`TransactionCanceledException` of `count` actions. Nothing is said of the actions after one that is not valid."""
    invalid = min((index for index, reason in reasons.items() if reason["Code"] == VALIDATION), default=count)
    none = {"Code": "None"}
    return transaction_canceled([reasons.get(index, none) if index <= invalid else none for index in range(count)])


# --- reads ---


def judge_reads(
    parts: Sequence[Part[Read]], first: Sequence[storage_pb2.Reply], second: Sequence[storage_pb2.Reply]
) -> list[storage_pb2.ItemReply] | ApiError:
    """The items as they all were at one moment between the two looks, in order. Of a single part one look is enough:
    `second` is empty then."""
    items: dict[int, storage_pb2.ItemReply] = {}
    conflicts: set[int] = set()
    versions: dict[int, int] = {}
    for replies in (first, second):
        for part, reply in zip(parts, replies, strict=False):
            for member, read in zip(part.members, reply.transact_get.reads, strict=True):
                index = member.index
                if read.marked or versions.setdefault(index, read.version) != read.version:
                    conflicts.add(index)
                items.setdefault(index, read.item)
    count = sum(len(part.members) for part in parts)
    if conflicts:
        error = transaction_conflict()
        reason = {"Code": _CODES[error.type], "Message": error.message}
        return canceled(count, dict.fromkeys(conflicts, reason))
    return [items[index] for index in range(count)]
