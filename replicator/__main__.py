"""A replicator's process: reads settings, picks the real clock, chance and network, and wires them together."""

from __future__ import annotations

import asyncio
import logging
import sys

from cluster.access import REPLICATOR
from cluster.clock import SystemClock
from cluster.grpc_security import security_of
from cluster.grpc_transport import GrpcTransport
from cluster.process import run_service
from cluster.random_source import SystemRandom
from cluster.settings import ReplicatorSettings
from cluster.status_server import StatusServer
from cluster.telemetry import process_registry
from replicator.service import Replicator
from replicator.status import ReplicatorMetrics

_log = logging.getLogger("replicator")


async def serve(settings: ReplicatorSettings, stop: asyncio.Event) -> None:
    """Serve until `stop` is set. Raises OSError when a port is taken."""
    clock = SystemClock()
    transport = GrpcTransport(security_of(settings, REPLICATOR, clock.wall))
    replicator = Replicator(settings, transport, clock, SystemRandom())
    registry = process_registry()
    status = StatusServer(registry, lambda: replicator.ready)
    try:
        await replicator.start()
        registry.register(ReplicatorMetrics(replicator))
        await status.start(settings.metrics_listen)
        _log.info("replicator of %s serves at %s", settings.region, replicator.address)
        await stop.wait()
    finally:
        await replicator.stop()
        await status.stop()
        await transport.close()


def main() -> int:
    """Run the process; its exit code."""
    return run_service("replicator", ReplicatorSettings, serve)


if __name__ == "__main__":
    sys.exit(main())
