from cluster.wire import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RequestBatch(_message.Message):
    __slots__ = ("cluster_id", "requests")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    requests: _containers.RepeatedCompositeFieldContainer[Request]
    def __init__(self, cluster_id: _Optional[str] = ..., requests: _Optional[_Iterable[_Union[Request, _Mapping]]] = ...) -> None: ...

class Request(_message.Message):
    __slots__ = ("id", "partition", "table", "epoch", "schema_version", "deadline_ms", "operation_id", "request_id", "get", "put", "update", "delete", "query", "statistics", "index_write", "read_stream", "transact", "prepare", "finish", "transact_get", "batch", "regional_write", "read_changes", "read_region", "drop_tombstones", "digest", "read_range")
    ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    GET_FIELD_NUMBER: _ClassVar[int]
    PUT_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    INDEX_WRITE_FIELD_NUMBER: _ClassVar[int]
    READ_STREAM_FIELD_NUMBER: _ClassVar[int]
    TRANSACT_FIELD_NUMBER: _ClassVar[int]
    PREPARE_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    TRANSACT_GET_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    REGIONAL_WRITE_FIELD_NUMBER: _ClassVar[int]
    READ_CHANGES_FIELD_NUMBER: _ClassVar[int]
    READ_REGION_FIELD_NUMBER: _ClassVar[int]
    DROP_TOMBSTONES_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    READ_RANGE_FIELD_NUMBER: _ClassVar[int]
    id: int
    partition: int
    table: int
    epoch: int
    schema_version: int
    deadline_ms: int
    operation_id: int
    request_id: str
    get: Get
    put: Put
    update: Update
    delete: Delete
    query: Query
    statistics: Statistics
    index_write: IndexWrite
    read_stream: ReadStream
    transact: Transact
    prepare: Prepare
    finish: Finish
    transact_get: TransactGet
    batch: Batch
    regional_write: RegionalWrite
    read_changes: ReadChanges
    read_region: ReadRegion
    drop_tombstones: DropTombstones
    digest: Digest
    read_range: ReadRange
    def __init__(self, id: _Optional[int] = ..., partition: _Optional[int] = ..., table: _Optional[int] = ..., epoch: _Optional[int] = ..., schema_version: _Optional[int] = ..., deadline_ms: _Optional[int] = ..., operation_id: _Optional[int] = ..., request_id: _Optional[str] = ..., get: _Optional[_Union[Get, _Mapping]] = ..., put: _Optional[_Union[Put, _Mapping]] = ..., update: _Optional[_Union[Update, _Mapping]] = ..., delete: _Optional[_Union[Delete, _Mapping]] = ..., query: _Optional[_Union[Query, _Mapping]] = ..., statistics: _Optional[_Union[Statistics, _Mapping]] = ..., index_write: _Optional[_Union[IndexWrite, _Mapping]] = ..., read_stream: _Optional[_Union[ReadStream, _Mapping]] = ..., transact: _Optional[_Union[Transact, _Mapping]] = ..., prepare: _Optional[_Union[Prepare, _Mapping]] = ..., finish: _Optional[_Union[Finish, _Mapping]] = ..., transact_get: _Optional[_Union[TransactGet, _Mapping]] = ..., batch: _Optional[_Union[Batch, _Mapping]] = ..., regional_write: _Optional[_Union[RegionalWrite, _Mapping]] = ..., read_changes: _Optional[_Union[ReadChanges, _Mapping]] = ..., read_region: _Optional[_Union[ReadRegion, _Mapping]] = ..., drop_tombstones: _Optional[_Union[DropTombstones, _Mapping]] = ..., digest: _Optional[_Union[Digest, _Mapping]] = ..., read_range: _Optional[_Union[ReadRange, _Mapping]] = ...) -> None: ...

class Condition(_message.Message):
    __slots__ = ("tree", "values", "return_old")
    TREE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    RETURN_OLD_FIELD_NUMBER: _ClassVar[int]
    tree: bytes
    values: bytes
    return_old: bool
    def __init__(self, tree: _Optional[bytes] = ..., values: _Optional[bytes] = ..., return_old: _Optional[bool] = ...) -> None: ...

class Get(_message.Message):
    __slots__ = ("key", "consistent", "projection")
    KEY_FIELD_NUMBER: _ClassVar[int]
    CONSISTENT_FIELD_NUMBER: _ClassVar[int]
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    consistent: bool
    projection: bytes
    def __init__(self, key: _Optional[bytes] = ..., consistent: _Optional[bool] = ..., projection: _Optional[bytes] = ...) -> None: ...

class Put(_message.Message):
    __slots__ = ("key", "item", "size", "condition", "return_old")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    RETURN_OLD_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    item: bytes
    size: int
    condition: Condition
    return_old: bool
    def __init__(self, key: _Optional[bytes] = ..., item: _Optional[bytes] = ..., size: _Optional[int] = ..., condition: _Optional[_Union[Condition, _Mapping]] = ..., return_old: _Optional[bool] = ...) -> None: ...

class Update(_message.Message):
    __slots__ = ("key", "key_attributes", "tree", "values", "condition", "condition_return_old", "return_values")
    class Return(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[Update.Return]
        ALL_OLD: _ClassVar[Update.Return]
        UPDATED_OLD: _ClassVar[Update.Return]
        ALL_NEW: _ClassVar[Update.Return]
        UPDATED_NEW: _ClassVar[Update.Return]
    NONE: Update.Return
    ALL_OLD: Update.Return
    UPDATED_OLD: Update.Return
    ALL_NEW: Update.Return
    UPDATED_NEW: Update.Return
    KEY_FIELD_NUMBER: _ClassVar[int]
    KEY_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    TREE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    CONDITION_RETURN_OLD_FIELD_NUMBER: _ClassVar[int]
    RETURN_VALUES_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    key_attributes: bytes
    tree: bytes
    values: bytes
    condition: bytes
    condition_return_old: bool
    return_values: Update.Return
    def __init__(self, key: _Optional[bytes] = ..., key_attributes: _Optional[bytes] = ..., tree: _Optional[bytes] = ..., values: _Optional[bytes] = ..., condition: _Optional[bytes] = ..., condition_return_old: _Optional[bool] = ..., return_values: _Optional[_Union[Update.Return, str]] = ...) -> None: ...

class Delete(_message.Message):
    __slots__ = ("key", "condition", "return_old")
    KEY_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    RETURN_OLD_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    condition: Condition
    return_old: bool
    def __init__(self, key: _Optional[bytes] = ..., condition: _Optional[_Union[Condition, _Mapping]] = ..., return_old: _Optional[bool] = ...) -> None: ...

class Query(_message.Message):
    __slots__ = ("start", "end", "reverse", "after", "limit", "max_bytes", "consistent", "filter", "values", "projection", "count_only", "index", "fetch")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    REVERSE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONSISTENT_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    COUNT_ONLY_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    start: bytes
    end: bytes
    reverse: bool
    after: bytes
    limit: int
    max_bytes: int
    consistent: bool
    filter: bytes
    values: bytes
    projection: bytes
    count_only: bool
    index: int
    fetch: bool
    def __init__(self, start: _Optional[bytes] = ..., end: _Optional[bytes] = ..., reverse: _Optional[bool] = ..., after: _Optional[bytes] = ..., limit: _Optional[int] = ..., max_bytes: _Optional[int] = ..., consistent: _Optional[bool] = ..., filter: _Optional[bytes] = ..., values: _Optional[bytes] = ..., projection: _Optional[bytes] = ..., count_only: _Optional[bool] = ..., index: _Optional[int] = ..., fetch: _Optional[bool] = ...) -> None: ...

class Statistics(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class IndexWrite(_message.Message):
    __slots__ = ("source", "position", "rows")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    source: int
    position: int
    rows: _containers.RepeatedCompositeFieldContainer[IndexRow]
    def __init__(self, source: _Optional[int] = ..., position: _Optional[int] = ..., rows: _Optional[_Iterable[_Union[IndexRow, _Mapping]]] = ...) -> None: ...

class IndexRow(_message.Message):
    __slots__ = ("key", "stored", "position")
    KEY_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    stored: bytes
    position: int
    def __init__(self, key: _Optional[bytes] = ..., stored: _Optional[bytes] = ..., position: _Optional[int] = ...) -> None: ...

class ReadStream(_message.Message):
    __slots__ = ("label", "position", "number", "limit", "max_bytes", "since_ms")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    label: str
    position: int
    number: int
    limit: int
    max_bytes: int
    since_ms: int
    def __init__(self, label: _Optional[str] = ..., position: _Optional[int] = ..., number: _Optional[int] = ..., limit: _Optional[int] = ..., max_bytes: _Optional[int] = ..., since_ms: _Optional[int] = ...) -> None: ...

class Action(_message.Message):
    __slots__ = ("put", "update", "delete", "check")
    PUT_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    put: Put
    update: Update
    delete: Delete
    check: Check
    def __init__(self, put: _Optional[_Union[Put, _Mapping]] = ..., update: _Optional[_Union[Update, _Mapping]] = ..., delete: _Optional[_Union[Delete, _Mapping]] = ..., check: _Optional[_Union[Check, _Mapping]] = ...) -> None: ...

class Check(_message.Message):
    __slots__ = ("key", "condition")
    KEY_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    condition: Condition
    def __init__(self, key: _Optional[bytes] = ..., condition: _Optional[_Union[Condition, _Mapping]] = ...) -> None: ...

class Transact(_message.Message):
    __slots__ = ("actions", "transaction", "payload")
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    actions: _containers.RepeatedCompositeFieldContainer[Action]
    transaction: bytes
    payload: bytes
    def __init__(self, actions: _Optional[_Iterable[_Union[Action, _Mapping]]] = ..., transaction: _Optional[bytes] = ..., payload: _Optional[bytes] = ...) -> None: ...

class Batch(_message.Message):
    __slots__ = ("actions",)
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    actions: _containers.RepeatedCompositeFieldContainer[Action]
    def __init__(self, actions: _Optional[_Iterable[_Union[Action, _Mapping]]] = ...) -> None: ...

class Prepare(_message.Message):
    __slots__ = ("actions", "transaction", "payload", "attempt", "started_ms")
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    actions: _containers.RepeatedCompositeFieldContainer[Action]
    transaction: bytes
    payload: bytes
    attempt: bytes
    started_ms: int
    def __init__(self, actions: _Optional[_Iterable[_Union[Action, _Mapping]]] = ..., transaction: _Optional[bytes] = ..., payload: _Optional[bytes] = ..., attempt: _Optional[bytes] = ..., started_ms: _Optional[int] = ...) -> None: ...

class Finish(_message.Message):
    __slots__ = ("attempt", "commit", "keys")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    attempt: bytes
    commit: bool
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, attempt: _Optional[bytes] = ..., commit: _Optional[bool] = ..., keys: _Optional[_Iterable[bytes]] = ...) -> None: ...

class TransactGet(_message.Message):
    __slots__ = ("gets", "versions_only")
    GETS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_ONLY_FIELD_NUMBER: _ClassVar[int]
    gets: _containers.RepeatedCompositeFieldContainer[Get]
    versions_only: bool
    def __init__(self, gets: _Optional[_Iterable[_Union[Get, _Mapping]]] = ..., versions_only: _Optional[bool] = ...) -> None: ...

class RegionalWrite(_message.Message):
    __slots__ = ("life", "source", "position", "rows", "read_ms")
    LIFE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    READ_MS_FIELD_NUMBER: _ClassVar[int]
    life: int
    source: int
    position: int
    rows: _containers.RepeatedCompositeFieldContainer[RegionalRow]
    read_ms: int
    def __init__(self, life: _Optional[int] = ..., source: _Optional[int] = ..., position: _Optional[int] = ..., rows: _Optional[_Iterable[_Union[RegionalRow, _Mapping]]] = ..., read_ms: _Optional[int] = ...) -> None: ...

class RegionalRow(_message.Message):
    __slots__ = ("key", "body", "deleted", "size", "stamp", "region", "position")
    KEY_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    body: bytes
    deleted: bool
    size: int
    stamp: int
    region: str
    position: int
    def __init__(self, key: _Optional[bytes] = ..., body: _Optional[bytes] = ..., deleted: _Optional[bool] = ..., size: _Optional[int] = ..., stamp: _Optional[int] = ..., region: _Optional[str] = ..., position: _Optional[int] = ...) -> None: ...

class ReadChanges(_message.Message):
    __slots__ = ("number", "after", "confirmed", "wait_ms", "reader")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    READER_FIELD_NUMBER: _ClassVar[int]
    number: int
    after: int
    confirmed: int
    wait_ms: int
    reader: int
    def __init__(self, number: _Optional[int] = ..., after: _Optional[int] = ..., confirmed: _Optional[int] = ..., wait_ms: _Optional[int] = ..., reader: _Optional[int] = ...) -> None: ...

class ReadRegion(_message.Message):
    __slots__ = ("number", "settle_ms", "taken")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SETTLE_MS_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    number: int
    settle_ms: int
    taken: int
    def __init__(self, number: _Optional[int] = ..., settle_ms: _Optional[int] = ..., taken: _Optional[int] = ...) -> None: ...

class DropTombstones(_message.Message):
    __slots__ = ("stamp", "orphans")
    STAMP_FIELD_NUMBER: _ClassVar[int]
    ORPHANS_FIELD_NUMBER: _ClassVar[int]
    stamp: int
    orphans: bool
    def __init__(self, stamp: _Optional[int] = ..., orphans: _Optional[bool] = ...) -> None: ...

class Digest(_message.Message):
    __slots__ = ("low", "high", "after")
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    low: bytes
    high: bytes
    after: bytes
    def __init__(self, low: _Optional[bytes] = ..., high: _Optional[bytes] = ..., after: _Optional[bytes] = ...) -> None: ...

class ReadRange(_message.Message):
    __slots__ = ("low", "high", "after", "tombstones")
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    TOMBSTONES_FIELD_NUMBER: _ClassVar[int]
    low: bytes
    high: bytes
    after: bytes
    tombstones: bool
    def __init__(self, low: _Optional[bytes] = ..., high: _Optional[bytes] = ..., after: _Optional[bytes] = ..., tombstones: _Optional[bool] = ...) -> None: ...

class ReplyBatch(_message.Message):
    __slots__ = ("replies",)
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    replies: _containers.RepeatedCompositeFieldContainer[Reply]
    def __init__(self, replies: _Optional[_Iterable[_Union[Reply, _Mapping]]] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ("id", "node_ms", "item", "write", "query", "failure", "refusal", "statistics", "stream", "transact", "transact_get", "changes", "region", "digest", "range")
    ID_FIELD_NUMBER: _ClassVar[int]
    NODE_MS_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    WRITE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    TRANSACT_FIELD_NUMBER: _ClassVar[int]
    TRANSACT_GET_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    id: int
    node_ms: int
    item: ItemReply
    write: WriteReply
    query: QueryReply
    failure: Failure
    refusal: _common_pb2.Refusal
    statistics: StatisticsReply
    stream: StreamReply
    transact: TransactReply
    transact_get: TransactGetReply
    changes: ChangesReply
    region: RegionReply
    digest: DigestReply
    range: RangeReply
    def __init__(self, id: _Optional[int] = ..., node_ms: _Optional[int] = ..., item: _Optional[_Union[ItemReply, _Mapping]] = ..., write: _Optional[_Union[WriteReply, _Mapping]] = ..., query: _Optional[_Union[QueryReply, _Mapping]] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., refusal: _Optional[_Union[_common_pb2.Refusal, _Mapping]] = ..., statistics: _Optional[_Union[StatisticsReply, _Mapping]] = ..., stream: _Optional[_Union[StreamReply, _Mapping]] = ..., transact: _Optional[_Union[TransactReply, _Mapping]] = ..., transact_get: _Optional[_Union[TransactGetReply, _Mapping]] = ..., changes: _Optional[_Union[ChangesReply, _Mapping]] = ..., region: _Optional[_Union[RegionReply, _Mapping]] = ..., digest: _Optional[_Union[DigestReply, _Mapping]] = ..., range: _Optional[_Union[RangeReply, _Mapping]] = ...) -> None: ...

class ItemReply(_message.Message):
    __slots__ = ("item", "size")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    item: bytes
    size: int
    def __init__(self, item: _Optional[bytes] = ..., size: _Optional[int] = ...) -> None: ...

class WriteReply(_message.Message):
    __slots__ = ("attributes", "old_size", "new_size", "local_index_units", "collection_size", "global_index_units", "taken", "won", "lost", "dropped", "more")
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    OLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    NEW_SIZE_FIELD_NUMBER: _ClassVar[int]
    LOCAL_INDEX_UNITS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_SIZE_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_INDEX_UNITS_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    WON_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    attributes: bytes
    old_size: int
    new_size: int
    local_index_units: _containers.RepeatedScalarFieldContainer[int]
    collection_size: int
    global_index_units: _containers.RepeatedScalarFieldContainer[int]
    taken: int
    won: int
    lost: int
    dropped: int
    more: bool
    def __init__(self, attributes: _Optional[bytes] = ..., old_size: _Optional[int] = ..., new_size: _Optional[int] = ..., local_index_units: _Optional[_Iterable[int]] = ..., collection_size: _Optional[int] = ..., global_index_units: _Optional[_Iterable[int]] = ..., taken: _Optional[int] = ..., won: _Optional[int] = ..., lost: _Optional[int] = ..., dropped: _Optional[int] = ..., more: _Optional[bool] = ...) -> None: ...

class ChangesReply(_message.Message):
    __slots__ = ("rows", "next", "cut_off", "busy", "filled", "cursor", "more")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    CUT_OFF_FIELD_NUMBER: _ClassVar[int]
    BUSY_FIELD_NUMBER: _ClassVar[int]
    FILLED_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[RegionalRow]
    next: int
    cut_off: bool
    busy: bool
    filled: bool
    cursor: int
    more: bool
    def __init__(self, rows: _Optional[_Iterable[_Union[RegionalRow, _Mapping]]] = ..., next: _Optional[int] = ..., cut_off: _Optional[bool] = ..., busy: _Optional[bool] = ..., filled: _Optional[bool] = ..., cursor: _Optional[int] = ..., more: _Optional[bool] = ...) -> None: ...

class RegionReply(_message.Message):
    __slots__ = ("cursor", "applied", "settled", "waiting_since_ms", "waiting", "filled", "cut_off", "tombstones")
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    WAITING_SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    FILLED_FIELD_NUMBER: _ClassVar[int]
    CUT_OFF_FIELD_NUMBER: _ClassVar[int]
    TOMBSTONES_FIELD_NUMBER: _ClassVar[int]
    cursor: int
    applied: int
    settled: int
    waiting_since_ms: int
    waiting: int
    filled: bool
    cut_off: bool
    tombstones: bool
    def __init__(self, cursor: _Optional[int] = ..., applied: _Optional[int] = ..., settled: _Optional[int] = ..., waiting_since_ms: _Optional[int] = ..., waiting: _Optional[int] = ..., filled: _Optional[bool] = ..., cut_off: _Optional[bool] = ..., tombstones: _Optional[bool] = ...) -> None: ...

class DigestReply(_message.Message):
    __slots__ = ("sum", "items", "after")
    SUM_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    sum: bytes
    items: int
    after: bytes
    def __init__(self, sum: _Optional[bytes] = ..., items: _Optional[int] = ..., after: _Optional[bytes] = ...) -> None: ...

class RangeReply(_message.Message):
    __slots__ = ("rows", "after", "read_ms")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    READ_MS_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[RegionalRow]
    after: bytes
    read_ms: int
    def __init__(self, rows: _Optional[_Iterable[_Union[RegionalRow, _Mapping]]] = ..., after: _Optional[bytes] = ..., read_ms: _Optional[int] = ...) -> None: ...

class QueryReply(_message.Message):
    __slots__ = ("items", "count", "scanned_count", "size", "last_key", "last_key_attributes", "fetched_units")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SCANNED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    LAST_KEY_FIELD_NUMBER: _ClassVar[int]
    LAST_KEY_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    FETCHED_UNITS_FIELD_NUMBER: _ClassVar[int]
    items: bytes
    count: int
    scanned_count: int
    size: int
    last_key: bytes
    last_key_attributes: bytes
    fetched_units: int
    def __init__(self, items: _Optional[bytes] = ..., count: _Optional[int] = ..., scanned_count: _Optional[int] = ..., size: _Optional[int] = ..., last_key: _Optional[bytes] = ..., last_key_attributes: _Optional[bytes] = ..., fetched_units: _Optional[int] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("type", "message", "item", "size")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    type: str
    message: str
    item: bytes
    size: int
    def __init__(self, type: _Optional[str] = ..., message: _Optional[str] = ..., item: _Optional[bytes] = ..., size: _Optional[int] = ...) -> None: ...

class StatisticsReply(_message.Message):
    __slots__ = ("items", "size", "local_indexes")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    LOCAL_INDEXES_FIELD_NUMBER: _ClassVar[int]
    items: int
    size: int
    local_indexes: _containers.RepeatedCompositeFieldContainer[IndexStatistics]
    def __init__(self, items: _Optional[int] = ..., size: _Optional[int] = ..., local_indexes: _Optional[_Iterable[_Union[IndexStatistics, _Mapping]]] = ...) -> None: ...

class StreamReply(_message.Message):
    __slots__ = ("known", "first", "end", "trimmed", "applied", "records", "next_position", "next_number")
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    TRIMMED_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_POSITION_FIELD_NUMBER: _ClassVar[int]
    NEXT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    known: bool
    first: int
    end: int
    trimmed: int
    applied: int
    records: _containers.RepeatedCompositeFieldContainer[StreamRecord]
    next_position: int
    next_number: int
    def __init__(self, known: _Optional[bool] = ..., first: _Optional[int] = ..., end: _Optional[int] = ..., trimmed: _Optional[int] = ..., applied: _Optional[int] = ..., records: _Optional[_Iterable[_Union[StreamRecord, _Mapping]]] = ..., next_position: _Optional[int] = ..., next_number: _Optional[int] = ...) -> None: ...

class StreamRecord(_message.Message):
    __slots__ = ("position", "number", "event", "keys", "old_image", "new_image", "time_ms", "by_service", "size")
    class Event(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        INSERT: _ClassVar[StreamRecord.Event]
        MODIFY: _ClassVar[StreamRecord.Event]
        REMOVE: _ClassVar[StreamRecord.Event]
    INSERT: StreamRecord.Event
    MODIFY: StreamRecord.Event
    REMOVE: StreamRecord.Event
    POSITION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    OLD_IMAGE_FIELD_NUMBER: _ClassVar[int]
    NEW_IMAGE_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    BY_SERVICE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    position: int
    number: int
    event: StreamRecord.Event
    keys: bytes
    old_image: bytes
    new_image: bytes
    time_ms: int
    by_service: bool
    size: int
    def __init__(self, position: _Optional[int] = ..., number: _Optional[int] = ..., event: _Optional[_Union[StreamRecord.Event, str]] = ..., keys: _Optional[bytes] = ..., old_image: _Optional[bytes] = ..., new_image: _Optional[bytes] = ..., time_ms: _Optional[int] = ..., by_service: _Optional[bool] = ..., size: _Optional[int] = ...) -> None: ...

class IndexStatistics(_message.Message):
    __slots__ = ("items", "size")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    items: int
    size: int
    def __init__(self, items: _Optional[int] = ..., size: _Optional[int] = ...) -> None: ...

class TransactReply(_message.Message):
    __slots__ = ("results", "earlier", "sizes")
    class Earlier(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[TransactReply.Earlier]
        SAME: _ClassVar[TransactReply.Earlier]
        OTHER: _ClassVar[TransactReply.Earlier]
        IN_PROGRESS: _ClassVar[TransactReply.Earlier]
    NONE: TransactReply.Earlier
    SAME: TransactReply.Earlier
    OTHER: TransactReply.Earlier
    IN_PROGRESS: TransactReply.Earlier
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    EARLIER_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[ActionResult]
    earlier: TransactReply.Earlier
    sizes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, results: _Optional[_Iterable[_Union[ActionResult, _Mapping]]] = ..., earlier: _Optional[_Union[TransactReply.Earlier, str]] = ..., sizes: _Optional[_Iterable[int]] = ...) -> None: ...

class ActionResult(_message.Message):
    __slots__ = ("write", "failure")
    WRITE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    write: WriteReply
    failure: Failure
    def __init__(self, write: _Optional[_Union[WriteReply, _Mapping]] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class TransactGetReply(_message.Message):
    __slots__ = ("reads",)
    READS_FIELD_NUMBER: _ClassVar[int]
    reads: _containers.RepeatedCompositeFieldContainer[TransactRead]
    def __init__(self, reads: _Optional[_Iterable[_Union[TransactRead, _Mapping]]] = ...) -> None: ...

class TransactRead(_message.Message):
    __slots__ = ("item", "version", "marked")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MARKED_FIELD_NUMBER: _ClassVar[int]
    item: ItemReply
    version: int
    marked: bool
    def __init__(self, item: _Optional[_Union[ItemReply, _Mapping]] = ..., version: _Optional[int] = ..., marked: _Optional[bool] = ...) -> None: ...
