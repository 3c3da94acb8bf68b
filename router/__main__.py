"""A router's process: reads settings, picks the real clock, chance and network, and wires them together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys

from cluster.access import ROUTER
from cluster.clock import SystemClock
from cluster.grpc_security import security_of
from cluster.grpc_transport import GrpcTransport
from cluster.process import StartError, run_service, settle_garbage
from cluster.random_source import SystemRandom
from cluster.sealing import SealError, read_keyring
from cluster.settings import RouterSettings
from cluster.status_server import StatusServer
from cluster.telemetry import process_registry
from router.credentials_file import read_credentials
from router.metrics import RouterMetrics
from router.service import ListenError, Router

_log = logging.getLogger("router")


async def serve(settings: RouterSettings, stop: asyncio.Event) -> None:
    """Serve until `stop` is set. Raises StartError, and OSError when a port is taken."""
    clock, registry = SystemClock(), process_registry()
    transport = GrpcTransport(security_of(settings, ROUTER, clock.wall))
    router: Router | None = None
    status = StatusServer(registry, lambda: router is not None and router.ready)
    try:
        await status.start(settings.metrics_listen)
        keyring = read_keyring(settings.key_file) if settings.key_file else None
        known_keys = read_credentials(settings.credentials_file) if settings.credentials_file else ()
        router = Router(settings, transport, clock, SystemRandom(), status.address, keyring, known_keys)
        registry.register(RouterMetrics(router))
        if await _unless(stop, router):
            _log.info("router serves at %s", router.address, extra={"shared": settings.listen})
            settle_garbage()
            await stop.wait()
    except (ListenError, SealError) as error:
        raise StartError(str(error)) from error
    finally:
        if router is not None:
            await router.stop()
        await status.stop()
        await transport.close()


async def _unless(stop: asyncio.Event, router: Router) -> bool:
    """Start the router; False when `stop` was set first, for there may be no catalog to be had."""
    starting, stopping = asyncio.create_task(router.start()), asyncio.create_task(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if starting.done():
        starting.result()
        return True
    starting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await starting
    return False


def main() -> int:
    """Run the process; its exit code."""
    return run_service("router", RouterSettings, serve)


if __name__ == "__main__":
    sys.exit(main())
