"""Logs, metrics and the status server."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter

from cluster.loop_delay import PERIOD_SECONDS, LoopDelay
from cluster.status_server import HEAD_BYTES_MAX, StatusServer
from cluster.telemetry import ConsoleFormatter, JsonFormatter, process_registry, request_id


def _record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    record = logging.getLogger("test").makeRecord(
        "test.logger", logging.WARNING, "file", 1, message, arguments, None, extra=extra
    )
    record.created = 1_700_000_000.5
    return record


def test_a_json_line_holds_what_the_caller_gave() -> None:
    line = json.loads(JsonFormatter("router").format(_record("took %d ms", 7, table="a", path=Path("x"))))
    assert line == {
        "time": "2023-11-14T22:13:20.500Z",
        "level": "warning",
        "service": "router",
        "logger": "test.logger",
        "message": "took 7 ms",
        "table": "a",
        "path": "x",
    }


@pytest.mark.parametrize("formatter", [JsonFormatter("router"), ConsoleFormatter("router")])
def test_a_line_carries_the_request_and_the_exception(formatter: logging.Formatter) -> None:
    token = request_id.set("REQUEST7")
    try:
        raise ValueError("on purpose")
    except ValueError as error:
        record = _record("failed")
        record.exc_info = (ValueError, error, error.__traceback__)
        line = formatter.format(record)
    finally:
        request_id.reset(token)
    assert "REQUEST7" in line
    assert "ValueError: on purpose" in line
    assert "REQUEST7" not in formatter.format(_record("another"))


def test_a_console_line_reads_from_left_to_right() -> None:
    line = ConsoleFormatter("router").format(_record("took %d ms", 7, table="a"))
    assert line == "2023-11-14T22:13:20.500Z warning router took 7 ms table=a"


async def test_a_process_tells_of_itself() -> None:
    names = {family.name for family in process_registry().collect()}
    assert {"process_cpu_seconds", "process_resident_memory_bytes", "process_open_fds"} <= names
    assert "trizone_loop_delay_seconds" in names


async def test_a_loop_that_was_held_up_says_so() -> None:
    delay = LoopDelay()
    held = threading.Event()
    held.wait(PERIOD_SECONDS + 0.1)  # blocks the loop past the time at which its timer was due
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    families = {family.name: family.samples[0].value for family in delay.collect()}
    assert families["trizone_loop_delay_timers"] == 1
    assert families["trizone_loop_delay_seconds_max"] >= 0.1
    assert {family.name: family.samples[0].value for family in delay.collect()}["trizone_loop_delay_seconds_max"] == 0


class Readiness:
    """Answers as it is told."""

    ready = False

    def __call__(self) -> bool:
        return self.ready


@pytest.fixture
async def served() -> AsyncIterator[tuple[StatusServer, Readiness]]:
    registry = CollectorRegistry()
    Counter("things", "Things.", registry=registry).inc(3)
    readiness = Readiness()
    server = StatusServer(registry, readiness)
    await server.start("127.0.0.1:0")
    yield server, readiness
    await server.stop()


async def _exchange(server: StatusServer, request: bytes) -> tuple[int, bytes]:
    host, _, port = server.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Content-Length: %d\r\n" % len(body) in head + b"\r\n"
    return int(head.split()[1]), body


async def test_metrics_and_health(served: tuple[StatusServer, Readiness]) -> None:
    server, readiness = served
    status, body = await _exchange(server, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert status == 200
    assert b"things_total 3.0\n" in body
    assert (await _exchange(server, b"GET /healthz HTTP/1.1\r\n\r\n"))[0] == 200
    assert (await _exchange(server, b"GET /readyz HTTP/1.1\r\n\r\n"))[0] == 503
    readiness.ready = True
    assert (await _exchange(server, b"GET /readyz?verbose HTTP/1.1\r\n\r\n"))[0] == 200


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /else HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"nonsense\r\n\r\n", 400),
        (b"x" * (2 * HEAD_BYTES_MAX), 400),
    ],
)
async def test_what_is_not_served(served: tuple[StatusServer, Readiness], request_bytes: bytes, status: int) -> None:
    assert (await _exchange(served[0], request_bytes))[0] == status


async def test_a_taken_port_is_an_os_error(served: tuple[StatusServer, Readiness]) -> None:
    with pytest.raises(OSError, match="address already in use"):
        await StatusServer(CollectorRegistry(), Readiness()).start(served[0].address)
