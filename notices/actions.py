"""Telling: rows in the caller's transaction, sent after it by a worker, in whatever way each person wants."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Q

from accounts.directory import backstage
from accounts.models import User
from accounts.roles import Permission
from audit.events import Kind
from audit.log import record
from notices.channels.events import WebhookEvent
from notices.enqueue import enqueue_on_commit
from notices.kinds import (
    GATHERED,
    GATHERED_FOR,
    TOLD_TO_CHANNELS,
    NoticeKind,
    Pace,
    Way,
)
from notices.message import Message
from notices.models import (
    A_PATH,
    Channel,
    Delivery,
    Notice,
    NoticeQuerySet,
    Preference,
)
from notices.servers import webhooks_are_offered
from web.refusals import Conflict, NoRight

State = Delivery.State
A_LINK = re.compile(A_PATH)


def tell(
    kind: NoticeKind,
    *,
    to: Iterable[User],
    subject: tuple[str, int],
    link: str,
    message: Message,
    now: datetime,
) -> None:
    """Tell people, each once and as soon as they want to know; who switched the kind off is not told.

    A team's pipelines are no person and are told nothing: what they started says itself how it ends.

    `subject` is what it is about, such as ("request", 17); `link` the path of a page, such as "/requests/17/".
    Four queries however many people; nothing is sent unless the caller's transaction commits.
    Raises TransactionManagementError outside a transaction, ValueError for a link that is no path.
    """
    people = {
        person.pk: person
        for person in to
        if person.is_active and person.pipelines_of_id is None
    }
    _check(link)
    chosen = dict(
        Preference.objects.filter(kind=kind, person__in=people).values_list(
            "person_id", "pace"
        )
        if people
        else []
    )
    paces = {pk: Pace(chosen.get(pk, kind.default)) for pk in people}
    _write(
        [
            _notice(kind, subject, link, message, now, person_id=pk, pace=pace)
            for pk, pace in paces.items()
            if pace is not Pace.NONE
        ],
        later=_gathered(kind, set(people) - set(chosen), now=now),
    )


def _gathered(
    kind: NoticeKind, persons: set[int], *, now: datetime
) -> dict[int, datetime]:
    """When the next mail of this kind leaves for each of these people who had one a moment ago."""
    if kind not in GATHERED or not persons:
        return {}
    rows = Delivery.objects.filter(
        way=Way.EMAIL, notice__kind=kind, notice__person__in=persons
    )
    lately = rows.filter(
        notice__at__gt=now - 2 * GATHERED_FOR, state__in=[State.WAITING, State.SENT]
    )
    later: dict[int, datetime] = {}
    for person, sent_at, next_at in lately.values_list(
        "notice__person", "sent_at", "next_at"
    ):
        leaves = sent_at or next_at
        # One that has not left yet takes this along; after one that has, or is about to, ten minutes pass.
        at = leaves if leaves > now else leaves + GATHERED_FOR
        if at > now:
            later[person] = max(at, later.get(person, at))
    return later


def tell_channels(
    kind: NoticeKind,
    *,
    subject: tuple[str, int],
    link: str,
    message: Message,
    now: datetime,
) -> None:
    """Tell every channel that is switched on and subscribed to this kind; promises and errors as for `tell`.

    Raises ValueError for a kind that concerns persons alone: no channel can be subscribed to it.
    """
    _check(link)
    if kind not in TOLD_TO_CHANNELS:
        raise ValueError(f"No channel can be subscribed to {kind}.")
    channels = [
        channel for channel in Channel.objects.lasting() if kind in channel.kinds
    ]
    _write(
        [
            _notice(kind, subject, link, message, now, channel=channel)
            for channel in channels
        ]
    )


def tell_with_channels(
    kind: NoticeKind,
    *,
    to: Iterable[User],
    subject: tuple[str, int],
    link: str,
    message: Message,
    now: datetime,
) -> None:
    """Tell people, and every channel that is subscribed to this kind; promises and errors as for both."""
    tell(kind, to=to, subject=subject, link=link, message=message, now=now)
    tell_channels(kind, subject=subject, link=link, message=message, now=now)


def tell_webhooks(
    event: WebhookEvent,
    *,
    subject: tuple[str, int],
    link: str,
    data: Callable[[], Mapping[str, Any]],
    now: datetime,
) -> None:
    """Tell every webhook that is switched on and subscribed to this event; promises and errors as for `tell`.

    `data` is asked for what the event says, in JSON's types, only where somebody is told; no query without webhooks.
    """
    _check(link)
    if not webhooks_are_offered():
        return
    channels = [
        channel for channel in Channel.objects.lasting() if event in channel.events
    ]
    if not channels:
        return
    said = Message(event.words, f"The event {event.value}.")
    what = {"type": event.value, "data": dict(data())}
    _write(
        [
            _notice(
                NoticeKind.EVENT, subject, link, said, now, channel=channel, event=what
            )
            for channel in channels
        ]
    )


def take_back(kinds: Iterable[NoticeKind], *, subject: tuple[str, int]) -> None:
    """Send people no more what they were to be told about a thing and is not so any more; what has left stays."""
    told = Notice.objects.about(subject).filter(kind__in=kinds, person__isnull=False)
    Delivery.objects.filter(notice__in=told, state=State.WAITING, attempts=0).delete()
    drop_from_digest(told)


def drop_from_digest(told: NoticeQuerySet) -> None:
    """Forget those of these notices that wait for a daily mail; what is in one stays in it."""
    # Locked, so that no daily mail is written of what is gone.
    waiting = told.filter(pace=Pace.DIGEST, digest=None).select_for_update(no_key=True)
    Notice.objects.filter(pk__in=[notice.pk for notice in waiting]).delete()


def was_told(
    kind: NoticeKind,
    person: User,
    *,
    subject: tuple[str, int],
    link: str,
    since: datetime,
) -> bool:
    """Whether somebody was told this by mail since then, or will be; what was taken back does not count."""
    told = Notice.objects.about(subject).filter(kind=kind, person=person, link=link)
    mailed = Q(pace=Pace.DIGEST) | Q(deliveries__way=Way.EMAIL)
    return told.filter(mailed, at__gt=since).exists()


def tell_one_channel(
    channel: Channel,
    *,
    link: str,
    message: Message,
    now: datetime,
    event: Mapping[str, Any] | None = None,
) -> Delivery:
    """Send a test to one channel, whatever it is subscribed to; promises and errors as for `tell`.

    `event` is what a webhook is sent, its type and data.
    """
    _check(link)
    subject = ("channel", channel.pk)
    test = _notice(
        NoticeKind.TEST, subject, link, message, now, channel=channel, event=event
    )
    return _write([test])[0]


@transaction.atomic
def send_again(delivery_id: int, *, by: User, now: datetime) -> None:
    """Put a delivery that was given up back on its way, with all its attempts; raises NoRight or Conflict."""
    if not by.may(Permission.MANAGE_NOTICES):
        raise NoRight(
            "Platform leads send again what was given up.", code="not_a_platform_lead"
        )
    is_back = (
        Delivery.objects.parked()
        .filter(pk=delivery_id)
        .update(state=Delivery.State.WAITING, attempts=0, next_at=now)
    )
    if not is_back:
        raise Conflict(
            "This message is on its way already, or has arrived.", code="not_given_up"
        )
    enqueue_on_commit()
    record(
        Kind.NOTICE_SENT_AGAIN, actor=by.as_actor(), subject=("delivery", delivery_id)
    )


def _check(link: str) -> None:
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "A notice needs the transaction it tells of."
        )
    if not A_LINK.match(link):
        raise ValueError(
            f"A notice leads to a page of the portal, not to {link[:80]!r}."
        )


def _notice(
    kind: NoticeKind,
    subject: tuple[str, int],
    link: str,
    message: Message,
    now: datetime,
    *,
    person_id: int | None = None,
    channel: Channel | None = None,
    pace: Pace = Pace.AT_ONCE,
    event: Mapping[str, Any] | None = None,
) -> Notice:
    return Notice(
        kind=NoticeKind(kind),
        subject_type=subject[0],
        subject_id=subject[1],
        link=link,
        message=message.tidy().as_json(),
        at=now,
        person_id=person_id,
        channel=channel,
        pace=pace,
        event=None if event is None else dict(event),
    )


def _write(
    notices: list[Notice], *, later: Mapping[int, datetime] | None = None
) -> list[Delivery]:
    """Store notices, and a delivery for each that does not wait for its person's daily mail; returns those.

    `later` is when the mail leaves, by person, where that is not at once. What a person is told stands in Backstage
    at once, where that is connected: a list interrupts nobody.
    """
    at = later or {}
    made = Notice.objects.bulk_create(notices)
    deliveries = [
        Delivery(
            notice=notice,
            way=notice.channel.way if notice.channel else Way.EMAIL,
            next_at=at.get(notice.person_id or 0, notice.at),
        )
        for notice in made
        if notice.pace == Pace.AT_ONCE
    ]
    listed = [
        Delivery(notice=notice, way=Way.BACKSTAGE, next_at=notice.at)
        for notice in made
        if notice.person_id and backstage.notifies()
    ]
    if deliveries or listed:
        Delivery.objects.bulk_create(deliveries + listed)
        enqueue_on_commit()
    return deliveries
