"""What one client's address, and all of them together, may take of a router. No limit is 0.

Addresses of one IPv6 network of 64 bits count as one: that is what a single client gets.
"""

from __future__ import annotations

import ipaddress

ADDRESSES_MAX = 100_000
"""Buckets kept. Beyond that all start anew, full: forgetting is in the client's favour."""


class Limits:
    """Counts connections, and requests per second by a bucket that holds one second's worth. `now` is in seconds."""

    def __init__(self, *, connections: int = 0, connections_per_address: int = 0, requests_per_second: int = 0) -> None:
        self._connections = connections
        self._per_address = connections_per_address
        self._rate = requests_per_second
        self.by_rate = requests_per_second > 0
        self._open: dict[str, int] = {}
        self._all = 0
        self._buckets: dict[str, tuple[float, float]] = {}  # requests left, and when that was
        self.refused = {"connection": 0, "request": 0}

    def opened(self, address: str) -> bool:
        """Count a connection; False when there are too many, and then it is not counted."""
        count = self._open.get(address, 0)
        if 0 < self._connections <= self._all or 0 < self._per_address <= count:
            self.refused["connection"] += 1
            return False
        self._open[address] = count + 1
        self._all += 1
        return True

    def closed(self, address: str) -> None:
        """A connection that was counted is gone."""
        self._all -= 1
        count = self._open[address] - 1
        if count:
            self._open[address] = count
        else:
            del self._open[address]

    def take(self, address: str, now: float) -> bool:
        """Whether one more request may come from the address; only asked where there is a rate."""
        left, since = self._buckets.get(address, (float(self._rate), now))
        left = min(float(self._rate), left + (now - since) * self._rate)
        if left < 1:
            self.refused["request"] += 1
            return False
        if len(self._buckets) >= ADDRESSES_MAX:
            self._buckets.clear()
        self._buckets[address] = (left - 1, now)
        return True


def client_of(peer: object) -> tuple[str, str]:
    """From a socket's peer name: the address as policies see it, and the one that limits count by."""
    if not isinstance(peer, tuple) or not peer or not isinstance(peer[0], str):
        return "", ""
    text = peer[0].partition("%")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return "", ""
    if isinstance(address, ipaddress.IPv4Address):
        return text, text
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped), str(address.ipv4_mapped)
    return text, str(ipaddress.ip_network((address, 64), strict=False))
