from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PeerFrame(_message.Message):
    __slots__ = ("cluster_id", "from_node", "to_node", "from_incarnation", "to_incarnation", "appends", "appended", "votes", "beat", "beat_reply")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_NODE_FIELD_NUMBER: _ClassVar[int]
    TO_NODE_FIELD_NUMBER: _ClassVar[int]
    FROM_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    TO_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    APPENDS_FIELD_NUMBER: _ClassVar[int]
    APPENDED_FIELD_NUMBER: _ClassVar[int]
    VOTES_FIELD_NUMBER: _ClassVar[int]
    BEAT_FIELD_NUMBER: _ClassVar[int]
    BEAT_REPLY_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    from_node: int
    to_node: int
    from_incarnation: int
    to_incarnation: int
    appends: AppendBatch
    appended: AppendBatchReply
    votes: Votes
    beat: Beat
    beat_reply: BeatReply
    def __init__(self, cluster_id: _Optional[str] = ..., from_node: _Optional[int] = ..., to_node: _Optional[int] = ..., from_incarnation: _Optional[int] = ..., to_incarnation: _Optional[int] = ..., appends: _Optional[_Union[AppendBatch, _Mapping]] = ..., appended: _Optional[_Union[AppendBatchReply, _Mapping]] = ..., votes: _Optional[_Union[Votes, _Mapping]] = ..., beat: _Optional[_Union[Beat, _Mapping]] = ..., beat_reply: _Optional[_Union[BeatReply, _Mapping]] = ...) -> None: ...

class AppendBatch(_message.Message):
    __slots__ = ("sequence", "appends")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    APPENDS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    appends: _containers.RepeatedCompositeFieldContainer[Append]
    def __init__(self, sequence: _Optional[int] = ..., appends: _Optional[_Iterable[_Union[Append, _Mapping]]] = ...) -> None: ...

class Append(_message.Message):
    __slots__ = ("partition", "from_replica", "to_replica", "epoch", "previous_position", "previous_epoch", "commit", "entries", "lowest", "membership", "held")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FROM_REPLICA_FIELD_NUMBER: _ClassVar[int]
    TO_REPLICA_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_POSITION_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_EPOCH_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    LOWEST_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    partition: int
    from_replica: int
    to_replica: int
    epoch: int
    previous_position: int
    previous_epoch: int
    commit: int
    entries: bytes
    lowest: bool
    membership: bytes
    held: int
    def __init__(self, partition: _Optional[int] = ..., from_replica: _Optional[int] = ..., to_replica: _Optional[int] = ..., epoch: _Optional[int] = ..., previous_position: _Optional[int] = ..., previous_epoch: _Optional[int] = ..., commit: _Optional[int] = ..., entries: _Optional[bytes] = ..., lowest: _Optional[bool] = ..., membership: _Optional[bytes] = ..., held: _Optional[int] = ...) -> None: ...

class SnapshotRequest(_message.Message):
    __slots__ = ("cluster_id", "from_node", "to_node", "partition", "position", "manifest", "chunk")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_NODE_FIELD_NUMBER: _ClassVar[int]
    TO_NODE_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    from_node: int
    to_node: int
    partition: int
    position: int
    manifest: bytes
    chunk: int
    def __init__(self, cluster_id: _Optional[str] = ..., from_node: _Optional[int] = ..., to_node: _Optional[int] = ..., partition: _Optional[int] = ..., position: _Optional[int] = ..., manifest: _Optional[bytes] = ..., chunk: _Optional[int] = ...) -> None: ...

class SnapshotReply(_message.Message):
    __slots__ = ("state", "manifest", "chunk", "data")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[SnapshotReply.State]
        PREPARING: _ClassVar[SnapshotReply.State]
        CHUNK: _ClassVar[SnapshotReply.State]
    NONE: SnapshotReply.State
    PREPARING: SnapshotReply.State
    CHUNK: SnapshotReply.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    state: SnapshotReply.State
    manifest: bytes
    chunk: int
    data: bytes
    def __init__(self, state: _Optional[_Union[SnapshotReply.State, str]] = ..., manifest: _Optional[bytes] = ..., chunk: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class SumsRequest(_message.Message):
    __slots__ = ("cluster_id", "from_node", "to_node", "replicas")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_NODE_FIELD_NUMBER: _ClassVar[int]
    TO_NODE_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    from_node: int
    to_node: int
    replicas: _containers.RepeatedCompositeFieldContainer[ReplicaSums]
    def __init__(self, cluster_id: _Optional[str] = ..., from_node: _Optional[int] = ..., to_node: _Optional[int] = ..., replicas: _Optional[_Iterable[_Union[ReplicaSums, _Mapping]]] = ...) -> None: ...

class SumsReply(_message.Message):
    __slots__ = ("replicas",)
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    replicas: _containers.RepeatedCompositeFieldContainer[ReplicaSums]
    def __init__(self, replicas: _Optional[_Iterable[_Union[ReplicaSums, _Mapping]]] = ...) -> None: ...

class ReplicaSums(_message.Message):
    __slots__ = ("partition", "replica", "positions", "sums", "differs")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    DIFFERS_FIELD_NUMBER: _ClassVar[int]
    partition: int
    replica: int
    positions: _containers.RepeatedScalarFieldContainer[int]
    sums: bytes
    differs: bool
    def __init__(self, partition: _Optional[int] = ..., replica: _Optional[int] = ..., positions: _Optional[_Iterable[int]] = ..., sums: _Optional[bytes] = ..., differs: _Optional[bool] = ...) -> None: ...

class AppendBatchReply(_message.Message):
    __slots__ = ("sequence", "appended")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    APPENDED_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    appended: _containers.RepeatedCompositeFieldContainer[Appended]
    def __init__(self, sequence: _Optional[int] = ..., appended: _Optional[_Iterable[_Union[Appended, _Mapping]]] = ...) -> None: ...

class Appended(_message.Message):
    __slots__ = ("partition", "from_replica", "to_replica", "epoch", "accepted", "match", "hint_epoch")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FROM_REPLICA_FIELD_NUMBER: _ClassVar[int]
    TO_REPLICA_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    MATCH_FIELD_NUMBER: _ClassVar[int]
    HINT_EPOCH_FIELD_NUMBER: _ClassVar[int]
    partition: int
    from_replica: int
    to_replica: int
    epoch: int
    accepted: bool
    match: int
    hint_epoch: int
    def __init__(self, partition: _Optional[int] = ..., from_replica: _Optional[int] = ..., to_replica: _Optional[int] = ..., epoch: _Optional[int] = ..., accepted: _Optional[bool] = ..., match: _Optional[int] = ..., hint_epoch: _Optional[int] = ...) -> None: ...

class Votes(_message.Message):
    __slots__ = ("requests", "replies", "hand_overs")
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    HAND_OVERS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[VoteRequest]
    replies: _containers.RepeatedCompositeFieldContainer[VoteReply]
    hand_overs: _containers.RepeatedCompositeFieldContainer[HandOver]
    def __init__(self, requests: _Optional[_Iterable[_Union[VoteRequest, _Mapping]]] = ..., replies: _Optional[_Iterable[_Union[VoteReply, _Mapping]]] = ..., hand_overs: _Optional[_Iterable[_Union[HandOver, _Mapping]]] = ...) -> None: ...

class VoteRequest(_message.Message):
    __slots__ = ("partition", "from_replica", "to_replica", "epoch", "last_position", "last_epoch", "pre", "ordered")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FROM_REPLICA_FIELD_NUMBER: _ClassVar[int]
    TO_REPLICA_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_POSITION_FIELD_NUMBER: _ClassVar[int]
    LAST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PRE_FIELD_NUMBER: _ClassVar[int]
    ORDERED_FIELD_NUMBER: _ClassVar[int]
    partition: int
    from_replica: int
    to_replica: int
    epoch: int
    last_position: int
    last_epoch: int
    pre: bool
    ordered: bool
    def __init__(self, partition: _Optional[int] = ..., from_replica: _Optional[int] = ..., to_replica: _Optional[int] = ..., epoch: _Optional[int] = ..., last_position: _Optional[int] = ..., last_epoch: _Optional[int] = ..., pre: _Optional[bool] = ..., ordered: _Optional[bool] = ...) -> None: ...

class VoteReply(_message.Message):
    __slots__ = ("partition", "from_replica", "to_replica", "epoch", "granted", "pre", "lease_left_us")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FROM_REPLICA_FIELD_NUMBER: _ClassVar[int]
    TO_REPLICA_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    PRE_FIELD_NUMBER: _ClassVar[int]
    LEASE_LEFT_US_FIELD_NUMBER: _ClassVar[int]
    partition: int
    from_replica: int
    to_replica: int
    epoch: int
    granted: bool
    pre: bool
    lease_left_us: int
    def __init__(self, partition: _Optional[int] = ..., from_replica: _Optional[int] = ..., to_replica: _Optional[int] = ..., epoch: _Optional[int] = ..., granted: _Optional[bool] = ..., pre: _Optional[bool] = ..., lease_left_us: _Optional[int] = ...) -> None: ...

class HandOver(_message.Message):
    __slots__ = ("partition", "from_replica", "to_replica", "epoch")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FROM_REPLICA_FIELD_NUMBER: _ClassVar[int]
    TO_REPLICA_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    partition: int
    from_replica: int
    to_replica: int
    epoch: int
    def __init__(self, partition: _Optional[int] = ..., from_replica: _Optional[int] = ..., to_replica: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class Beat(_message.Message):
    __slots__ = ("sequence", "enrolled", "commits")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ENROLLED_FIELD_NUMBER: _ClassVar[int]
    COMMITS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    enrolled: bytes
    commits: bytes
    def __init__(self, sequence: _Optional[int] = ..., enrolled: _Optional[bytes] = ..., commits: _Optional[bytes] = ...) -> None: ...

class BeatReply(_message.Message):
    __slots__ = ("sequence", "unfollowed")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    UNFOLLOWED_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    unfollowed: bytes
    def __init__(self, sequence: _Optional[int] = ..., unfollowed: _Optional[bytes] = ...) -> None: ...
