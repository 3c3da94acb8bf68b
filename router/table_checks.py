"""Checks that CreateTable and UpdateTable share, in DynamoDB's words. All raise ApiError.

Texts: as the Parity Suite and public reports of answers by DynamoDB have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dynamo.errors import ApiError, validation

INVALID = "One or more parameter values were invalid: "
CAPACITY_UNITS_MAX = 1_000_000_000_000

KeySchemaElements = Sequence[dict[str, str]]


def not_supported(member: str) -> ApiError:
    """For what Trizone has not built: refused, so that nothing is accepted that would then silently not work."""
    return validation(f"{INVALID}Trizone does not support {member} yet")


def refuse(body: dict[str, Any], members: Iterable[str]) -> None:
    """Refuse a request that asks for any of `members`."""
    for member in members:
        if body.get(member) or body.get(member) == "":
            raise not_supported(member)


def check_throughput_bounds(throughput: dict[str, int] | None) -> None:
    """Capacity units beyond any table's."""
    for member in ("ReadCapacityUnits", "WriteCapacityUnits"):
        if throughput and throughput[member] > CAPACITY_UNITS_MAX:
            raise validation(f"Given value {throughput[member]} for {member} is out of bounds")


def check_on_demand_without_units(billing: str | None, throughput: dict[str, int] | None) -> None:
    """On-demand tables have no capacity units."""
    if billing == "PAY_PER_REQUEST" and throughput:
        raise validation(
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is "
            "PAY_PER_REQUEST"
        )


def check_on_demand_ceilings(ceilings: dict[str, int], *, provisioned: str, lowest: int) -> None:
    """OnDemandThroughput. `provisioned` is the text where the table is provisioned, "" where it is not; `lowest` is 1,
    or -1 where that takes a ceiling away."""
    members = [member for member in ("MaxReadRequestUnits", "MaxWriteRequestUnits") if member in ceilings]
    if members and provisioned:
        raise validation(f"{INVALID}{members[0]} for OnDemandThroughput cannot be specified when {provisioned}")
    for member in members:
        if ceilings[member] < lowest or ceilings[member] == 0:
            raise validation(f"{INVALID}Requested {member} for OnDemandThroughput for table is outside of valid range")


def check_warm_throughput(wanted: dict[str, int], current: tuple[int, int]) -> None:
    """WarmThroughput, which may only rise above `current`, (read, write)."""
    for member, now in zip(("ReadUnitsPerSecond", "WriteUnitsPerSecond"), current, strict=True):
        if member in wanted and wanted[member] < 1:
            raise validation(f"{INVALID}Requested {member} for WarmThroughput for table is outside of valid range")
        if member in wanted and wanted[member] < now:
            raise validation(
                f"{INVALID}Requested {member} for WarmThroughput for table is lower than current WarmThroughput, "
                "decreasing WarmThroughput is not supported"
            )


def check_keys_are_defined(elements: KeySchemaElements, defined: Sequence[str]) -> None:
    """Every key attribute of the table needs a definition."""
    names = [element["AttributeName"] for element in elements]
    if len(names) > len(defined) or (len(names) > 1 and not set(names) <= set(defined)):
        raise validation("Invalid KeySchema: Some index key attribute have no definition")
    check_index_keys_are_defined(names, defined)


def check_index_keys_are_defined(names: Sequence[str], defined: Sequence[str]) -> None:
    """Every key attribute of an index needs a definition."""
    if not set(names) <= set(defined):
        raise validation(
            f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. "
            f"Keys: [{', '.join(names)}], AttributeDefinitions: [{', '.join(defined)}]"
        )


def check_key_order(elements: KeySchemaElements) -> None:
    """HASH, then maybe RANGE, of two names."""
    if elements[0]["KeyType"] != "HASH":
        raise validation("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
    if len(elements) > 1:
        if elements[0]["AttributeName"] == elements[1]["AttributeName"]:
            raise validation("Both the Hash Key and the Range Key element in the KeySchema have the same name")
        if elements[1]["KeyType"] != "RANGE":
            raise validation("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")


def sse_key(specification: dict[str, Any] | None, region: str, account: str) -> str:
    """The KMS key's ARN that an SSESpecification asks for; "" for the default encryption."""
    if not specification or not specification.get("Enabled"):
        if specification and (specification.get("SSEType") or specification.get("KMSMasterKeyId")):
            raise validation(f"{INVALID}SSEType and KMSMasterKeyId can be specified only when SSE is enabled")
        return ""
    if specification.get("SSEType") == "AES256":
        raise validation(f"{INVALID}SSEType AES256 is not supported, use KMS")
    key: str = specification.get("KMSMasterKeyId") or "alias/aws/dynamodb"
    if key.startswith("arn:"):
        return key
    kind = "" if key.startswith("alias/") else "key/"
    return f"arn:aws:kms:{region}:{account}:{kind}{key}"
