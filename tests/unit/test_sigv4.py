"""Signature Version 4: what botocore signs holds, and nothing else does. Errors are DynamoDB's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

import pytest

from dynamo.errors import ApiError
from router.sigv4 import MISMATCH, Request, Verifier, access_key, unrecognized
from tests.unit.signing import ACCESS_KEY, NOW, SECRET, signed

MINUTES = 60


@dataclass
class Owner:
    secret: bytes


def owner_of(key: str, token: str) -> Owner:
    if key != ACCESS_KEY or token not in ("", "a+b/c="):
        raise unrecognized()
    return Owner(SECRET.encode())


def verify(request: Request, now: float = NOW) -> str:
    return Verifier("us-east-1", owner_of).verify(request, now)[0]


def refusal(request: Request, now: float = NOW) -> tuple[str, str]:
    with pytest.raises(ApiError) as caught:
        verify(request, now)
    assert caught.value.status == 400
    return caught.value.type, caught.value.message


def changed(request: Request, **headers: bytes | None) -> Request:
    """The request with headers in place of its own; None takes one away. Names are written with _ for -."""
    names = {name.replace("_", "-").encode(): value for name, value in headers.items()}
    merged = {**request.headers, **names}
    return request._replace(headers={name: value for name, value in merged.items() if value is not None})


def authorization(request: Request, edit: Callable[[str], str]) -> Request:
    header = edit(request.headers[b"authorization"].decode())
    return changed(request, authorization=header.encode())


# --- what holds ---


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Odd": "  two   blanks\t and a tab  "},
        {"X-Empty": "", "X-Comma": "a, b,c"},
        {"X-Unicode": "Größe 東京"},
        {"X-Quoted": '"a   b"'},
        {"Accept-Encoding": " identity , gzip ", "amz-sdk-invocation-id": "i-1", "amz-sdk-request": "attempt=1"},
        {"Date": "any"},
    ],
)
def test_headers_of_all_kinds(headers: dict[str, str]) -> None:
    assert verify(signed(headers=headers)) == ACCESS_KEY


def test_a_header_that_is_signed_in_utf8_and_sent_in_latin1() -> None:
    request = signed(headers={"X-Unicode": "Größe"})
    assert verify(changed(request, x_unicode="Größe".encode("latin-1"))) == ACCESS_KEY


def test_a_host_that_is_signed_without_its_port() -> None:
    request = signed(url="http://db.example.com/")
    assert verify(changed(request, host=b"db.example.com:8000")) == ACCESS_KEY
    assert verify(changed(signed(url="http://[::1]/"), host=b"[::1]:8000")) == ACCESS_KEY
    assert refusal(changed(request, host=b"example.com:8000"))[1] == MISMATCH


@pytest.mark.parametrize(
    "path",
    ["/", "", "/?a=1&b=2", "/?b=2&a=1&a=0", "/?empty=&x", "/?q=%20%2F%C3%BC", "/a%20b/c", "/a//b/./c/../d/", "/?a=b+c"],
)
def test_paths_and_queries(path: str) -> None:
    assert verify(signed(url=f"http://127.0.0.1:8000{path}")) == ACCESS_KEY


@pytest.mark.parametrize("body", [b"", b"{}", '{"TableName": "é"}'.encode(), bytes(range(256)), b"x" * (1 << 20)])
def test_bodies(body: bytes) -> None:
    assert verify(signed(body)) == ACCESS_KEY


def test_a_session_token_is_looked_up_with_the_key() -> None:
    assert verify(signed(token="a+b/c=")) == ACCESS_KEY
    assert verify(signed(token="a+b/c=", presigned=60)) == ACCESS_KEY


@pytest.mark.parametrize("path", ["/", "/?x=1&A=%20"])
def test_presigned(path: str) -> None:
    request = signed(b'{"a":1}', url=f"http://127.0.0.1:8000{path}", presigned=60)
    assert b"authorization" not in request.headers
    assert verify(request) == ACCESS_KEY
    assert verify(request, NOW + 60) == ACCESS_KEY
    assert refusal(request, NOW + 61)[1].startswith("Signature expired: ")
    assert refusal(request._replace(body=b'{"a":2}')) == ("InvalidSignatureException", MISMATCH)


@pytest.mark.parametrize("edit", [str.strip, lambda text: text.replace(", ", ","), lambda text: f"  {text}  "])
def test_ways_to_write_the_header(edit: Callable[[str], str]) -> None:
    assert verify(authorization(signed(), edit)) == ACCESS_KEY


def test_parts_of_the_header_in_another_order() -> None:
    def reorder(text: str) -> str:
        algorithm, _, rest = text.partition(" ")
        return f"{algorithm} {', '.join(reversed(rest.split(', ')))}"

    verifier = Verifier("us-east-1", owner_of)
    for _ in range(2):
        assert verifier.verify(authorization(signed(), reorder), NOW)[0] == ACCESS_KEY


@pytest.mark.parametrize("minutes", [-15, 0, 15])
def test_fifteen_minutes_of_skew(minutes: int) -> None:
    assert verify(signed(), NOW + minutes * MINUTES) == ACCESS_KEY


def test_one_verifier_verifies_many() -> None:
    verifier = Verifier("us-east-1", owner_of)
    for number in range(3):
        assert verifier.verify(signed(b"%d" % number), NOW)[0] == ACCESS_KEY
        with pytest.raises(ApiError, match="does not match"):
            verifier.verify(signed(b"%d" % number)._replace(body=b"other"), NOW)


def test_a_secret_that_changes_takes_its_derived_key_along() -> None:
    owner = Owner(SECRET.encode())
    verifier = Verifier("us-east-1", lambda *_: owner)
    assert verifier.verify(signed(), NOW)
    owner.secret = b"another"
    with pytest.raises(ApiError, match="does not match"):
        verifier.verify(signed(), NOW)


# --- what does not ---


@pytest.mark.parametrize(
    "spoil",
    [
        lambda request: request._replace(body=b"{} "),
        lambda request: request._replace(method=b"PUT"),
        lambda request: request._replace(target=b"/?a=1"),
        lambda request: request._replace(target=b"/other"),
        lambda request: changed(request, host=b"elsewhere"),
        lambda request: changed(request, x_amz_target=b"DynamoDB_20120810.DeleteTable"),
        lambda request: changed(request, content_type=None),
        lambda request: authorization(request, lambda text: text[:-1] + ("0" if text[-1] != "0" else "1")),
        lambda request: authorization(request, lambda text: text[:-8]),
        lambda request: authorization(request, lambda text: text + "00"),
        lambda request: authorization(request, lambda text: text.replace("content-type;", "")),
    ],
)
def test_anything_else_than_what_was_signed(spoil: Callable[[Request], Request]) -> None:
    assert refusal(spoil(signed())) == ("InvalidSignatureException", MISMATCH)


def test_the_wrong_secret() -> None:
    assert refusal(signed(secret="wrong")) == ("InvalidSignatureException", MISMATCH)


def test_an_unknown_key_and_a_token_that_is_not_its_own() -> None:
    expected = ("UnrecognizedClientException", "The security token included in the request is invalid.")
    assert refusal(signed(access_key="TRIZNOBODYNOBODYNOB1")) == expected
    assert refusal(signed(token="another")) == expected


def test_an_unsigned_payload_is_not_taken() -> None:
    assert refusal(signed(headers={"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"}))[1] == MISMATCH
    assert verify(signed(b"body", headers={"X-Amz-Content-SHA256": sha256(b"body").hexdigest()})) == ACCESS_KEY
    assert refusal(signed(b"body", headers={"X-Amz-Content-SHA256": sha256(b"other").hexdigest()}))[1] == MISMATCH


def test_too_old_and_too_new() -> None:
    assert refusal(signed(), NOW + 15 * MINUTES + 1) == (
        "InvalidSignatureException",
        "Signature expired: 20261130T120000Z is now earlier than 20261130T120001Z (20261130T121501Z - 15 min.)",
    )
    assert refusal(signed(), NOW - 15 * MINUTES - 1) == (
        "InvalidSignatureException",
        "Signature not yet current: 20261130T120000Z is still later than 20261130T115959Z (20261130T114459Z + 15 min.)",
    )


@pytest.mark.parametrize("header", [None, b"", b"Basic abc", b"Bearer x"])
def test_no_signature_at_all(header: bytes | None) -> None:
    assert refusal(changed(signed(), authorization=header)) == (
        "MissingAuthenticationTokenException",
        "Request is missing Authentication Token",
    )


def test_all_missing_parts_are_named() -> None:
    bare = changed(signed(), authorization=b"AWS4-HMAC-SHA256", x_amz_date=None)
    assert refusal(bare) == (
        "IncompleteSignatureException",
        "Authorization header requires 'Credential' parameter. Authorization header requires 'Signature' parameter. "
        "Authorization header requires 'SignedHeaders' parameter. Authorization header requires existence of either a "
        "'X-Amz-Date' or a 'Date' header. Authorization=AWS4-HMAC-SHA256",
    )


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (lambda text: text.replace("SHA256", "SHA1"), "Unsupported AWS 'algorithm': 'AWS4-HMAC-SHA1'"),
        (lambda text: text.replace("/aws4_request", ""), "Credential must have exactly 5 slash-delimited elements"),
        (lambda text: text.replace("Credential=", "Credential=a/"), "Credential must have exactly 5"),
        (lambda text: text.replace("SignedHeaders=", "SignedHeaders"), "not a valid key=value pair"),
        (lambda text: text.replace("Signature=", "Signature= "), "not a valid key=value pair"),
    ],
)
def test_incomplete_headers(edit: Callable[[str], str], text: str) -> None:
    kind, message = refusal(authorization(signed(), edit))
    assert kind == "IncompleteSignatureException"
    assert text in message


@pytest.mark.parametrize("date", [b"201", b"20261130T120000", b"20261399T120000Z", b"yesterday"])
def test_a_date_that_is_none(date: bytes) -> None:
    kind, message = refusal(changed(signed(), x_amz_date=date))
    assert kind == "IncompleteSignatureException"
    assert message.startswith("Date must be in ISO-8601 'basic format'.")


def test_a_scope_of_another_place() -> None:
    request = authorization(
        signed(region="eu-west-1", service="s3"),
        lambda text: text.replace("20261130/", "20261129/").replace("4_r", "5_r"),
    )
    assert refusal(request) == (
        "InvalidSignatureException",
        "Credential should be scoped to a valid region, not 'eu-west-1'. "
        "Credential should be scoped to correct service: 'dynamodb'. "
        "Credential should be scoped with a valid terminator: 'aws4_request', not 'aws5_request'. "
        "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
        "'20261129' != '20261130', from '20261130T120000Z'. ",
    )


@pytest.mark.parametrize("name", ["host", "x-amz-target", "x-amz-date"])
def test_what_has_to_be_signed(name: str) -> None:
    def strip(text: str) -> str:
        return text.replace(f";{name}", "").replace(f"{name};", "")

    kind, message = refusal(authorization(signed(), strip))
    assert kind == "InvalidSignatureException"
    assert "must be a 'SignedHeader' in the AWS Authorization." in message


def test_a_signature_in_both_places() -> None:
    request = signed(presigned=60)
    both = changed(request, authorization=signed().headers[b"authorization"])
    assert refusal(both)[1].startswith("Found both 'X-Amz-Algorithm'")


def test_a_query_that_lacks_parts() -> None:
    request = signed(presigned=60)
    cut = request._replace(target=request.target.partition(b"&X-Amz-Signature")[0])
    kind, message = refusal(cut)
    assert kind == "IncompleteSignatureException"
    assert "'X-Amz-Signature'" in message


@pytest.mark.parametrize("expires", [b"x", b"-1", b"604801", b"99999999999", "٣".encode()])
def test_a_lifetime_that_is_none(expires: bytes) -> None:
    request = signed(presigned=60)
    longer = request._replace(target=request.target.replace(b"X-Amz-Expires=60", b"X-Amz-Expires=" + expires))
    assert refusal(longer)[0] == "IncompleteSignatureException"


def test_an_error_never_repeats_the_signature() -> None:
    request = signed()
    signature = request.headers[b"authorization"].decode()[-64:]
    _, message = refusal(authorization(request, lambda text: text.replace("Credential", "Cred")))
    assert signature not in message


def test_the_access_key_of_an_incomplete_header() -> None:
    assert access_key("AWS4-HMAC-SHA256 Credential=AKID/x") == "AKID"
    assert access_key("Basic abc") == ""
