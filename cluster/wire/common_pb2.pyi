from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Refusal(_message.Message):
    __slots__ = ("reason", "leader_node", "epoch", "schema_version", "detail")
    class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNSPECIFIED: _ClassVar[Refusal.Reason]
        NOT_LEADER: _ClassVar[Refusal.Reason]
        NO_SUCH_PARTITION: _ClassVar[Refusal.Reason]
        STALE_EPOCH: _ClassVar[Refusal.Reason]
        SCHEMA_CHANGED: _ClassVar[Refusal.Reason]
        WRONG_CLUSTER: _ClassVar[Refusal.Reason]
        OVERLOADED: _ClassVar[Refusal.Reason]
        DISK_FULL: _ClassVar[Refusal.Reason]
        NOT_READY: _ClassVar[Refusal.Reason]
        DEADLINE: _ClassVar[Refusal.Reason]
    UNSPECIFIED: Refusal.Reason
    NOT_LEADER: Refusal.Reason
    NO_SUCH_PARTITION: Refusal.Reason
    STALE_EPOCH: Refusal.Reason
    SCHEMA_CHANGED: Refusal.Reason
    WRONG_CLUSTER: Refusal.Reason
    OVERLOADED: Refusal.Reason
    DISK_FULL: Refusal.Reason
    NOT_READY: Refusal.Reason
    DEADLINE: Refusal.Reason
    REASON_FIELD_NUMBER: _ClassVar[int]
    LEADER_NODE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    reason: Refusal.Reason
    leader_node: int
    epoch: int
    schema_version: int
    detail: str
    def __init__(self, reason: _Optional[_Union[Refusal.Reason, str]] = ..., leader_node: _Optional[int] = ..., epoch: _Optional[int] = ..., schema_version: _Optional[int] = ..., detail: _Optional[str] = ...) -> None: ...

class NodeRecord(_message.Message):
    __slots__ = ("node", "name", "region", "zone", "address", "metrics", "version", "draining", "removed")
    NODE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    node: int
    name: str
    region: str
    zone: str
    address: str
    metrics: str
    version: int
    draining: bool
    removed: bool
    def __init__(self, node: _Optional[int] = ..., name: _Optional[str] = ..., region: _Optional[str] = ..., zone: _Optional[str] = ..., address: _Optional[str] = ..., metrics: _Optional[str] = ..., version: _Optional[int] = ..., draining: _Optional[bool] = ..., removed: _Optional[bool] = ...) -> None: ...

class RouterRecord(_message.Message):
    __slots__ = ("name", "address", "metrics", "pid")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    name: str
    address: str
    metrics: str
    pid: int
    def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ..., metrics: _Optional[str] = ..., pid: _Optional[int] = ...) -> None: ...

class TableRecord(_message.Message):
    __slots__ = ("table", "name", "schema_version", "definition", "version")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    table: int
    name: str
    schema_version: int
    definition: bytes
    version: int
    def __init__(self, table: _Optional[int] = ..., name: _Optional[str] = ..., schema_version: _Optional[int] = ..., definition: _Optional[bytes] = ..., version: _Optional[int] = ...) -> None: ...

class UserRecord(_message.Message):
    __slots__ = ("user", "name", "definition", "version")
    USER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    user: int
    name: str
    definition: bytes
    version: int
    def __init__(self, user: _Optional[int] = ..., name: _Optional[str] = ..., definition: _Optional[bytes] = ..., version: _Optional[int] = ...) -> None: ...

class ReplicaRecord(_message.Message):
    __slots__ = ("replica", "node", "zone", "log_only")
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    LOG_ONLY_FIELD_NUMBER: _ClassVar[int]
    replica: int
    node: int
    zone: str
    log_only: bool
    def __init__(self, replica: _Optional[int] = ..., node: _Optional[int] = ..., zone: _Optional[str] = ..., log_only: _Optional[bool] = ...) -> None: ...

class DropRecord(_message.Message):
    __slots__ = ("replica", "node", "membership_version")
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_VERSION_FIELD_NUMBER: _ClassVar[int]
    replica: int
    node: int
    membership_version: int
    def __init__(self, replica: _Optional[int] = ..., node: _Optional[int] = ..., membership_version: _Optional[int] = ...) -> None: ...

class PartitionRecord(_message.Message):
    __slots__ = ("partition", "table", "low", "high", "replicas", "membership_version", "preferred_leader", "state", "version", "leaving", "dropping", "change", "founders")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ACTIVE: _ClassVar[PartitionRecord.State]
        DROPPED: _ClassVar[PartitionRecord.State]
    ACTIVE: PartitionRecord.State
    DROPPED: PartitionRecord.State
    class Change(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[PartitionRecord.Change]
        REPLACE: _ClassVar[PartitionRecord.Change]
        DRAIN: _ClassVar[PartitionRecord.Change]
        ZONE: _ClassVar[PartitionRecord.Change]
        BALANCE: _ClassVar[PartitionRecord.Change]
    NONE: PartitionRecord.Change
    REPLACE: PartitionRecord.Change
    DRAIN: PartitionRecord.Change
    ZONE: PartitionRecord.Change
    BALANCE: PartitionRecord.Change
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_VERSION_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_LEADER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    DROPPING_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    FOUNDERS_FIELD_NUMBER: _ClassVar[int]
    partition: int
    table: int
    low: bytes
    high: bytes
    replicas: _containers.RepeatedCompositeFieldContainer[ReplicaRecord]
    membership_version: int
    preferred_leader: int
    state: PartitionRecord.State
    version: int
    leaving: _containers.RepeatedScalarFieldContainer[int]
    dropping: _containers.RepeatedCompositeFieldContainer[DropRecord]
    change: PartitionRecord.Change
    founders: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, partition: _Optional[int] = ..., table: _Optional[int] = ..., low: _Optional[bytes] = ..., high: _Optional[bytes] = ..., replicas: _Optional[_Iterable[_Union[ReplicaRecord, _Mapping]]] = ..., membership_version: _Optional[int] = ..., preferred_leader: _Optional[int] = ..., state: _Optional[_Union[PartitionRecord.State, str]] = ..., version: _Optional[int] = ..., leaving: _Optional[_Iterable[int]] = ..., dropping: _Optional[_Iterable[_Union[DropRecord, _Mapping]]] = ..., change: _Optional[_Union[PartitionRecord.Change, str]] = ..., founders: _Optional[_Iterable[int]] = ...) -> None: ...

class CatalogUpdate(_message.Message):
    __slots__ = ("cluster_id", "epoch", "from_version", "version", "tables", "removed_tables", "partitions", "removed_partitions", "nodes", "removed_nodes", "not_leader", "leader", "users", "removed_users")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FROM_VERSION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    REMOVED_TABLES_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    REMOVED_NODES_FIELD_NUMBER: _ClassVar[int]
    NOT_LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_USERS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    epoch: int
    from_version: int
    version: int
    tables: _containers.RepeatedCompositeFieldContainer[TableRecord]
    removed_tables: _containers.RepeatedScalarFieldContainer[int]
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionRecord]
    removed_partitions: _containers.RepeatedScalarFieldContainer[int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeRecord]
    removed_nodes: _containers.RepeatedScalarFieldContainer[int]
    not_leader: bool
    leader: str
    users: _containers.RepeatedCompositeFieldContainer[UserRecord]
    removed_users: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, cluster_id: _Optional[str] = ..., epoch: _Optional[int] = ..., from_version: _Optional[int] = ..., version: _Optional[int] = ..., tables: _Optional[_Iterable[_Union[TableRecord, _Mapping]]] = ..., removed_tables: _Optional[_Iterable[int]] = ..., partitions: _Optional[_Iterable[_Union[PartitionRecord, _Mapping]]] = ..., removed_partitions: _Optional[_Iterable[int]] = ..., nodes: _Optional[_Iterable[_Union[NodeRecord, _Mapping]]] = ..., removed_nodes: _Optional[_Iterable[int]] = ..., not_leader: _Optional[bool] = ..., leader: _Optional[str] = ..., users: _Optional[_Iterable[_Union[UserRecord, _Mapping]]] = ..., removed_users: _Optional[_Iterable[int]] = ...) -> None: ...
