"""NextToken: where a SELECT goes on, bound to the statement that it was made for.

Layout, before base64: version (1 byte), fingerprint of the request (8), number of the range (2, little endian), the key
attributes of the last row as canonical JSON (none: the range begins), and a check over all that (8).
"""

from __future__ import annotations

from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import orjson

from dynamo.errors import ApiError, validation
from dynamo.values import AttributeValue, Item, canonical_item

_VERSION = b"\x01"
_PART = 8
_RANGE_BYTES = 2
_CHECK_KEY = b"trizone next token"


class Position(NamedTuple):
    """`number` of the range, from 0, and the key of the last row that was evaluated there; None: none yet."""

    number: int = 0
    key: Item | None = None


def fingerprint(table_id: int, statement: str, values: Sequence[AttributeValue]) -> bytes:
    """What a token and the request that it comes with must have in common."""
    text = b"\0".join((str(table_id).encode(), statement.encode("utf-8", "surrogatepass"), orjson.dumps(values)))
    return blake2b(text, digest_size=_PART).digest()


def encode_token(number: int, last_key: bytes, request: bytes) -> str:
    """The token for a position: `last_key` as the node's JSON, empty for the beginning of the range."""
    body = _VERSION + request + number.to_bytes(_RANGE_BYTES, "little") + last_key
    return b64encode(body + _check(body)).decode()


def decode_token(token: str, request: bytes, ranges: int) -> Position:
    """The position in a token. Raises ValidationException for a token of another request, or none at all."""
    try:
        data = a2b_base64(token, strict_mode=True)
    except ValueError:  # binascii.Error, and text that is not ASCII
        raise _invalid() from None
    body, check = data[:-_PART], data[-_PART:]
    if body[:1] != _VERSION or check != _check(body):
        raise _invalid()
    if body[1 : 1 + _PART] != request:
        raise validation("NextToken does not match request")
    number = int.from_bytes(body[1 + _PART : 1 + _PART + _RANGE_BYTES], "little")
    key = body[1 + _PART + _RANGE_BYTES :]
    if number >= max(1, ranges):
        raise validation("NextToken does not match request")
    return Position(number, _key(key) if key else None)


def _key(data: bytes) -> Item:
    try:
        return canonical_item(orjson.loads(data))
    except (ValueError, ApiError):
        raise _invalid() from None


def _check(body: bytes) -> bytes:
    return blake2b(body, digest_size=_PART, key=_CHECK_KEY).digest()


def _invalid() -> ApiError:
    return validation("Invalid NextToken")
