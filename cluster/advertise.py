"""The address that others are told: not always the one that a process listens on."""

from __future__ import annotations

import socket

EVERYWHERE = ("0.0.0.0", "[::]")
"""Hosts that listen on all of a machine's addresses, and that nobody else can call."""


def advertised(listening: str, wanted: str = "") -> str:
    """What to tell others instead of `listening`: `wanted`, or the machine's own name for 0.0.0.0; else nothing."""
    host, _, port = listening.rpartition(":")
    if wanted or host not in EVERYWHERE:
        return wanted
    return f"{socket.gethostname()}:{port}"


def beside(address: str, listening: str) -> str:
    """Where another port of this process, `listening`, is reached, if `address` is what others are told."""
    host, _, port = listening.rpartition(":")
    return f"{address.rpartition(':')[0]}:{port}" if address and host in EVERYWHERE else listening
