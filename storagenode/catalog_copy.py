"""A node's durable copy of catalog and topology: what lets nodes and routers start while every auto-admin is down."""

from __future__ import annotations

import zlib

from google.protobuf.message import DecodeError

from cluster import convert
from cluster.disk import Disk
from cluster.files import read_file, replace_file
from cluster.topology import Topology
from cluster.wire import common_pb2

FILE_NAME = "catalog"
_CHECKSUM_BYTES = 4


def load_catalog(disk: Disk, directory: str) -> Topology:
    """The newest copy, or an empty topology when there is none or it fails its checksum: it is only a hint, and
    auto-admin sends it again."""
    content = read_file(disk, f"{directory}/{FILE_NAME}")
    if content is None or len(content) < _CHECKSUM_BYTES:
        return Topology()
    checksum, body = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
    if zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "little") != checksum:
        return Topology()
    try:
        update = common_pb2.CatalogUpdate.FromString(body)
    except DecodeError:
        return Topology()
    return Topology().with_update(convert.update_from_wire(update))


def save_catalog(disk: Disk, directory: str, topology: Topology) -> None:
    """Durably replace the copy. Blocks. Raises OSError."""
    body = convert.update_to_wire(topology.full()).SerializeToString()
    replace_file(disk, directory, FILE_NAME, zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "little") + body)
