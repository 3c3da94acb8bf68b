"""What is wrong with a transaction as a whole, and what with one of its members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from dynamo.errors import ApiError, validation
from router.transactions import VALIDATION, Placed, canceled

Invalid: TypeAlias = dict[int, ApiError]
"""Errors of members, by index."""


def check_items_once(members: Sequence[Placed]) -> None:
    """No two members may name one item. Raises ValidationException."""
    if len({(member.table.id, member.row) for member in members}) < len(members):
        raise validation("Transaction request cannot include multiple operations on one item")


def raise_invalid(count: int, invalid: Invalid) -> None:
    """Raises what members that do not fit their tables lead to, if there are any.

    A key that is empty is an error of the request; all else cancels the transaction (dynoxide's captures of 2026).
    """
    for error in invalid.values():
        if "cannot contain an empty" in error.message or error.type != "ValidationException":
            raise error
    if invalid:
        raise canceled(
            count, {index: {"Code": VALIDATION, "Message": error.message} for index, error in invalid.items()}
        )
