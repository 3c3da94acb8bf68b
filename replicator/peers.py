"""The other regions' replicators, and calls to them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from cluster.transport import Transport, TransportError

CALL_SECONDS: Final = 20.0
"""How long a call may take: longer than a leader takes to be replaced."""

_log = logging.getLogger(__name__)
M = TypeVar("M", bound=Message)


class PeerError(Exception):
    """A region could not be reached, or did not do what it was asked for; the text is one plain sentence."""


class Peers:
    """By region the addresses of its replicators; any of them will do. `peers` as the setting has them."""

    def __init__(self, transport: Transport, peers: Iterable[str]) -> None:
        self._transport = transport
        self._addresses: dict[str, list[str]] = {}
        self.errors: dict[str, str] = {}
        for peer in peers:
            region, _, address = peer.partition("=")
            self._addresses.setdefault(region, []).append(address)

    @property
    def regions(self) -> list[str]:
        """All other regions, in order."""
        return sorted(self._addresses)

    async def call(self, region: str, method: str, request: Message, kind: type[M], seconds: float = CALL_SECONDS) -> M:
        """The answer of one of the region's replicators, the one that answered last first. Raises PeerError."""
        addresses = self._addresses.get(region, [])
        message, reason = request.SerializeToString(), "it is not among the settings"
        for address in list(addresses):
            try:
                answer = await self._transport.call(address, f"Regions/{method}", message, seconds)
                reply = kind()
                reply.ParseFromString(answer)
            except (TransportError, OSError, DecodeError) as error:
                reason = str(error)
                # The next call begins with another one.
                addresses.append(addresses.pop(addresses.index(address)))
                continue
            self.errors.pop(region, None)
            return reply
        if region not in self.errors:
            _log.warning("region %s cannot be reached: %s", region, reason)
        self.errors[region] = reason
        raise PeerError(f"Region {region} cannot be reached: {reason}")
