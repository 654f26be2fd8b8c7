"""What changes about channels: platform leads add, change, try and remove them; addresses are kept to ourselves."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from accounts.models import User
from accounts.roles import Permission
from audit.events import Kind
from audit.log import record
from connectors.errors import ConnectorError
from connectors.webhooks import Target
from notices.actions import tell_one_channel
from notices.channels.events import SUBSCRIBABLE, WebhookEvent
from notices.kinds import TOLD_TO_CHANNELS, NoticeKind, Way
from notices.message import Message
from notices.models import Channel, Delivery
from notices.sealing import PURPOSE, SECRETS, Unreadable, seal, sealed_anew
from notices.servers import outside
from web.names import checked_name
from web.refusals import BadInput, Conflict, NoRight

# What can be changed of a channel of Teams or Slack, and of a webhook.
FIELDS = frozenset({"name", "kinds", "enabled"})
FIELDS_OF_WEBHOOKS = frozenset({"name", "events", "enabled"})
# What of a channel lies sealed, and for which purpose.
SEALED = {"sealed": PURPOSE, "secret": SECRETS, "former_secret": SECRETS}
WRONG_FIELD = (
    "A webhook is told of events, a channel of Teams or of Slack of kinds of notices."
)
CHANNELS_PAGE = "/settings/channels/"


def manages(by: User) -> None:
    """Let platform leads pass; raises NoRight for anybody else."""
    if not by.may(Permission.MANAGE_NOTICES):
        raise NoRight("Platform leads set up channels.", code="not_a_platform_lead")


def checked(url: str, *, way: str) -> Target:
    """The target of an address that may be called; looks its host up, so never call it inside a transaction.

    Raises BadInput that says what is wrong without repeating the address, Conflict where there are no webhooks.
    """
    ways_out = outside()
    calls = ways_out.signed if way == Way.WEBHOOK else ways_out.webhooks
    if calls is None:
        raise Conflict(
            "There are no webhooks here: the operators turn them on by naming the hosts that may be called in "
            "QM_WEBHOOK_RECEIVERS.",
            code="webhooks_off",
        )
    try:
        return calls.check(url)
    except ConnectorError as error:
        raise BadInput(error.message, code="bad_address", field="url") from error


@transaction.atomic
def add_channel(
    *,
    name: str,
    way: str,
    target: Target,
    kinds: Iterable[str],
    enabled: bool = True,
    by: User,
) -> Channel:
    """Add a channel; raises NoRight, BadInput or Conflict naming the field."""
    manages(by)
    if way not in (Way.TEAMS, Way.SLACK):
        raise BadInput(
            "This is a channel of Teams or of Slack.", code="invalid", field="way"
        )
    channel = Channel(
        name=checked_name(name, field="name"),
        way=way,
        sealed=seal(target.url),
        kinds=_kinds(kinds),
        enabled=enabled,
    )
    added(channel, by=by)
    return channel


def added(channel: Channel, *, by: User) -> None:
    """Save a new channel, and append that it was added and what it is told; raises Conflict for a name in use."""
    _save(channel)
    told = "events" if channel.way == Way.WEBHOOK else "kinds"
    record(
        Kind.CHANNEL_ADDED,
        actor=by.as_actor(),
        subject=("channel", channel.pk),
        name=channel.name,
        way=channel.way,
        address=channel.address,
        **{told: getattr(channel, told), "enabled": channel.enabled},
    )


@transaction.atomic
def seal_anew(channel_id: int) -> int:
    """Seal the address and the secrets of a channel under the secret key of now; returns how many lay under another.

    What they say stays, so nobody is told and nothing is written down. Of one that was removed meanwhile there is
    nothing. Raises Unreadable where a key is missing, and nothing of the channel is changed.
    """
    rows = Channel.objects.select_for_update(no_key=True)
    channel = rows.filter(pk=channel_id).first()
    if channel is None:
        return 0
    changed = []
    for name, purpose in SEALED.items():
        before = getattr(channel, name)
        after = sealed_anew(before, purpose=purpose) if before else before
        if after != before:
            setattr(channel, name, after)
            changed.append(name)
    if changed:
        channel.save(update_fields=changed)
    return len(changed)


@transaction.atomic
def change_channel(
    channel_id: int, *, values: Mapping[str, Any], target: Target | None, by: User
) -> Channel:
    """Change name, what it is told, being switched on, or the address.

    Raises NoRight, BadInput or Conflict naming the field.
    """
    manages(by)
    channel = Channel.objects.select_for_update(no_key=True).get(pk=channel_id)
    wanted = _wanted(channel, values)
    changed = {
        field: value
        for field, value in wanted.items()
        if getattr(channel, field) != value
    }
    for field, value in changed.items():
        setattr(channel, field, value)
    if target is not None and not _is_told_at(channel, target):
        channel.url = target.url
        changed["address"] = channel.address
    if changed:
        _save(channel)
        record(
            Kind.CHANNEL_CHANGED,
            actor=by.as_actor(),
            subject=("channel", channel.pk),
            **{"name": channel.name, **changed},
        )
    return channel


@transaction.atomic
def remove_channel(channel_id: int, *, by: User) -> None:
    """Remove a channel with its address and all that waits for it; raises NoRight."""
    manages(by)
    # Not `no_key`: who tells it something is waited for before anything is deleted, see `lasting`.
    channel = Channel.objects.select_for_update().filter(pk=channel_id).first()
    if channel is None:
        return
    name, address = channel.name, channel.address
    channel.delete()
    record(
        Kind.CHANNEL_REMOVED,
        actor=by.as_actor(),
        subject=("channel", channel_id),
        name=name,
        address=address,
    )


@transaction.atomic
def test_channel(channel_id: int, *, by: User, now: datetime) -> Delivery:
    """Send a test to a channel, switched on or not; raises NoRight, or Conflict while one is still on its way."""
    manages(by)
    channel = Channel.objects.select_for_update(no_key=True).get(pk=channel_id)
    if test_of(channel, state=Delivery.State.WAITING):
        raise Conflict("The test before is still on its way.", code="test_waiting")
    said = Message(
        "A test of this channel",
        "This is how Quartermaster writes here. There is nothing to do.",
        facts=(("Channel", channel.name), ("Asked for by", by.name)),
        action="See the channels",
    )
    delivery = tell_one_channel(
        channel,
        link=CHANNELS_PAGE,
        message=said,
        now=now,
        event=test_event(channel) if channel.way == Way.WEBHOOK else None,
    )
    record(
        Kind.NOTICE_TESTED,
        actor=by.as_actor(),
        subject=("channel", channel.pk),
        way=channel.way,
    )
    return delivery


def test_event(channel: Channel) -> dict[str, Any]:
    """What a webhook is sent as a test."""
    return {
        "type": WebhookEvent.TEST.value,
        "data": {"id": channel.pk, "name": channel.name},
    }


def test_of(channel: Channel, **state: str) -> Delivery | None:
    """The newest test of a channel, None when there was none."""
    tests = Delivery.objects.filter(
        notice__channel=channel, notice__kind=NoticeKind.TEST, **state
    )
    return tests.order_by("-id").first()


def _wanted(channel: Channel, values: Mapping[str, Any]) -> dict[str, Any]:
    """What is to be of the fields that this sort of channel has."""
    fields = FIELDS_OF_WEBHOOKS if channel.way == Way.WEBHOOK else FIELDS
    if others := sorted(values.keys() - fields):
        raise BadInput(WRONG_FIELD, code="unknown_field", field=others[0])
    wanted = dict(values)
    if "name" in wanted:
        wanted["name"] = checked_name(wanted["name"], field="name")
    if "kinds" in wanted:
        wanted["kinds"] = _kinds(wanted["kinds"])
    if "events" in wanted:
        wanted["events"] = known_events(wanted["events"])
    return wanted


def _is_told_at(channel: Channel, target: Target) -> bool:
    try:
        return channel.url == target.url
    except Unreadable:
        return False


def _kinds(kinds: Iterable[str]) -> list[str]:
    return _chosen(
        kinds,
        known=[kind.value for kind in TOLD_TO_CHANNELS],
        field="kinds",
        otherwise="Choose at least one thing to tell the channel about.",
    )


def known_events(events: Iterable[str]) -> list[str]:
    """The events to subscribe a webhook to, each once; raises BadInput for none, and for what is no event."""
    return _chosen(
        events,
        known=[event.value for event in SUBSCRIBABLE],
        field="events",
        otherwise="Choose at least one event.",
    )


def _chosen(
    values: Iterable[str], *, known: list[str], field: str, otherwise: str
) -> list[str]:
    given = set(values)
    if not given or not given <= set(known):
        raise BadInput(otherwise, code="invalid", field=field)
    return [value for value in known if value in given]


def _save(channel: Channel) -> None:
    try:
        with transaction.atomic():
            channel.save()
    except IntegrityError as error:
        raise Conflict(
            "There is a channel of this name already.", code="name_taken", field="name"
        ) from error
