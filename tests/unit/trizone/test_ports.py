"""Free ports are found, kept, and replaced when someone else took one."""

from __future__ import annotations

import socket

import pytest

from trizone import ports
from trizone.errors import CommandError


def test_new_ports_are_free_and_differ() -> None:
    chosen = ports.choose({"a": ("listen", "metrics"), "b": ("listen", "metrics")}, {})
    numbers = [port for purposes in chosen.values() for port in purposes.values()]
    assert len(set(numbers)) == 4
    assert all(ports.is_free(port) for port in numbers)


def test_known_ports_are_kept_also_for_processes_that_rest() -> None:
    known = ports.choose({"a": ("listen",), "b": ("listen",)}, {})
    assert ports.choose({"a": ("listen",)}, known) == known


def test_a_port_that_someone_took_is_replaced() -> None:
    known = ports.choose({"a": ("listen",), "b": ("listen",)}, {})
    with socket.create_server((ports.HOST, known["a"]["listen"])):
        chosen = ports.choose({"a": ("listen",), "b": ("listen",)}, known)
    assert chosen["b"] == known["b"]
    assert chosen["a"] != known["a"]


def test_a_held_port_is_closed_to_strangers_and_open_to_routers() -> None:
    with ports.hold(0) as holder:
        port = holder.getsockname()[1]
        assert not ports.is_free(port)
        with pytest.raises(CommandError, match="taken"):
            ports.hold(port)
        with socket.create_server((ports.HOST, port), reuse_port=True), socket.create_connection((ports.HOST, port)):
            pass
