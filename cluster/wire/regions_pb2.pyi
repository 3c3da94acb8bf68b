from cluster.wire import storage_pb2 as _storage_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TableState(_message.Message):
    __slots__ = ("name", "definition")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    name: str
    definition: bytes
    def __init__(self, name: _Optional[str] = ..., definition: _Optional[bytes] = ...) -> None: ...

class ExchangeRequest(_message.Message):
    __slots__ = ("region", "to_region", "tables", "hash", "left_out", "known_hash")
    REGION_FIELD_NUMBER: _ClassVar[int]
    TO_REGION_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    KNOWN_HASH_FIELD_NUMBER: _ClassVar[int]
    region: str
    to_region: str
    tables: _containers.RepeatedCompositeFieldContainer[TableState]
    hash: bytes
    left_out: bool
    known_hash: bytes
    def __init__(self, region: _Optional[str] = ..., to_region: _Optional[str] = ..., tables: _Optional[_Iterable[_Union[TableState, _Mapping]]] = ..., hash: _Optional[bytes] = ..., left_out: _Optional[bool] = ..., known_hash: _Optional[bytes] = ...) -> None: ...

class ExchangeReply(_message.Message):
    __slots__ = ("known", "tables", "error", "hash", "left_out", "not_known")
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    NOT_KNOWN_FIELD_NUMBER: _ClassVar[int]
    known: bool
    tables: _containers.RepeatedCompositeFieldContainer[TableState]
    error: str
    hash: bytes
    left_out: bool
    not_known: bool
    def __init__(self, known: _Optional[bool] = ..., tables: _Optional[_Iterable[_Union[TableState, _Mapping]]] = ..., error: _Optional[str] = ..., hash: _Optional[bytes] = ..., left_out: _Optional[bool] = ..., not_known: _Optional[bool] = ...) -> None: ...

class JoinRequest(_message.Message):
    __slots__ = ("region", "to_region", "definition")
    REGION_FIELD_NUMBER: _ClassVar[int]
    TO_REGION_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    region: str
    to_region: str
    definition: bytes
    def __init__(self, region: _Optional[str] = ..., to_region: _Optional[str] = ..., definition: _Optional[bytes] = ...) -> None: ...

class JoinReply(_message.Message):
    __slots__ = ("refused", "error")
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    refused: bool
    error: str
    def __init__(self, refused: _Optional[bool] = ..., error: _Optional[str] = ...) -> None: ...

class TableName(_message.Message):
    __slots__ = ("region", "to_region", "table", "since", "life")
    REGION_FIELD_NUMBER: _ClassVar[int]
    TO_REGION_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    LIFE_FIELD_NUMBER: _ClassVar[int]
    region: str
    to_region: str
    table: str
    since: int
    life: int
    def __init__(self, region: _Optional[str] = ..., to_region: _Optional[str] = ..., table: _Optional[str] = ..., since: _Optional[int] = ..., life: _Optional[int] = ...) -> None: ...

class ApplyRequest(_message.Message):
    __slots__ = ("table", "source", "position", "rows")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    table: TableName
    source: int
    position: int
    rows: _containers.RepeatedCompositeFieldContainer[_storage_pb2.RegionalRow]
    def __init__(self, table: _Optional[_Union[TableName, _Mapping]] = ..., source: _Optional[int] = ..., position: _Optional[int] = ..., rows: _Optional[_Iterable[_Union[_storage_pb2.RegionalRow, _Mapping]]] = ...) -> None: ...

class ApplyReply(_message.Message):
    __slots__ = ("taken", "won", "lost", "error_type", "error")
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    WON_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    taken: int
    won: int
    lost: int
    error_type: str
    error: str
    def __init__(self, taken: _Optional[int] = ..., won: _Optional[int] = ..., lost: _Optional[int] = ..., error_type: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class DigestRequest(_message.Message):
    __slots__ = ("table", "ranges")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    table: TableName
    ranges: _containers.RepeatedCompositeFieldContainer[Range]
    def __init__(self, table: _Optional[_Union[TableName, _Mapping]] = ..., ranges: _Optional[_Iterable[_Union[Range, _Mapping]]] = ...) -> None: ...

class Range(_message.Message):
    __slots__ = ("low", "high")
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    low: bytes
    high: bytes
    def __init__(self, low: _Optional[bytes] = ..., high: _Optional[bytes] = ...) -> None: ...

class DigestReply(_message.Message):
    __slots__ = ("sums", "items", "error")
    SUMS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    sums: _containers.RepeatedScalarFieldContainer[bytes]
    items: _containers.RepeatedScalarFieldContainer[int]
    error: str
    def __init__(self, sums: _Optional[_Iterable[bytes]] = ..., items: _Optional[_Iterable[int]] = ..., error: _Optional[str] = ...) -> None: ...

class RowsRequest(_message.Message):
    __slots__ = ("table", "range", "after", "tombstones")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    TOMBSTONES_FIELD_NUMBER: _ClassVar[int]
    table: TableName
    range: Range
    after: bytes
    tombstones: bool
    def __init__(self, table: _Optional[_Union[TableName, _Mapping]] = ..., range: _Optional[_Union[Range, _Mapping]] = ..., after: _Optional[bytes] = ..., tombstones: _Optional[bool] = ...) -> None: ...

class RowsReply(_message.Message):
    __slots__ = ("rows", "after", "read_ms", "error")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    READ_MS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[_storage_pb2.RegionalRow]
    after: bytes
    read_ms: int
    error: str
    def __init__(self, rows: _Optional[_Iterable[_Union[_storage_pb2.RegionalRow, _Mapping]]] = ..., after: _Optional[bytes] = ..., read_ms: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class MendRequest(_message.Message):
    __slots__ = ("table", "rows", "read_ms")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    READ_MS_FIELD_NUMBER: _ClassVar[int]
    table: TableName
    rows: _containers.RepeatedCompositeFieldContainer[_storage_pb2.RegionalRow]
    read_ms: int
    def __init__(self, table: _Optional[_Union[TableName, _Mapping]] = ..., rows: _Optional[_Iterable[_Union[_storage_pb2.RegionalRow, _Mapping]]] = ..., read_ms: _Optional[int] = ...) -> None: ...

class MendReply(_message.Message):
    __slots__ = ("won", "lost", "error")
    WON_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    won: int
    lost: int
    error: str
    def __init__(self, won: _Optional[int] = ..., lost: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class HorizonRequest(_message.Message):
    __slots__ = ("table", "settle_ms")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    SETTLE_MS_FIELD_NUMBER: _ClassVar[int]
    table: TableName
    settle_ms: int
    def __init__(self, table: _Optional[_Union[TableName, _Mapping]] = ..., settle_ms: _Optional[int] = ...) -> None: ...

class HorizonReply(_message.Message):
    __slots__ = ("settled", "error")
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    settled: _containers.RepeatedCompositeFieldContainer[Settled]
    error: str
    def __init__(self, settled: _Optional[_Iterable[_Union[Settled, _Mapping]]] = ..., error: _Optional[str] = ...) -> None: ...

class Settled(_message.Message):
    __slots__ = ("region", "stamp")
    REGION_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    region: str
    stamp: int
    def __init__(self, region: _Optional[str] = ..., stamp: _Optional[int] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ("cluster_id",)
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    def __init__(self, cluster_id: _Optional[str] = ...) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("region", "replicator", "links", "peers")
    REGION_FIELD_NUMBER: _ClassVar[int]
    REPLICATOR_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    PEERS_FIELD_NUMBER: _ClassVar[int]
    region: str
    replicator: str
    links: _containers.RepeatedCompositeFieldContainer[LinkStatus]
    peers: _containers.RepeatedCompositeFieldContainer[PeerStatus]
    def __init__(self, region: _Optional[str] = ..., replicator: _Optional[str] = ..., links: _Optional[_Iterable[_Union[LinkStatus, _Mapping]]] = ..., peers: _Optional[_Iterable[_Union[PeerStatus, _Mapping]]] = ...) -> None: ...

class LinkStatus(_message.Message):
    __slots__ = ("table", "region", "state", "pending", "lag_seconds", "sent", "conflicts", "parked", "last_error", "last_error_ms")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    LAG_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    PARKED_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_MS_FIELD_NUMBER: _ClassVar[int]
    table: str
    region: str
    state: str
    pending: int
    lag_seconds: float
    sent: int
    conflicts: int
    parked: bool
    last_error: str
    last_error_ms: int
    def __init__(self, table: _Optional[str] = ..., region: _Optional[str] = ..., state: _Optional[str] = ..., pending: _Optional[int] = ..., lag_seconds: _Optional[float] = ..., sent: _Optional[int] = ..., conflicts: _Optional[int] = ..., parked: _Optional[bool] = ..., last_error: _Optional[str] = ..., last_error_ms: _Optional[int] = ...) -> None: ...

class PeerStatus(_message.Message):
    __slots__ = ("region", "reachable", "last_error")
    REGION_FIELD_NUMBER: _ClassVar[int]
    REACHABLE_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    region: str
    reachable: bool
    last_error: str
    def __init__(self, region: _Optional[str] = ..., reachable: _Optional[bool] = ..., last_error: _Optional[str] = ...) -> None: ...

class CompareRequest(_message.Message):
    __slots__ = ("cluster_id", "table")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    table: str
    def __init__(self, cluster_id: _Optional[str] = ..., table: _Optional[str] = ...) -> None: ...

class CompareReply(_message.Message):
    __slots__ = ("comparisons", "error")
    COMPARISONS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    comparisons: _containers.RepeatedCompositeFieldContainer[Comparison]
    error: str
    def __init__(self, comparisons: _Optional[_Iterable[_Union[Comparison, _Mapping]]] = ..., error: _Optional[str] = ...) -> None: ...

class Comparison(_message.Message):
    __slots__ = ("region", "items_here", "items_there", "ranges", "differing", "mended_here", "mended_there", "error")
    REGION_FIELD_NUMBER: _ClassVar[int]
    ITEMS_HERE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_THERE_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    DIFFERING_FIELD_NUMBER: _ClassVar[int]
    MENDED_HERE_FIELD_NUMBER: _ClassVar[int]
    MENDED_THERE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    region: str
    items_here: int
    items_there: int
    ranges: int
    differing: int
    mended_here: int
    mended_there: int
    error: str
    def __init__(self, region: _Optional[str] = ..., items_here: _Optional[int] = ..., items_there: _Optional[int] = ..., ranges: _Optional[int] = ..., differing: _Optional[int] = ..., mended_here: _Optional[int] = ..., mended_there: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...
