"""What regions tell each other of their global tables, and what they remember of it: little has to be told again.

Any replicator of a region may answer, and each remembers for itself: who is asked about tables that it does not
remember says so, and is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from cluster.wire import regions_pb2
from dynamo.table import Table, decode_table, encode_table


class Told:
    """This region's tables, as they are told."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self.states = [regions_pb2.TableState(name=table.name, definition=encode_table(table)) for table in tables]
        digest = blake2b(digest_size=16)
        for state in self.states:
            digest.update(len(state.definition).to_bytes(4, "big") + state.definition)
        self.hash = digest.digest()


class Heard:
    """What other regions told last, and what they were told."""

    def __init__(self) -> None:
        self._tables: dict[str, tuple[bytes, Mapping[str, Table]]] = {}
        self._told: dict[str, bytes] = {}

    # --- asking ---

    def request(self, own: str, region: str, told: Told) -> regions_pb2.ExchangeRequest:
        """What to ask another region."""
        left_out = self._told.get(region) == told.hash
        return regions_pb2.ExchangeRequest(
            region=own,
            to_region=region,
            tables=[] if left_out else told.states,
            hash=told.hash,
            left_out=left_out,
            known_hash=self._tables.get(region, (b"", {}))[0],
        )

    def answered(self, region: str, told: Told, reply: regions_pb2.ExchangeReply) -> Mapping[str, Table] | None:
        """The other region's tables by its answer; None if it cannot tell them."""
        if reply.not_known or reply.error:
            self._told.pop(region, None)
        else:
            self._told[region] = told.hash
        return self._take(region, reply.tables, reply.hash, left_out=reply.left_out) if reply.known else None

    # --- answering ---

    def asked(self, request: regions_pb2.ExchangeRequest) -> Mapping[str, Table] | None:
        """The asking region's tables; None if it left them out and they are not known."""
        return self._take(request.region, request.tables, request.hash, left_out=request.left_out)

    def reply(
        self, request: regions_pb2.ExchangeRequest, told: Told, **members: bool | str
    ) -> regions_pb2.ExchangeReply:
        """What to answer."""
        left_out = request.known_hash == told.hash
        return regions_pb2.ExchangeReply(
            known=True,
            tables=[] if left_out else told.states,
            hash=told.hash,
            left_out=left_out,
            **members,  # type: ignore[arg-type]
        )

    def _take(
        self, region: str, states: Iterable[regions_pb2.TableState], hash_: bytes, *, left_out: bool
    ) -> Mapping[str, Table] | None:
        if left_out:
            known, tables = self._tables.get(region, (b"", {}))
            return tables if known == hash_ else None
        found = {state.name: decode_table(state.definition) for state in states}
        self._tables[region] = (hash_, found)
        return found
