"""DynamoDB's reserved words, from "Reserved words in DynamoDB" in Amazon's developer guide."""

from __future__ import annotations

from importlib.resources import files

RESERVED_WORDS = frozenset(files(__package__).joinpath("reserved.txt").read_text("ascii").split())


def is_reserved(name: str) -> bool:
    """Whether a name may stand in an expression only behind a placeholder. Case does not count."""
    return name.upper() in RESERVED_WORDS
