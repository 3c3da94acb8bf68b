"""What an operation knows of its request besides the body."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from cluster.clock import Clock
from cluster.random_source import RandomSource

if TYPE_CHECKING:
    from cluster.requests.executor import Executor
    from router.catalog import Catalog

ACCOUNT_ID = "000000000000"
"""The account in every ARN: Trizone has one."""


class RequestContext:
    """One request, and the parts of the router that carry it out.

    `account` is the access key or "", `invocation_id` the SDK's `amz-sdk-invocation-id` or "", `body_crc` the CRC-32 of
    the body, `host` the Host header.
    """

    __slots__ = (
        "_once",
        "account",
        "body_crc",
        "catalog",
        "clock",
        "executor",
        "host",
        "invocation_id",
        "operation",
        "random",
        "region",
        "request_id",
    )

    def __init__(
        self,
        *,
        request_id: str,
        operation: str,
        account: str,
        invocation_id: str,
        body_crc: int,
        catalog: Catalog,
        executor: Executor,
        clock: Clock,
        random: RandomSource,
        region: str = "us-east-1",
        host: str = "",
    ) -> None:
        self.request_id = request_id
        self.operation = operation
        self.account = account
        self.invocation_id = invocation_id
        self.body_crc = body_crc
        self.catalog = catalog
        self.executor = executor
        self.clock = clock
        self.random = random
        self.region = region
        self.host = host
        self._once = b""

    def operation_id(self, index: int = 0) -> int:
        """The id that makes a retried write happen once (design §4); never 0. `index` tells a batch's members apart.

        A retry by the SDK, on whatever router, has the same invocation id and body and gets the same operation id.
        Without an invocation id it is drawn once for this request, so that planning again does not change it.
        """
        if not self._once:
            self._once = self._source()
        digest = blake2b(self._once + index.to_bytes(4, "big"), digest_size=8).digest()
        return int.from_bytes(digest, "big") or 1

    def _source(self) -> bytes:
        if not self.invocation_id:
            return self.random.bytes(16)
        parts = (self.account, self.invocation_id, self.operation, str(self.body_crc))
        return b"".join(len(part).to_bytes(4, "big") + part.encode() for part in parts)
