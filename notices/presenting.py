"""What pages say about channels and deliveries."""

from collections.abc import Mapping
from typing import Any

from django.urls import reverse

from accounts.models import User
from accounts.roles import Permission
from notices.kinds import NoticeKind, Pace
from notices.models import Channel, Delivery

Words = dict[str, Any]


def outcome(delivery: Delivery | None, *, to: str, is_stuck: bool = False) -> Words | None:
    """How a test went: {tone, sentence, detail, at, moving}; None when there was none."""
    if delivery is None:
        return None
    if delivery.state == Delivery.State.SENT:
        return {"tone": "good", "sentence": f"The test has left for {to}.", "at": delivery.sent_at}
    if delivery.state == Delivery.State.PARKED:
        return {"tone": "bad", "sentence": "The test could not be sent.", "detail": delivery.last_error}
    if is_stuck:
        return {"tone": "waiting", "sentence": "The test waits until a mail server is configured."}
    if delivery.last_error:
        return {
            "tone": "waiting",
            "sentence": "The test has not got through yet.",
            "detail": delivery.last_error,
            "next_at": delivery.next_at,
            "moving": True,
        }
    return {"tone": "moving", "sentence": "The test is on its way.", "moving": True}


def settings_tabs(person: User, current: str) -> list[Words]:
    """The pages of settings that this person may use."""
    pages = [("Notices", "notice-settings")]
    if person.may(Permission.MANAGE_NOTICES):
        pages += [("Channels", "channels"), ("Not delivered", "deliveries")]
    tabs: list[Words] = [
        {"label": label, "href": reverse(route), "current": route == current, "count": None}
        for label, route in pages
    ]
    if len(tabs) > 1:
        tabs[-1]["count"] = Delivery.objects.parked().count() or None
    return tabs


def choices(paces: Mapping[NoticeKind, Pace]) -> list[Words]:
    """A row for each kind with the three choices, one of them chosen."""
    return [
        {
            "kind": kind.value,
            "words": kind.words,
            "choices": [
                {"value": pace.value, "words": pace.words, "chosen": pace is chosen} for pace in Pace
            ],
        }
        for kind, chosen in paces.items()
    ]


def channel_row(channel: Channel) -> Words:
    """A channel as the list shows it."""
    told = [NoticeKind(kind).channel_words for kind in channel.kinds]
    state = {"tone": "good", "word": "On"} if channel.enabled else {"tone": "past", "word": "Off"}
    more = f" and {len(told) - 1} more" if len(told) > 1 else ""
    return {
        "cells": [
            {"text": channel.name, "href": reverse("channel", args=[channel.pk]), "sub": channel.address},
            channel.get_way_display(),
            f"{told[0]}{more}" if told else "nothing",
            state,
        ]
    }


def given_up(delivery: Delivery) -> Words:
    """A message that could not be delivered."""
    notice, digest = delivery.notice, delivery.digest
    person = digest.person if digest else notice.person if notice else None
    channel = notice.channel if notice else None
    return {
        "pk": delivery.pk,
        "to": channel.name if channel else person.name if person else "",
        "address": channel.address if channel else person.email if person else "",
        "about": notice.said.title if notice else f"The daily mail of {digest.day:%d %b}" if digest else "",
        "kind": NoticeKind(notice.kind).words if notice else "Daily mail",
        "link": notice.link if notice else "",
        "way": delivery.get_way_display(),
        "why": delivery.last_error,
        "at": notice.at if notice else digest.at if digest else None,
    }
