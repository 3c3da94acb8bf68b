"""The operations that are built, one file each. `REGISTRY` has them by name; what is not in it is answered with
`UnknownOperationException`."""

from __future__ import annotations

from importlib import import_module

from router.gateway import Operation

_FILES = {
    "BatchGetItem": "batch_get_item",
    "BatchWriteItem": "batch_write_item",
    "CreateTable": "create_table",
    "DeleteItem": "delete_item",
    "DeleteTable": "delete_table",
    "DescribeEndpoints": "describe_endpoints",
    "DescribeLimits": "describe_limits",
    "DescribeTable": "describe_table",
    "GetItem": "get_item",
    "ListTables": "list_tables",
    "PutItem": "put_item",
    "Query": "query",
    "Scan": "scan",
    "UpdateItem": "update_item",
    "UpdateTable": "update_table",
}
"""Each file's `plan` is the operation. This table is the only list of them."""

REGISTRY: dict[str, Operation] = {
    name: import_module(f"router.operations.{file}").plan for name, file in _FILES.items()
}
