"""A TCP relay that delays what passes: the slow link, where the kernel has no delays to give."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

CHUNK_BYTES = 1 << 16


class Relay:
    """Carries every connection to `port` on to where `target` says, each way later by `delay` seconds, in order."""

    def __init__(self, host: str, port: int, target: Callable[[], tuple[str, int]]) -> None:
        self.address = f"{host}:{port}"
        self.delay = 0.0
        self._host, self._port = host, port
        self._target = target
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._accept, self._host, self._port)

    async def stop(self) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            other = await asyncio.open_connection(*self._target())
        except OSError:
            writer.close()
            return
        for source, sink in ((reader, other[1]), (other[0], writer)):
            task = asyncio.create_task(self._carry(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """One direction: what is read is written later, by a task of its own, so that delays do not add up."""
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        writing = asyncio.create_task(_write(chunks, sink))
        with suppress(OSError):
            while chunk := await source.read(CHUNK_BYTES):
                chunks.put_nowait((loop.time() + self.delay, chunk))
        chunks.put_nowait((loop.time() + self.delay, b""))
        try:
            await writing
        finally:
            writing.cancel()
            sink.close()


async def _write(chunks: asyncio.Queue[tuple[float, bytes]], sink: asyncio.StreamWriter) -> None:
    loop = asyncio.get_running_loop()
    with suppress(OSError):
        while True:
            due, chunk = await chunks.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not chunk:
                return
            sink.write(chunk)
            await sink.drain()
