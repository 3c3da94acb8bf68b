"""Who votes in a partition. Changes are a joint step between two sets; today there is only ever one set."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_FORMAT = 1
_HEAD = struct.Struct("<BQH")


@dataclass(frozen=True, slots=True)
class Membership:
    """The replica ids that vote, and the version that every change raises. Ids are never reused."""

    voters: tuple[int, ...]
    version: int = 0

    def __post_init__(self) -> None:
        if not self.voters or len(set(self.voters)) != len(self.voters) or min(self.voters) < 1:
            raise ValueError("voters are distinct replica ids above zero, at least one")

    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The sets that each need a majority of their own: one now, two during a joint change."""
        return (self.voters,)

    def replicas(self) -> tuple[int, ...]:
        """Every voter once."""
        return tuple(dict.fromkeys(voter for voters in self.sets() for voter in voters))

    def encode(self) -> bytes:
        """Format byte, version, count, ids; little-endian."""
        return _HEAD.pack(_FORMAT, self.version, len(self.voters)) + struct.pack(f"<{len(self.voters)}Q", *self.voters)

    @classmethod
    def decode(cls, data: bytes) -> Membership:
        """The inverse of `encode`. Raises ValueError for anything else."""
        try:
            form, version, count = _HEAD.unpack_from(data)
            voters = struct.unpack_from(f"<{count}Q", data, _HEAD.size)
        except struct.error as error:
            raise ValueError(f"not a membership: {error}") from error
        if form != _FORMAT or len(data) != _HEAD.size + 8 * count:
            raise ValueError("not a membership of a known format")
        return cls(voters, version)
