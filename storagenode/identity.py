"""Who a node is: an id made at the first start on an empty disk, the cluster it belongs to, and how often it has
started."""

from __future__ import annotations

import msgspec

from cluster.disk import Disk
from cluster.files import read_file, replace_file
from cluster.ids import random_id
from cluster.random_source import RandomSource

FILE_NAME = "identity.json"


class IdentityError(Exception):
    """The data directory belongs to somebody else, or its identity cannot be read. The text is one plain sentence."""


class Identity(msgspec.Struct, frozen=True):
    """`incarnation` is raised durably at each start, before anything is sent."""

    cluster_id: str
    node: int
    incarnation: int


def start_identity(disk: Disk, directory: str, cluster_id: str, random: RandomSource) -> Identity:
    """The identity for this start, already durable: a new node on an empty directory, else the same node once more.

    Raises IdentityError.
    """
    disk.make_directory(directory)
    content = read_file(disk, f"{directory}/{FILE_NAME}")
    if content is None:
        if others := [name for name in disk.list(directory) if name not in ("lock", f"{FILE_NAME}.new")]:
            raise IdentityError(
                f"{directory} holds {others[0]!r} but no {FILE_NAME}: it is not a storage node's data directory, "
                "or its identity was lost; start on an empty directory to join as a new node."
            )
        identity = Identity(cluster_id, random_id(random), 1)
    else:
        identity = _next(directory, content, cluster_id)
    replace_file(disk, directory, FILE_NAME, msgspec.json.encode(identity))
    return identity


def _next(directory: str, content: bytes, cluster_id: str) -> Identity:
    try:
        last = msgspec.json.decode(content, type=Identity)
    except msgspec.DecodeError as error:
        raise IdentityError(f"{directory}/{FILE_NAME} cannot be read ({error}).") from error
    if last.cluster_id != cluster_id:
        raise IdentityError(
            f"{directory} belongs to cluster {last.cluster_id}, and this process was started for cluster {cluster_id}."
        )
    return Identity(last.cluster_id, last.node, last.incarnation + 1)
