"""A cluster is ready when every process says so, all nodes report, and the routers answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from trizone.data_directory import ProcessRecord
from trizone.readiness import http_get, is_ready, wait_until_ready


class Pages:
    """An HTTP server with pages by path; other paths are 404."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        status = b"200 OK" if path in self.pages else b"404 Not Found"
        writer.write(b"HTTP/1.1 " + status + b"\r\nConnection: close\r\n\r\n" + self.pages.get(path, b""))
        writer.close()


@pytest.fixture
async def pages() -> AsyncIterator[Pages]:
    """A running server without pages."""
    pages = Pages()
    async with await asyncio.start_server(pages.serve, "127.0.0.1", 0) as server:
        pages.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield pages


def process(role: str, pages: Pages) -> ProcessRecord:
    """A process whose addresses are those of the pages."""
    return ProcessRecord(role, role, "us-east-1", None, 1, pages.address, pages.address)


async def test_pages_and_their_absence(pages: Pages) -> None:
    pages.pages["/here"] = b"content"
    assert await http_get(pages.address, "/here") == b"content"
    assert await http_get(pages.address, "/elsewhere") is None
    assert await http_get("127.0.0.1:1", "/here") is None


async def test_a_node_says_so_itself(pages: Pages) -> None:
    assert not await is_ready(process("storagenode", pages), 3)
    pages.pages["/readyz"] = b""
    assert await is_ready(process("storagenode", pages), 3)


LEADS = b"# HELP x y\ntrizone_autoadmin_leads 1.0\ntrizone_autoadmin_leader_known 1.0\n"


@pytest.mark.parametrize(("metrics", "ready"), [(b"", False), (b" 2.0", False), (b" 3.0", True)])
async def test_auto_admin_waits_for_all_nodes(pages: Pages, metrics: bytes, ready: bool) -> None:
    pages.pages |= {"/readyz": b"", "/metrics": LEADS + b"trizone_autoadmin_nodes_live" + metrics + b"\n"}
    assert await is_ready(process("autoadmin", pages), 3) is ready


@pytest.mark.parametrize("known", [False, True])
async def test_a_member_of_auto_admin_that_does_not_lead_waits_for_one_that_does(pages: Pages, known: bool) -> None:
    text = b"trizone_autoadmin_leads 0.0\ntrizone_autoadmin_leader_known %d.0\ntrizone_autoadmin_nodes_live 0.0\n"
    pages.pages |= {"/readyz": b"", "/metrics": text % known}
    assert await is_ready(process("autoadmin", pages), 3) is known


async def test_a_router_must_answer_clients(pages: Pages) -> None:
    pages.pages["/readyz"] = b""
    assert not await is_ready(process("router", pages), 3)
    pages.pages["/"] = b"healthy"
    assert await is_ready(process("router", pages), 3)


async def test_who_is_waited_for_is_known(pages: Pages) -> None:
    waiting: list[ProcessRecord] = []
    both = [process("storagenode", pages), process("router", pages)]
    pages.pages["/readyz"] = b""
    task = asyncio.create_task(wait_until_ready(both, waiting))
    async with asyncio.timeout(10):
        while [one.role for one in waiting] != ["router"]:  # noqa: ASYNC110 (a list that others fill)
            await asyncio.sleep(0)
        pages.pages["/"] = b"healthy"
        await task
    assert waiting == []
