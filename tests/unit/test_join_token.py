"""The join token keeps out whoever has access to the network and nothing else."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest

from cluster.access import proof, proves
from cluster.grpc_security import Security
from cluster.grpc_transport import GrpcTransport
from cluster.transport import Handlers, Stream, TransportError

TOKEN = "the secret of the cluster"


@pytest.fixture
async def transports() -> AsyncIterator[list[GrpcTransport]]:
    """What is put in here is closed at the end."""
    opened: list[GrpcTransport] = []
    yield opened
    for transport in opened:
        await transport.close()


@pytest.mark.parametrize("token", ["", "the secret of another cluster"])
async def test_who_has_not_the_token_is_refused(
    transports: list[GrpcTransport], token: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[bytes] = []

    async def answer(message: bytes) -> bytes:
        heard.append(message)
        return message

    async def echo(stream: Stream) -> None:
        while (message := await stream.receive()) is not None:
            await stream.send(message)

    transports += [GrpcTransport(Security(TOKEN)), GrpcTransport(Security(token)), GrpcTransport(Security(TOKEN))]
    server = await transports[0].serve(
        "127.0.0.1:0", Handlers(unary={"Node/Status": answer}, streams={"Node/Session": echo})
    )
    caplog.set_level(logging.WARNING)
    for _ in range(3):
        with pytest.raises(TransportError, match="it has not the join token"):
            await transports[1].call(server.address, "Node/Status", b"x" * 1_000_000, 5)
        with pytest.raises(TransportError, match="it has not the join token"):
            await transports[1].open_stream(server.address, "Node/Session")
        with pytest.raises(TransportError, match="it has not the join token"):
            await transports[1].call(server.address, "No/Such", b"", 5)
    assert not heard
    told = [record.message for record in caplog.records if record.name == "cluster.grpc_security"]
    assert len(told) == 2  # once on either side
    assert any("is refused: it has not the join token" in line for line in told)
    assert f"{server.address} cannot be called: it has not the join token" in told

    assert await transports[2].call(server.address, "Node/Status", b"x", 5) == b"x"
    stream = await transports[2].open_stream(server.address, "Node/Session")
    await stream.send(b"y")
    assert await stream.receive() == b"y"


async def test_regions_have_a_secret_of_their_own(transports: list[GrpcTransport]) -> None:
    async def answer(message: bytes) -> bytes:
        return message

    shared = "what all regions know"
    here, there = Security(TOKEN, regions_token=shared), Security("another cluster's", regions_token=shared)
    transports += [GrpcTransport(here), GrpcTransport(there), GrpcTransport(Security(TOKEN))]
    server = await transports[0].serve(
        "127.0.0.1:0", Handlers(unary={"Regions/Exchange": answer, "Node/Status": answer})
    )
    assert await transports[1].call(server.address, "Regions/Exchange", b"x", 5) == b"x"
    assert await transports[2].call(server.address, "Node/Status", b"x", 5) == b"x"
    for stranger, method in ((transports[1], "Node/Status"), (transports[2], "Regions/Exchange")):
        with pytest.raises(TransportError, match="it has not the join token"):
            await stranger.call(server.address, method, b"x", 5)


def test_a_proof_is_good_for_its_method_only() -> None:
    assert proves(proof(TOKEN, "Node/Status"), TOKEN, "Node/Status")
    assert not proves(proof(TOKEN, "Node/Status"), TOKEN, "Admin/CreateTable")
    assert not proves(TOKEN, TOKEN, "Node/Status")
    for odd in (None, b"bytes", "", "ü", 7):
        assert not proves(odd, TOKEN, "Node/Status")
