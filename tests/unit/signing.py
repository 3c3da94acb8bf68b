"""Requests signed by botocore, as they stand on the wire: what a router has to verify."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from router.sigv4 import Request

ACCESS_KEY, SECRET = "TRIZEXAMPLEEXAMPLE01", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
NOW = 1_796_040_000.0
"""2026-11-30T00:00:00Z and twelve hours."""
TARGET = "DynamoDB_20120810.GetItem"
HEADERS = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": TARGET}


class Presigning(SigV4QueryAuth):  # type: ignore[misc]
    """botocore's, but with the body left where it is: it would move a JSON body into the query."""

    def _modify_request_before_signing(self, request: Any) -> None:
        body, request.data = request.data, None
        super()._modify_request_before_signing(request)
        request.data = body


def signed(
    body: bytes = b"{}",
    *,
    url: str = "http://127.0.0.1:8000/",
    headers: dict[str, str] | None = None,
    at: float = NOW,
    access_key: str = ACCESS_KEY,
    secret: str = SECRET,
    token: str | None = None,
    region: str = "us-east-1",
    service: str = "dynamodb",
    presigned: int = 0,
    method: str = "POST",
) -> Request:
    """The request as botocore signs it at `at`; `presigned` for so many seconds: in the query."""
    request = AWSRequest(method, url, headers={**HEADERS, **(headers or {})}, data=body)
    credentials = Credentials(access_key, secret, token)
    signer = (
        Presigning(credentials, service, region, expires=presigned)
        if presigned
        else SigV4Auth(credentials, service, region)
    )
    moment = datetime.fromtimestamp(at, UTC)
    with mock.patch("botocore.auth.get_current_datetime", return_value=moment.replace(tzinfo=None)):
        signer.add_auth(request)
    parts = urlsplit(request.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    wire: dict[bytes, bytes] = {}
    for name, value in request.headers.items():
        key, text = name.lower().encode(), value.encode() if isinstance(value, str) else value
        wire[key] = wire[key] + b"," + text if key in wire else text
    wire.setdefault(b"host", parts.netloc.encode())
    return Request(method.encode(), target.encode(), wire, body)
