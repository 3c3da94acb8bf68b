"""Identities. Ids of the catalog are small numbers that auto-admin counts up and never gives out twice; ids that
processes make for themselves are random."""

from __future__ import annotations

from typing import NewType

from cluster.random_source import RandomSource

TableId = NewType("TableId", int)
PartitionId = NewType("PartitionId", int)
ReplicaId = NewType("ReplicaId", int)
NodeId = NewType("NodeId", int)

RANDOM_ID_MAX = (1 << 63) - 1
"""Random ids stay below 2**63, so that they fit a signed 64-bit field everywhere."""


def random_id(random: RandomSource) -> int:
    """A random id from 1 to `RANDOM_ID_MAX`; 0 always means "none"."""
    return random.below(RANDOM_ID_MAX) + 1


def cluster_id(random: RandomSource) -> str:
    """A new cluster's id: 32 hexadecimal digits."""
    return random.bytes(16).hex()
