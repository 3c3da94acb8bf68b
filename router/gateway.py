"""A request's whole journey, from the HTTP message to the answer.

Each stage takes one value and gives the next, so that the types say what is known by then:

    Received -> Named -> Authenticated -> Decoded -> Validated -> (Immediate | Single | Work) -> Answer
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import orjson

from cluster.clock import Clock
from cluster.random_source import RandomSource
from cluster.wire import storage_pb2
from dynamo.errors import ApiError, internal, serialization, unknown_operation
from router.access import UnknownTable
from router.context import RequestContext
from router.plan import Immediate, Plan, Single, StalePlanError, Work, carry_out
from router.shapes import OperationShape
from router.sigv4 import Request, access_key

if TYPE_CHECKING:
    from cluster.requests.executor import Executor
    from router.catalog import Catalog
    from router.guard import Caller, Guard

JSON = b"application/x-amz-json-1.0"
TEXT = b"text/plain"
REPLANS_MAX = 4
NOT_FOUND_BODY = b"<UnknownOperationException/>\n"

_log = logging.getLogger(__name__)


# --- stages ---


@dataclass(slots=True)
class Received:
    """An HTTP request with its body complete and inflated. Names of headers are in lower case.

    `sent` is the body as it came, where that is not `body`; `address` the client's, "" if unknown; `secure`: by HTTPS.
    """

    method: bytes
    target: bytes
    headers: Mapping[bytes, bytes]
    body: bytes
    sent: bytes | None = None
    address: str = ""
    secure: bool = False


@dataclass(slots=True)
class Answer:
    """What goes back over HTTP."""

    status: int
    body: bytes
    request_id: str
    content_type: bytes = JSON


@dataclass(slots=True)
class Named:
    """A request for an operation that exists and is built."""

    received: Received
    shape: OperationShape
    plan: Operation


@dataclass(slots=True)
class Authenticated:
    """A request whose sender is known: `account` is the access key, "" for nobody; `caller` None without a guard."""

    named: Named
    account: str
    caller: Caller | None = None


@dataclass(slots=True)
class Decoded:
    """A request whose body is a JSON object."""

    authenticated: Authenticated
    body: dict[str, Any]


@dataclass(slots=True)
class Validated:
    """A request that has its operation's shape, and what is needed to judge and plan it."""

    body: dict[str, Any]
    context: RequestContext
    plan: Operation
    guard: Guard | None = None
    caller: Caller | None = None

    def make_plan(self) -> Plan:
        """The operation's plan by the newest catalog, if the caller may do it. Raises ApiError."""
        if self.guard is not None and self.caller is not None:
            try:
                self.guard.authorize(self.caller, self.context.operation, self.body)
            except UnknownTable:
                return Work(self._with_newer_catalog)
        return self.plan(self.body, self.context)

    async def _with_newer_catalog(self) -> bytes:
        """A table that this router does not know may have a policy of its own, and keys that policies speak of."""
        assert self.guard is not None
        assert self.caller is not None
        await self.context.catalog.refresh()
        self.guard.authorize(self.caller, self.context.operation, self.body, final=True)
        return await carry_out(self.plan(self.body, self.context), self.context.executor)


Operation: TypeAlias = Callable[[dict[str, Any], RequestContext], Plan]
"""What a file in `operations/` offers: it checks the request and says what is to be done. Raises ApiError."""

Respond: TypeAlias = Callable[[Answer], None]


class Observer(Protocol):
    """Where the gateway counts. Called once for each answer to an operation."""

    def answered(self, operation: str, table: str, status: int, error: str, seconds: float) -> None:
        """`table` as the request names it, "" for none or several; `error` is the error's type, "" for success."""
        ...


class Unobserved:
    """Counts nothing."""

    def answered(self, operation: str, table: str, status: int, error: str, seconds: float) -> None:
        """Nothing."""


class Gateway:
    """Answers requests.

    `targets` are all operations that exist by their X-Amz-Target, `registry` those that are built by their name.
    `guard` says who may do what. Without one anybody may do anything, and is served on loopback addresses only.
    """

    def __init__(
        self,
        *,
        targets: Mapping[bytes, OperationShape],
        registry: Mapping[str, Operation],
        catalog: Catalog,
        executor: Executor,
        clock: Clock,
        random: RandomSource,
        region: str = "us-east-1",
        guard: Guard | None = None,
        observer: Observer | None = None,
        slow_seconds: float = 1.0,
    ) -> None:
        self._targets = targets
        self._registry = registry
        self._catalog = catalog
        self._executor = executor
        self._clock = clock
        self._random = random
        self._region = region
        self._guard = guard
        self._observer = observer or Unobserved()
        self._slow_seconds = slow_seconds
        self._prefix = _base32(random.bytes(16))
        self._numbers = count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, received: Received, respond: Respond) -> None:
        """Answer a request, at once or later. `respond` is called exactly once."""
        request_id = self._request_id()
        journey = _Journey(self, request_id, self._clock.boottime(), respond)
        if received.method != b"POST":
            respond(_beside_the_api(received, request_id))
            return
        try:
            named = self._name(received)
            journey.operation = named.shape.operation
            validated = self._validate(self._decode(self._authenticate(named)), request_id)
            journey.validated = validated
            self._run(validated.make_plan(), journey)
        except ApiError as error:
            journey.fail(error)
        except Exception:
            journey.fail_unexpectedly()

    async def close(self) -> None:
        """End the tasks of requests that are still under way: nobody waits for their answers any more."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # --- the stages, in order ---

    def _name(self, received: Received) -> Named:
        shape = self._targets.get(received.headers.get(b"x-amz-target", b""))
        if shape is None:
            raise unknown_operation()
        plan = self._registry.get(shape.operation)
        if plan is None:
            raise ApiError("UnknownOperationException", f"Trizone has no {shape.operation} yet.")
        return Named(received, shape, plan)

    def _authenticate(self, named: Named) -> Authenticated:
        received = named.received
        caller: Caller | None = None
        if self._guard is not None:
            sent = received.body if received.sent is None else received.sent
            request = Request(received.method, received.target, received.headers, sent)
            caller = self._guard.authenticate(request, received.address, received.secure)
            if caller.access_key:
                return Authenticated(named, caller.access_key, caller)
        header = received.headers.get(b"authorization", b"")
        return Authenticated(named, access_key(header.decode("latin-1")), caller)

    def _decode(self, authenticated: Authenticated) -> Decoded:
        try:
            body = orjson.loads(authenticated.named.received.body)
        except orjson.JSONDecodeError:
            raise serialization("") from None
        if type(body) is not dict:
            raise serialization("Start of list found where not expected" if type(body) is list else "")
        return Decoded(authenticated, body)

    def _validate(self, decoded: Decoded, request_id: str) -> Validated:
        named = decoded.authenticated.named
        named.shape.validate(decoded.body)
        headers = named.received.headers
        context = RequestContext(
            request_id=request_id,
            operation=named.shape.operation,
            account=decoded.authenticated.account,
            invocation_id=headers.get(b"amz-sdk-invocation-id", b"").decode("latin-1"),
            body_crc=zlib.crc32(named.received.body),
            catalog=self._catalog,
            executor=self._executor,
            clock=self._clock,
            random=self._random,
            region=self._region,
            host=headers.get(b"host", b"").decode("latin-1"),
        )
        return Validated(decoded.body, context, named.plan, self._guard, decoded.authenticated.caller)

    def _run(self, plan: Plan, journey: _Journey) -> None:
        match plan:
            case Single():
                journey.reply = plan.reply
                self._executor.submit(plan.call, journey.done)
            case Immediate():
                journey.succeed(plan.body)
            case Work():
                task = asyncio.create_task(self._work(plan, journey))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _work(self, work: Work, journey: _Journey) -> None:
        try:
            body = await work.run()
        except StalePlanError as error:
            self._plan_again(error, journey)
        except ApiError as error:
            journey.fail(error)
        except Exception:
            journey.fail_unexpectedly()
        else:
            journey.succeed(body)

    def _plan_again(self, error: StalePlanError, journey: _Journey) -> None:
        """The table has changed while the request was under way: make a new plan by the new catalog."""
        journey.replans += 1
        if journey.replans > REPLANS_MAX or journey.validated is None:
            journey.fail(error)
            return
        try:
            self._run(journey.validated.make_plan(), journey)
        except ApiError as refused:
            journey.fail(refused)
        except Exception:
            journey.fail_unexpectedly()

    def _request_id(self) -> str:
        """Unique and cheap to make: this router's 26 random characters, then a number."""
        return f"{self._prefix}{next(self._numbers):010d}"


class _Journey:
    """A request under way, as the callbacks see it."""

    __slots__ = (
        "_began",
        "_gateway",
        "_request_id",
        "_respond",
        "node_ms",
        "operation",
        "replans",
        "reply",
        "validated",
    )

    def __init__(self, gateway: Gateway, request_id: str, began: float, respond: Respond) -> None:
        self._gateway = gateway
        self._request_id = request_id
        self._began = began
        self._respond = respond
        self.operation = ""
        self.validated: Validated | None = None
        self.reply: Callable[[storage_pb2.Reply], bytes] | None = None
        self.replans = 0
        self.node_ms = 0

    def done(self, result: storage_pb2.Reply | ApiError) -> None:
        """The executor's answer to a `Single`."""
        if isinstance(result, StalePlanError):
            self._gateway._plan_again(result, self)
            return
        if isinstance(result, ApiError):
            self.fail(result)
            return
        assert self.reply is not None
        self.node_ms = result.node_ms
        try:
            body = self.reply(result)
        except ApiError as error:
            self.fail(error)
        except Exception:
            self.fail_unexpectedly()
        else:
            self.succeed(body)

    def succeed(self, body: bytes) -> None:
        self._answer(Answer(200, body, self._request_id), "")

    def fail(self, error: ApiError) -> None:
        self._answer(Answer(error.status, error_body(error), self._request_id), error.type)

    def fail_unexpectedly(self) -> None:
        """For exceptions that nobody foresaw; called while one is handled."""
        _log.exception("request failed", extra={"request_id": self._request_id, "operation": self.operation})
        self.fail(internal())

    def _tell_slow(self, status: int, error: str, seconds: float) -> None:
        """A line in the log. What the node that answered did not have the request for, it spent on its way: in retries,
        waiting for a leader, or behind others in this process."""
        told = {
            "request_id": self._request_id,
            "operation": self.operation,
            "table": self._table(),
            "status": status,
            "error": error,
            "seconds": round(seconds, 3),
            "replans": self.replans,
        }
        if self.node_ms:
            told |= {"node_seconds": self.node_ms / 1000, "elsewhere_seconds": round(seconds - self.node_ms / 1000, 3)}
        _log.warning("a request was slow", extra=told)

    def _table(self) -> str:
        """The table that the request names, "" if it names none, several, or anything else."""
        name = "" if self.validated is None else self.validated.body.get("TableName", "")
        return name if type(name) is str else ""

    def _answer(self, answer: Answer, error: str) -> None:
        gateway = self._gateway
        seconds = gateway._clock.boottime() - self._began
        gateway._observer.answered(self.operation, self._table(), answer.status, error, seconds)
        if seconds >= gateway._slow_seconds:
            self._tell_slow(answer.status, error, seconds)
        self._respond(answer)


# --- bodies ---

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def _base32(data: bytes) -> str:
    number = int.from_bytes(data, "big")
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(0, 26 * 5, 5))


_WITH_CAPITAL_MESSAGE = frozenset(
    {
        "AccessDeniedException",
        "IdempotentParameterMismatchException",
        "SerializationException",
        "TransactionCanceledException",
        "TransactionInProgressException",
    }
)


def error_body(error: ApiError) -> bytes:
    """The JSON of an error. Serialization errors, and those whose shape in the model says so, name their text otherwise
    than the rest, as DynamoDB does."""
    body: dict[str, Any] = {"__type": error.qualified_type}
    if error.message:
        body["Message" if error.type in _WITH_CAPITAL_MESSAGE else "message"] = error.message
    if error.reasons:
        body["CancellationReasons"] = error.reasons
    if error.item is not None:
        body["Item"] = error.item
    return orjson.dumps(body)


def _beside_the_api(received: Received, request_id: str) -> Answer:
    """Anything that is not POST: the health text, or nothing."""
    if received.method == b"GET" and received.target.partition(b"?")[0] == b"/":
        return Answer(200, b"healthy: %b " % received.headers.get(b"host", b"localhost"), request_id, TEXT)
    return Answer(404, b"" if received.method == b"HEAD" else NOT_FOUND_BODY, request_id, TEXT)
