#!/usr/bin/env python3
"""Writes router/model.json: the input shapes of every operation, from the service models that botocore ships.

Run it in the project's environment after botocore (a development dependency) has moved. Names, types and bounds only:
no prose.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MODEL_FILE = Path(__file__).resolve().parents[1] / "router" / "model.json"
SERVICES = ("dynamodb", "dynamodbstreams")
BOUNDS = ("enum", "min", "max", "pattern")


def generate() -> dict[str, Any]:
    """The whole model: `{"botocore": version, "services": {target prefix: {"operations", "shapes"}}}`."""
    import botocore
    import botocore.session

    session = botocore.session.get_session()
    services = {}
    for name in SERVICES:
        model = session.get_service_model(name)
        services[model.metadata["targetPrefix"]] = _service(model)
    return {"botocore": botocore.__version__, "services": services}


def render(model: dict[str, Any]) -> str:
    """The model as it stands in the file: one line for each operation and shape, so that differences read well."""
    parts = []
    for prefix, service in model["services"].items():
        sections = (f'  "{section}": {_lines(service[section])}' for section in ("operations", "shapes"))
        parts.append(f' "{prefix}": {{\n' + ",\n".join(sections) + "\n }")
    return f'{{\n"botocore": "{model["botocore"]}",\n"services": {{\n' + ",\n".join(parts) + "\n}\n}\n"


def _lines(entries: dict[str, Any]) -> str:
    lines = (f"   {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
    return "{\n" + ",\n".join(lines) + "\n  }"


def _service(model: Any) -> dict[str, Any]:
    operations: dict[str, str | None] = {}
    shapes: dict[str, Any] = {}
    for name in sorted(model.operation_names):
        shape = model.operation_model(name).input_shape
        operations[name] = shape.name if shape is not None else None
        if shape is not None:
            _collect(shape, shapes)
    return {"operations": operations, "shapes": dict(sorted(shapes.items()))}


def _collect(shape: Any, shapes: dict[str, Any]) -> None:
    if shape.name in shapes:
        return
    entry = shapes[shape.name] = {"type": shape.type_name}
    entry.update({bound: shape.metadata[bound] for bound in BOUNDS if bound in shape.metadata})
    if shape.type_name == "structure":
        if shape.required_members:
            entry["required"] = list(shape.required_members)
        entry["members"] = {name: member.name for name, member in shape.members.items()}
        children = list(shape.members.values())
    elif shape.type_name == "list":
        entry["member"] = shape.member.name
        children = [shape.member]
    elif shape.type_name == "map":
        entry["key"], entry["value"] = shape.key.name, shape.value.name
        children = [shape.key, shape.value]
    else:
        children = []
    for child in children:
        _collect(child, shapes)


if __name__ == "__main__":
    MODEL_FILE.write_text(render(generate()))
