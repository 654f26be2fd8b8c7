"""Webhooks: which addresses are never called, and what the answers of those that are mean."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from connectors import webhooks as connector
from connectors.errors import PermanentError, TemporaryError
from connectors.webhooks import BadAddress, Gone, Webhooks, read
from notices.channels.cards import slack
from notices.message import Message
from notices.rendering import Entry
from tests.posting import Running, posting

CARD = slack(Entry(Message("Hello", "A sentence."), "https://gpus.example.com/"))
Resolved = dict[str, list[str]]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with posting(tmp_path_factory.mktemp("post")) as running:
        yield running


@pytest.fixture
def post(office: Running) -> Running:
    office.forget()
    return office


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Resolved:
    """What the resolver says of names; addresses are left to the real one."""
    known: Resolved = {}
    real = socket.getaddrinfo

    def resolve(host: str, port: int, **options: Any) -> list[Any]:
        if host not in known:
            return real(host, port, flags=socket.AI_NUMERICHOST, **options)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in known[host]
        ]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.slack.com/x",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "ftp://hooks.slack.com/",
        "//hooks.slack.com/x",
        "hooks.slack.com/x",
        "",
        "https://",
        "https:///x",
        "https://user:secret@hooks.slack.com/x",
        "https://hooks.slack.com@127.0.0.1/x",
        "https://hooks.slack.com\\@127.0.0.1/x",
        "https://hooks.slack.com/x#y",
        "https://hooks.slack.com/x\r\nHost: evil",
        "https://hooks.slack.com/ x",
        "https://hooks.släck.com/x",
        "https://hooks.slack.com:99999/x",
        "https://hooks.slack.com:x/",
        "https://[::1/x",
        "https://hooks.slack.com/" + "x" * 2000,
    ],
)
def test_it_reads_nothing_but_an_https_address_of_a_host_and_a_path(url: str) -> None:
    with pytest.raises(BadAddress) as refused:
        read(url)
    assert "secret" not in refused.value.message


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0.0.0.0",
        "0",
        "localhost.",
        "10.0.0.8",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "168.63.129.16",
        "192.0.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "198.18.0.1",
        "[::1]",
        "[::]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[fc00::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:7f00:1::]",
        "[ff02::1]",
        "[64:ff9b:1::7f00:1]",
        "[::7f00:1]",
        "[fec0::1]",
        "192.0.0.192",
        "[2001::1]",
        "100.100.100.200",
        "192.88.99.1",
        "[fd20:ce::254]",
    ],
)
def test_no_inner_address_is_called_however_it_is_written(
    host: str, names: Resolved
) -> None:
    names["localhost."] = ["127.0.0.1"]
    for call in (Webhooks().check, lambda url: Webhooks().post(url, {}, stable_id="x")):
        with pytest.raises((BadAddress, TemporaryError)):
            call(f"https://{host}/x")


def test_a_name_is_refused_when_any_of_its_addresses_is_an_inner_one(
    names: Resolved,
) -> None:
    names["hooks.example.com"] = ["93.184.215.14", "10.0.0.8"]
    with pytest.raises(BadAddress, match="not on the internet"):
        Webhooks().check("https://hooks.example.com/x")
    names["hooks.example.com"].pop()
    assert Webhooks().check("https://hooks.example.com/x").host == "hooks.example.com"


@pytest.mark.parametrize("port", [22, 80, 8443])
def test_only_the_port_of_https_is_called(port: int, names: Resolved) -> None:
    names["hooks.example.com"] = ["93.184.215.14"]
    with pytest.raises(BadAddress, match="port 443"):
        Webhooks().check(f"https://hooks.example.com:{port}/x")


def test_an_inner_host_is_called_when_it_is_named_but_never_where_clouds_keep_credentials(
    names: Resolved,
) -> None:
    allowed = Webhooks(allowed={"chat.corp", "chat.corp:8443"})
    names["chat.corp"] = ["10.0.0.8"]
    assert allowed.check("https://chat.corp/x").port == 443
    assert allowed.check("https://CHAT.corp:8443/x").port == 8443
    with pytest.raises(BadAddress):
        allowed.check("https://chat.corp:22/x")
    names["chat.corp"] = ["169.254.169.254"]
    with pytest.raises(BadAddress):
        allowed.check("https://chat.corp/x")


def test_where_hosts_are_named_no_other_is_called(names: Resolved) -> None:
    named = Webhooks(only={"hooks.example.com"})
    names["hooks.example.com"] = names["hooks.example.com."] = ["93.184.215.14"]
    names["evil.example.com"] = ["93.184.215.14"]
    assert named.check("https://HOOKS.example.com/x").port == 443
    for url in (
        "https://evil.example.com/x",
        "https://93.184.215.14/x",
        "https://hooks.example.com./x",
        "https://hooks.example.com:8443/x",
        "https://evil.example.com/hooks.example.com",
        "https://evil.example.com?hooks.example.com",
    ):
        with pytest.raises(BadAddress, match="QM_WEBHOOK_RECEIVERS"):
            named.check(url)
        with pytest.raises(BadAddress, match="QM_WEBHOOK_RECEIVERS"):
            named.send(url, b"{}", {})


def test_a_host_that_is_named_may_still_not_be_an_inner_one(names: Resolved) -> None:
    names["hooks.corp"] = ["10.0.0.8"]
    named = Webhooks(only={"hooks.corp", "hooks.corp:8443"})
    for url in ("https://hooks.corp/x", "https://hooks.corp:8443/x"):
        with pytest.raises(BadAddress):
            named.check(url)
    both = Webhooks(only=named.only or (), allowed={"hooks.corp", "hooks.corp:8443"})
    assert both.check("https://hooks.corp:8443/x").host == "hooks.corp"
    names["hooks.corp"] = ["169.254.169.254"]
    with pytest.raises(BadAddress):
        both.check("https://hooks.corp/x")


def test_a_name_that_turns_inwards_after_it_was_looked_at_gains_nothing(
    names: Resolved, monkeypatch: pytest.MonkeyPatch
) -> None:
    names["hooks.example.com"] = ["93.184.215.14"]
    called: list[Any] = []

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        names["hooks.example.com"] = ["127.0.0.1"]
        called.append(address)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(TemporaryError):
        Webhooks().post("https://hooks.example.com/x", {}, stable_id="x")
    assert called == [("93.184.215.14", 443)]
    with pytest.raises(BadAddress):
        Webhooks().post("https://hooks.example.com/x", {}, stable_id="x")
    assert len(called) == 1


def test_a_message_arrives_with_an_id_that_stays(post: Running) -> None:
    for _ in range(2):
        post.webhooks().post(post.post.described["slack"], CARD, stable_id="notice-7")
    assert [(got["id"], got["title"]) for got in post.got] == [
        ("notice-7", "Hello")
    ] * 2


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (400, PermanentError, "answered 400"),
        (410, Gone, "answered 410"),
        (302, PermanentError, "not followed"),
        (429, TemporaryError, "answered 429"),
        (500, TemporaryError, "answered 500"),
        (503, TemporaryError, "answered 503"),
    ],
)
def test_what_an_answer_means(
    post: Running, status: int, error: type[Exception], words: str
) -> None:
    post.fail(
        "slack", status, retry_after="7", location="http://169.254.169.254/metadata"
    )
    with pytest.raises(error, match=words) as refused:
        post.webhooks().post(post.post.described["slack"], CARD, stable_id="x")
    assert post.post.sandbox.key not in str(refused.value)
    if isinstance(refused.value, TemporaryError):
        assert refused.value.retry_after == 7


def test_a_webhook_that_is_gone_says_so_in_its_own_word(post: Running) -> None:
    with pytest.raises(PermanentError, match="answered 404 no_service"):
        post.webhooks().post(post.post.described["slack"] + "x", CARD, stable_id="x")


def test_a_silent_receiver_is_cut_off(
    post: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "DEADLINE_SECONDS", 0.2)
    post.fail("teams", None)
    with pytest.raises(TemporaryError):
        post.webhooks().post(post.post.described["teams"], {}, stable_id="x")


def test_a_host_must_prove_who_it_is(post: Running) -> None:
    stranger = Webhooks(allowed={post.post.described["webhook_host"]})
    with pytest.raises(TemporaryError, match="not trusted"):
        stranger.post(post.post.described["slack"], CARD, stable_id="x")


def test_the_address_is_not_in_what_is_printed(post: Running) -> None:
    assert post.post.sandbox.key not in repr(read(post.post.described["slack"]))
    assert json.dumps(CARD)
