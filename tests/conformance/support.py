"""What the tests of an endpoint share: connecting, naming, and saying what error is expected. No test library."""

from __future__ import annotations

import http.client
import json
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import boto3
import botocore.config
import pytest
from botocore.exceptions import ClientError

Client: TypeAlias = Any  # boto3 makes its clients' classes while it runs
Item: TypeAlias = dict[str, Any]

VALIDATION = "ValidationException"
SERIALIZATION = "SerializationException"


def connect(url: str, region: str = "us-east-1") -> Client:
    """A boto3 client without the SDK's own checks."""
    return boto3.client(
        "dynamodb",
        endpoint_url=url,
        region_name=region,
        aws_access_key_id="conformance",
        aws_secret_access_key="conformance",
        config=botocore.config.Config(parameter_validation=False, max_pool_connections=32),
    )


def random_name() -> str:
    """A name that no table, key or attribute has yet."""
    return f"t{uuid.uuid4().hex}"


def key_types(*keys: str) -> list[tuple[str, str]]:
    """("p", "S") for each "p:S"."""
    return [(name, type_) for name, _, type_ in (key.rpartition(":") for key in keys)]


def new_table(name: str, *keys: str, **members: Any) -> dict[str, Any]:
    """A CreateTable request for an on-demand table; `keys` are "p:S" and maybe "c:N"."""
    types = key_types(*keys)
    return {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": type_} for key, type_ in types],
        "KeySchema": [
            {"AttributeName": key, "KeyType": kind} for (key, _), kind in zip(types, ("HASH", "RANGE"), strict=False)
        ],
        "BillingMode": "PAY_PER_REQUEST",
        **members,
    }


@contextmanager
def refused(error: str, *texts: str) -> Iterator[None]:
    """The block ends with this error, and each of `texts` in its message."""
    with pytest.raises(ClientError) as raised:
        yield
    answer = raised.value.response
    message = answer["Error"].get("Message", "")
    assert answer["Error"]["Code"] == error, message
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 400
    for text in texts:
        assert text in message


def s(value: str | None = None) -> Item:
    """A string, random unless given."""
    return {"S": random_name() if value is None else value}


def n(value: object) -> Item:
    """A number."""
    return {"N": str(value)}


def key(**values: str) -> Item:
    """String attributes, such as a key's."""
    return {name: {"S": value} for name, value in values.items()}


@dataclass(frozen=True)
class Answer:
    """An answer as it came. Names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The bare type of the error; "" for success."""
        return str(self.json.get("__type", "")).partition("#")[2] if self.status != 200 else ""

    @property
    def message(self) -> str:
        """The error's text."""
        return str(self.json.get("message", self.json.get("Message", "")))

    def check_crc(self) -> None:
        """The header that SDKs compare with the body is right."""
        assert int(self.headers["x-amz-crc32"]) == zlib.crc32(self.body)


class Http:
    """Requests as bytes, for what no SDK sends."""

    def __init__(self, url: str) -> None:
        self.address = urlsplit(url)

    def connection(self) -> http.client.HTTPConnection:
        """A new connection."""
        kind = http.client.HTTPSConnection if self.address.scheme == "https" else http.client.HTTPConnection
        return kind(self.address.hostname or "", self.address.port, timeout=30)

    def send(self, operation: str, body: bytes | dict[str, Any], **headers: str) -> Answer:
        """The answer to a request for an operation. Underscores in names of headers stand for hyphens."""
        target = f"DynamoDB_20120810.{operation}"
        credential = "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host"
        sent = {
            "X-Amz-Target": target,
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": f"{credential}, Signature=0",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        return self.request("POST", "/", body if isinstance(body, bytes) else json.dumps(body).encode(), sent)

    def request(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        """The answer to any request."""
        connection = self.connection()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, named, response.read())
        finally:
            connection.close()
