"""What a majority of every set of voters agrees on."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TypeVar

from replication.membership import Membership

Number = TypeVar("Number", int, float)


def reached_by_majority(membership: Membership, value_of: Callable[[int], Number]) -> Number:
    """The greatest value that a majority of voters has reached: of each set, where there are two."""
    return min(_reached(voters, value_of) for voters in membership.sets())


def is_majority(membership: Membership, replicas: Container[int]) -> bool:
    """Whether `replicas` holds a majority of the voters of each set."""
    return all(2 * sum(voter in replicas for voter in voters) > len(voters) for voters in membership.sets())


def _reached(voters: tuple[int, ...], value_of: Callable[[int], Number]) -> Number:
    values = sorted(map(value_of, voters))
    return values[(len(values) - 1) // 2]
