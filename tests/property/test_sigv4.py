"""What botocore signs, the router comes to as well, whatever it is; and whatever is changed is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo.errors import ApiError
from router.sigv4 import Request, Verifier
from tests.unit.signing import ACCESS_KEY, NOW, SECRET, signed


class Owner:
    secret = SECRET.encode()


names = st.from_regex(r"\Ax-[a-z][a-z0-9-]{0,10}\Z").filter(lambda name: not name.startswith("x-amz"))
texts = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Zl", "Zp", "Zs"]) | st.sampled_from(" \t,;=/\"'"))
headers = st.dictionaries(names, texts, max_size=5)
segments = st.text(st.sampled_from("abcXYZ019-_.~%/ü&=+ "), max_size=12)
pairs = st.lists(st.tuples(segments, segments), max_size=4)


def encoded(text: str) -> str:
    return "".join(each if each.isascii() and (each.isalnum() or each in "-_.~") else escaped(each) for each in text)


def escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


@given(headers, pairs, st.lists(segments, max_size=3), st.binary(max_size=200), st.sampled_from([0, 900]))
def test_what_botocore_signs_is_verified(
    extra: dict[str, str], query: list[tuple[str, str]], path: list[str], body: bytes, presigned: int
) -> None:
    seen: dict[str, str] = {encoded(name): encoded(value) for name, value in query if name}
    url = "http://127.0.0.1:8000/" + "/".join(map(encoded, path))
    if seen:
        url += "?" + "&".join(f"{name}={value}" for name, value in seen.items())
    request = signed(body, url=url, headers=extra, presigned=presigned)
    assert Verifier("us-east-1", lambda *_: Owner()).verify(request, NOW)[0] == ACCESS_KEY


@given(st.sampled_from(["body", "target", "method", "header"]), st.binary(min_size=1, max_size=8))
def test_what_is_changed_is_noticed(part: str, more: bytes) -> None:
    request = signed(b"{}", headers={"X-Own": "a"})
    changed: Request = {
        "body": request._replace(body=request.body + more),
        "target": request._replace(target=b"/?" + more.hex().encode()),
        "method": request._replace(method=request.method + more),
        "header": request._replace(headers={**request.headers, b"x-own": b"a" + more.hex().encode()}),
    }[part]
    with pytest.raises(ApiError, match="does not match"):
        Verifier("us-east-1", lambda *_: Owner()).verify(changed, NOW)


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=40))
def test_nonsense_is_refused_and_nothing_else_happens(header: bytes, date: bytes, query: bytes) -> None:
    for beginning in (
        b"",
        b"AWS4-HMAC-SHA256 ",
        b"AWS4-HMAC-SHA256 Credential=a/b/c/d/e,SignedHeaders=host,Signature=",
    ):
        request = Request(b"POST", b"/?" + query, {b"authorization": beginning + header, b"x-amz-date": date}, b"")
        with pytest.raises(ApiError):
            Verifier("us-east-1", lambda *_: Owner()).verify(request, NOW)
    with pytest.raises(ApiError):
        Verifier("us-east-1", lambda *_: Owner()).verify(
            Request(b"POST", b"/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=" + query + b"&" + header, {}, b""), NOW
        )
