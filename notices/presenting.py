"""What pages say about choices, tests and deliveries."""

from collections.abc import Mapping
from datetime import datetime
from typing import NotRequired, TypedDict

from django.urls import reverse

from accounts.models import User
from accounts.roles import Permission
from notices.kinds import NoticeKind, Pace, Way
from notices.models import Delivery, Notice
from ui.parts import Link


class Outcome(TypedDict):
    """How a test went; `moving` while it is not decided."""

    tone: str
    sentence: str
    detail: NotRequired[str]
    at: NotRequired[datetime | None]
    next_at: NotRequired[datetime | None]
    moving: NotRequired[bool]


class PaceChoice(TypedDict):
    """When a notice is sent, to choose."""

    value: str
    words: str
    chosen: bool


class KindChoices(TypedDict):
    """A kind of notice with its choices."""

    kind: str
    words: str
    choices: list[PaceChoice]


class ChoiceGroup(TypedDict):
    """Kinds of notice that belong together."""

    title: str
    rows: list[KindChoices]


class GivenUp(TypedDict):
    """A message that could not be delivered, and why."""

    pk: int
    to: str
    address: str
    about: str
    kind: str
    link: str
    way: str
    why: str
    at: datetime | None


def outcome(
    delivery: Delivery | None, *, to: str, is_stuck: bool = False
) -> Outcome | None:
    """How a test went; None when there was none."""
    if delivery is None:
        return None
    if delivery.state == Delivery.State.SENT:
        return {
            "tone": "good",
            "sentence": f"The test has left for {to}.",
            "at": delivery.sent_at,
        }
    if delivery.state == Delivery.State.PARKED:
        return {
            "tone": "bad",
            "sentence": "The test could not be sent.",
            "detail": delivery.last_error,
        }
    if is_stuck:
        return {
            "tone": "waiting",
            "sentence": "The test waits until a mail server is configured.",
        }
    if delivery.last_error:
        return {
            "tone": "waiting",
            "sentence": "The test has not got through yet.",
            "detail": delivery.last_error,
            "next_at": delivery.next_at,
            "moving": True,
        }
    return {"tone": "moving", "sentence": "The test is on its way.", "moving": True}


def settings_tabs(person: User, current: str) -> list[Link]:
    """The pages of settings that this person may use."""
    pages = [("Notices", "notice-settings")]
    if person.may(Permission.MANAGE_NOTICES):
        pages += [("Channels", "channels"), ("Not delivered", "deliveries")]
    tabs: list[Link] = [
        {
            "label": label,
            "href": reverse(route),
            "current": route == current,
            "count": None,
        }
        for label, route in pages
    ]
    if len(tabs) > 1:
        tabs[-1]["count"] = Delivery.objects.parked().count() or None
    return tabs


def choices(
    groups: Mapping[str, tuple[NoticeKind, ...]], paces: Mapping[NoticeKind, Pace]
) -> list[ChoiceGroup]:
    """The kinds in groups, a row for each with the three choices, one of them chosen."""
    return [
        {
            "title": title,
            "rows": [_row(kind, paces[kind]) for kind in kinds],
        }
        for title, kinds in groups.items()
    ]


def _row(kind: NoticeKind, chosen: Pace) -> KindChoices:
    return {
        "kind": kind.value,
        "words": kind.words,
        "choices": [
            {"value": pace.value, "words": pace.words, "chosen": pace is chosen}
            for pace in Pace
        ],
    }


def given_up(delivery: Delivery) -> GivenUp:
    """A message that could not be delivered."""
    notice, digest = delivery.notice, delivery.digest
    person = digest.person if digest else notice.person if notice else None
    channel = notice.channel if notice else None
    return {
        "pk": delivery.pk,
        "to": channel.name if channel else person.name if person else "",
        "address": channel.address
        if channel
        else person.email
        if person and delivery.way == Way.EMAIL
        else "",
        "about": notice.said.title
        if notice
        else f"The daily mail of {digest.day.day} {digest.day:%b}"
        if digest
        else "",
        "kind": _kind_words(notice),
        "link": notice.link if notice else "",
        "way": delivery.get_way_display(),
        "why": delivery.last_error,
        "at": notice.at if notice else digest.at if digest else None,
    }


def _kind_words(notice: Notice | None) -> str:
    if notice is None:
        return "Daily mail"
    return str(notice.event["type"]) if notice.event else NoticeKind(notice.kind).words
