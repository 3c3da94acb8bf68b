"""Who may call what between processes.

Two things keep strangers out. A **join token**, the cluster's secret: every call carries a keyed digest of its method,
so that somebody with mere access to the network gets nowhere; somebody who can read the traffic does. And **mutual
TLS**: a certificate proves a process's role and cluster by the name ROLE.CLUSTER.trizone.internal among its alternative
names. The server looks the caller's role up here at each call; the caller expects the server to have the role that
serves the method, so that a storage node cannot act as auto-admin.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

ROUTER: Final = "router"
STORAGE_NODE: Final = "storagenode"
AUTO_ADMIN: Final = "autoadmin"
REPLICATOR: Final = "replicator"
OPERATOR: Final = "operator"
"""Whoever looks after the cluster, with the command line."""
ROLES = (ROUTER, STORAGE_NODE, AUTO_ADMIN, REPLICATOR, OPERATOR)

DOMAIN = "trizone.internal"
CLUSTER_ID = re.compile(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
"""A cluster id that can stand in a certificate: one label of a host name (RFC 1123)."""
REGIONS = "Regions/"
"""What replicators of different regions, whose clusters have different ids, ask of each other."""
REGIONS_NAME = f"{REPLICATOR}.regions.{DOMAIN}"
"""A replicator's second name, by which those of other regions know it."""
PROOF_KEY = "trizone-join-proof"
"""The metadata that carries the proof of the join token."""

_ASKING = frozenset({ROUTER, STORAGE_NODE, AUTO_ADMIN, REPLICATOR, OPERATOR})
_CONTROL = frozenset({ROUTER, REPLICATOR, AUTO_ADMIN, OPERATOR})

# Callers and servers by method, or by service with its slash. What is not listed here, nobody may call.
CALLERS: Mapping[str, frozenset[str]] = {
    "Storage/": frozenset({ROUTER, STORAGE_NODE, REPLICATOR}),
    "Peer/": frozenset({STORAGE_NODE}),
    "Node/Session": frozenset({STORAGE_NODE}),
    "Node/": _ASKING,
    "Admin/PutUser": frozenset({AUTO_ADMIN, OPERATOR}),
    "Admin/DeleteUser": frozenset({AUTO_ADMIN, OPERATOR}),
    "Admin/": _CONTROL,
    "Member/": frozenset({AUTO_ADMIN}),
    "Regions/Status": frozenset({OPERATOR}),
    "Regions/Compare": frozenset({OPERATOR}),
    "Regions/": frozenset({REPLICATOR}),
}
SERVERS: Mapping[str, str] = {
    "Storage/": STORAGE_NODE,
    "Peer/": STORAGE_NODE,
    "Node/Session": AUTO_ADMIN,
    "Node/": STORAGE_NODE,
    "Admin/": AUTO_ADMIN,
    "Member/": AUTO_ADMIN,
    "Regions/": REPLICATOR,
}


def _service(method: str) -> str:
    return method.partition("/")[0] + "/"


def may_call(role: str, method: str) -> bool:
    """Whether processes of this role may call the method."""
    return role in (CALLERS.get(method) or CALLERS.get(_service(method)) or ())


def server_role(method: str) -> str | None:
    """The role that serves a method; None if there is no such method."""
    return SERVERS.get(method) or SERVERS.get(_service(method))


def internal_name(role: str, cluster_id: str) -> str:
    """The name in the certificate of a process of this role."""
    return f"{role}.{cluster_id}.{DOMAIN}"


def server_name(method: str, cluster_id: str) -> str:
    """The name that the certificate of whoever serves a method must have."""
    if method.startswith(REGIONS):
        return REGIONS_NAME
    return internal_name(server_role(method) or "nobody", cluster_id)


def roles_named(names: Iterable[str], cluster_id: str, method: str) -> frozenset[str]:
    """The roles that a certificate with these alternative names proves to the server of a method in this cluster."""
    present = set(names)
    roles = {role for role in ROLES if internal_name(role, cluster_id) in present}
    if method.startswith(REGIONS) and REGIONS_NAME in present:
        roles.add(REPLICATOR)
    return frozenset(roles)


@lru_cache(maxsize=1_024)
def proof(token: str, method: str) -> str:
    """What a caller that knows the join token sends with a call of the method."""
    key = hashlib.blake2b(token.encode(), digest_size=32).digest()
    return hashlib.blake2b(method.encode(), key=key, digest_size=32).hexdigest()


def proves(given: object, token: str, method: str) -> bool:
    """Whether a caller's proof is right. Takes the same time whatever was given."""
    text = given if isinstance(given, str) else ""
    return hmac.compare_digest(text.encode("utf-8", "replace"), proof(token, method).encode())
