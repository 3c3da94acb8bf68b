"""Storage nodes of a running cluster: listed, emptied and forgotten through auto-admin."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from cluster.grpc_transport import GrpcTransport
from cluster.settings import RouterSettings
from cluster.transport import Transport, TransportError
from cluster.wire import admin_pb2
from trizone.errors import CommandError
from trizone.operator_access import operator_security

ANSWER_S = 10.0
METHOD = "Admin/Nodes"


@dataclass(frozen=True)
class NodeStatus:
    """One storage node. `state`: live, draining, silent (for `silent_seconds`), or lost; `replicas` are those that it
    holds or is to hold, `leaving` how many of them are to go, `leaders` those that serve; `disk_free` is in bytes."""

    name: str
    id: int
    zone: str
    address: str
    state: str
    silent_seconds: int
    replicas: int
    leaving: int
    leaders: int
    disk_free: int | None


def ask(settings: RouterSettings, node: str, change: admin_pb2.NodeRequest.Change) -> tuple[list[NodeStatus], str]:
    """The nodes after the change, and what the operator should know. Raises CommandError."""
    return asyncio.run(_ask(settings, node, change))


async def _ask(
    settings: RouterSettings, node: str, change: admin_pb2.NodeRequest.Change
) -> tuple[list[NodeStatus], str]:
    transport = GrpcTransport(operator_security(settings))
    request = admin_pb2.NodeRequest(cluster_id=settings.cluster_id, node=node, change=change)
    try:
        reply = await _answer(transport, settings.auto_admins, request.SerializeToString())
    finally:
        await transport.close()
    return [_status(state) for state in reply.nodes], reply.note


async def _answer(transport: Transport, addresses: tuple[str, ...], request: bytes) -> admin_pb2.NodeReply:
    for address in addresses:
        try:
            reply = admin_pb2.NodeReply.FromString(await transport.call(address, METHOD, request, ANSWER_S))
        except (TransportError, OSError):
            continue
        if reply.in_doubt:
            raise CommandError("Auto-admin lost its leader meanwhile: see whether it was done.", code=1)
        if reply.not_leader:
            continue
        if reply.error_message:
            raise CommandError(reply.error_message, code=1)
        return reply
    raise CommandError("No auto-admin answers: nodes cannot be listed or changed now.", code=1)


def _status(state: admin_pb2.NodeState) -> NodeStatus:
    return NodeStatus(
        name=state.node.name,
        id=state.node.node,
        zone=state.node.zone,
        address=state.node.address,
        state=state.state,
        silent_seconds=state.silent_seconds,
        replicas=state.replicas,
        leaving=state.leaving,
        leaders=state.leaders,
        disk_free=state.disk_free or None,
    )
