"""The steps of a plan. Each is safe to repeat, and void once the catalog has moved since it was planned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


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


Action: TypeAlias = ActivateTables | ForgetReplicas | ActivateIndexes
