"""`trizone node`: storage nodes of a running cluster."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from trizone.nodes import NodeStatus

Parser = TypeVar("Parser", bound=argparse.ArgumentParser)


def add_node_commands(
    commands: argparse._SubParsersAction[Parser], parser_class: type[Parser], data_default: Path
) -> None:
    """Add `trizone node …` to the command line."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--data", type=Path, metavar="DIR", default=data_default, help="of trizone up (./data); or:")
    shared.add_argument("--config", metavar="FILE", action="append", default=[], help="a router's settings (TOML)")
    shared.add_argument("--json", action="store_true", help="for programs")

    node = commands.add_parser("node", help="list storage nodes, empty them and forget them")
    actions: Any = node.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=parser_class)
    every = actions.add_parser("list", help="show all storage nodes", parents=[shared])
    every.set_defaults(run=_list)
    for action, text in (
        ("drain", "move all replicas away from a node, leaders first"),
        ("undrain", "let a node keep what it holds after all, and get more"),
        ("remove", "forget a node that holds nothing; it never joins again under its id"),
    ):
        command = actions.add_parser(action, help=text, parents=[shared])
        command.add_argument("node", metavar="NODE", help="its name, or its id")
        command.set_defaults(run=_change)
    _add_recover(actions, data_default)


def _add_recover(actions: Any, data_default: Path) -> None:
    recover = actions.add_parser("recover", help="let a stopped node's replicas go on alone: others are lost for good")
    recover.add_argument("node", metavar="NODE", help="its name")
    recover.add_argument("--data", type=Path, metavar="DIR", default=data_default, help="of trizone up (./data); or:")
    recover.add_argument("--config", metavar="FILE", action="append", default=[], help="the node's settings (TOML)")
    recover.add_argument(
        "--partition",
        metavar="PARTITION=REPLICA",
        action="append",
        default=[],
        help="goes on with this replica alone; may be repeated (without it: show what the node holds)",
    )
    recover.add_argument("--unsafe", action="store_true", help="do it, although acknowledged writes may be lost")
    recover.set_defaults(run=_recover)


def _list(arguments: argparse.Namespace) -> int:
    from cluster.wire.admin_pb2 import NodeRequest
    from trizone.nodes import ask
    from trizone.users import settings_of

    nodes, _ = ask(settings_of(arguments.data, arguments.config), "", NodeRequest.NONE)
    _show(nodes, as_json=arguments.json)
    return 0


def _recover(arguments: argparse.Namespace) -> int:
    from trizone.node_recovery import recover

    return recover(arguments)


def _change(arguments: argparse.Namespace) -> int:
    from cluster.wire.admin_pb2 import NodeRequest
    from trizone.nodes import ask
    from trizone.users import settings_of

    change = {"drain": NodeRequest.DRAIN, "undrain": NodeRequest.UNDRAIN, "remove": NodeRequest.REMOVE}[
        arguments.action
    ]
    nodes, note = ask(settings_of(arguments.data, arguments.config), arguments.node, change)
    if note:
        print(note, file=sys.stderr)
    if arguments.json:
        _show(nodes, as_json=True)
    elif not nodes:
        print(f"Node {arguments.node} is removed. Stop its process; its data directory may be deleted.")
    else:
        (node,) = nodes
        print(f"Node {node.name} is {node.state}; it holds {node.replicas} replicas, {node.leaders} of them leaders.")
    return 0


def _show(nodes: Sequence[NodeStatus], *, as_json: bool) -> None:
    if as_json:
        json.dump([asdict(node) for node in nodes], sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    from trizone.report import show_nodes

    show_nodes(nodes)
