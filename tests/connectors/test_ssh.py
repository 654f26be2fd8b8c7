"""SSH that breaks off: only a key or a host that was refused is refused for good, and all else is tried again."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import StringIO

import paramiko
import pytest
from paramiko.common import AUTH_FAILED

from connectors import ssh
from connectors.errors import PermanentError, TemporaryError
from connectors.ssh import Ssh
from provisioning.clusters.explaining import explain

HOST_KEY = paramiko.ECDSAKey.generate()


class Broken(paramiko.ServerInterface):
    """Ends the conversation, says nothing until it is over, or says no, when somebody shows a key."""

    def __init__(
        self, transport: paramiko.Transport, how: str, over: threading.Event
    ) -> None:
        self.transport, self.how, self.over = transport, how, over

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        if self.how == "ends":
            self.transport.close()
        elif self.how == "silent":
            self.over.wait(10)
        return AUTH_FAILED

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"


@contextmanager
def listening(how: str) -> Iterator[int]:
    """A host that takes connections and closes them, after a greeting or a key exchange or at once; its port."""
    listener, over, open_ = (
        socket.create_server(("127.0.0.1", 0)),
        threading.Event(),
        list[paramiko.Transport](),
    )

    def serve() -> None:
        with suppress(OSError):
            while True:
                caller = listener.accept()[0]
                if how in ("closes", "greets"):
                    caller.sendall(b"SSH-2.0-Busy\r\n" if how == "greets" else b"")
                    caller.close()
                    continue
                transport = paramiko.Transport(caller)
                transport.add_server_key(HOST_KEY)
                open_.append(transport)
                transport.start_server(
                    event=threading.Event(), server=Broken(transport, how, over)
                )

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for transport in open_:
            transport.close()
        thread.join()


def call(port: int, known: paramiko.PKey = HOST_KEY) -> None:
    person, text = paramiko.ECDSAKey.generate(), StringIO()
    person.write_private_key(text)
    line = f"[127.0.0.1]:{port} {known.get_name()} {known.get_base64()}\n"
    Ssh(text.getvalue(), line, [f"127.0.0.1:{port}"]).run_command(
        "127.0.0.1", b"git-upload-pack 'x'", "git", port
    )


@pytest.mark.parametrize("how", ["closes", "greets", "ends", "silent"])
def test_what_breaks_off_is_tried_again(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh, "READ_SECONDS", 0.5)
    with listening(how) as port, pytest.raises(TemporaryError) as broken:
        call(port)
    assert broken.value.message.startswith("127.0.0.1 cannot be reached")
    assert "Git host does not answer as" in str(
        explain(broken.value.message, will_try_again=True)
    )


def test_a_key_or_a_host_that_is_refused_is_refused() -> None:
    with listening("says no") as port:
        for known in (HOST_KEY, paramiko.ECDSAKey.generate()):
            with pytest.raises(PermanentError) as refused:
                call(port, known)
            assert refused.value.code == "unauthorized"
