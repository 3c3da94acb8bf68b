from cluster.wire import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Report(_message.Message):
    __slots__ = ("cluster_id", "node", "incarnation", "catalog_epoch", "catalog_version", "pid", "disk_free", "replicas", "dropped_replicas", "heard_nodes")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    CATALOG_EPOCH_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    DISK_FREE_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    HEARD_NODES_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    node: _common_pb2.NodeRecord
    incarnation: int
    catalog_epoch: int
    catalog_version: int
    pid: int
    disk_free: int
    replicas: _containers.RepeatedCompositeFieldContainer[ReplicaReport]
    dropped_replicas: _containers.RepeatedScalarFieldContainer[int]
    heard_nodes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, cluster_id: _Optional[str] = ..., node: _Optional[_Union[_common_pb2.NodeRecord, _Mapping]] = ..., incarnation: _Optional[int] = ..., catalog_epoch: _Optional[int] = ..., catalog_version: _Optional[int] = ..., pid: _Optional[int] = ..., disk_free: _Optional[int] = ..., replicas: _Optional[_Iterable[_Union[ReplicaReport, _Mapping]]] = ..., dropped_replicas: _Optional[_Iterable[int]] = ..., heard_nodes: _Optional[_Iterable[int]] = ...) -> None: ...

class ReplicaReport(_message.Message):
    __slots__ = ("partition", "replica", "role", "epoch", "leader_replica", "position", "applied", "items", "size", "serving", "filled_indexes", "membership_version", "voters", "old_voters", "learners", "lacks_state", "log_only")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEADER_REPLICA_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SERVING_FIELD_NUMBER: _ClassVar[int]
    FILLED_INDEXES_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_VERSION_FIELD_NUMBER: _ClassVar[int]
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    OLD_VOTERS_FIELD_NUMBER: _ClassVar[int]
    LEARNERS_FIELD_NUMBER: _ClassVar[int]
    LACKS_STATE_FIELD_NUMBER: _ClassVar[int]
    LOG_ONLY_FIELD_NUMBER: _ClassVar[int]
    partition: int
    replica: int
    role: str
    epoch: int
    leader_replica: int
    position: int
    applied: int
    items: int
    size: int
    serving: bool
    filled_indexes: _containers.RepeatedScalarFieldContainer[int]
    membership_version: int
    voters: _containers.RepeatedScalarFieldContainer[int]
    old_voters: _containers.RepeatedScalarFieldContainer[int]
    learners: _containers.RepeatedScalarFieldContainer[int]
    lacks_state: bool
    log_only: bool
    def __init__(self, partition: _Optional[int] = ..., replica: _Optional[int] = ..., role: _Optional[str] = ..., epoch: _Optional[int] = ..., leader_replica: _Optional[int] = ..., position: _Optional[int] = ..., applied: _Optional[int] = ..., items: _Optional[int] = ..., size: _Optional[int] = ..., serving: _Optional[bool] = ..., filled_indexes: _Optional[_Iterable[int]] = ..., membership_version: _Optional[int] = ..., voters: _Optional[_Iterable[int]] = ..., old_voters: _Optional[_Iterable[int]] = ..., learners: _Optional[_Iterable[int]] = ..., lacks_state: _Optional[bool] = ..., log_only: _Optional[bool] = ...) -> None: ...

class CatalogRequest(_message.Message):
    __slots__ = ("cluster_id",)
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    def __init__(self, cluster_id: _Optional[str] = ...) -> None: ...
