"""What changes about webhooks beside what changes about every channel: their secret, and a receiver that is gone."""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.urls import reverse

from accounts.models import User
from accounts.roles import Permission
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.webhooks import Target
from notices.channels.actions import added, known_events, manages
from notices.channels.signing import OVERLAP, new_secret
from notices.kinds import NoticeKind, Way
from notices.leads import tell_leads
from notices.message import Message
from notices.models import Channel
from notices.sealing import SECRETS, seal
from web.names import checked_name
from web.refusals import Conflict


@transaction.atomic
def add_webhook(
    *, name: str, target: Target, events: Iterable[str], enabled: bool = True, by: User
) -> tuple[Channel, str]:
    """Add a webhook; returns its secret as well, which nobody is told again.

    Raises NoRight, BadInput or Conflict naming the field.
    """
    manages(by)
    secret = new_secret()
    channel = Channel(
        name=checked_name(name, field="name"),
        way=Way.WEBHOOK,
        sealed=seal(target.url),
        events=known_events(events),
        secret=seal(secret, purpose=SECRETS),
        enabled=enabled,
    )
    added(channel, by=by)
    return channel, secret


@transaction.atomic
def rotate_secret(channel_id: int, *, by: User, now: datetime) -> tuple[Channel, str]:
    """Make a new secret, and sign with the one before as well for a day; what was before that counts no more.

    Returns the new one, which nobody is told again. Raises NoRight, or Conflict for a channel that signs nothing.
    """
    manages(by)
    channel = Channel.objects.select_for_update(no_key=True).get(pk=channel_id)
    if channel.way != Way.WEBHOOK:
        raise Conflict("Only webhooks have a secret.", code="no_secret")
    secret = new_secret()
    channel.former_secret, channel.former_secret_until = channel.secret, now + OVERLAP
    channel.secret = seal(secret, purpose=SECRETS)
    channel.save(update_fields=["secret", "former_secret", "former_secret_until"])
    record(
        Kind.CHANNEL_SECRET_ROTATED,
        actor=by.as_actor(),
        subject=("channel", channel.pk),
        name=channel.name,
        former_until=channel.former_secret_until.isoformat(),
    )
    return channel, secret


@transaction.atomic
def switch_off_gone(called: Channel, *, now: datetime) -> bool:
    """Switch off a webhook whose receiver answered that it is gone, and tell platform leads once.

    False for what is switched off or removed already, for one that has another address than was `called` by now, and
    for Teams and Slack, where it says less.
    """
    rows = Channel.objects.select_for_update(no_key=True)
    channel = rows.filter(
        pk=called.pk, way=Way.WEBHOOK, enabled=True, sealed=called.sealed
    ).first()
    if channel is None:
        return False
    channel.enabled = False
    channel.save(update_fields=["enabled"])
    message = Message(
        f"The webhook {channel.name} is switched off",
        "Its receiver answered 410, which says that it wants nothing any more. What waited for it is not sent. "
        "Switch the webhook on again once the receiver is back, or remove it.",
        facts=(("Address", channel.address),),
        action="Open the webhook",
    )
    about, link = ("channel", channel.pk), reverse("channel", args=[channel.pk])
    tell_leads(
        NoticeKind.CHANNEL_OFF,
        subject=about,
        link=link,
        message=message,
        now=now,
        may=Permission.MANAGE_NOTICES,
    )
    record(
        Kind.CHANNEL_SWITCHED_OFF,
        actor=PORTAL,
        subject=about,
        name=channel.name,
        address=channel.address,
        reason="its receiver answered 410",
    )
    return True
