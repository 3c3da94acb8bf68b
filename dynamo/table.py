"""What a table is: immutable descriptions of tables and their indexes, as the catalog keeps them."""

from __future__ import annotations

from typing import Literal

import msgspec

ScalarType = Literal["S", "N", "B"]


class Base(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of the catalog's descriptions: immutable, with defaults left out of the stored JSON."""


class KeySchema(Base, frozen=True):
    """Key attributes in order. Tables and local indexes have one hash and at most one range attribute; global secondary
    indexes up to four of each."""

    hash: tuple[str, ...]
    range: tuple[str, ...] = ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """All key attribute names, hash first."""
        return self.hash + self.range


class Throughput(Base, frozen=True):
    """Provisioned units per second; 0 and 0 for on-demand tables."""

    read: int = 0
    write: int = 0
    last_increase: float = 0.0  # seconds since the epoch; 0: never
    last_decrease: float = 0.0
    decreases_today: int = 0


class Index(Base, frozen=True):
    """A local or global secondary index. The rows of a global one are kept by a table of its own, with the id `table`.

    `status` and `backfilling` are those of a global index.
    """

    name: str
    keys: KeySchema
    projection: Literal["ALL", "KEYS_ONLY", "INCLUDE"]
    non_key_attributes: tuple[str, ...] = ()
    throughput: Throughput = Throughput()
    on_demand_read: int = -1  # OnDemandThroughput ceilings; -1: none
    on_demand_write: int = -1
    warm_read: int = 0  # WarmThroughput; 0: the default of the billing mode
    warm_write: int = 0
    table: int = 0
    status: Literal["CREATING", "ACTIVE", "UPDATING", "DELETING"] = "ACTIVE"
    backfilling: bool = False


StreamView = Literal["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"]


class Stream(Base, frozen=True):
    """A table's stream. Its records can be read for a while after it was disabled."""

    label: str
    """When it was enabled, as ARNs have it; no two streams of a table have the same."""
    view: StreamView
    enabled: float
    disabled: float = 0.0
    """Both in seconds since the epoch; 0: it is enabled."""


class Replica(Base, frozen=True):
    """A region's part in a global table, as one region knows it (`dynamo.regions` has the rules).

    `number` stands for the region in this region's item headers and names its reader; a region that comes back gets
    another one. `since`, milliseconds since the epoch, is when it was added or removed: of two regions' views the later
    one counts. `by` is the region that was asked for it.
    """

    region: str
    number: int
    since: int
    state: Literal["CREATING", "FILLING", "ACTIVE", "DELETING", "REMOVED", "CUT_OFF", "CREATION_FAILED"] = "CREATING"
    by: str = ""


class Table(Base, frozen=True):
    """A table as the catalog keeps it.

    `id` is never reused and is not the name; `schema_version` rises with every change that a storage node must know of.
    `status` is ACTIVE except while the table is made or dropped. The table that holds the rows of a global secondary
    index is one like any other, but nameless: `index_of` is the id of the table that the index belongs to, `keys` are
    the index's and `base_keys` those of that table. So is a table of the cluster's own: `internal` says what for.
    """

    id: int
    name: str
    schema_version: int
    attribute_types: dict[str, ScalarType]
    keys: KeySchema
    created: float  # seconds since the epoch
    status: Literal["CREATING", "ACTIVE", "UPDATING", "DELETING"] = "CREATING"
    table_id: str = ""  # the UUID that DescribeTable shows as TableId
    billing: Literal["PROVISIONED", "PAY_PER_REQUEST"] = "PROVISIONED"
    on_demand_since: float = 0.0  # LastUpdateToPayPerRequestDateTime; 0: never
    on_demand_switches: tuple[float, ...] = ()  # when it was made on-demand lately, oldest first
    throughput: Throughput = Throughput()
    on_demand_read: int = -1
    on_demand_write: int = -1
    warm_read: int = 0
    warm_write: int = 0
    local_indexes: tuple[Index, ...] = ()
    global_indexes: tuple[Index, ...] = ()
    streams: tuple[Stream, ...] = ()
    """Oldest first; only the last one may be enabled."""
    ttl_attribute: str = ""
    """The attribute that says when an item expires; empty: none does."""
    ttl_changed: float = 0.0  # seconds since the epoch; 0: never
    deletion_protection: bool = False
    table_class: Literal["", "STANDARD", "STANDARD_INFREQUENT_ACCESS"] = ""
    table_class_changed: float = 0.0
    sse_key: str = ""  # KMS key ARN; empty: the default encryption
    tags: dict[str, str] = {}
    resource_policy: str = ""
    internal: Literal["", "ledger"] = ""
    index_of: int = 0
    index_name: str = ""
    base_keys: KeySchema | None = None
    region: str = ""
    """Of a global table: the region that this is. Other tables have no regions."""
    origins: tuple[str, ...] = ()
    """Regions by the number that stands for them in item headers. Numbers are never used again."""
    replicas: tuple[Replica, ...] = ()
    """Every region that is, or ever was, part of the global table, this one included."""
    settings_changed: int = 0
    """When what all regions share was last changed, milliseconds since the epoch."""
    global_version: Literal["", "2017.11.29", "2019.11.21"] = ""

    @property
    def stream(self) -> Stream | None:
        """The stream that is enabled."""
        return self.streams[-1] if self.streams and not self.streams[-1].disabled else None

    @property
    def paging_attributes(self) -> tuple[str, ...]:
        """The attributes of a LastEvaluatedKey: the key's, and the base key's in the table of an index."""
        keys = self.keys.attributes
        return keys if self.base_keys is None else tuple(dict.fromkeys((*keys, *self.base_keys.attributes)))


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Table)


def encode_table(table: Table) -> bytes:
    """The table as JSON, for catalog and wire."""
    return _encoder.encode(table)


def decode_table(data: bytes) -> Table:
    """The table that `encode_table` wrote. Unknown members (of a newer version) are ignored."""
    return _decoder.decode(data)
