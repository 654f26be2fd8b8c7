"""A server that answers as it is told: late, wrongly, by halves, or not at all."""

import json
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

API = "/api/v1/"


@dataclass(frozen=True)
class Answer:
    """One answer. `stream` are events, `breaks` ends the connection in their midst, `is_cut` before any answer."""

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: str | None = None
    breaks: bool = False
    is_cut: bool = False
    is_held: bool = False


@dataclass(frozen=True)
class Call:
    """What the client sent."""

    method: str
    address: str
    headers: Mapping[str, str]
    body: Any


CUT, HELD = Answer(is_cut=True), Answer(is_held=True)


def problem(
    status: int, code: str, detail: str = "", *errors: tuple[str, str], **headers: str
) -> Answer:
    """A refusal as the portal writes it; `errors` are pointers with sentences."""
    listed = [
        {"pointer": pointer, "code": code, "detail": said} for pointer, said in errors
    ]
    body = {
        "status": status,
        "code": code,
        "detail": detail,
        "errors": listed,
        "request_id": "r-1",
    }
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, body, {"Content-Type": "application/problem+json", **named})


@dataclass
class Misbehaving:
    """The server: answers by call, such as "GET runs/7/", the last of them for ever; and what was asked of it."""

    url: str = ""
    calls: list[Call] = field(default_factory=list)
    answers: dict[str, list[Answer | Callable[[Call], Answer]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    released: threading.Event = field(default_factory=threading.Event)

    def says(
        self, call: str, *answers: Answer | Callable[[Call], Answer] | dict[str, Any]
    ) -> None:
        """Give these answers one after the other; an object is the body of one."""
        self.answers[call] += [
            Answer(body=one) if isinstance(one, dict) else one for one in answers
        ]

    def sent(self, call: str) -> list[Call]:
        """The calls of an address."""
        return [one for one in self.calls if f"{one.method} {path_of(one)}" == call]

    def answer(self, call: Call) -> Answer:
        """The next one."""
        self.calls.append(call)
        left = self.answers[f"{call.method} {path_of(call)}"]
        if not left:
            return problem(
                404, "not_found", "There is no such thing, or it is not yours to see."
            )
        found = left.pop(0) if len(left) > 1 else left[0]
        return found if isinstance(found, Answer) else found(call)


def path_of(call: Call) -> str:
    """The path of a call behind the version."""
    return urlsplit(call.address).path.removeprefix(API)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of: ClassVar[Misbehaving]

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _handle(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        call = Call(
            self.command,
            self.path,
            dict(self.headers),
            json.loads(raw) if raw else None,
        )
        answer = self.server_of.answer(call)
        if answer.is_held:
            self.server_of.released.wait()
        # A client hangs up once it has read the last event, whatever comes behind it.
        with suppress(ConnectionError):
            self._write(answer)

    def _write(self, answer: Answer) -> None:
        if answer.is_cut or answer.is_held:
            self.close_connection = True
        elif answer.stream is not None:
            self._stream(answer)
        else:
            body = (
                json.dumps(answer.body).encode()
                if not isinstance(answer.body, bytes)
                else answer.body
            )
            self._begin(
                answer,
                {"Content-Type": "application/json", "Content-Length": str(len(body))},
            )
            self.wfile.write(body)

    def _stream(self, answer: Answer) -> None:
        self._begin(
            answer,
            {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"},
        )
        # In pieces that break lines and letters apart.
        raw = (answer.stream or "").encode()
        for part in (raw[at : at + 7] for at in range(0, len(raw), 7)):
            self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        if answer.breaks:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _begin(self, answer: Answer, usual: Mapping[str, str]) -> None:
        self.send_response(answer.status)
        for name, value in {**usual, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()


class _QuietServer(ThreadingHTTPServer):
    """A server that does not tell of a client that is gone: its words would stand among the client's own."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def misbehaving() -> Iterator[Misbehaving]:
    """Serve on a free loopback port until the block ends."""
    told = Misbehaving()
    handler = type("Handler", (_Handler,), {"server_of": told})
    with _QuietServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        told.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}
        )
        thread.start()
        try:
            yield told
        finally:
            told.released.set()
            server.shutdown()
            thread.join()
