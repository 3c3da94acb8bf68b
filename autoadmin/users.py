"""Creating, changing and deleting users, as the command line asks for it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from autoadmin.adoption import Adoption
from autoadmin.catalog import Catalog, Change, with_user, without_user
from autoadmin.executor import Control
from autoadmin.member import LeadershipLost, NotLeader
from cluster.convert import user_to_wire
from cluster.wire import admin_pb2
from dynamo.errors import ApiError, internal
from dynamo.user import decode_user

_log = logging.getLogger(__name__)


class Users:
    """The two calls. Each answers with the user's record, or with the type and text of an error."""

    def __init__(self, control: Control, adoption: Adoption, cluster_id: str) -> None:
        self._control = control
        self._adoption = adoption
        self._cluster_id = cluster_id

    async def put(self, message: bytes) -> bytes:
        """Admin/PutUser."""
        request = admin_pb2.UserRequest.FromString(message)
        return await self._answer(
            request, lambda catalog: with_user(catalog, decode_user(request.definition), request.user_version)
        )

    async def delete(self, message: bytes) -> bytes:
        """Admin/DeleteUser."""
        request = admin_pb2.UserRequest.FromString(message)
        return await self._answer(request, lambda catalog: without_user(catalog, request.name))

    async def _answer(self, request: admin_pb2.UserRequest, make: Callable[[Catalog], Change]) -> bytes:
        try:
            self._check(request)
            topology = await self._control.change(make)
        except (NotLeader, LeadershipLost):
            raise
        except ApiError as error:
            return _refusal(error)
        except Exception:  # the disk is full, say: the caller hears that it failed, the log hears why
            _log.exception("the catalog could not be changed for user %s", request.name)
            return _refusal(internal())
        found = [record for record in topology.users.values() if record.user.name == request.name]
        _log.info("user %s is %s", request.name, "changed" if found else "deleted")
        if not found:
            return admin_pb2.UserReply().SerializeToString()
        return admin_pb2.UserReply(user=user_to_wire(found[0].user, found[0].version)).SerializeToString()

    def _check(self, request: admin_pb2.UserRequest) -> None:
        if request.cluster_id != self._cluster_id:
            raise internal(f"This auto-admin is of cluster {self._cluster_id}, not of {request.cluster_id}.")
        if self._adoption.needed:
            raise internal("Auto-admin lost its catalog and is about to take over the storage nodes' copy.")


def _refusal(error: ApiError) -> bytes:
    return admin_pb2.UserReply(error_type=error.type, error_message=error.message).SerializeToString()
