"""A webhook that is subscribed to every event, a channel, and what they are told."""

from typing import Any

from notices.channels.events import SUBSCRIBABLE, WebhookEvent
from notices.channels.signing import new_secret
from notices.kinds import NoticeKind
from notices.models import Channel, Notice
from notices.sealing import SECRETS, seal


def subscribe(settings: Any) -> Channel:
    """Such a webhook, with webhooks turned on."""
    settings.ENV = settings.ENV.model_copy(
        update={"webhook_receivers": ["hooks.example.com"]}
    )
    return Channel.objects.create(
        name="Robot",
        way="webhook",
        sealed=seal("https://hooks.example.com/x"),
        secret=seal(new_secret(), purpose=SECRETS),
        events=[event.value for event in SUBSCRIBABLE],
    )


def channel_of(*kinds: NoticeKind) -> Channel:
    """A channel of Slack that is told of these kinds."""
    return Channel.objects.create(
        name="Platform",
        way="slack",
        sealed=seal("https://hooks.slack.com/x"),
        kinds=[kind.value for kind in kinds],
    )


def told() -> list[str]:
    """The types of the events that were told, in their order."""
    return [notice.event["type"] for notice in _events() if notice.event]


def last(event: WebhookEvent) -> tuple[dict[str, Any], str]:
    """The data of the last event of a type, and the path of its page."""
    found = [each for each in _events() if each.event and each.event["type"] == event]
    assert found[-1].event
    return found[-1].event["data"], found[-1].link


def _events() -> list[Notice]:
    return list(Notice.objects.exclude(event=None).order_by("id"))
