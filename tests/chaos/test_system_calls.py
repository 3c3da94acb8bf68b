"""Taking strace's output apart."""

from __future__ import annotations

from tests.chaos.system_calls import SystemCall, flushed_at, sent_at, system_calls

OUTPUT = """\
11 100.000000 pwrite64(7, "a marker", 8, 4096) = 8 <0.000010>
12 100.000100 fdatasync(7 <unfinished ...>
11 100.000200 sendmsg(9, {msg_iov=[{iov_base="HTTP/1.1 200"}]}, MSG_NOSIGNAL <unfinished ...>
12 100.002000 <... fdatasync resumed>) = 0 <0.001900>
11 100.002100 <... sendmsg resumed>) = 12 <0.001900>
11 100.003000 +++ exited with 0 +++
13 100.004000 <... write resumed>) = 1 <0.500000>
"""


def test_calls_in_one_piece_and_in_two() -> None:
    calls = list(system_calls(OUTPUT.splitlines()))
    assert [(call.name, call.descriptor, call.began, round(call.ended, 6)) for call in calls] == [
        ("pwrite64", 7, 100.0, 100.00001),
        ("fdatasync", 7, 100.0001, 100.002),
        ("sendmsg", 9, 100.0002, 100.0021),
    ]
    assert sent_at(calls, "HTTP/1.1 200", 99.0) == 100.0002
    assert sent_at(calls, "HTTP/1.1 200", 100.1) is None


def call(name: str, descriptor: int, began: float, ended: float) -> SystemCall:
    return SystemCall(name, descriptor, '"marker"' if name == "pwrite64" else "", began, ended)


def test_only_a_sync_that_began_after_the_write_counts() -> None:
    write = call("pwrite64", 7, 1.0, 1.1)
    assert flushed_at([call("fdatasync", 7, 1.05, 1.5), write], "marker") is None
    assert flushed_at([write, call("fdatasync", 8, 1.2, 1.5)], "marker") is None
    assert flushed_at([write, call("fdatasync", 7, 1.2, 1.5), call("fdatasync", 7, 1.6, 1.7)], "marker") == 1.5
    assert flushed_at([write, call("fdatasync", 7, 1.2, 1.5)], "other") is None
