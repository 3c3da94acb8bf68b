"""What voters promised: a vote that was given is known to the next life of its replica, whatever became of the log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from replication.messages import Message, VoteReply
from storagenode.hosted import HostedReplica
from storagenode.node import StorageNode
from storagenode.replicas import Replicas


class Promises:
    """The latest vote of every replica. `wrong`: those that were forgotten."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self._votes: dict[tuple[int, int], tuple[int, int]] = {}

    @contextmanager
    def watch(self) -> Iterator[None]:
        """See which votes leave, and what the replicas of a node that starts know of theirs."""
        send, add = StorageNode.send, Replicas._add

        def sent(node: StorageNode, hosted: HostedReplica, message: Message) -> None:
            if isinstance(message, VoteReply) and message.granted and not message.pre:
                self._votes[hosted.partition_id, hosted.replica.replica] = (message.epoch, message.to)
            send(node, hosted, message)

        def added(
            replicas: Replicas, partition: int, replica: int, place: Any, origin: Any, store: Any
        ) -> HostedReplica:
            self._check(partition, replica, origin.hard_state.epoch, origin.hard_state.vote)
            return add(replicas, partition, replica, place, origin, store)

        with patch.object(StorageNode, "send", sent), patch.object(Replicas, "_add", added):
            yield

    def _check(self, partition: int, replica: int, epoch: int, vote: int) -> None:
        promised = self._votes.get((partition, replica), (0, 0))
        if epoch < promised[0] or (epoch == promised[0] and vote != promised[1]):
            self.wrong.append(
                f"partition {partition}: replica {replica} voted for {promised[1]} in epoch {promised[0]}, "
                f"and starts in epoch {epoch} with a vote for {vote}"
            )
