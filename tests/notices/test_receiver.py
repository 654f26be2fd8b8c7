"""The receiver of the how-to does what the text beside it says."""

import http.client
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from typing import Any

import pytest

from notices.channels import signing
from scripts.packages import ROOT
from tests.notices.test_signing import AT, BODY, MESSAGE, SECRET, SIGNATURE
from tests.scene import NOW

HOW_TO = ROOT / "docs" / "how-to" / "start-automation-by-webhooks.md"


@pytest.fixture
def receiver() -> dict[str, Any]:
    """The names of the program in the how-to, as a reader copies it."""
    (program,) = re.findall(r"```python\n(.*?)```", HOW_TO.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "receiver"}
    exec(compile(program, str(HOW_TO), "exec"), names)
    return names


def test_it_takes_the_published_example_and_nothing_that_was_changed(
    receiver: dict[str, Any],
) -> None:
    genuine, now = receiver["is_genuine"], AT.timestamp()
    told = {
        "webhook-id": MESSAGE,
        "webhook-timestamp": "1614265330",
        "webhook-signature": SIGNATURE,
    }
    other = signing.new_secret()
    assert genuine(told, BODY, secrets=[SECRET], now=now)
    assert genuine(told, BODY, secrets=[other, SECRET], now=now)
    assert not genuine(told, BODY, secrets=[other], now=now)
    assert not genuine(told, BODY, secrets=[], now=now)
    assert not genuine(told, BODY + b" ", secrets=[SECRET], now=now)
    assert not genuine(told, BODY, secrets=[SECRET], now=now + 301)
    assert not genuine(told, BODY, secrets=[SECRET], now=now - 301)
    for change in (
        {"webhook-id": "msg_other"},
        {"webhook-timestamp": "1614265331"},
        {"webhook-timestamp": "x"},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1,ä"},
        {"webhook-signature": SIGNATURE.replace("v1,", "v2,")},
    ):
        assert not genuine(told | change, BODY, secrets=[SECRET], now=now)
    assert not genuine({}, BODY, secrets=[SECRET], now=now)


def test_it_takes_either_secret_while_the_portal_changes_it(
    receiver: dict[str, Any],
) -> None:
    genuine = receiver["is_genuine"]
    old, new = signing.new_secret(), signing.new_secret()
    told = signing.headers(BODY, message_id="notice-7", at=NOW, keys=[new, old])
    for known in (old, new):
        assert genuine(told, BODY, secrets=[known], now=NOW.timestamp())


def test_it_does_a_message_once_and_refuses_a_forged_one(
    receiver: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    secret = signing.new_secret()
    receiver["SECRETS"].append(secret)
    event = {"type": "run.ended", "data": {"url": "https://gpus.example.com/runs/7/"}}
    body = json.dumps(event).encode()
    at = NOW.fromtimestamp(time.time(), NOW.tzinfo)
    told = signing.headers(body, message_id="notice-7", at=at, keys=[secret])
    with listening(receiver["Receiver"]) as port:
        assert [posted(port, body, told) for _ in range(2)] == [204, 204]
        assert posted(port, body + b" ", told) == 401
        assert posted(port, body, {}) == 401
    assert capsys.readouterr().out == "run.ended https://gpus.example.com/runs/7/\n"


@contextmanager
def listening(handler: type[Any]) -> Iterator[int]:
    """The handler at a port of loopback."""
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def posted(port: int, body: bytes, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/", body, headers)
    try:
        return connection.getresponse().status
    finally:
        connection.close()
