"""E-mail by SMTP. The only importer of smtplib."""

import re
import smtplib
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from enum import StrEnum

from connectors.errors import PermanentError, TemporaryError
from connectors.sockets import cut_off_after, trust

CONNECT_SECONDS = 5.0
READ_SECONDS = 10.0
DEADLINE_SECONDS = 40.0
LONGEST_REPLY = 120
AN_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*", re.ASCII
)


class Security(StrEnum):
    """How the connection is protected: upgraded, from the start, or not at all."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


class ServerAway(TemporaryError):
    """The server takes no mail at all now; what else waits for it need not be tried."""


class ReceiptLost(TemporaryError):
    """The mail may have been taken, and may not: it is sent once more under the same id, soon."""


@dataclass(frozen=True)
class Letter:
    """One mail to one person; `message_id` (without brackets) is the same each time it is sent."""

    to: str
    subject: str
    text: str
    html: str
    message_id: str


@dataclass(frozen=True)
class Mail:
    """A mail server; the password is only ever sent over TLS."""

    host: str
    port: int
    sender: str
    security: Security = Security.STARTTLS
    username: str = ""
    password: str = field(default="", repr=False)
    ca_file: str | None = None

    def send(self, letter: Letter, *, now: datetime) -> None:
        """Hand a mail to the server; raises ServerAway, TemporaryError, or PermanentError (it will never be taken)."""
        message = compose(letter, self.sender, now)
        began = time.monotonic()
        try:
            with self._session() as session:
                _hand_over(session, message, began=began)
        except smtplib.SMTPRecipientsRefused as error:
            code, reply = next(iter(error.recipients.values()))
            raise _refused(code, reply) from error
        except smtplib.SMTPDataError as error:
            raise _refused(error.smtp_code, error.smtp_error) from error
        except smtplib.SMTPResponseException as error:
            # Greeting, sender, user name and password are the same for every mail.
            raise ServerAway(_words(error.smtp_code, error.smtp_error)) from error
        except smtplib.SMTPNotSupportedError as error:
            raise ServerAway(
                f"The mail server cannot do what is needed: {error}"
            ) from error
        except ssl.SSLCertVerificationError as error:
            raise ServerAway(
                "The mail server shows a certificate that is not trusted."
            ) from error
        except (smtplib.SMTPException, OSError) as error:
            raise ServerAway(
                f"The mail server cannot be reached: {type(error).__name__}."
            ) from error

    @contextmanager
    def _session(self) -> Iterator[smtplib.SMTP]:
        """An open session, upgraded and signed in as the settings say; ended with or without a goodbye."""
        context = (
            trust(self.ca_file, protocol="smtp")
            if self.security is not Security.NONE
            else None
        )
        session = self._open(context)
        try:
            with cut_off_after(DEADLINE_SECONDS, lambda: session.sock):
                if session.sock is not None:
                    session.sock.settimeout(READ_SECONDS)
                if self.security is Security.STARTTLS:
                    session.starttls(context=context)
                if self.username:
                    session.login(self.username, self.password)
                yield session
                # The mail was taken: that the server hangs up without a word changes nothing.
                with suppress(smtplib.SMTPException, OSError):
                    session.quit()
        finally:
            session.close()

    def _open(self, context: ssl.SSLContext | None) -> smtplib.SMTP:
        # The name of this machine is nobody's business, and looking it up can take seconds.
        name = "quartermaster"
        if self.security is Security.TLS:
            return smtplib.SMTP_SSL(
                self.host, self.port, name, timeout=CONNECT_SECONDS, context=context
            )
        return smtplib.SMTP(self.host, self.port, name, timeout=CONNECT_SECONDS)


def _hand_over(session: smtplib.SMTP, message: EmailMessage, *, began: float) -> None:
    """Send a mail in an open session; raises ReceiptLost when that ends before the server says that it has it.

    A session that ended because we waited long enough is a server that is away: the library tells them not apart.
    """
    try:
        session.send_message(message)
    except (smtplib.SMTPServerDisconnected, ConnectionError) as error:
        if time.monotonic() - began >= min(READ_SECONDS, DEADLINE_SECONDS):
            raise
        raise ReceiptLost(
            "The mail server hung up before it said whether it took the mail."
        ) from error


def compose(letter: Letter, sender: str, now: datetime) -> EmailMessage:
    """The mail as it is sent; raises PermanentError for an address or a subject that is none."""
    if not AN_ADDRESS.fullmatch(letter.to):
        raise PermanentError(
            "This is no address that mail can be sent to.", code="bad_address"
        )
    message = EmailMessage(policy=SMTP)
    try:
        message["From"] = sender
        message["To"] = Address(addr_spec=letter.to)
        message["Subject"] = letter.subject
        message["Date"] = format_datetime(now)
        message["Message-ID"] = f"<{letter.message_id}>"
    except (ValueError, HeaderParseError) as error:
        raise PermanentError(
            "This cannot stand in the head of a mail.", code="bad_header"
        ) from error
    # No answering machine answers.
    message["Auto-Submitted"] = "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    message.set_content(letter.text)
    message.add_alternative(letter.html, subtype="html")
    return message


def _refused(code: int, reply: bytes | str) -> TemporaryError | PermanentError:
    """What a refusal of one mail means: 4xx may be taken later, 5xx never."""
    if 400 <= code < 500:
        return TemporaryError(_words(code, reply))
    return PermanentError(_words(code, reply), code=f"smtp_{code}")


def _words(code: int, reply: bytes | str) -> str:
    text = reply.decode("ascii", "replace") if isinstance(reply, bytes) else reply
    return f"The mail server answered {code}: {' '.join(text.split())[:LONGEST_REPLY]}"
