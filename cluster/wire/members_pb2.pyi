from cluster.wire import common_pb2 as _common_pb2
from cluster.wire import replication_pb2 as _replication_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Frame(_message.Message):
    __slots__ = ("cluster_id", "group", "from_replica", "to_replica", "append", "vote_request", "hand_over", "beat", "snapshot")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    FROM_REPLICA_FIELD_NUMBER: _ClassVar[int]
    TO_REPLICA_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    VOTE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    HAND_OVER_FIELD_NUMBER: _ClassVar[int]
    BEAT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    group: str
    from_replica: int
    to_replica: int
    append: Append
    vote_request: _replication_pb2.VoteRequest
    hand_over: _replication_pb2.HandOver
    beat: _replication_pb2.Beat
    snapshot: SnapshotRequest
    def __init__(self, cluster_id: _Optional[str] = ..., group: _Optional[str] = ..., from_replica: _Optional[int] = ..., to_replica: _Optional[int] = ..., append: _Optional[_Union[Append, _Mapping]] = ..., vote_request: _Optional[_Union[_replication_pb2.VoteRequest, _Mapping]] = ..., hand_over: _Optional[_Union[_replication_pb2.HandOver, _Mapping]] = ..., beat: _Optional[_Union[_replication_pb2.Beat, _Mapping]] = ..., snapshot: _Optional[_Union[SnapshotRequest, _Mapping]] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ("group", "replica", "epoch", "membership", "appended", "vote", "beat", "snapshot")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_FIELD_NUMBER: _ClassVar[int]
    APPENDED_FIELD_NUMBER: _ClassVar[int]
    VOTE_FIELD_NUMBER: _ClassVar[int]
    BEAT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    group: str
    replica: int
    epoch: int
    membership: bytes
    appended: _replication_pb2.Appended
    vote: _replication_pb2.VoteReply
    beat: _replication_pb2.BeatReply
    snapshot: Snapshot
    def __init__(self, group: _Optional[str] = ..., replica: _Optional[int] = ..., epoch: _Optional[int] = ..., membership: _Optional[bytes] = ..., appended: _Optional[_Union[_replication_pb2.Appended, _Mapping]] = ..., vote: _Optional[_Union[_replication_pb2.VoteReply, _Mapping]] = ..., beat: _Optional[_Union[_replication_pb2.BeatReply, _Mapping]] = ..., snapshot: _Optional[_Union[Snapshot, _Mapping]] = ...) -> None: ...

class Entry(_message.Message):
    __slots__ = ("epoch", "position", "payload", "kind")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    position: int
    payload: bytes
    kind: int
    def __init__(self, epoch: _Optional[int] = ..., position: _Optional[int] = ..., payload: _Optional[bytes] = ..., kind: _Optional[int] = ...) -> None: ...

class Append(_message.Message):
    __slots__ = ("epoch", "previous_position", "previous_epoch", "entries", "commit", "lowest", "membership")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_POSITION_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    LOWEST_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    previous_position: int
    previous_epoch: int
    entries: _containers.RepeatedCompositeFieldContainer[Entry]
    commit: int
    lowest: bool
    membership: bytes
    def __init__(self, epoch: _Optional[int] = ..., previous_position: _Optional[int] = ..., previous_epoch: _Optional[int] = ..., entries: _Optional[_Iterable[_Union[Entry, _Mapping]]] = ..., commit: _Optional[int] = ..., lowest: _Optional[bool] = ..., membership: _Optional[bytes] = ...) -> None: ...

class SnapshotRequest(_message.Message):
    __slots__ = ("position",)
    POSITION_FIELD_NUMBER: _ClassVar[int]
    position: int
    def __init__(self, position: _Optional[int] = ...) -> None: ...

class Snapshot(_message.Message):
    __slots__ = ("position", "epoch", "membership", "catalog")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_FIELD_NUMBER: _ClassVar[int]
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    position: int
    epoch: int
    membership: bytes
    catalog: Change
    def __init__(self, position: _Optional[int] = ..., epoch: _Optional[int] = ..., membership: _Optional[bytes] = ..., catalog: _Optional[_Union[Change, _Mapping]] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("update", "counters")
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    update: _common_pb2.CatalogUpdate
    counters: bytes
    def __init__(self, update: _Optional[_Union[_common_pb2.CatalogUpdate, _Mapping]] = ..., counters: _Optional[bytes] = ...) -> None: ...
