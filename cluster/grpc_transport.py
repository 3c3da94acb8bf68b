"""The network between real processes: grpc.aio with generic handlers. Messages pass as the bytes they are.

A message on a stream costs CPU however little it carries, so callers batch. Every wait ends when the peer is gone: a
refused connection fails at once, a killed process ends its streams at once, a silent machine is found out by keepalive.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

# First, for it tells gRPC's core to be silent before that is loaded.
from cluster.grpc_security import Caller, Gate, Security, secure_channel, server_credentials  # isort: split

import grpc
from grpc import aio

from cluster.transport import Handlers, Server, Stream, StreamHandler, TransportError, UnaryHandler

MESSAGE_BYTES_MAX = 32 << 20
CONNECT_SECONDS = 2.0  # how long opening a stream may take
STOP_SECONDS = 1.0  # how long handlers may go on when the server stops
ACCEPTED = ("trizone-stream", "accepted")
"""What a server's first metadata on a stream says, so that a call that is refused is never taken for an open stream."""
RELOAD_SECONDS = 1.0  # how often the files of certificates are looked at
RETIRE_SECONDS = 5.0  # how long calls may go on that were begun with an older certificate
KEEPALIVE_MS = 3_000  # pause before a silent peer is probed, and how long the probe may take

_COMMON_OPTIONS: list[tuple[str, int]] = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.keepalive_time_ms", KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
]
_CHANNEL_OPTIONS = [
    *_COMMON_OPTIONS,
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 1_000),  # in spite of its name: how long one attempt to connect may take
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.dns_min_time_between_resolutions_ms", 500),  # a container that is started anew has another address
]
_SERVER_OPTIONS = [
    *_COMMON_OPTIONS,
    ("grpc.so_reuseport", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 500),
    ("grpc.http2.max_ping_strikes", 0),
]

_log = logging.getLogger(__name__)


def _cancelled_by_caller() -> bool:
    """Whether a CancelledError is meant for the running task; grpc also raises it when the other side ends a call."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class _ClientStream:
    """The caller's end of a stream."""

    def __init__(self, call: aio.StreamStreamCall[bytes, bytes], address: str) -> None:
        self._call = call
        self._address = address
        self._turn = asyncio.Lock()  # grpc takes one write at a time

    async def send(self, message: bytes) -> None:
        try:
            async with self._turn:
                await self._call.write(message)
        except (aio.AioRpcError, aio.UsageError, asyncio.InvalidStateError) as error:
            raise TransportError(f"the stream to {self._address} is broken") from error
        except asyncio.CancelledError:
            if _cancelled_by_caller():
                raise
            raise TransportError(f"the stream to {self._address} is closed") from None

    async def receive(self) -> bytes | None:
        try:
            message = await self._call.read()
        except (aio.AioRpcError, aio.UsageError, asyncio.InvalidStateError):
            return None
        except asyncio.CancelledError:
            if _cancelled_by_caller():
                raise
            return None
        return message if isinstance(message, bytes) else None

    def close(self) -> None:
        self._call.cancel()


class _ServerStream:
    """The server's end of a stream. `ended` is done once either side has closed it."""

    def __init__(self, context: aio.ServicerContext[bytes, bytes]) -> None:
        self._context = context
        self._turn = asyncio.Lock()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def send(self, message: bytes) -> None:
        if self.ended.done():
            raise TransportError("the stream is closed")
        try:
            async with self._turn:
                await self._context.write(message)
        except asyncio.CancelledError:
            if _cancelled_by_caller():
                raise
            raise TransportError("the stream is closed") from None
        except Exception as error:
            raise TransportError("the stream is broken") from error

    async def receive(self) -> bytes | None:
        if self.ended.done():
            return None
        try:
            message = await self._context.read()
        except asyncio.CancelledError:
            if _cancelled_by_caller():
                raise
            return None
        except Exception:
            return None
        return message if isinstance(message, bytes) else None

    def close(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


class _Running:
    """Handlers under way. They run in tasks of their own, for grpc cancels its own tasks when a caller goes away, and a
    handler must not be cut off half-way through a change."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self, seconds: float) -> None:
        """Wait for all of them, and cancel those that take longer."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        for task in set(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Service(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """Finds the handler of a method."""

    def __init__(self, handlers: Handlers, gate: Gate) -> None:
        self.running = _Running()
        self._gate = gate
        self.streams: set[_ServerStream] = set()
        self._methods: dict[str, Any] = {
            f"/{method}": grpc.unary_unary_rpc_method_handler(self._unary(method, handler))
            for method, handler in handlers.unary.items()
        }
        for method, handler in handlers.streams.items():
            self._methods[f"/{method}"] = grpc.stream_stream_rpc_method_handler(self._stream(method, handler))
        self._refusing: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(self._refuse)

    async def _refuse(self, _: object, context: aio.ServicerContext[bytes, bytes]) -> None:
        """Answers a stranger, whatever it calls; as a stream, so that no message of its is read."""
        await self._gate.refuse("", context, known=False)

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        if not self._gate.knows_token(details):
            return self._refusing
        found: grpc.RpcMethodHandler[bytes, bytes] | None = self._methods.get(details.method)
        return found

    def _unary(self, method: str, handler: UnaryHandler) -> Any:
        async def serve(message: bytes, context: aio.ServicerContext[bytes, bytes]) -> bytes:
            if not self._gate.lets_in(method, context):
                await self._gate.refuse(method, context, known=True)
            task = self.running.start(_guarded(method, handler, message))
            answer = await asyncio.shield(task)
            if answer is None:
                await context.abort(grpc.StatusCode.INTERNAL, "the handler failed")
            return answer  # type: ignore[no-any-return]

        return serve

    def _stream(self, method: str, handler: StreamHandler) -> Any:
        async def serve(_: object, context: aio.ServicerContext[bytes, bytes]) -> None:
            if not self._gate.lets_in(method, context):
                await self._gate.refuse(method, context, known=True)
            await context.send_initial_metadata((ACCEPTED,))
            stream = _ServerStream(context)
            self.streams.add(stream)
            task = self.running.start(_guarded(method, handler, stream))
            task.add_done_callback(lambda _: stream.close())
            try:
                await stream.ended
            finally:
                stream.close()
                self.streams.discard(stream)

        return serve


async def _guarded(method: str, handler: Callable[[Any], Awaitable[Any]], argument: object) -> Any:
    """The handler's answer, or None after logging why it failed."""
    try:
        return await handler(argument)
    except Exception:
        _log.exception("the handler of %s failed", method)
        return None


class _GrpcServer:
    """A listening server."""

    def __init__(self, server: aio.Server, service: _Service, address: str, serving: set[_GrpcServer]) -> None:
        self._server = server
        self._service = service
        self._address = address
        self._serving = serving
        serving.add(self)

    @property
    def address(self) -> str:
        return self._address

    async def stop(self) -> None:
        self._serving.discard(self)
        for stream in set(self._service.streams):
            stream.close()
        await self._server.stop(0)
        await self._service.running.finish(STOP_SECONDS)


class GrpcTransport:
    """Serves and calls over TCP. One connection per address, and with certificates per role of the server that is
    expected there; opened when it is first needed."""

    def __init__(self, security: Security | None = None) -> None:
        """`security`: how to show who we are, and whom to let in; None: nothing is shown, and everybody let in."""
        self._security = security or Security()
        self._caller = Caller(self._security)
        self._channels: dict[tuple[str, str], aio.Channel] = {}
        self._serving: set[_GrpcServer] = set()
        self._reloading: asyncio.Task[None] | None = None
        self._retiring = _Running()

    async def serve(self, address: str, handlers: Handlers) -> Server:
        """Listen on "host:port"; port 0 picks a free one. Raises OSError when the port is taken."""
        service = _Service(handlers, Gate(self._security))
        server = aio.server(options=_SERVER_OPTIONS)
        server.add_generic_rpc_handlers((service,))
        credentials = self._security.credentials
        try:
            if credentials is None:
                port = server.add_insecure_port(address)
            else:
                port = server.add_secure_port(address, server_credentials(credentials))
        except RuntimeError:
            port = 0
        if port == 0:
            raise OSError(errno.EADDRINUSE, f"cannot listen on {address}: the port is in use")
        await server.start()
        return _GrpcServer(server, service, f"{address.rpartition(':')[0]}:{port}", self._serving)

    async def call(self, address: str, method: str, message: bytes, timeout: float) -> bytes:  # noqa: ASYNC109
        """One request and its answer. Raises TransportError."""
        try:
            start = self._channel(address, method).unary_unary(f"/{method}", None, None)
            answer: bytes = await start(message, timeout=timeout, metadata=self._caller.metadata(method))
        except (aio.AioRpcError, aio.UsageError) as error:
            if isinstance(error, aio.AioRpcError):
                self._caller.failed(address, error.code(), error.details() or "")
            raise TransportError(f"{method} at {address} failed: {_reason(error)}") from error
        except asyncio.CancelledError:
            if _cancelled_by_caller():
                raise
            raise TransportError(f"{method} at {address} was cut off") from None
        return answer

    async def open_stream(self, address: str, method: str) -> Stream:
        """Open a stream; returns when the peer has accepted it. Raises TransportError."""
        call: aio.StreamStreamCall[bytes, bytes]
        try:
            start = self._channel(address, method).stream_stream(f"/{method}", None, None)
            call = start(None, metadata=self._caller.metadata(method))
        except aio.UsageError as error:
            raise TransportError(f"cannot open a stream to {address}: {_reason(error)}") from error
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                accepted = ACCEPTED[0] in (await call.initial_metadata() or ())
        except TimeoutError:
            call.cancel()
            raise TransportError(f"{address} did not accept a stream within {CONNECT_SECONDS:g} s") from None
        except asyncio.CancelledError:
            call.cancel()
            raise
        if not accepted:  # the call is over, or will be in a moment; its status says why
            self._caller.failed(address, await call.code(), await call.details() or "")
            raise TransportError(f"cannot open a stream to {address}: {await call.details()}")
        return _ClientStream(call, address)

    async def close(self) -> None:
        """End every stream and connection that this end opened, and servers that a failure left running."""
        if self._reloading is not None:
            self._reloading.cancel()
        for server in list(self._serving):
            await server.stop()
        channels = list(self._channels.values())
        self._channels.clear()
        for channel in channels:
            await channel.close(None)
        await self._retiring.finish(0)

    def _channel(self, address: str, method: str) -> aio.Channel:
        name = self._caller.expected_name(method)
        channel = self._channels.get((address, name))
        if channel is None:
            credentials = self._security.credentials
            if credentials is None:
                channel = aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
            else:
                channel = secure_channel(address, name, credentials, _CHANNEL_OPTIONS)
                if self._reloading is None:
                    self._reloading = asyncio.create_task(self._reload())
            self._channels[address, name] = channel
        return channel

    async def _reload(self) -> None:
        """Connect anew to everybody once there are new certificates, so that old ones are soon out of use."""
        credentials = self._security.credentials
        assert credentials is not None
        serial = credentials.material.serial
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            material = credentials.refresh()
            if material.serial != serial:
                serial = material.serial
                old = list(self._channels.values())
                self._channels.clear()
                for channel in old:
                    self._retiring.start(channel.close(RETIRE_SECONDS))


def _reason(error: BaseException) -> str:
    """The short text of an error of grpc."""
    return (error.details() or error.code().name) if isinstance(error, aio.AioRpcError) else str(error)
