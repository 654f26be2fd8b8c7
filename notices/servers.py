"""The mail server, the webhooks and Backstage as the settings describe them."""

from dataclasses import dataclass, replace

from django.conf import settings

from accounts.directory import backstage as directory
from connectors.backstage import Backstage
from connectors.mail import Mail, Security
from connectors.webhooks import Webhooks


@dataclass(frozen=True)
class Outside:
    """How messages leave: `mail` is None while no mail server is configured, and mails then wait.

    `signed` posts to receivers of events, and is None where the operators name none; `backstage` is None where nobody
    is to be told there.
    """

    mail: Mail | None
    webhooks: Webhooks
    public_url: str
    backstage: Backstage | None = None
    signed: Webhooks | None = None

    @property
    def host(self) -> str:
        """The portal's host name, for the identifiers of messages."""
        return self.public_url.partition("://")[2].partition("/")[0].partition(":")[0]


def outside() -> Outside:
    """The ways out of this installation."""
    env = settings.ENV
    ca_file = str(env.ca_file) if env.ca_file else None
    mail = Mail(
        host=env.mail_host,
        port=env.mail_port,
        sender=env.mail_from,
        security=Security(env.mail_tls),
        username=env.mail_username,
        password=env.mail_password.get_secret_value(),
        ca_file=ca_file,
    )
    webhooks = Webhooks(allowed=frozenset(env.webhook_hosts_allowed), ca_file=ca_file)
    receivers = frozenset(env.webhook_receivers)
    return Outside(
        mail=mail if env.mail_host else None,
        webhooks=webhooks,
        public_url=settings.PUBLIC_URL,
        signed=replace(webhooks, only=receivers) if receivers else None,
        backstage=directory.connection() if directory.notifies() else None,
    )


def mail_is_configured() -> bool:
    """Whether mails go out at all."""
    return bool(settings.ENV.mail_host)


def webhooks_are_offered() -> bool:
    """Whether the operators name any host that events may be sent to."""
    return bool(settings.ENV.webhook_receivers)
