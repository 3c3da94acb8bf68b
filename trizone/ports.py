"""Loopback ports: finding free ones, and holding the one that routers share."""

from __future__ import annotations

import errno
import random
import socket

from trizone.errors import CommandError

HOST = "127.0.0.1"
CHOICES = range(20_000, 32_000)
"""Below the ports that Linux gives to outgoing connections, so that none of those takes a port between two starts."""


def is_free(port: int) -> bool:
    """Whether nobody listens on, or holds, `port` of the loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # remains of closed connections do not matter
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return False
        return True


def choose(wanted: dict[str, tuple[str, ...]], known: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """A port for every purpose of every process in `wanted`: the known one while it is free, else a new one.

    What is known of processes that are not wanted now is kept.
    """
    chosen = {name: dict(purposes) for name, purposes in known.items()}
    taken = {port for purposes in known.values() for port in purposes.values()}
    candidates = iter(random.sample(CHOICES, len(CHOICES)))
    for name, purposes in wanted.items():
        ports = chosen.setdefault(name, {})
        for purpose in purposes:
            if purpose not in ports or not is_free(ports[purpose]):
                ports[purpose] = next(port for port in candidates if port not in taken and is_free(port))
                taken.add(ports[purpose])
    return chosen


def hold(port: int) -> socket.socket:
    """A socket that keeps `port` (0: any free one) for processes of this user that set SO_REUSEPORT.

    It never listens, so it gets no connections; it keeps strangers away while a router restarts.
    Raises CommandError when the port is taken.
    """
    if port and not is_free(port):
        raise CommandError(f"Port {port} of {HOST} is taken; name another with --port.")
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        holder.bind((HOST, port))
    except OSError as error:
        holder.close()
        reason = "needs more rights" if error.errno == errno.EACCES else "is taken"
        raise CommandError(f"Port {port} of {HOST} {reason}; name another with --port.") from None
    return holder
