"""The steps of a plan. Each is safe to repeat, and void once the catalog has moved since it was planned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cluster.topology import MembershipChange


@dataclass(frozen=True)
class ActivateTables:
    """All partitions of these tables are served: they become ACTIVE."""

    planned_on: tuple[int, int]
    tables: frozenset[int]


@dataclass(frozen=True)
class ForgetReplicas:
    """These replicas have been dropped by order: their orders end."""

    planned_on: tuple[int, int]
    replicas: frozenset[int]


@dataclass(frozen=True)
class ActivateIndexes:
    """These global indexes, named by their tables, hold all of the table that they belong to: they become ACTIVE."""

    planned_on: tuple[int, int]
    indexes: frozenset[int]


@dataclass(frozen=True)
class AddReplica:
    """A new replica joins the partition, on this node, and those that `leaving` names, by id, are to go for it."""

    partition: int
    node: int
    leaving: tuple[int, ...]
    change: MembershipChange
    log_only: bool = False


@dataclass(frozen=True)
class ChangeLeaving:
    """From now on these replicas are to go: a change is withdrawn, or goes on with others."""

    partition: int
    leaving: tuple[int, ...]


@dataclass(frozen=True)
class ReleaseReplicas:
    """These replicas are no members any more, as of that version: they are no longer wanted, and are to be dropped."""

    partition: int
    replicas: tuple[int, ...]
    membership_version: int


@dataclass(frozen=True)
class TakeVersion:
    """The membership has this version by now: that of the partition's record and of its orders to drop."""

    partition: int
    membership_version: int


@dataclass(frozen=True)
class AdoptMembers:
    """The voters are others than the record knows, as (replica, node, log only): the log is the truth."""

    partition: int
    voters: tuple[tuple[int, int, bool], ...]
    membership_version: int


@dataclass(frozen=True)
class PreferLeader:
    """This replica should lead."""

    partition: int
    replica: int


Step: TypeAlias = AddReplica | ChangeLeaving | ReleaseReplicas | TakeVersion | AdoptMembers | PreferLeader
"""What is changed in the record of one partition."""


@dataclass(frozen=True)
class ChangePartitions:
    """All these steps, in one change of the catalog."""

    planned_on: tuple[int, int]
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class RemoveNodes:
    """These nodes hold nothing any more and never return: others have come in their place."""

    planned_on: tuple[int, int]
    nodes: tuple[int, ...]


Action: TypeAlias = ActivateTables | ForgetReplicas | ActivateIndexes | ChangePartitions | RemoveNodes
