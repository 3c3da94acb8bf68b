"""Document paths: how DynamoDB writes them, and which may not stand beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from dynamo.expressions.parser import MalformedError

DEPTH_MAX = 32

Steps: TypeAlias = tuple[str | int, ...]


def shown(steps: Steps) -> str:
    """A path as DynamoDB's texts show it: `[a, [0], b]`."""
    return "[" + ", ".join([f"[{step}]" if isinstance(step, int) else step for step in steps]) + "]"


def check_depth(steps: Steps) -> None:
    """Raises `MalformedError` for a path with too many steps."""
    if len(steps) > DEPTH_MAX:
        raise MalformedError(f"The document path has too many nesting levels; nesting levels: {len(steps)}")


def check_apart(paths: Iterable[Steps]) -> None:
    """Checks that no path is another or the beginning of another (overlap), and that no two would need the same place
    to be a map and a list (conflict). Raises `MalformedError`."""
    root = _Place(0)
    seen: list[Steps] = []
    for number, path in enumerate(paths):
        place = root
        for step in path:
            place = _enter(place, step, number, path, seen)
        if place.below:
            raise _clash("overlap", seen[place.first], path)
        place.ends = True
        seen.append(path)


class _Place:
    """A node of the tree of all paths so far."""

    __slots__ = ("below", "ends", "first")

    def __init__(self, first: int) -> None:
        self.below: dict[str | int, _Place] = {}
        self.ends = False
        self.first = first  # number of the first path that came here


def _enter(place: _Place, step: str | int, number: int, path: Steps, seen: Sequence[Steps]) -> _Place:
    below = place.below.get(step)
    if below is None:
        sibling: Any = next(iter(place.below), step)
        if isinstance(sibling, int) is not isinstance(step, int):
            raise _clash("conflict", seen[place.first], path)
        below = place.below[step] = _Place(number)
    elif below.ends:
        raise _clash("overlap", seen[below.first], path)
    return below


def _clash(what: str, earlier: Steps, later: Steps) -> MalformedError:
    return MalformedError(
        f"Two document paths {what} with each other; must remove or rewrite one of these paths; "
        f"path one: {shown(earlier)}, path two: {shown(later)}"
    )
