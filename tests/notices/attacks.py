"""An attack on every constraint of notices, past every action; see tests/constraints.py."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.db import models

from accounts.models import User
from notices.message import Message
from notices.models import Channel, Delivery, Digest, DigestHour, Notice, Preference
from notices.sealing import seal
from tests.scene import NOW

Row = TypeVar("Row", bound=models.Model)
Attack = Callable[[Any], Any]


def channel(**fields: Any) -> Channel:
    """A channel past the action."""
    usual = {
        "name": "Platform",
        "way": "slack",
        "sealed": seal("https://hooks.slack.com/x"),
        "kinds": [],
    }
    return _added(Channel(**usual | fields))


def webhook(**fields: Any) -> Channel:
    """A webhook past the action."""
    return channel(**{"way": "webhook", "secret": seal("whsec_c2VjcmV0")} | fields)


def notice(to: User | None, **fields: Any) -> Notice:
    """A notice past the action."""
    usual = {
        "kind": "task_done",
        "subject_type": "request",
        "subject_id": 1,
        "link": "/x",
        "pace": "at_once",
        "at": NOW,
    }
    return _added(
        Notice(person=to, message=Message("t", "s").as_json(), **usual | fields)
    )


def delivery(w: Any, **fields: Any) -> Delivery:
    """A delivery past the action."""
    usual: dict[str, Any] = {
        "notice": notice(w.scene.ada),
        "way": "email",
        "next_at": NOW,
    }
    return _added(Delivery(**usual | fields))


def digest(w: Any) -> Digest:
    """Ada's daily mail."""
    return _added(Digest(person=w.scene.ada, day=NOW.date(), at=NOW))


def preference(w: Any, **fields: Any) -> Preference:
    """What Ada chose."""
    return _added(
        Preference(
            **{"person": w.scene.ada, "kind": "task_done", "pace": "none"} | fields
        )
    )


def _added(row: Row) -> Row:
    type(row)._default_manager.bulk_create([row])
    return row


NAMED: Mapping[str, Attack] = {
    "channel_names_are_unique": lambda w: (channel(), channel(name="pLATFORM")),
    "a_known_kind_of_channel": lambda w: channel(way="email"),
    "a_channels_address_is_sealed": lambda w: channel(
        sealed="https://hooks.slack.com/x"
    ),
    "a_webhook_has_a_sealed_secret": lambda w: webhook(secret="whsec_c2VjcmV0"),
    "a_former_secret_is_sealed_and_ends": lambda w: webhook(
        former_secret=seal("whsec_c2VjcmV0")
    ),
    "one_preference_per_kind": lambda w: (preference(w), preference(w, pace="digest")),
    "a_preference_has_a_kind": lambda w: preference(w, kind=""),
    "a_known_pace": lambda w: preference(w, pace="later"),
    "a_day_has_24_hours": lambda w: _added(DigestHour(person=w.scene.ada, hour=24)),
    "one_digest_per_person_and_day": lambda w: (digest(w), digest(w)),
    "a_notice_is_for_a_person_or_a_channel": lambda w: notice(
        w.scene.ada, channel=channel()
    ),
    "a_notice_has_a_kind": lambda w: notice(w.scene.ada, kind=""),
    "a_notice_is_to_be_sent": lambda w: notice(w.scene.ada, pace="none"),
    "a_digest_holds_what_may_wait": lambda w: notice(w.scene.ada, digest=digest(w)),
    "a_notice_leads_into_the_portal": lambda w: notice(
        w.scene.ada, link="//evil.example"
    ),
    "an_event_is_for_a_channel": lambda w: notice(
        w.scene.ada, event={"type": "run.ended", "data": {}}
    ),
    "a_delivery_carries_one_thing": lambda w: delivery(w, digest=digest(w)),
    "a_notice_goes_each_way_once": lambda w: delivery(w, notice=delivery(w).notice),
    "a_digest_goes_each_way_once": lambda w: delivery(
        w, notice=None, digest=delivery(w, notice=None, digest=digest(w)).digest
    ),
    "a_known_way": lambda w: delivery(w, way="pigeon"),
    "a_delivery_is_on_its_way_sent_or_parked": lambda w: delivery(w, state="sent"),
}
UNIQUE: Mapping[str, Attack] = {
    "notices.DigestHour.person": lambda w: [
        _added(DigestHour(person=w.scene.ada, hour=8)) for _ in range(2)
    ],
}
ALSO: Mapping[str, Attack] = {
    "a channel of Slack with a secret": lambda w: channel(secret=seal("x")),
    "a webhook without a secret": lambda w: webhook(secret=""),
    "a former secret as it is": lambda w: webhook(
        former_secret="whsec_c2VjcmV0", former_secret_until=NOW
    ),
    "an event that says nothing": lambda w: notice(
        None, channel=webhook(), kind="event"
    ),
    "a notice for nobody": lambda w: notice(None),
    "a delivery of nothing": lambda w: delivery(w, notice=None),
    "a delivery given up for no reason": lambda w: delivery(w, state="parked"),
    "a delivery lost": lambda w: delivery(w, state="lost"),
    "a delivery that waits and was sent": lambda w: delivery(w, sent_at=NOW),
}
