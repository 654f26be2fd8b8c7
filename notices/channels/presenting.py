"""What pages say about channels."""

from django.urls import reverse

from notices.channels.events import WebhookEvent
from notices.kinds import NoticeKind
from notices.models import Channel
from ui.parts import Badge, Row


def channel_row(channel: Channel) -> Row:
    """A channel as the list shows it."""
    told = [
        *(NoticeKind(kind).channel_words for kind in channel.kinds),
        *(WebhookEvent(event).words for event in channel.events),
    ]
    state = (
        Badge(tone="good", word="On")
        if channel.enabled
        else Badge(tone="past", word="Off")
    )
    more = f" and {len(told) - 1} more" if len(told) > 1 else ""
    return {
        "cells": [
            {
                "text": channel.name,
                "href": reverse("channel", args=[channel.pk]),
                "sub": channel.address,
            },
            channel.get_way_display(),
            f"{told[0]}{more}" if told else "nothing",
            state,
        ]
    }
