"""A cluster that enforces: users by `trizone user`, real signers, and everything that must not get in."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.integration.launching import Up, eventually, finished, pids_of, running
from tests.unit.signing import signed

IDLE_CONNECTIONS = 5_000
RSS_MAX = 300 << 20
REQUEST_SECONDS = 2


class Site:
    """The cluster, its folder, and what secrets it has handed out."""

    def __init__(self, up: Up, data: Path, url: str) -> None:
        self.up = up
        self.data = data
        self.url = url
        self.host = urlsplit(url).netloc
        self.secrets: list[str] = []

    def user(self, *arguments: str) -> Any:
        """What `trizone user` prints."""
        done = finished("user", *arguments, "--json", "--data", str(self.data))
        assert done.returncode == 0, done.stderr
        shown = json.loads(done.stdout) if done.stdout.startswith(("{", "[")) else {}
        self.secrets += [shown[name] for name in ("secret", "session_token") if name in shown]
        return shown

    def client(self, key: dict[str, str]) -> Any:
        """A client with these credentials."""
        return boto3.client(
            "dynamodb",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=key["access_key"],
            aws_secret_access_key=key["secret"],
            aws_session_token=key.get("session_token"),
            config=Config(retries={"total_max_attempts": 1}),
        )

    def send(self, message: bytes, *, wait: float = 20.0) -> bytes:
        """What comes back to bytes on a connection of their own, until it is closed or an answer is whole."""
        host, port = self.host.split(":")
        with socket.create_connection((host, int(port)), timeout=wait) as connection:
            try:
                connection.sendall(message)
                connection.shutdown(socket.SHUT_WR)
                return b"".join(iter(lambda: connection.recv(65_536), b""))
            except ConnectionError:
                return b""

    def signed(self, key: dict[str, str], operation: str, body: bytes = b"{}", **how: Any) -> Any:
        """A request of now with these credentials, unless `how` says otherwise."""
        given = {"url": f"{self.url}/", "at": time.time(), "access_key": key["access_key"], "secret": key["secret"]}
        return signed(body, headers={"X-Amz-Target": f"DynamoDB_20120810.{operation}"}, **{**given, **how})

    def post(self, request: Any) -> tuple[int, dict[str, Any]]:
        """Status and body of the answer to a request that was signed, and perhaps spoilt."""
        connection = http.client.HTTPConnection(self.host, timeout=20)
        headers = {name.decode(): value for name, value in request.headers.items()}
        connection.request(request.method.decode(), request.target.decode(), request.body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, json.loads(content)


def _arguments(folder: Path) -> list[str]:
    """Of `trizone up`: requests must be signed, and arrive within a moment."""
    impatient = f"request_seconds={REQUEST_SECONDS}"
    return ["--data", str(folder / "data"), "--port", "0", "--auth", "enforce", "--set", impatient]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("auth")
    with pytest.MonkeyPatch.context() as environment, ExitStack() as stack:
        environment.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        up = stack.enter_context(running(*_arguments(folder)))
        yield Site(up, folder / "data", up.endpoint())


@pytest.fixture(scope="module")
def root(site: Site) -> dict[str, str]:
    key: dict[str, str] = site.user("create", "root", "--admin")
    client = site.client(key)
    for name in ("Orders", "Others"):
        client.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
    client.put_item(TableName="Orders", Item={"pk": {"S": "ada"}})
    return key


@pytest.fixture(scope="module")
def ada(site: Site, root: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """May work with Orders' items whose key is the user's name."""
    assert root
    key: dict[str, str] = site.user("create", "ada")
    statement = {
        "Effect": "Allow",
        "Action": ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:BatchGetItem", "dynamodb:PartiQLSelect"],
        "Resource": "arn:aws:dynamodb:*:*:table/Orders",
        "Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:username}"]}},
    }
    file = tmp_path_factory.mktemp("policies") / "own.json"
    file.write_text(json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    site.user("policy", "put", "ada", "own", str(file))
    client = site.client(key)
    eventually(lambda: error_of(client.get_item, TableName="Orders", Key={"pk": {"S": "ada"}}) == "")
    return key


def error_of(call: Any, **arguments: Any) -> str:
    """The code of the error that a call ends in, "" for none."""
    try:
        call(**arguments)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


# --- who may do what ---


def test_without_credentials_nobody_gets_in(site: Site) -> None:
    nobody = site.client({"access_key": "TRIZNOBODYNOBODYNOB1", "secret": "none"})
    assert error_of(nobody.list_tables) == "UnrecognizedClientException"
    answer = site.send(
        f"POST / HTTP/1.1\r\nHost: {site.host}\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\n"
        "Content-Length: 2\r\n\r\n{}".encode()
    )
    assert b"#MissingAuthenticationTokenException" in answer


def test_a_user_may_do_what_policies_say_and_nothing_else(site: Site, ada: dict[str, str]) -> None:
    client = site.client(ada)
    own, other = {"pk": {"S": "ada"}}, {"pk": {"S": "eve"}}
    assert error_of(client.put_item, TableName="Orders", Item=own) == ""
    denied: list[tuple[Any, dict[str, Any]]] = [
        (client.get_item, {"TableName": "Orders", "Key": other}),
        (client.get_item, {"TableName": "Others", "Key": own}),
        (client.get_item, {"TableName": "Nowhere", "Key": own}),
        (client.batch_get_item, {"RequestItems": {"Orders": {"Keys": [own, other]}}}),
        (client.execute_statement, {"Statement": "SELECT * FROM Orders WHERE pk = 'eve'"}),
        (client.scan, {"TableName": "Orders"}),
        (client.delete_item, {"TableName": "Orders", "Key": own}),
        (client.delete_table, {"TableName": "Orders"}),
        (client.list_tables, {}),
    ]
    assert [error_of(call, **arguments) for call, arguments in denied] == ["AccessDeniedException"] * len(denied)


def test_keys_are_disabled_and_sessions_end(site: Site, root: dict[str, str]) -> None:
    assert root
    key = site.user("create", "temp", "--admin")
    session = site.user("session", "temp", "--hours", "0.0005")  # a second and a little
    assert error_of(site.client(session).list_tables) == ""
    eventually(lambda: error_of(site.client(session).list_tables) == "ExpiredTokenException")
    stripped = {name: value for name, value in session.items() if name != "session_token"}
    assert error_of(site.client(stripped).list_tables) == "UnrecognizedClientException"
    site.user("key", "disable", "temp", key["access_key"])
    eventually(lambda: error_of(site.client(key).list_tables) == "UnrecognizedClientException")


def test_a_tables_policy_lets_a_user_in(site: Site, root: dict[str, str]) -> None:
    guest = site.user("create", "guest")
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/Others"
    principal = {"AWS": "arn:aws:iam::000000000000:user/guest"}
    statement = {"Effect": "Allow", "Principal": principal, "Action": "dynamodb:Scan", "Resource": arn}
    client = site.client(guest)
    assert error_of(client.scan, TableName="Others") == "AccessDeniedException"
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    site.client(root).put_resource_policy(ResourceArn=arn, Policy=policy)
    eventually(lambda: error_of(client.scan, TableName="Others") == "")
    bad = policy.replace("Allow", "Perhaps")
    assert error_of(site.client(root).put_resource_policy, ResourceArn=arn, Policy=bad) == "ValidationException"


# --- attacks ---


def test_signatures_that_are_none(site: Site, root: dict[str, str]) -> None:
    def sign(**how: Any) -> Any:
        return site.signed(root, "ListTables", **how)

    def spoilt(**headers: bytes | None) -> Any:
        request = sign()
        names = {name.replace("_", "-").encode(): value for name, value in headers.items()}
        merged = {**request.headers, **names}
        return request._replace(headers={name: value for name, value in merged.items() if value is not None})

    assert site.post(sign())[0] == 200
    good = sign().headers[b"authorization"]
    attacks = [
        (sign(secret="wrong"), "InvalidSignatureException"),
        (sign(at=time.time() - 16 * 60), "InvalidSignatureException"),
        (sign(at=time.time() + 16 * 60), "InvalidSignatureException"),
        (sign(region="eu-west-1"), "InvalidSignatureException"),
        (sign(service="s3"), "InvalidSignatureException"),
        (sign(presigned=1, at=time.time() - 3), "InvalidSignatureException"),
        (sign()._replace(body=b'{"Limit":1}'), "InvalidSignatureException"),
        (spoilt(authorization=good[:-1]), "InvalidSignatureException"),
        (spoilt(authorization=good[:-64]), "IncompleteSignatureException"),
        (spoilt(authorization=good[:40]), "IncompleteSignatureException"),
        (spoilt(authorization=None), "MissingAuthenticationTokenException"),
        (spoilt(x_amz_date=None), "IncompleteSignatureException"),
        (spoilt(x_amz_target=b"DynamoDB_20120810.DescribeLimits"), "InvalidSignatureException"),
        (spoilt(x_amz_security_token=b"TZ1AAAA"), "UnrecognizedClientException"),
    ]
    found = [(status, body["__type"].rpartition("#")[2]) for status, body in (site.post(each) for each, _ in attacks)]
    assert found == [(400, expected) for _, expected in attacks]


def test_oversized_and_deeply_nested_requests(site: Site, root: dict[str, str]) -> None:
    head = b"POST / HTTP/1.1\r\nHost: h\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\n"
    assert b"HTTP/1.1 413 " in site.send(head + b"Content-Length: 99999999999\r\n\r\n")
    assert b"HTTP/1.1 400 " in site.send(head + b"X-Long: " + b"x" * 20_000 + b"\r\n\r\n")
    bomb = gzip.compress(bytes(64 << 20))
    packed = head + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    assert b"HTTP/1.1 413 " in site.send(packed + bomb)
    client = site.client(root)
    for levels, expected in ((100, "ValidationException"), (100_000, "SerializationException")):
        deep = b'{"L":[' * levels + b'{"S":"x"}' + b"]}" * levels
        body = b'{"TableName":"Orders","Item":{"pk":{"S":"a"},"x":%b}}' % deep
        status, answer = site.post(site.signed(root, "PutItem", body))
        assert (status, answer["__type"].rpartition("#")[2]) == (400, expected)
    for _ in range(25):
        code = error_of(client.execute_statement, Statement="SELECT * FROM Orders WHERE pk IN " + "[" * 8_000)
        assert code == "ValidationException"
    assert error_of(client.get_item, TableName="Orders", Key={"pk": {"S": "ada"}}) == ""


def test_slow_endless_and_idle_clients(site: Site, root: dict[str, str]) -> None:
    """Thousands of idle connections, some that never end their head, and some that never end their body: others are
    served meanwhile, the slow ones are cut off, and the router stays small."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < IDLE_CONNECTIONS + 500:
        pytest.skip(f"at most {hard} files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    pid = pids_of(site.data)["router-1"]
    host, port = site.host.split(":")
    client = site.client(root)
    with ExitStack() as stack:

        def connected(first: bytes) -> socket.socket:
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
            connection.sendall(first)
            return connection

        idle = [connected(b"") for _ in range(IDLE_CONNECTIONS)]
        slow = [connected(b"POST / HTTP/1.1\r\nHost: h\r\nX-A: ") for _ in range(20)]
        endless = [
            connected(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n")
            for _ in range(20)
        ]
        assert error_of(client.get_item, TableName="Orders", Key={"pk": {"S": "ada"}}) == ""
        assert resident(pid) < RSS_MAX
        eventually(lambda: all(map(_is_closed, [*slow, *endless])))
        assert not _is_closed(idle[0])
        assert not _is_closed(idle[-1])
        assert error_of(client.get_item, TableName="Orders", Key={"pk": {"S": "ada"}}) == ""
    assert resident(pid) < RSS_MAX


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


# --- secrets ---


def test_no_secret_is_in_the_data_directory_or_a_log(site: Site, root: dict[str, str], ada: dict[str, str]) -> None:
    assert root["secret"] in site.secrets
    assert ada["secret"] in site.secrets
    looked_at = 0
    for path in site.data.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            looked_at += 1
            assert not [path for secret in site.secrets if secret.encode() in content]
    assert looked_at > 10
    assert not [line for line in site.up.lines for secret in site.secrets if secret in line]


def test_a_key_file_inside_of_the_data_directory_is_refused(tmp_path: Path) -> None:
    done = finished("up", "--data", str(tmp_path), "--auth", "enforce", "--key-file", str(tmp_path / "x.key"))
    assert done.returncode == 2
    assert "must not lie in the data directory" in done.stderr


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ('listen = "0.0.0.0:0"', 'With auth = "off" a router serves loopback addresses only, and 0.0.0.0:0 is none'),
        ('auth = "enforce"', 'auth = "enforce" needs a key_file, a credentials_file or both.'),
        ('auth = "warn"\nkey_file = "/nowhere/key"', "The key file /nowhere/key cannot be read: No such file"),
        ('auth = "perhaps"', "has a wrong value for auth"),
    ],
)
def test_a_router_that_must_not_start_says_why_in_one_sentence(tmp_path: Path, settings: str, told: str) -> None:
    file = tmp_path / "router.toml"
    file.write_text(
        f'cluster_id = "c1"\nauto_admins = ["127.0.0.1:1"]\nlisten = "127.0.0.1:0"\n{settings}\n'.replace(
            'listen = "127.0.0.1:0"\nlisten', "listen"
        )
    )
    done = finished("router", "--config", str(file))
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
