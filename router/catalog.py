"""This router's copy of catalog and topology: followed by a watch on auto-admin, asked for where a table is missing.

Of auto-admin's members only the one that leads tells and takes changes; the others name it. All may be dead for any
time: the copy stays in use, and storage nodes give theirs (`Node/Catalog`) to a router that starts meanwhile. Of
several copies the highest (epoch, version) counts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Iterable
from contextlib import suppress

from google.protobuf.message import DecodeError
from msgspec import MsgspecError

from cluster.convert import table_from_wire, update_from_wire
from cluster.topology import Topology, UpdateRefused
from cluster.transport import Stream, Transport, TransportError
from cluster.wire import admin_pb2, common_pb2, node_pb2
from dynamo.errors import ApiError, resource_not_found, unavailable
from dynamo.table import Table, encode_table

BACKOFF_MIN = 0.1
BACKOFF_MAX = 2.0
REFRESH_TIMEOUT = 0.3
"""Seconds that a request waits for a newer catalog before it is answered from the one at hand."""
CHANGE_TIMEOUT = 15.0
ELECTION_PAUSE = 0.2
"""Seconds between two rounds of auto-admin's members while none of them leads."""
VISIBLE_TIMEOUT = 5.0

_STATUS = {"InternalServerError": 500, "ServiceUnavailable": 503}
_UNUSABLE = ("CREATING", "DELETING")

_log = logging.getLogger(__name__)


class Catalog:
    """Tables, partitions and nodes as this router knows them, and the calls that change tables.

    `auto_admins` and `seeds` (storage nodes) are addresses; `record` tells auto-admin who is watching. `start` begins
    to follow.
    """

    def __init__(
        self,
        transport: Transport,
        cluster_id: str,
        auto_admins: Iterable[str],
        seeds: Iterable[str] = (),
        record: common_pb2.RouterRecord | None = None,
    ) -> None:
        self._transport = transport
        self._cluster_id = cluster_id
        self._auto_admins = list(auto_admins)
        self._leader = ""  # the member that led last, as far as is known
        self._seeds = list(seeds)
        self._record = record
        self.regions: tuple[str, ...] = ()
        """Where global tables may have replicas."""
        self._topology = Topology(cluster_id)
        self._changed: dict[asyncio.Future[None], None] = {}  # in order, so that a simulation repeats itself
        self._refreshing: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._stream: Stream | None = None

    @property
    def topology(self) -> Topology:
        """The newest view."""
        return self._topology

    @property
    def watching(self) -> bool:
        """Whether an auto-admin is telling of changes right now."""
        return self._stream is not None

    def start(self) -> None:
        """Follow the catalog until `close`."""
        self._following = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Stop following."""
        for task in (self._following, self._refreshing):
            if task is not None:
                task.cancel()
        if self._stream is not None:
            self._stream.close()

    # --- reading ---

    def find(self, name: str) -> Table | None:
        """The table of this name or ARN that can be read and written; None when there is none, or none yet."""
        table = self._topology.table_named(table_name(name))
        return None if table is None or table.status in _UNUSABLE else table

    def table(self, name: str) -> Table:
        """The table of this name or ARN that can be read and written. Raises `ResourceNotFoundException`."""
        table = self.find(name)
        if table is None:
            raise resource_not_found()
        return table

    async def ready(self) -> None:
        """Return once there is any view at all."""
        while not self._topology.version:
            await self._change()

    async def wait_for(self, epoch: int, version: int, timeout: float = VISIBLE_TIMEOUT) -> bool:  # noqa: ASYNC109
        """Return once the view is at (`epoch`, `version`) or newer; False when that takes over `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                while self._topology.at < (epoch, version):
                    await self._change()
        except TimeoutError:
            return False
        return True

    async def refresh(self) -> None:
        """Ask for a newer view, for `REFRESH_TIMEOUT` seconds at the most. Never raises for a peer's sake.

        What was committed before this call is in the view after it, if any auto-admin answered.
        """
        if self._refreshing is not None:
            await asyncio.shield(self._refreshing)  # it may have been answered before this call
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._ask())
            self._refreshing.add_done_callback(self._refreshed)
        await asyncio.shield(self._refreshing)

    # --- changing tables ---

    async def create_table(self, table: Table) -> Table:
        """Have `table` made (auto-admin chooses its id). Returns it as the catalog has it, once this router sees it.

        Raises ApiError: auto-admin's, or `ServiceUnavailable` when none answers.
        """
        return await self._change_table(
            "Admin/CreateTable", admin_pb2.TableRequest(name=table.name, definition=encode_table(table))
        )

    async def update_table(self, name: str, definition: bytes, schema_version: int, table_version: int = 0) -> Table:
        """Have the table changed to `definition`, which was computed from `schema_version` and, when not 0, from that
        version of the catalog's record. Raises as `create_table`; "Conflict" says that these have moved meanwhile."""
        return await self._change_table(
            "Admin/UpdateTable",
            admin_pb2.TableRequest(
                name=table_name(name),
                definition=definition,
                schema_version=schema_version,
                table_version=table_version,
            ),
        )

    async def delete_table(self, name: str) -> Table:
        """Have the table dropped. Returns its last description. Raises as `create_table`."""
        return await self._change_table("Admin/DeleteTable", admin_pb2.TableRequest(name=table_name(name)))

    async def _change_table(self, method: str, request: admin_pb2.TableRequest) -> Table:
        """Ask the members until one has done it, for as long as one of them is alive that waits for a leader."""
        request.cluster_id = self._cluster_id
        message = request.SerializeToString()
        with suppress(TimeoutError):
            async with asyncio.timeout(CHANGE_TIMEOUT):
                while (round_ := await self._change_round(method, message)) is not None:
                    if isinstance(round_, Table):
                        return round_
                    await asyncio.sleep(ELECTION_PAUSE)
        raise unavailable("No auto-admin answers: tables cannot be changed now, reads and writes go on")

    async def _change_round(self, method: str, message: bytes) -> Table | bool | None:
        """Ask each member once: the table, True when there is only no leader, None when nobody answers."""
        electing: bool | None = None
        asked: dict[str, None] = {}
        while (address := self._next_member(asked)) is not None:
            asked[address] = None
            try:
                answer = await self._transport.call(address, method, message, CHANGE_TIMEOUT)
                reply = admin_pb2.TableReply.FromString(answer)
            except (TransportError, OSError, DecodeError) as error:
                _log.warning("auto-admin %s did not answer %s: %s", address, method, error)
                self._leads_no_more(address)
                continue
            if reply.not_leader:
                electing = True
                self._leads_no_more(address, reply.leader)
                continue
            self._leader = address
            if reply.error_type:
                raise ApiError(reply.error_type, reply.error_message, status=_STATUS.get(reply.error_type, 400))
            if not await self.wait_for(reply.epoch, reply.version, REFRESH_TIMEOUT):
                await self.refresh()
            return table_from_wire(reply.table).table
        return electing

    def _next_member(self, asked: Container[str]) -> str | None:
        """The member to be asked next: the leader first, if one is known."""
        return next((address for address in self._members() if address not in asked), None)

    def _members(self) -> list[str]:
        """Auto-admin's members, the leader first, if one is known."""
        return list(dict.fromkeys(filter(None, (self._leader, *self._auto_admins))))

    def _leads_no_more(self, address: str, leader: str = "") -> None:
        """The member at `address` does not lead; perhaps that at `leader` does."""
        if leader or self._leader == address:
            self._leader = leader

    # --- following ---

    async def _follow(self) -> None:
        """Watch one auto-admin after the other, for ever; ask storage nodes while none can be watched."""
        backoff = BACKOFF_MIN
        while True:
            try:
                if await self._watch_any():
                    backoff = BACKOFF_MIN
                else:
                    await self._ask_nodes()
            except Exception:
                _log.exception("following the catalog failed; it goes on")
            await asyncio.sleep(backoff)
            backoff = min(BACKOFF_MAX, 2 * backoff)

    async def _watch_any(self) -> bool:
        """Follow the first auto-admin that has something to tell; False when there was none."""
        asked: dict[str, None] = {}
        while (address := self._next_member(asked)) is not None:
            asked[address] = None
            if await self._watch(address):
                return True
        return False

    async def _watch(self, address: str) -> bool:
        """Follow the auto-admin at `address` until it breaks off; False when it told nothing."""
        heard = False
        stream: Stream | None = None
        try:
            stream = await self._transport.open_stream(address, "Admin/Watch")
            await stream.send(self._watch_request(self._topology.version))
            while (message := await stream.receive()) is not None:
                if self._is_elsewhere(address, message):
                    break
                heard = True
                self._stream, self._leader = stream, address
                if not self._take(message):
                    await stream.send(self._watch_request(0))
        except (TransportError, OSError) as error:
            _log.debug("the watch on %s broke: %s", address, error)
        finally:
            self._stream = None
            if stream is not None:
                stream.close()
        return heard

    def _watch_request(self, version: int) -> bytes:
        return admin_pb2.WatchRequest(
            cluster_id=self._cluster_id, epoch=self._topology.epoch, version=version, router=self._record
        ).SerializeToString()

    def _is_elsewhere(self, address: str, message: bytes) -> bool:
        """Whether a member said in place of an update that it does not lead."""
        try:
            update = common_pb2.CatalogUpdate.FromString(message)
        except DecodeError:
            return False
        if update.not_leader:
            self._leads_no_more(address, update.leader)
        return update.not_leader

    def _take(self, message: bytes) -> bool:
        """Take an update in; False when it does not fit what this router has, so that the whole is needed."""
        try:
            topology = self._topology.with_update(update_from_wire(common_pb2.CatalogUpdate.FromString(message)))
        except UpdateRefused as error:
            _log.info("catalog update refused: %s", error)
            return False
        except (DecodeError, MsgspecError, ValueError) as error:
            _log.warning("catalog update is not readable: %s", error)
            return True
        if topology is not self._topology:
            self._topology = topology
            for future in self._changed:
                if not future.done():
                    future.set_result(None)
        return True

    async def _change(self) -> None:
        """Return at the next change of the view."""
        future = asyncio.get_running_loop().create_future()
        self._changed[future] = None
        try:
            await future
        finally:
            self._changed.pop(future, None)

    # --- asking ---

    def _refreshed(self, task: asyncio.Task[None]) -> None:
        self._refreshing = None
        if not task.cancelled() and task.exception() is not None:
            _log.error("asking for the catalog failed", exc_info=task.exception())

    async def _ask(self) -> None:
        request = self._watch_request(self._topology.version)

        if not await self._ask_members(request) and not self._topology.version:
            await self._ask_nodes()

    async def _ask_nodes(self) -> None:
        """Ask every storage node that is known for its copy; the newest one counts."""
        request = node_pb2.CatalogRequest(cluster_id=self._cluster_id).SerializeToString()
        addresses = {*self._seeds, *(node.address for node in self._topology.nodes.values())}

        async def ask(address: str) -> None:
            try:
                self._take(await self._transport.call(address, "Node/Catalog", request, REFRESH_TIMEOUT))
            except (TransportError, OSError) as error:
                _log.debug("node %s did not give its catalog: %s", address, error)

        await asyncio.gather(*(ask(address) for address in sorted(addresses)))

    async def _ask_members(self, request: bytes) -> bool:
        """Ask one after the other until the one that leads answers, `REFRESH_TIMEOUT` seconds at the most."""
        asked: dict[str, None] = {}
        with suppress(TimeoutError):
            async with asyncio.timeout(REFRESH_TIMEOUT):
                while (address := self._next_member(asked)) is not None:
                    asked[address] = None
                    try:
                        answer = await self._transport.call(address, "Admin/Refresh", request, REFRESH_TIMEOUT)
                    except (TransportError, OSError) as error:
                        _log.debug("auto-admin %s did not answer: %s", address, error)
                        continue
                    if not self._is_elsewhere(address, answer):
                        self._take(answer)
                        return True
        return False


def table_name(name: str) -> str:
    """The name in a table's name or ARN (arn:aws:dynamodb:REGION:ACCOUNT:table/NAME)."""
    if name.startswith("arn:"):
        return name.partition(":table/")[2].partition("/")[0]
    return name
