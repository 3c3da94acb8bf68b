"""What a user touches: the command `trizone`, and `trizone.Cluster` for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trizone.cluster import Cluster

__all__ = ["Cluster"]


def __getattr__(name: str) -> Any:
    """`Cluster`, imported when it is first asked for: the command line starts faster without it."""
    if name == "Cluster":
        from trizone.cluster import Cluster

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
