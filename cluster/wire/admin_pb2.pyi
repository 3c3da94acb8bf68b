from cluster.wire import common_pb2 as _common_pb2
from cluster.wire import node_pb2 as _node_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WatchRequest(_message.Message):
    __slots__ = ("cluster_id", "epoch", "version", "router")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ROUTER_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    epoch: int
    version: int
    router: _common_pb2.RouterRecord
    def __init__(self, cluster_id: _Optional[str] = ..., epoch: _Optional[int] = ..., version: _Optional[int] = ..., router: _Optional[_Union[_common_pb2.RouterRecord, _Mapping]] = ...) -> None: ...

class TableRequest(_message.Message):
    __slots__ = ("cluster_id", "name", "definition", "schema_version", "table_version")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    TABLE_VERSION_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    name: str
    definition: bytes
    schema_version: int
    table_version: int
    def __init__(self, cluster_id: _Optional[str] = ..., name: _Optional[str] = ..., definition: _Optional[bytes] = ..., schema_version: _Optional[int] = ..., table_version: _Optional[int] = ...) -> None: ...

class TableReply(_message.Message):
    __slots__ = ("table", "epoch", "version", "error_type", "error_message", "not_leader", "leader", "in_doubt")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    NOT_LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    IN_DOUBT_FIELD_NUMBER: _ClassVar[int]
    table: _common_pb2.TableRecord
    epoch: int
    version: int
    error_type: str
    error_message: str
    not_leader: bool
    leader: str
    in_doubt: bool
    def __init__(self, table: _Optional[_Union[_common_pb2.TableRecord, _Mapping]] = ..., epoch: _Optional[int] = ..., version: _Optional[int] = ..., error_type: _Optional[str] = ..., error_message: _Optional[str] = ..., not_leader: _Optional[bool] = ..., leader: _Optional[str] = ..., in_doubt: _Optional[bool] = ...) -> None: ...

class UserRequest(_message.Message):
    __slots__ = ("cluster_id", "name", "definition", "user_version")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    USER_VERSION_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    name: str
    definition: bytes
    user_version: int
    def __init__(self, cluster_id: _Optional[str] = ..., name: _Optional[str] = ..., definition: _Optional[bytes] = ..., user_version: _Optional[int] = ...) -> None: ...

class UserReply(_message.Message):
    __slots__ = ("user", "error_type", "error_message", "not_leader", "leader", "in_doubt")
    USER_FIELD_NUMBER: _ClassVar[int]
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    NOT_LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    IN_DOUBT_FIELD_NUMBER: _ClassVar[int]
    user: _common_pb2.UserRecord
    error_type: str
    error_message: str
    not_leader: bool
    leader: str
    in_doubt: bool
    def __init__(self, user: _Optional[_Union[_common_pb2.UserRecord, _Mapping]] = ..., error_type: _Optional[str] = ..., error_message: _Optional[str] = ..., not_leader: _Optional[bool] = ..., leader: _Optional[str] = ..., in_doubt: _Optional[bool] = ...) -> None: ...

class NodeRequest(_message.Message):
    __slots__ = ("cluster_id", "node", "change")
    class Change(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[NodeRequest.Change]
        DRAIN: _ClassVar[NodeRequest.Change]
        UNDRAIN: _ClassVar[NodeRequest.Change]
        REMOVE: _ClassVar[NodeRequest.Change]
    NONE: NodeRequest.Change
    DRAIN: NodeRequest.Change
    UNDRAIN: NodeRequest.Change
    REMOVE: NodeRequest.Change
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    node: str
    change: NodeRequest.Change
    def __init__(self, cluster_id: _Optional[str] = ..., node: _Optional[str] = ..., change: _Optional[_Union[NodeRequest.Change, str]] = ...) -> None: ...

class NodeReply(_message.Message):
    __slots__ = ("nodes", "note", "error_message", "not_leader", "leader", "in_doubt")
    NODES_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    NOT_LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    IN_DOUBT_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeState]
    note: str
    error_message: str
    not_leader: bool
    leader: str
    in_doubt: bool
    def __init__(self, nodes: _Optional[_Iterable[_Union[NodeState, _Mapping]]] = ..., note: _Optional[str] = ..., error_message: _Optional[str] = ..., not_leader: _Optional[bool] = ..., leader: _Optional[str] = ..., in_doubt: _Optional[bool] = ...) -> None: ...

class NodeState(_message.Message):
    __slots__ = ("node", "state", "silent_seconds", "replicas", "leaving", "leaders", "disk_free")
    NODE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SILENT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    LEADERS_FIELD_NUMBER: _ClassVar[int]
    DISK_FREE_FIELD_NUMBER: _ClassVar[int]
    node: _common_pb2.NodeRecord
    state: str
    silent_seconds: int
    replicas: int
    leaving: int
    leaders: int
    disk_free: int
    def __init__(self, node: _Optional[_Union[_common_pb2.NodeRecord, _Mapping]] = ..., state: _Optional[str] = ..., silent_seconds: _Optional[int] = ..., replicas: _Optional[int] = ..., leaving: _Optional[int] = ..., leaders: _Optional[int] = ..., disk_free: _Optional[int] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ("cluster_id",)
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    def __init__(self, cluster_id: _Optional[str] = ...) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("catalog", "nodes", "routers", "pid", "member")
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    ROUTERS_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    catalog: _common_pb2.CatalogUpdate
    nodes: _containers.RepeatedCompositeFieldContainer[_node_pb2.Report]
    routers: _containers.RepeatedCompositeFieldContainer[_common_pb2.RouterRecord]
    pid: int
    member: MemberRecord
    def __init__(self, catalog: _Optional[_Union[_common_pb2.CatalogUpdate, _Mapping]] = ..., nodes: _Optional[_Iterable[_Union[_node_pb2.Report, _Mapping]]] = ..., routers: _Optional[_Iterable[_Union[_common_pb2.RouterRecord, _Mapping]]] = ..., pid: _Optional[int] = ..., member: _Optional[_Union[MemberRecord, _Mapping]] = ...) -> None: ...

class MemberRecord(_message.Message):
    __slots__ = ("replica", "role", "epoch", "leader", "voters", "position", "applied", "serving")
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    SERVING_FIELD_NUMBER: _ClassVar[int]
    replica: int
    role: str
    epoch: int
    leader: int
    voters: _containers.RepeatedScalarFieldContainer[int]
    position: int
    applied: int
    serving: bool
    def __init__(self, replica: _Optional[int] = ..., role: _Optional[str] = ..., epoch: _Optional[int] = ..., leader: _Optional[int] = ..., voters: _Optional[_Iterable[int]] = ..., position: _Optional[int] = ..., applied: _Optional[int] = ..., serving: _Optional[bool] = ...) -> None: ...
