"""A mail server that delivers to the inbox: ESMTP with STARTTLS and AUTH PLAIN, one command after the other."""

import asyncio
import base64
import hmac
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import default

from sandbox.notices.inbox import Inbox

LARGEST = 1024 * 1024
IDLE_SECONDS = 60
Answer = tuple[int, str]
BAD_SEQUENCE: Answer = (503, "5.5.1 Bad sequence of commands")


@dataclass
class MailServer:
    """The server's side of every session; with a password, mail is taken from who signed in over TLS only."""

    inbox: Inbox
    tls: ssl.SSLContext | None = None
    username: str = ""
    password: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk to one client until it leaves, is silent for a minute, or a fault tells to say nothing."""
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, ValueError):
            await _Session(self, reader, writer).run()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


@dataclass
class _Session:
    server: MailServer
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    secure: bool = False
    known: bool = False
    sender: str | None = None
    recipients: list[str] = field(default_factory=list)

    async def run(self) -> None:
        await self.say(220, "sandbox ESMTP")
        while True:
            line = await asyncio.wait_for(self.reader.readline(), IDLE_SECONDS)
            if not line:
                return
            verb, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
            if not await self.obey(verb.upper(), rest):
                return

    async def obey(self, verb: str, rest: str) -> bool:
        """Carry one command out; False ends the session."""
        if verb == "QUIT":
            await self.say(221, "2.0.0 Bye")
            return False
        if verb in ("RCPT", "DATA") and (
            fault := self.server.inbox.fault("smtp") if verb == "RCPT" else None
        ):
            if fault.status is None:
                await self.reader.read()  # silence, until the client has had enough
                return False
            await self.say(fault.status, "4.3.2 Fault" if fault.status < 500 else "5.1.1 Fault")
            return fault.status != 421
        if verb == "STARTTLS" and self.server.tls is not None:
            await self.say(220, "2.0.0 Ready to start TLS")
            await self.writer.start_tls(self.server.tls)
            self.secure, self.known = True, False
            return True
        if verb == "DATA" and self.recipients:
            await self.take()
            return True
        await self.say(*self.answer(verb, rest))
        return True

    def answer(self, verb: str, rest: str) -> Answer:
        """Return the answer to a command that needs no more reading."""
        if verb in ("EHLO", "HELO"):
            return 250, "\n".join(["sandbox", *self.extensions()] if verb == "EHLO" else ["sandbox"])
        if verb == "AUTH":
            return self.sign_in(rest)
        if verb == "MAIL":
            if self.server.password and not self.known:
                return 530, "5.7.0 Authentication required"
            self.sender, self.recipients = _address(rest), []
            return 250, "2.1.0 Ok"
        if verb == "RCPT":
            if self.sender is None:
                return BAD_SEQUENCE
            self.recipients.append(_address(rest))
            return 250, "2.1.5 Ok"
        if verb == "RSET":
            self.sender, self.recipients = None, []
            return 250, "2.0.0 Ok"
        known = {"NOOP": (250, "2.0.0 Ok"), "DATA": BAD_SEQUENCE}
        return known.get(verb, (502, "5.5.2 Command not recognised"))

    def extensions(self) -> list[str]:
        """Return what EHLO offers now."""
        offered = ["8BITMIME", f"SIZE {LARGEST}"]
        if self.server.tls is not None and not self.secure:
            offered.append("STARTTLS")
        return [*offered, "AUTH PLAIN"] if self.server.password and self.secure else offered

    def sign_in(self, rest: str) -> Answer:
        """Answer AUTH PLAIN with its initial response."""
        if not self.secure:
            return 538, "5.7.11 Encryption required"
        given = base64.b64decode(rest.partition(" ")[2]).decode().split("\0")
        expected = ["", self.server.username, self.server.password]
        self.known = hmac.compare_digest("\0".join(given).encode(), "\0".join(expected).encode())
        return (235, "2.7.0 Ok") if self.known else (535, "5.7.8 Authentication credentials invalid")

    async def take(self) -> None:
        """Read a mail to its end and put it into the inbox."""
        await self.say(354, "End data with <CR><LF>.<CR><LF>")
        lines: list[bytes] = []
        while (line := await asyncio.wait_for(self.reader.readline(), IDLE_SECONDS)) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b"."))
        mail = message_from_bytes(b"".join(lines), policy=default)
        bodies = {kind: mail.get_body((kind,)) for kind in ("plain", "html")}
        self.server.inbox.add(
            "smtp",
            to=self.recipients,
            sender=self.sender,
            secure=self.secure,
            id=str(mail["Message-ID"]),
            title=str(mail["Subject"]),
            headers={name: str(value) for name, value in mail.items()},
            text=bodies["plain"].get_content() if bodies["plain"] else "",
            html=bodies["html"].get_content() if bodies["html"] else "",
        )
        self.sender, self.recipients = None, []
        await self.say(250, "2.0.0 Ok: queued")

    async def say(self, code: int, text: str) -> None:
        """Send an answer of one or more lines."""
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            self.writer.write(f"{code}{' ' if number == len(lines) else '-'}{line}\r\n".encode())
        await self.writer.drain()


async def serve_mail(server: MailServer, bound: socket.socket, stop: asyncio.Event) -> None:
    """Take mail at a bound socket until `stop` is set."""
    listening = await asyncio.start_server(server.serve, sock=bound, limit=LARGEST)
    await stop.wait()
    listening.close()


def _address(rest: str) -> str:
    """Return what stands between the angle brackets of MAIL FROM and RCPT TO."""
    return rest.partition("<")[2].partition(">")[0]
