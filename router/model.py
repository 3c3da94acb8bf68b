"""The service model as the router uses it: every operation of DynamoDB and its streams, with its compiled shape."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from router.shapes import OperationShape, compile_service


@cache
def model() -> dict[str, Any]:
    """The content of `model.json`, which `tools/generate_model.py` writes."""
    content: dict[str, Any] = orjson.loads(files("router").joinpath("model.json").read_bytes())
    return content


@cache
def targets() -> dict[bytes, OperationShape]:
    """Every operation by the value of its `X-Amz-Target` header, such as b"DynamoDB_20120810.PutItem"."""
    return {
        f"{prefix}.{operation}".encode(): shape
        for prefix, service in model()["services"].items()
        for operation, shape in compile_service(service).items()
    }
