"""Signature Version 4, as far as a request's Authorization header says who signed it. Nothing is verified here.

Format: docs of AWS, "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)".
"""

from __future__ import annotations

from dataclasses import dataclass

ALGORITHM = "AWS4-HMAC-SHA256"
SCOPE_PARTS = 5


@dataclass(frozen=True, slots=True)
class Authorization:
    """The parts of an Authorization header: `date` is YYYYMMDD, `signed_headers` are lower-case names."""

    access_key: str
    date: str
    region: str
    service: str
    signed_headers: tuple[str, ...]
    signature: str


def parse_authorization(header: str) -> Authorization | None:
    """The header's parts, or None when it is no complete Signature Version 4 header."""
    algorithm, _, rest = header.strip().partition(" ")
    if algorithm != ALGORITHM:
        return None
    members = dict(_member(part) for part in rest.replace(" ", ",").split(",") if part)
    scope = members.get("Credential", "").rsplit("/", SCOPE_PARTS - 1)
    signature, signed = members.get("Signature", ""), members.get("SignedHeaders", "")
    if len(scope) != SCOPE_PARTS or scope[-1] != "aws4_request" or not signature or not signed:
        return None
    access_key, date, region, service, _ = scope
    return Authorization(access_key, date, region, service, tuple(signed.split(";")), signature)


def access_key(header: str) -> str:
    """The access key that a header names, "" when it names none. Cheap, and content with an incomplete header."""
    _, found, rest = header.partition("Credential=")
    return rest.partition("/")[0].strip() if found else ""


def _member(part: str) -> tuple[str, str]:
    name, _, value = part.partition("=")
    return name, value
