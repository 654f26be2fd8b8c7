"""Git repositories for tests: bare ones, served over HTTPS or SSH, and what other people push into them."""

import base64
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import IO, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import paramiko
import trustme
from dulwich.object_store import commit_tree_changes, iter_tree_contents
from dulwich.objects import Blob, Commit, ObjectID, Tree
from dulwich.refs import Ref
from dulwich.repo import Repo
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    OPEN_SUCCEEDED,
    cMSG_CHANNEL_SUCCESS,
)

from sandbox.certificates import Certificates

MAIN = b"refs/heads/main"


@dataclass(frozen=True)
class Bare:
    """A bare repository, with what another person would do to it."""

    path: Path

    def tip(self, branch: str = "main") -> str:
        """The commit a branch is at, empty without one."""
        with Repo(str(self.path)) as repo:
            found = repo.refs.as_dict(Ref(b"refs/heads")).get(Ref(branch.encode()))
            return found.decode() if found else ""

    def is_locked(self, branch: str = "main") -> bool:
        """Whether somebody's push holds a branch."""
        return (self.path / "refs" / "heads" / f"{branch}.lock").exists()

    def files(self, branch: str = "main") -> dict[str, bytes]:
        """Every file of a branch."""
        with Repo(str(self.path)) as repo:
            if not self.tip(branch):
                return {}
            commit = repo[self.tip(branch).encode()]
            assert isinstance(commit, Commit)
            return {
                entry.path.decode(): repo[entry.sha].as_raw_string()
                for entry in iter_tree_contents(repo.object_store, commit.tree)
                if entry.path and entry.sha
            }

    def log(self, branch: str = "main") -> list[str]:
        """The messages of a branch, newest first."""
        with Repo(str(self.path)) as repo:
            if not self.tip(branch):
                return []
            walker = repo.get_walker(include=[ObjectID(self.tip(branch).encode())])
            return [entry.commit.message.decode() for entry in walker]

    def author(self, branch: str = "main") -> str:
        """Who signed the newest commit."""
        with Repo(str(self.path)) as repo:
            commit = repo[self.tip(branch).encode()]
            assert isinstance(commit, Commit)
            return str(commit.author.decode())

    def push(
        self,
        changes: dict[str, bytes | None],
        *,
        branch: str = "main",
        mode: int = 0o100644,
        anew: bool = False,
    ) -> str:
        """Commit as somebody else; `anew` forces a history of its own with nothing but these files."""
        with Repo(str(self.path)) as repo:
            base = b"" if anew else self.tip(branch).encode()
            entries: list[Any] = []
            for path, content in changes.items():
                blob = None if content is None else Blob.from_string(content)
                if blob is not None:
                    repo.object_store.add_object(blob)
                entries.append(
                    (path.encode(), mode if blob else None, blob.id if blob else None)
                )
            tree = Tree()
            repo.object_store.add_object(tree)
            before = repo[base] if base else None
            made = Commit()
            start = before.tree if isinstance(before, Commit) else tree.id
            made.tree = commit_tree_changes(repo.object_store, start, entries)
            made.parents = [ObjectID(base)] if base else []
            made.author = made.committer = b"Somebody Else <else@example.com>"
            made.author_time = made.commit_time = 1_800_000_000
            made.author_timezone = made.commit_timezone = 0
            made.message = b"by hand"
            repo.object_store.add_object(made)
            repo.refs[Ref(f"refs/heads/{branch}".encode())] = made.id
            return made.id.decode()


def bare(folder: Path, name: str = "fleet.git") -> Bare:
    """An empty bare repository."""
    path = folder / name
    path.mkdir(parents=True)
    Repo.init_bare(str(path), default_branch=b"main").close()
    return Bare(path)


def _http_backend(folder: Path, environ: Any, start_response: Any) -> list[bytes]:
    """Git's own CGI program, as web servers run it."""
    names = (
        "REQUEST_METHOD",
        "PATH_INFO",
        "QUERY_STRING",
        "CONTENT_TYPE",
        "CONTENT_LENGTH",
        "HTTP_CONTENT_ENCODING",
    )
    env = (
        os.environ
        | {name: environ.get(name, "") for name in names}
        | {
            "GIT_PROJECT_ROOT": str(folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "someone",
            "GIT_PROTOCOL": environ.get("HTTP_GIT_PROTOCOL", ""),
        }
    )
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    answer = subprocess.run(
        ["git", "http-backend"], input=body, env=env, capture_output=True, check=True
    ).stdout
    head, _, rest = answer.partition(b"\r\n\r\n")
    lines = [line.split(": ", 1) for line in head.decode().splitlines()]
    headers = [(name, value) for name, value in lines if name != "Status"]
    start_response(
        dict(lines).get("Status", "200 OK"),
        [*headers, ("Content-Length", str(len(rest)))],
    )
    return [rest]


def _swallowed(environ: Any, start_response: Any) -> list[bytes]:
    """An answer that ends where the report of what was taken should stand."""
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    kind = "application/x-git-receive-pack-result"
    start_response("200 OK", [("Content-Type", kind), ("Content-Length", "4")])
    return [b"0000"]


@dataclass
class Served:
    """A server of repositories: its address, what opens it, and the requests it got."""

    port: int
    ca_file: str = ""
    known_hosts: str = ""
    secret: str = field(default="", repr=False)
    requests: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    swallows: bool = False

    @property
    def host(self) -> str:
        """Host and port, as settings allow them."""
        return f"127.0.0.1:{self.port}"


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _basic(token: str) -> str:
    return "Basic " + base64.b64encode(f"x-access-token:{token}".encode()).decode()


@contextmanager
def over_https(
    folder: Path,
    keys: Path,
    *,
    token: str,
    new_token: str = "",
    api: Any = None,
    shown: Certificates | None = None,
) -> Iterator[Served]:
    """Serve a folder's repositories over HTTPS to who has the token, or a new one; `api` answers below /api/.

    It shows a certificate of its own authority, whose is in `keys`, unless it is given one.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if shown is None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(keys / "ca.pem"))
        authority.issue_cert("127.0.0.1").configure_cert(context)
    else:
        context.load_cert_chain(shown.chain, shown.key)
    wanted = {_basic(each) for each in (token, new_token) if each}

    def application(environ: Any, start_response: Any) -> Any:
        served.requests.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")
        if served.answers:
            status = served.answers.pop(0)
            start_response(
                status,
                [("Location", "https://169.254.169.254/"), ("Content-Length", "0")],
            )
            return [b""]
        if api is not None and environ["PATH_INFO"].startswith("/api/"):
            return api(environ, start_response)
        if environ.get("HTTP_AUTHORIZATION") not in wanted:
            start_response(
                "401 Unauthorized",
                [("WWW-Authenticate", "Basic"), ("Content-Length", "0")],
            )
            return [b""]
        if served.swallows and environ["PATH_INFO"].endswith("/git-receive-pack"):
            return _swallowed(environ, start_response)
        return _http_backend(folder, environ, start_response)

    server = WSGIServer(("127.0.0.1", 0), _Quiet)
    server.set_app(application)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    ca_file = keys / "ca.pem" if shown is None else shown.ca
    served = Served(server.server_port, ca_file=str(ca_file), secret=token)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Silent:
    """A host that takes every connection and never says a word: how many callers hang there, and did at most."""

    port: int
    waiting: int = 0
    most: int = 0
    calls: int = 0

    @property
    def host(self) -> str:
        """Host and port, as settings allow them."""
        return f"127.0.0.1:{self.port}"


@contextmanager
def silent() -> Iterator[Silent]:
    """Such a host, on loopback."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    host, lock = Silent(listener.getsockname()[1]), threading.Lock()
    open_: list[socket.socket] = []

    def hear(caller: socket.socket) -> None:
        with lock:
            host.calls, host.waiting = host.calls + 1, host.waiting + 1
            host.most = max(host.most, host.waiting)
        with suppress(OSError):
            while caller.recv(65_536):
                pass
        with lock:
            host.waiting -= 1

    def serve() -> None:
        with suppress(OSError):
            while True:
                open_.append(listener.accept()[0])
                threading.Thread(target=hear, args=(open_[-1],), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield host
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for caller in open_:
            with suppress(OSError):
                caller.shutdown(socket.SHUT_RDWR)
            caller.close()
        thread.join()


class _Transport(paramiko.Transport):
    """The server's end of a connection, which knows when it has answered the client's request for a command."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self.answered = threading.Event()

    def _send_user_message(self, data: paramiko.Message) -> None:
        super()._send_user_message(data)  # type: ignore[misc]
        if data.asbytes()[:1] == cMSG_CHANNEL_SUCCESS:
            self.answered.set()


class _Door(paramiko.ServerInterface):
    """Lets one key in and runs Git's two commands on the folder."""

    def __init__(
        self, folder: Path, key: paramiko.PKey, answered: threading.Event
    ) -> None:
        self.folder, self.key, self.answered = folder, key, answered

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        known = username == "git" and key == self.key
        return AUTH_SUCCESSFUL if known else AUTH_FAILED

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return OPEN_SUCCEEDED

    def check_channel_exec_request(
        self, channel: paramiko.Channel, command: bytes
    ) -> bool:
        threading.Thread(
            target=self._run, args=(channel, command.decode()), daemon=True
        ).start()
        return True

    def _run(self, channel: paramiko.Channel, command: str) -> None:
        service, _, path = command.partition(" ")
        assert service in ("git-upload-pack", "git-receive-pack")
        git = [*service.split("-", 1), str(self.folder / path.strip("'").strip("/"))]
        # As sshd does: a command that ends at once must not close the channel before the client knows that it began.
        assert self.answered.wait(60)
        with subprocess.Popen(
            git, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as running:
            assert running.stdin is not None
            assert running.stdout is not None
            told = threading.Thread(
                target=_pump, args=(channel.recv, running.stdin), daemon=True
            )
            told.start()
            with suppress(OSError, EOFError):
                while part := os.read(running.stdout.fileno(), 65_536):
                    channel.sendall(part)
                channel.send_exit_status(running.wait())
            with suppress(EOFError):
                channel.close()
            told.join()


def _pump(read: Any, into: IO[bytes]) -> None:
    with suppress(OSError, EOFError):
        while part := read(65_536):
            into.write(part)
            into.flush()
    with suppress(OSError):
        into.close()


@contextmanager
def over_ssh(folder: Path) -> Iterator[Served]:
    """Serve a folder's repositories over SSH to who has the key in `secret`."""
    host_key, person = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()
    text = StringIO()
    person.write_private_key(text)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    open_: list[paramiko.Transport] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            transport = _Transport(connection)
            transport.add_server_key(host_key)
            open_.append(transport)
            door = _Door(folder, person, transport.answered)
            transport.start_server(event=threading.Event(), server=door)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    line = f"[127.0.0.1]:{port} {host_key.get_name()} {host_key.get_base64()}\n"
    try:
        yield Served(port, known_hosts=line, secret=text.getvalue())
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for transport in open_:
            transport.close()
        thread.join()
