"""The sandbox's mail server and webhooks served while a test runs, and the portal's ways out pointed at them."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from connectors.mail import Mail, Security
from connectors.webhooks import Webhooks
from notices.servers import Outside
from sandbox import certificates
from sandbox.credentials import Credentials
from sandbox.notices.inbox import Fault, Inbox
from sandbox.notices.post import Post
from sandbox.notices.smtp import MailServer, serve_mail
from sandbox.serving import port_of
from tests.serving import serving

URL = "https://gpus.example.com"
USER, PASSWORD = "portal", "canary-smtp-password"


@dataclass(frozen=True)
class Running:
    """A served post office; `server` is the mail server's own idea of who may send."""

    post: Post
    server: MailServer
    ca: Path

    @property
    def inbox(self) -> Inbox:
        return self.post.sandbox.inbox

    @property
    def got(self) -> list[dict[str, Any]]:
        """What has arrived, the oldest first."""
        return self.inbox.messages

    def fail(self, way: str, status: int | None, **more: Any) -> None:
        """Make messages of a way fail."""
        self.inbox.faults.append(Fault(way, status, **more))

    def mail(self, **changes: Any) -> Mail:
        """The connector to the mail server, in plain text unless told otherwise."""
        usual = Mail(
            "localhost",
            port_of(self.post.smtp),
            "Quartermaster <qm@example.com>",
            Security.NONE,
        )
        return replace(usual, **changes)

    def webhooks(self) -> Webhooks:
        """The connector to webhooks, with the sandbox allowed."""
        return Webhooks(
            allowed={self.post.described["webhook_host"]}, ca_file=str(self.ca)
        )

    def signed(self) -> Webhooks:
        """The connector to receivers of events, of which the sandbox is the only one."""
        return replace(self.webhooks(), only={self.post.described["webhook_host"]})

    def outside(self, **changes: Any) -> Outside:
        """Every way out."""
        return replace(
            Outside(
                mail=self.mail(),
                webhooks=self.webhooks(),
                public_url=URL,
                signed=self.signed(),
            ),
            **changes,
        )

    def forget(self) -> None:
        """Empty the inbox, without faults and without a password."""
        self.inbox.clear()
        self.inbox.faults.clear()
        self.server.username = self.server.password = ""


@contextmanager
def posting(directory: Path) -> Iterator[Running]:
    """Serve a fresh post office in a thread of its own."""
    shown = certificates.ensure(directory)
    post = Post.open(directory, shown, Credentials.open(directory / "credentials.json"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(shown.chain, shown.key)
    server = MailServer(post.sandbox.inbox, context)
    with serving(*post.served, beside=lambda stop: serve_mail(server, post.smtp, stop)):
        yield Running(post, server, shown.ca)
