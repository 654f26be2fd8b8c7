"""The mail server, the webhooks and the inbox put together, with what their users must know."""

import socket
from dataclasses import dataclass
from pathlib import Path

from sandbox import saving
from sandbox.certificates import Certificates
from sandbox.credentials import Credentials
from sandbox.notices.app import NoticesSandbox
from sandbox.serving import Served, listen, port_of


@dataclass(frozen=True)
class Post:
    """The mail server's socket, and the inbox with the webhooks, over TLS for the portal and without for browsers."""

    sandbox: NoticesSandbox
    smtp: socket.socket
    served: list[Served]
    described: dict[str, str]

    @classmethod
    def open(
        cls,
        data: Path,
        shown: Certificates,
        credentials: Credentials,
        *,
        smtp: int = 0,
        inbox: int = 0,
    ) -> "Post":
        """Bind the ports (0: free ones), and find the messages of last time again."""
        sandbox = NoticesSandbox(
            credentials.secret("notices/key"), credentials.secret("notices/admin")
        )
        if (state := saving.read(data, "notices")) is not None:
            sandbox.inbox.restore(state)
        mail, hooks, page = listen(smtp), listen(0), listen(inbox)
        base = f"https://localhost:{port_of(hooks)}"
        described = {
            "teams": f"{base}/teams/{sandbox.key}",
            "slack": f"{base}/slack/{sandbox.key}",
            "webhook": f"{base}/webhook/{sandbox.key}",
            "inbox": f"http://127.0.0.1:{port_of(page)}/",
            "smtp_host": "127.0.0.1",
            "smtp_port": str(port_of(mail)),
            "webhook_host": f"localhost:{port_of(hooks)}",
            "admin_secret": sandbox.admin_secret,
        }
        served = [Served(sandbox.app, hooks, shown), Served(sandbox.app, page, None)]
        return cls(sandbox, mail, served, described)
