"""Signature Version 4 as a service checks it: in the Authorization header, or in the query ("presigned").

Pure: time and secrets are arguments. What is wrong is told in DynamoDB's words, and looked for in DynamoDB's order.
Format: AWS, "Create a signed AWS API request"; texts and order: captures of the service's answers in public trackers.

The payload's hash is always that of the body as it came: like DynamoDB, and unlike S3, `UNSIGNED-PAYLOAD` is taken for
nothing but a header's value.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_tz
from hashlib import sha256
from hmac import compare_digest, digest
from typing import Generic, NamedTuple, Protocol, TypeVar

from dynamo.errors import ApiError

ALGORITHM = "AWS4-HMAC-SHA256"
SERVICE = "dynamodb"
TERMINATOR = "aws4_request"
SCOPE_PARTS = 5
SKEW_SECONDS = 15 * 60
EXPIRES_MAX_SECONDS = 7 * 24 * 3600
HEAD_BYTES_MAX = 1_024
KEYS_MAX = 1_024
"""Signing keys, and parsed headers, that are kept. A full cache starts anew."""

MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key "
    "and signing method. Consult the service documentation for details."
)
INVALID_TOKEN = "The security token included in the request is invalid."
EXPIRED_TOKEN = "The security token included in the request is expired"

_HEADER_PARTS = ("Credential", "Signature", "SignedHeaders")
_QUERY_PARTS = ("X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature", "X-Amz-SignedHeaders", "X-Amz-Date")
_ESCAPED = [
    bytes([byte]) if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "-_.~") else b"%%%02X" % byte
    for byte in range(256)
]
_HOST_PORT = re.compile(rb"(?m)^(host:.*):\d+\n")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_MUST_BE_SIGNED = {b"x-amz-target": "'X-Amz-Target'", b"x-amz-date": "'X-Amz-Date'"}


class Request(NamedTuple):
    """What a signature covers. `target` is path and query as in the request line, `headers` have lower-case names,
    `body` is as it came over the wire."""

    method: bytes
    target: bytes
    headers: Mapping[bytes, bytes]
    body: bytes


class Head(NamedTuple):
    """What a client's requests have in common for a day, by which it is kept once it was understood.

    `scope` is date, region, service, aws4_request; `prefixes` are the signed headers' names with their colons.
    `complete`: all is signed that has to be. `at_home`: it is for this region and service.
    """

    access_key: str
    scope: tuple[str, ...]
    signed: tuple[bytes, ...]
    prefixes: tuple[tuple[bytes, bytes], ...]
    signed_text: bytes
    scope_text: str
    complete: bool
    at_home: bool


class Claim(NamedTuple):
    """What a signed request says of itself: it was made at `date` (x-amz-date), `seconds` since the epoch. `expires` is
    None for the header form."""

    head: Head
    signature: bytes
    date: str
    seconds: int
    token: str
    expires: int | None = None

    @property
    def access_key(self) -> str:
        """Whose signature it claims to be."""
        return self.head.access_key


class Holder(Protocol):
    """Who has a secret."""

    @property
    def secret(self) -> bytes:
        """What requests are signed with."""
        ...


H = TypeVar("H", bound=Holder)


def unrecognized() -> ApiError:
    """`UnrecognizedClientException`: no such access key, or a token that is not its own."""
    return ApiError("UnrecognizedClientException", INVALID_TOKEN)


def expired_token() -> ApiError:
    """`ExpiredTokenException`."""
    return ApiError("ExpiredTokenException", EXPIRED_TOKEN)


def access_key(header: str) -> str:
    """The access key that a header names, "" when it names none. Cheap, and content with an incomplete header."""
    _, found, rest = header.partition("Credential=")
    return rest.partition("/")[0].strip() if found else ""


class Verifier(Generic[H]):
    """Verifies requests to one region's endpoint. Keeps derived signing keys, and nothing else of a request.

    `holder_of` finds the holder of (access key, session token), or raises ApiError: `unrecognized`, `expired_token`.
    """

    def __init__(self, region: str, holder_of: Callable[[str, str], H]) -> None:
        self._region = region
        self._holder_of = holder_of
        self._keys: dict[tuple[str, str], tuple[bytes, bytes]] = {}
        self._heads: dict[bytes, Head] = {}
        self._last_date = (b"", "", 0)

    def verify(self, request: Request, now: float) -> tuple[str, H]:
        """Access key and holder of what signed the request, at `now` in seconds since the epoch. Raises ApiError."""
        claim = self._claim(request)
        head = claim.head
        age = now - claim.seconds
        if claim.expires is not None or not -SKEW_SECONDS <= age <= SKEW_SECONDS:
            self._check_time(claim, now)
        if not head.complete:
            self._check_signed_headers(claim, request)
        if not head.at_home or head.scope[0] != claim.date[:8]:
            self._check_scope(claim)
        holder = self._holder_of(head.access_key, claim.token)
        if not self._matches(claim, request, self._signing_key(head, holder.secret)):
            raise _invalid(MISMATCH)
        return head.access_key, holder

    # --- what the request says ---

    def _claim(self, request: Request) -> Claim:
        header = request.headers.get(b"authorization")
        presigned = b"X-Amz-Algorithm=" in request.target
        if header is not None and presigned:
            raise _invalid("Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.")
        if presigned:
            return self._claim_of_query(request)
        if header is None or not header.lstrip().startswith(b"AWS4-"):
            raise ApiError("MissingAuthenticationTokenException", "Request is missing Authentication Token")
        return self._claim_of_header(header, request)

    def _claim_of_header(self, header: bytes, request: Request) -> Claim:
        headers = request.headers
        date = headers.get(b"x-amz-date") or headers.get(b"date") or b""
        beginning, _, signature = header.rpartition(b"Signature=")
        head = self._heads.get(beginning)
        if head is None or not date or not signature or b"," in signature or b" " in signature:
            parts, signed, signature = _parsed_header(header, date)
            head = self._head(parts, signed)
            if len(beginning) <= HEAD_BYTES_MAX and header.endswith(signature):
                if len(self._heads) >= KEYS_MAX:
                    self._heads.clear()
                self._heads[beginning] = head
        text, seconds = self._date(date)
        token = headers.get(b"x-amz-security-token")
        return Claim(head, signature, text, seconds, "" if token is None else token.decode("latin-1"))

    def _head(self, parts: tuple[str, ...], signed: tuple[bytes, ...]) -> Head:
        access, *scope = parts
        return Head(
            access,
            tuple(scope),
            signed,
            tuple([(name, name + b":") for name in signed]),
            b";".join(signed),
            "/".join(scope),
            complete=b"host" in signed and all(name in signed for name in _MUST_BE_SIGNED),
            at_home=scope[1:] == [self._region, SERVICE, TERMINATOR],
        )

    def _claim_of_query(self, request: Request) -> Claim:
        pairs = query_pairs(request.target.partition(b"?")[2])
        given = {name.decode("latin-1"): value.decode("latin-1") for name, value in pairs}
        missing = [name for name in _QUERY_PARTS if not given.get(name)]
        if missing:
            told = "".join(f"AWS query-string parameters must include '{name}'. " for name in missing)
            raise _incomplete(f"{told}Re-examine the query-string parameters.")
        _check_algorithm(given["X-Amz-Algorithm"])
        parts = _scope(given["X-Amz-Credential"])
        text, seconds = self._date(given["X-Amz-Date"].encode("latin-1"))
        expires = given.get("X-Amz-Expires", str(SKEW_SECONDS))
        if not (expires.isascii() and expires.isdigit() and len(expires) < 9 and int(expires) <= EXPIRES_MAX_SECONDS):
            raise _incomplete("X-Amz-Expires must be a number of seconds from 0 to 604800.")
        token = given.get("X-Amz-Security-Token") or request.headers.get(b"x-amz-security-token", b"").decode("latin-1")
        signed = tuple(name.encode("latin-1").lower() for name in given["X-Amz-SignedHeaders"].split(";"))
        signature = given["X-Amz-Signature"].encode("latin-1")
        return Claim(self._head(parts, signed), signature, text, seconds, token, int(expires))

    def _date(self, date: bytes) -> tuple[str, int]:
        """In ISO-8601's basic form, and in seconds. A Date header may have HTTP's form. Raises ApiError."""
        known, text, seconds = self._last_date
        if date == known:
            return text, seconds
        text = date.decode("latin-1")
        found = _seconds(text)
        if found is None:
            parsed = parsedate_tz(text)
            if parsed is None or not 1970 <= parsed[0] <= 9999:
                raise _incomplete(
                    f"Date must be in ISO-8601 'basic format'. Got '{text}'. See http://en.wikipedia.org/wiki/ISO_8601"
                )
            found = timegm(parsed[:6]) - (parsed[9] or 0)
            return iso(found), found
        self._last_date = (date, text, found)
        return text, found

    # --- whether it holds ---

    def _check_time(self, claim: Claim, now: float) -> None:
        age = now - claim.seconds
        lifetime = SKEW_SECONDS if claim.expires is None else claim.expires
        if age > lifetime:
            told = "15 min." if claim.expires is None else f"{lifetime} s"
            raise _invalid(
                f"Signature expired: {claim.date} is now earlier than {iso(now - lifetime)} ({iso(now)} - {told})"
            )
        if age < -SKEW_SECONDS:
            raise _invalid(
                f"Signature not yet current: {claim.date} is still later than {iso(now + SKEW_SECONDS)} "
                f"({iso(now)} + 15 min.)"
            )

    def _check_signed_headers(self, claim: Claim, request: Request) -> None:
        """What decides where a request goes and what it does must be under the signature."""
        signed = claim.head.signed
        if b"host" not in signed:
            raise _invalid("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
        for name, told in _MUST_BE_SIGNED.items():
            if name not in signed and name in request.headers:
                raise _invalid(f"{told} must be a 'SignedHeader' in the AWS Authorization.")
        if claim.expires is None and b"x-amz-date" not in signed and b"date" not in signed:
            raise _invalid("'Date' must be a 'SignedHeader' in the AWS Authorization.")

    def _check_scope(self, claim: Claim) -> None:
        date, region, service, terminator = claim.head.scope
        told = ""
        if region != self._region:
            told += f"Credential should be scoped to a valid region, not '{region}'. "
        if service != SERVICE:
            told += f"Credential should be scoped to correct service: '{SERVICE}'. "
        if terminator != TERMINATOR:
            told += f"Credential should be scoped with a valid terminator: '{TERMINATOR}', not '{terminator}'. "
        if date != claim.date[:8]:
            told += (
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
                f"'{date}' != '{claim.date[:8]}', from '{claim.date}'. "
            )
        raise _invalid(told)

    def _signing_key(self, head: Head, secret: bytes) -> bytes:
        name = (head.access_key, head.scope_text)
        kept = self._keys.get(name)
        if kept is not None and kept[0] == secret:
            return kept[1]
        key = signing_key(secret, head.scope)
        if len(self._keys) >= KEYS_MAX:
            self._keys.clear()
        self._keys[name] = (secret, key)
        return key

    def _matches(self, claim: Claim, request: Request, key: bytes) -> bool:
        payload = sha256(request.body).hexdigest().encode()
        lines = canonical_headers(request.headers, claim.head.prefixes)
        target = request.target
        if target == b"/":
            path, query = target, b""
        else:
            path, _, query = target.partition(b"?")
            path = canonical_path(path)
        presigned = claim.expires is not None
        if _agrees(claim, key, request.method, path, canonical_query(query, presigned), lines, payload):
            return True
        # Signers differ in odd places: some sign the query as they sent it, some sign a header's text in UTF-8 and send
        # it in Latin-1, and some sign the host without its port. All say what was meant, so all are taken.
        queries = dict.fromkeys((canonical_query(query, presigned), raw_query(query, presigned) if query else b""))
        heads = dict.fromkeys((lines, _in_utf8(lines), _without_port(lines)))
        first = (next(iter(queries)), lines)
        return any(
            _agrees(claim, key, request.method, path, each, head, payload)
            for each in queries
            for head in heads
            if (each, head) != first
        )


# --- the canonical form ---


def canonical_request(
    method: bytes, path: bytes, query: bytes, lines: bytes, signed_headers: bytes, payload: bytes
) -> bytes:
    """The text that is hashed; all parts canonical themselves, `lines` with a newline after each header."""
    return b"%b\n%b\n%b\n%b\n%b\n%b" % (method, path, query, lines, signed_headers, payload)


def canonical_headers(headers: Mapping[bytes, bytes], prefixes: Iterable[tuple[bytes, bytes]]) -> bytes:
    """One line per signed header: blanks around its value are dropped, those within become one. A header that was
    signed and is not there counts as empty. `prefixes`: names, and names with their colons."""
    lines = [prefix + b" ".join(headers.get(name, b"").split()) for name, prefix in prefixes]
    lines.append(b"")
    return b"\n".join(lines)


def canonical_path(path: bytes) -> bytes:
    """Without empty and dot segments, each one encoded once more than it is on the wire."""
    if path == b"/":
        return path
    kept: list[bytes] = []
    for segment in path.split(b"/"):
        if segment == b"..":
            del kept[-1:]
        elif segment not in (b"", b"."):
            kept.append(segment)
    last = b"/" if kept and path.endswith(b"/") else b""
    return b"/" + b"/".join([_encoded(segment) for segment in kept]) + last


def query_pairs(query: bytes) -> list[tuple[bytes, bytes]]:
    """Names and values, decoded, in the order given."""
    pairs = (part.partition(b"=") for part in query.split(b"&") if part)
    return [(_decoded(name), _decoded(value)) for name, _, value in pairs]


def canonical_query(query: bytes, presigned: bool = False) -> bytes:
    """Names and values encoded alike and sorted, without the signature itself in the presigned form."""
    if not query:
        return b""
    pairs = sorted((_encoded(name), _encoded(value)) for name, value in query_pairs(query))
    return b"&".join([b"%b=%b" % pair for pair in pairs if not (presigned and pair[0] == b"X-Amz-Signature")])


def raw_query(query: bytes, presigned: bool = False) -> bytes:
    """The query as it was sent, sorted: what botocore signs."""
    pairs = sorted((name, value) for name, _, value in (part.partition(b"=") for part in query.split(b"&")))
    return b"&".join([b"%b=%b" % pair for pair in pairs if not (presigned and pair[0] == b"X-Amz-Signature")])


def signing_key(secret: bytes, scope: Iterable[str]) -> bytes:
    """The key derived for a day, region and service."""
    key = b"AWS4" + secret
    for part in scope:
        key = digest(key, part.encode(), "sha256")
    return key


def iso(seconds: float) -> str:
    """Seconds since the epoch in ISO-8601's basic form."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y%m%dT%H%M%SZ")


def _agrees(claim: Claim, key: bytes, method: bytes, path: bytes, query: bytes, lines: bytes, payload: bytes) -> bool:
    canonical = canonical_request(method, path, query, lines, claim.head.signed_text, payload)
    text = f"{ALGORITHM}\n{claim.date}\n{claim.head.scope_text}\n{sha256(canonical).hexdigest()}"
    return compare_digest(digest(key, text.encode(), "sha256").hex().encode(), claim.signature)


def _encoded(value: bytes) -> bytes:
    return b"".join([_ESCAPED[byte] for byte in value])


def _decoded(value: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), value)


def _without_port(lines: bytes) -> bytes:
    return _HOST_PORT.sub(rb"\1\n", lines, count=1)


def _in_utf8(lines: bytes) -> bytes:
    return lines if lines.isascii() else lines.decode("latin-1").encode()


# --- parsing ---


def _parsed_header(header: bytes, date: bytes) -> tuple[tuple[str, ...], tuple[bytes, ...], bytes]:
    """Access key and scope, signed headers, and the signature. Raises ApiError, which names all that is missing."""
    text = header.decode("latin-1").strip()
    algorithm, _, rest = text.partition(" ")
    parts: dict[str, str] = {}
    for part in rest.replace(",", " ").split():
        name, found, value = part.partition("=")
        if not found:
            raise _incomplete(
                f"'{part}' not a valid key=value pair (missing equal-sign) in Authorization header: '{_hidden(text)}'."
            )
        parts[name] = value
    told = [f"Authorization header requires '{name}' parameter. " for name in _HEADER_PARTS if not parts.get(name)]
    if not date:
        told.append("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ")
    if told:
        raise _incomplete(f"{''.join(told)}Authorization={_hidden(text)}")
    _check_algorithm(algorithm)
    signed = tuple(parts["SignedHeaders"].lower().encode("latin-1").split(b";"))
    return _scope(parts["Credential"]), signed, parts["Signature"].encode("latin-1")


def _scope(credential: str) -> tuple[str, ...]:
    """Access key, date, region, service, terminator."""
    parts = tuple(credential.rstrip("/").rsplit("/", SCOPE_PARTS - 1))
    if len(parts) != SCOPE_PARTS or "/" in parts[0]:
        raise _incomplete(
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, "
            f"got '{credential}'"
        )
    return parts


def _check_algorithm(algorithm: str) -> None:
    if algorithm != ALGORITHM:
        raise _incomplete(f"Unsupported AWS 'algorithm': '{algorithm}' (only {ALGORITHM} for now). ")


def _hidden(header: str) -> str:
    """The header as an error tells it: bounded, and without the signature, which may still be good."""
    head, found, _ = header.partition("Signature=")
    return (head + ("Signature=…" if found else ""))[:512]


def _seconds(date: str) -> int | None:
    """Of a time such as 20261130T120000Z."""
    if len(date) != 16 or date[8] != "T" or date[15] != "Z" or not (date[:8] + date[9:15]).isdigit():
        return None
    try:
        parts = datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
    return timegm(parts.timetuple())


def _incomplete(message: str) -> ApiError:
    return ApiError("IncompleteSignatureException", message)


def _invalid(message: str) -> ApiError:
    return ApiError("InvalidSignatureException", message)
