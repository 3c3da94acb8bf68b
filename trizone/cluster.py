"""`trizone.Cluster`: a whole cluster inside one process, for users' tests.

The same service classes as in processes of their own, over in-memory transports, on an event loop in a thread of its
own: so it serves blocking and asynchronous tests alike, and a test that blocks its own loop does not stop the cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvloop

from trizone.services import Services
from trizone.temporary import temporary_folder

START_S = 10.0
STOP_S = 10.0


class Cluster:
    """An empty cluster of three storage nodes, an auto-admin (or three) and a router, gone without a trace at the end.

        with Cluster() as cluster:
            client = boto3.client("dynamodb", endpoint_url=cluster.endpoint, ...)

    Also an asynchronous context manager. Start one per test run rather than one per test, and give tables random names.
    With `credentials`, an access key and its secret, requests have to be signed with these; else nobody looks.
    """

    def __init__(
        self, region: str = "us-east-1", auto_admins: int = 1, credentials: tuple[str, str] | None = None
    ) -> None:
        if auto_admins not in (1, 3):
            raise ValueError("auto-admin has one member or three")
        self.region = region
        self._auto_admins = auto_admins
        self._credentials = credentials
        self._endpoint: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._started: Future[str] = Future()

    @property
    def endpoint(self) -> str:
        """http://127.0.0.1:PORT, while the cluster runs. Raises RuntimeError otherwise."""
        if self._endpoint is None:
            raise RuntimeError("the cluster is not running; use it as a context manager")
        return self._endpoint

    def client(self, service: str = "dynamodb") -> Any:
        """A boto3 client. Needs boto3, which Trizone itself does not install."""
        import boto3

        return boto3.client(service, **self._connection())

    def resource(self) -> Any:
        """A boto3 resource, for boto3's tables. Needs boto3, as `client` does."""
        import boto3

        return boto3.resource("dynamodb", **self._connection())

    def _connection(self) -> dict[str, str]:
        access_key, secret = self._credentials or ("any", "any")
        return {
            "endpoint_url": self.endpoint,
            "region_name": self.region,
            "aws_access_key_id": access_key,
            "aws_secret_access_key": secret,
        }

    def start(self) -> None:
        """Start it, if `with` does not fit. Raises what kept it from starting."""
        if self._thread is not None:
            raise RuntimeError("the cluster was started before; make a new one")
        self._thread = threading.Thread(target=self._main, name="trizone", daemon=True)
        self._thread.start()
        self._endpoint = self._started.result(START_S)

    def close(self) -> None:
        """Stop it and remove its data."""
        self._endpoint = None
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join(STOP_S)

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.close()

    async def __aenter__(self) -> Self:
        """Start."""
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        await asyncio.to_thread(self.close)

    def _main(self) -> None:
        """The thread: everything runs and ends on its loop."""
        try:
            with temporary_folder() as folder:
                uvloop.run(self._serve(folder))
        except BaseException as error:  # whoever waits for the start is told
            if not self._started.done():
                self._started.set_exception(error)
            else:
                raise

    async def _serve(self, folder: Path) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        services = Services(self.region, folder, auto_admins=self._auto_admins, credentials=self._credentials)
        async with services:
            self._started.set_result(f"http://{services.router.address}")
            await self._stop.wait()
