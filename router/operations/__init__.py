"""The operations that are built, one file each. `REGISTRY` has them by name; what is not in it is answered with
`UnknownOperationException`."""

from __future__ import annotations

from importlib import import_module

from router.gateway import Operation

_FILES = {
    "BatchExecuteStatement": "batch_execute_statement",
    "BatchGetItem": "batch_get_item",
    "BatchWriteItem": "batch_write_item",
    "CreateGlobalTable": "create_global_table",
    "CreateTable": "create_table",
    "DeleteItem": "delete_item",
    "DeleteResourcePolicy": "delete_resource_policy",
    "DeleteTable": "delete_table",
    "DescribeContinuousBackups": "describe_continuous_backups",
    "DescribeEndpoints": "describe_endpoints",
    "DescribeGlobalTable": "describe_global_table",
    "DescribeGlobalTableSettings": "describe_global_table_settings",
    "DescribeLimits": "describe_limits",
    "DescribeStream": "describe_stream",
    "DescribeTable": "describe_table",
    "DescribeTimeToLive": "describe_time_to_live",
    "ExecuteStatement": "execute_statement",
    "ExecuteTransaction": "execute_transaction",
    "GetItem": "get_item",
    "GetRecords": "get_records",
    "GetResourcePolicy": "get_resource_policy",
    "GetShardIterator": "get_shard_iterator",
    "ListGlobalTables": "list_global_tables",
    "ListStreams": "list_streams",
    "ListTables": "list_tables",
    "ListTagsOfResource": "list_tags_of_resource",
    "PutItem": "put_item",
    "PutResourcePolicy": "put_resource_policy",
    "Query": "query",
    "Scan": "scan",
    "TagResource": "tag_resource",
    "UntagResource": "untag_resource",
    "TransactGetItems": "transact_get_items",
    "TransactWriteItems": "transact_write_items",
    "UpdateGlobalTable": "update_global_table",
    "UpdateGlobalTableSettings": "update_global_table_settings",
    "UpdateItem": "update_item",
    "UpdateTable": "update_table",
    "UpdateTimeToLive": "update_time_to_live",
}
"""Each file's `plan` is the operation. This table is the only list of them."""

REGISTRY: dict[str, Operation] = {
    name: import_module(f"router.operations.{file}").plan for name, file in _FILES.items()
}
