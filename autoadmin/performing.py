"""What an action makes of the catalog. Pure."""

from __future__ import annotations

from autoadmin.actions import (
    Action,
    ActivateIndexes,
    ActivateTables,
    ChangePartitions,
    ForgetReplicas,
    RemoveNodes,
)
from autoadmin.catalog import Catalog, Change, with_active_indexes, with_active_tables, without_replicas
from autoadmin.membership import with_steps, without_nodes


def perform(action: Action, catalog: Catalog) -> Change | None:
    """The change that an action asks for; None when the catalog has moved since it was planned."""
    if catalog.topology.at != action.planned_on:
        return None
    match action:
        case ActivateTables(_, tables):
            return with_active_tables(catalog, tables)
        case ForgetReplicas(_, replicas):
            return without_replicas(catalog, replicas)
        case ActivateIndexes(_, indexes):
            return with_active_indexes(catalog, indexes)
        case ChangePartitions(_, steps):
            return with_steps(catalog, steps)
        case RemoveNodes(_, nodes):
            return without_nodes(catalog, nodes)
