"""The node's log: one sequence of batches for all partitions. This log is the durability."""

from storagenode.log.batch import Batch
from storagenode.log.errors import LogBroken, LogCorrupt, LogError, LogFull, LogTrimmed
from storagenode.log.node_log import NodeLog, Recovered, RecoveredReplica
from storagenode.log.records import frame_entries, parse_entries

__all__ = [
    "Batch",
    "LogBroken",
    "LogCorrupt",
    "LogError",
    "LogFull",
    "LogTrimmed",
    "NodeLog",
    "Recovered",
    "RecoveredReplica",
    "frame_entries",
    "parse_entries",
]
