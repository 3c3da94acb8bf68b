"""What DynamoDB checks beyond its published model: rules added by hand to the shapes of `model.json`.

Sources: the texts that DynamoDB answers, as the Parity Suite records them, and public bug reports about its clones.
"""

from __future__ import annotations

NAME_PATTERN = "[a-zA-Z0-9_.-]+"
NAME_LENGTH_MAX = 255
ARN_LENGTH_MAX = 1024

# DynamoDB lists the members of an enum in an order of its own, which is part of its error texts.
ENUM_ORDER: dict[str, tuple[str, ...]] = {
    "AttributeAction": ("ADD", "PUT", "DELETE"),
    "ComparisonOperator": (
        "IN", "NULL", "BETWEEN", "LT", "NOT_CONTAINS", "EQ", "GT", "NOT_NULL", "NE", "LE", "BEGINS_WITH", "GE",
        "CONTAINS",
    ),
    "ConditionalOperator": ("OR", "AND"),
    "ProjectionType": ("ALL", "INCLUDE", "KEYS_ONLY"),
    "ReturnValue": ("ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"),
    "ScalarAttributeType": ("B", "N", "S"),
    "Select": ("SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"),
}  # fmt: skip

# Members that the model calls optional and DynamoDB insists on.
REQUIRED: dict[str, tuple[str, ...]] = {
    "CreateTableInput": ("AttributeDefinitions", "KeySchema"),
}

# Bounds that the model lacks, by structure and member.
MEMBER_BOUNDS: dict[tuple[str, str], dict[str, int]] = {
    ("CreateTableInput", "KeySchema"): {"max": 2},
    ("LocalSecondaryIndex", "KeySchema"): {"max": 2},
    ("GlobalSecondaryIndex", "KeySchema"): {"max": 8},
    ("CreateGlobalSecondaryIndexAction", "KeySchema"): {"max": 8},
    ("ScanInput", "TotalSegments"): {"max": 1_000_000},
    ("ListStreamsInput", "Limit"): {"max": 100},
    ("DescribeStreamInput", "Limit"): {"max": 100},
    ("GetRecordsInput", "Limit"): {"max": 1000},
}

# Shapes whose bounds have other texts; whoever knows those checks them.
UNCHECKED = frozenset({"AttributeName", "ExpressionAttributeNameVariable", "TableArn"})

# The order in which failed members are listed, where it is not the model's. Members not named follow in the model's.
MEMBER_ORDER: dict[str, tuple[str, ...]] = {
    "CreateTableInput": ("BillingMode", "ProvisionedThroughput", "KeySchema", "AttributeDefinitions"),
    "ProvisionedThroughput": ("WriteCapacityUnits", "ReadCapacityUnits"),
    "PutItemInput": (
        "ReturnConsumedCapacity", "Item", "ConditionalOperator", "Expected", "ReturnValues",
        "ReturnItemCollectionMetrics",
    ),
    "UpdateItemInput": (
        "ReturnValues", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics", "ConditionalOperator", "Expected",
        "Key",
    ),
    "DeleteItemInput": (
        "ReturnConsumedCapacity", "ReturnValues", "ReturnItemCollectionMetrics", "ConditionalOperator", "Expected",
        "Key",
    ),
}  # fmt: skip

# Operations that name only the first member with a value that is not in its enum (dynoxide's captures of July 2026).
FIRST_ENUM_ONLY = frozenset({"UpdateItem"})
ENUM_CONSTRAINT = "Member must satisfy enum value set"

# Java's names for patterns that Python writes differently.
PATTERNS: dict[str, str] = {
    r"\p{Print}+": r"[\x20-\x7e]+",
    r"[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\r\n\t]*": (
        "[ -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff\r\n\t]*"
    ),
}

# Operations on tables word a missing or short TableName differently from those on items.
TABLE_OPERATIONS = frozenset({"CreateTable", "DeleteTable", "DescribeTable", "UpdateTable"})
TABLE_NAME_LENGTH_MIN = 3

# Errors that one operation words differently.
REWORDED: dict[tuple[str, str], str] = {
    (
        "Query",
        "Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1",
    ): "Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1",
}

BATCH_OPERATIONS = frozenset({"BatchGetItem", "BatchWriteItem"})
BATCH_GET_KEYS_MAX = 100
BATCH_GET_TOO_MANY = ("RequestItems.{table}.member.Keys", "Member must have length less than or equal to 100")
BATCH_GET_NONE = ("requestItems.{table}.member.keys", "Member must have length greater than or equal to 1")
