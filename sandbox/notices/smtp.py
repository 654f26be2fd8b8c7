"""A mail server that delivers to the inbox: aiosmtpd with STARTTLS and AUTH, and the faults that a test asks for."""

import asyncio
import hmac
import logging
import socket
import ssl
from dataclasses import dataclass
from email import message_from_bytes
from email.policy import default

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from sandbox.notices.inbox import Inbox

LARGEST = 1024 * 1024
IDLE_SECONDS = 60


@dataclass
class MailServer:
    """What sessions from now on are like; with a password, mail is taken from who signed in over TLS only."""

    inbox: Inbox
    tls: ssl.SSLContext | None = None
    username: str = ""
    password: str = ""

    def session(self) -> SMTP:
        """The server's side of one connection."""
        return SMTP(
            self,
            data_size_limit=LARGEST,
            hostname="sandbox",
            ident="sandbox ESMTP",
            tls_context=self.tls,
            timeout=IDLE_SECONDS,
            auth_required=bool(self.password),
            authenticator=self.authenticate,
            loop=asyncio.get_running_loop(),
        )

    def authenticate(
        self,
        server: SMTP,
        session: Session,
        envelope: Envelope,
        mechanism: str,
        given: object,
    ) -> AuthResult:
        """Whether a client that signs in is the one that may."""
        expected = (self.username.encode(), self.password.encode())
        matches = isinstance(given, LoginPassword) and all(
            map(hmac.compare_digest, given, expected)
        )
        return AuthResult(success=matches, handled=False)

    async def handle_RCPT(  # noqa: N802  # the name is aiosmtpd's
        self,
        server: SMTP,
        session: Session,
        envelope: Envelope,
        address: str,
        options: list[str],
    ) -> str:
        """Take a recipient, unless a fault tells to refuse it, to say nothing, or to hang up."""
        fault = self.inbox.fault("smtp")
        if fault is None:
            envelope.rcpt_tos.append(address)
            return "250 2.1.5 Ok"
        if fault.status is None:
            # Until the client has had enough: its end of the connection ends this, too.
            await asyncio.get_running_loop().create_future()
        answer = (
            f"{fault.status} {'5.1.1' if (fault.status or 0) >= 500 else '4.3.2'} Fault"
        )
        if fault.status == 421 and server.transport is not None:
            await server.push(answer)
            server.transport.close()
        return answer

    async def handle_DATA(  # noqa: N802  # the name is aiosmtpd's
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        """Put a mail into the inbox."""
        mail = message_from_bytes(envelope.original_content or b"", policy=default)
        bodies = {kind: mail.get_body((kind,)) for kind in ("plain", "html")}
        self.inbox.add(
            "smtp",
            to=envelope.rcpt_tos,
            sender=envelope.mail_from,
            secure=session.ssl is not None,
            id=str(mail["Message-ID"]),
            title=str(mail["Subject"]),
            headers={name: str(value) for name, value in mail.items()},
            text=bodies["plain"].get_content() if bodies["plain"] else "",
            html=bodies["html"].get_content() if bodies["html"] else "",
        )
        return "250 2.0.0 Ok: queued"


async def serve_mail(
    server: MailServer, bound: socket.socket, stop: asyncio.Event
) -> None:
    """Take mail at a bound socket until `stop` is set."""
    # It would log each line of each session.
    logging.getLogger("mail.log").setLevel(logging.WARNING)
    listening = await asyncio.get_running_loop().create_server(
        server.session, sock=bound
    )
    await stop.wait()
    listening.close()
