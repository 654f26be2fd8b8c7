"""What a channel is sent: a card for Teams, blocks for Slack, or an event that is signed for whoever receives it."""

import json
from datetime import UTC, datetime

from connectors.errors import PermanentError
from notices.channels import cards, signing
from notices.kinds import NoticeKind, Way
from notices.models import Channel, Notice
from notices.rendering import Entry
from notices.sealing import Unreadable
from notices.servers import Outside


def send(
    notice: Notice,
    channel: Channel,
    *,
    message_id: str,
    now: datetime,
    outside: Outside,
) -> None:
    """Send a channel its notice; raises ConnectorError when it was not taken."""
    if not channel.enabled and notice.kind != NoticeKind.TEST:
        raise PermanentError("The channel is switched off.")
    try:
        url = channel.url
    except Unreadable as error:
        raise PermanentError(
            "The channel's address was sealed under another secret key. Give it again, or set QM_SECRET_KEY_FALLBACKS."
        ) from error
    if channel.way == Way.WEBHOOK:
        _send_event(notice, channel, url, message_id, now=now, outside=outside)
        return
    render = cards.teams if channel.way == Way.TEAMS else cards.slack
    body = render(Entry(notice.said, outside.public_url + notice.link))
    outside.webhooks.post(url, body, stable_id=message_id)


def _send_event(
    notice: Notice,
    channel: Channel,
    url: str,
    message_id: str,
    *,
    now: datetime,
    outside: Outside,
) -> None:
    if outside.signed is None:
        raise PermanentError(
            "There are no webhooks any more: the operators name no host in QM_WEBHOOK_RECEIVERS."
        )
    try:
        keys = channel.keys(now)
    except Unreadable as error:
        raise PermanentError(
            "The webhook's secret was sealed under another secret key. Make a new one, or set QM_SECRET_KEY_FALLBACKS."
        ) from error
    body = event_body(notice, outside)
    headers = signing.headers(body, message_id=message_id, at=now, keys=keys)
    outside.signed.send(url, body, headers)


def event_body(notice: Notice, outside: Outside) -> bytes:
    """The body of an event, the same at every attempt: what is signed is what is sent."""
    event = notice.event or {}
    said = {
        "type": event["type"],
        "timestamp": notice.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "data": {"url": outside.public_url + notice.link, **event["data"]},
    }
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
