"""Authorization headers of Signature Version 4."""

from __future__ import annotations

import pytest

from router.sigv4 import Authorization, access_key, parse_authorization

HEADER = (
    "AWS4-HMAC-SHA256 Credential=AKID/20261130/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=content-type;host;x-amz-date, Signature=0123abcd"
)


@pytest.mark.parametrize("header", [HEADER, HEADER.replace(", ", ","), f"  {HEADER}  "])
def test_parts_of_a_header(header: str) -> None:
    assert parse_authorization(header) == Authorization(
        "AKID", "20261130", "us-east-1", "dynamodb", ("content-type", "host", "x-amz-date"), "0123abcd"
    )
    assert access_key(header) == "AKID"


def test_an_access_key_may_hold_a_slash() -> None:
    parsed = parse_authorization(HEADER.replace("AKID", "team/AKID"))
    assert parsed is not None
    assert parsed.access_key == "team/AKID"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic abc",
        HEADER.replace("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1"),
        HEADER.replace("Signature=0123abcd", ""),
        HEADER.replace("SignedHeaders=content-type;host;x-amz-date", ""),
        HEADER.replace("/aws4_request", ""),
        HEADER.replace("aws4_request", "other"),
    ],
)
def test_incomplete_headers(header: str) -> None:
    assert parse_authorization(header) is None


def test_the_access_key_of_an_incomplete_header() -> None:
    assert access_key("AWS4-HMAC-SHA256 Credential=AKID/x") == "AKID"
    assert access_key("Basic abc") == ""
