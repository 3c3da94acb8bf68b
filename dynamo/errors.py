"""The errors that a client sees: one type, and one factory per DynamoDB error.

A failed condition inside the store is a value, not an exception; it becomes an `ApiError` only where the answer is
made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynamo.values import Item

SERVICE_NAMESPACE = "com.amazonaws.dynamodb.v20120810"
PROTOCOL_NAMESPACE = "com.amazon.coral.service"
VALIDATION_NAMESPACE = "com.amazon.coral.validate"

# Errors of the protocol layer, which are not in the service's model, carry the namespace of that layer.
_NAMESPACES = {
    "ValidationException": VALIDATION_NAMESPACE,
    "SerializationException": PROTOCOL_NAMESPACE,
    "UnknownOperationException": PROTOCOL_NAMESPACE,
    "MissingAuthenticationTokenException": PROTOCOL_NAMESPACE,
    "IncompleteSignatureException": PROTOCOL_NAMESPACE,
    "InvalidSignatureException": PROTOCOL_NAMESPACE,
    "UnrecognizedClientException": PROTOCOL_NAMESPACE,
    "AccessDeniedException": PROTOCOL_NAMESPACE,
    "ExpiredTokenException": PROTOCOL_NAMESPACE,
    "ThrottlingException": PROTOCOL_NAMESPACE,
}


class ApiError(Exception):
    """An error answer of DynamoDB's API.

    `type` is the bare name of the error ("ValidationException"), `message` its text, `status` the HTTP status, `item`
    the current item where `ReturnValuesOnConditionCheckFailure` asked for it. `request_validation` marks the errors
    that some operations put into an envelope, see `in_envelope`. `reasons` are the `CancellationReasons` of a
    transaction.
    """

    def __init__(
        self,
        type: str,  # noqa: A002
        message: str,
        *,
        status: int = 400,
        item: Item | None = None,
        request_validation: bool = False,
        reasons: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(f"{type}: {message}")
        self.type = type
        self.message = message
        self.status = status
        self.item = item
        self.request_validation = request_validation
        self.reasons = reasons

    @property
    def qualified_type(self) -> str:
        """The value of `__type` in the answer's body."""
        return f"{_NAMESPACES.get(self.type, SERVICE_NAMESPACE)}#{self.type}"


def validation(message: str) -> ApiError:
    """`ValidationException` with DynamoDB's text."""
    return ApiError("ValidationException", message)


def request_validation(message: str) -> ApiError:
    """`ValidationException` of the family that `in_envelope` wraps (sets, NULL, expressions, their parameters)."""
    return ApiError("ValidationException", message, request_validation=True)


def in_envelope(error: ApiError) -> ApiError:
    """The error as PutItem and UpdateItem word it: `request_validation` errors gain "1 validation error detected: ".

    Source: dynoxide's captures of 2026. Other operations report the bare text, as do these two for all other errors.
    """
    if not error.request_validation:
        return error
    return validation(f"1 validation error detected: {error.message}")


def serialization(message: str) -> ApiError:
    """`SerializationException`: the body is not what the operation's types ask for."""
    return ApiError("SerializationException", message)


def unknown_operation() -> ApiError:
    """`UnknownOperationException`, whose body has no text on DynamoDB."""
    return ApiError("UnknownOperationException", "")


def resource_not_found(message: str = "Requested resource not found") -> ApiError:
    """`ResourceNotFoundException`; data-plane calls use the default text."""
    return ApiError("ResourceNotFoundException", message)


def table_not_found(name: str) -> ApiError:
    """`ResourceNotFoundException` as the calls on tables word it."""
    return resource_not_found(f"Requested resource not found: Table: {name} not found")


def resource_in_use(message: str) -> ApiError:
    """`ResourceInUseException`."""
    return ApiError("ResourceInUseException", message)


def condition_failed(item: Item | None = None) -> ApiError:
    """`ConditionalCheckFailedException`, with the item where the request asked for it."""
    return ApiError("ConditionalCheckFailedException", "The conditional request failed", item=item)


def item_collection_too_large() -> ApiError:
    """`ItemCollectionSizeLimitExceededException`, with the text that the API reference gives for transactions."""
    return ApiError("ItemCollectionSizeLimitExceededException", "Collection size exceeded.")


def transaction_conflict() -> ApiError:
    """`TransactionConflictException`: a transaction that is under way holds the item."""
    return ApiError("TransactionConflictException", "Transaction is ongoing for the item")


def transaction_canceled(reasons: Sequence[Mapping[str, Any]]) -> ApiError:
    """`TransactionCanceledException`, with a member of `CancellationReasons` for each action."""
    codes = ", ".join(str(reason["Code"]) for reason in reasons)
    text = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    return ApiError("TransactionCanceledException", text, reasons=reasons)


def transaction_in_progress() -> ApiError:
    """`TransactionInProgressException`, which SDKs retry."""
    return ApiError(
        "TransactionInProgressException", "The transaction with the given request token is already in progress."
    )


def token_mismatch() -> ApiError:
    """`IdempotentParameterMismatchException`."""
    return ApiError(
        "IdempotentParameterMismatchException",
        "DynamoDB rejected the request because you retried a request with a different payload but with an idempotent "
        "token that was already used.",
    )


def limit_exceeded(message: str) -> ApiError:
    """`LimitExceededException`."""
    return ApiError("LimitExceededException", message)


def internal(
    message: str = "The request processing has failed because of an unknown error, exception or failure.",
) -> ApiError:
    """`InternalServerError` (500), which SDKs retry."""
    return ApiError("InternalServerError", message, status=500)


def unavailable(message: str) -> ApiError:
    """`ServiceUnavailable` (503): no leader could be reached in time; SDKs retry it."""
    return ApiError("ServiceUnavailable", message, status=503)
