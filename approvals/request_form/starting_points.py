"""What the form for GPUs can start from: presets with their price, made from what exists."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NotRequired, TypedDict

from django.urls import reverse

from accounts.models import User
from allocations.budgets import money
from approvals.models import Request
from approvals.request_form.offers import Offers
from approvals.request_form.quick_ends import (
    end_of_day,
    end_of_day_words,
    quick_end,
)
from approvals.requests.links import ask_link
from approvals.states import State
from catalogue.offering import in_sentence
from fleet.models import Flavor
from ui.amounts import ago, gpus, usd
from ui.parts import Hint
from web.fields import INPUT

RECENT = timedelta(days=90)
MOST_RECENT = 100
# Who needed GPUs for minutes last time seldom does again, and the end is easily overlooked; what ended at some hour of
# some day is remembered by its days.
A_DAY = timedelta(days=1)
MANY = 8


class Point(TypedDict):
    """What the form can start from; `current` says that it stands as this would have it."""

    title: str
    text: str
    figure: str
    href: str
    values: Mapping[str, str]
    until: datetime
    is_last: bool
    waits: NotRequired[Hint]
    current: NotRequired[bool]


def starting_points(
    user: User, offers: Offers, now: datetime, *, team: str = ""
) -> list[Point]:
    """Cheapest but spot, most used, many, and as last time; for `team` (its slug) where the person may ask for it."""
    offers = offers.of_team(team)
    if not offers.flavors:
        return []
    cheapest = min(
        offers.flavors, key=lambda f: (f.is_spot, f.free < 1, f.price_per_gpu_hour)
    )
    recent = _recent(user, offers, now)
    used = _most_used(offers, recent)
    largest = max(
        offers.flavors, key=lambda f: (f.gpus_total >= MANY, f == used, f.gpus_total)
    )
    points = [
        _point(offers, cheapest, 1, end_of_day(now), end_of_day_words(now), now),
        _point(
            offers,
            used,
            min(2, max(used.gpus_total, 1)),
            quick_end("7", now),
            "1 week",
            now,
        ),
    ]
    if largest.gpus_total >= MANY:
        points.append(_point(offers, largest, MANY, quick_end("3", now), "3 days", now))
    last = next(
        (request for request in recent if request.requester_id == user.pk), None
    )
    if last is not None:
        again = _as_last_time(offers, last, now)
        points = [
            *(each for each in points if not _is_much_the_same(each, again)),
            again,
        ]
    return points


def _is_much_the_same(point: Point, again: Point) -> bool:
    """Whether two points are for as many of the same, and end on about the same day."""
    ends = [{**each["values"], "until": ""} for each in (point, again)]
    apart = abs(point["until"] - again["until"])
    return ends[0] == ends[1] and apart < A_DAY


def usual_of(points: Sequence[Point]) -> Mapping[str, str]:
    """What the form starts with: as last time, unless that still waits, else the first point; nothing without any."""
    if not points:
        return {}
    return points[-1 if points[-1]["is_last"] else 0]["values"]


def _as_last_time(offers: Offers, last: Request, now: datetime) -> Point:
    """The person's last ask again, for as many whole days; the form does not start with one that still waits."""
    days = max(round(last.duration / A_DAY), 1)
    flavor = next(f for f in offers.flavors if f.pk == last.flavor_id)
    until = (now + days * A_DAY).replace(second=0, microsecond=0)
    again = _point(
        offers,
        flavor,
        last.gpus,
        until,
        f"{days} day{'s' if days > 1 else ''}",
        now,
        team=last.team.slug,
        purpose=last.purpose,
    )
    if last.state != State.WAITING:
        text = f"{last.team.name} · as last time, {flavor.free_words}"
        return again | {"text": text, "is_last": True}
    asked = f"You asked for {in_sentence(last.name())} {ago(last.created_at, now)}, and it waits."
    return again | {
        "text": f"{last.team.name} · you asked for this {ago(last.created_at, now)}, it waits",
        "waits": {"text": asked, "href": reverse("request", args=[last.pk])},
    }


def _recent(user: User, offers: Offers, now: datetime) -> list[Request]:
    """What the person's teams asked for in the last 90 days and could ask for again, newest first, at most 100."""
    rows = Request.objects.of_member(user).filter(
        tenancy__in=[tenancy.pk for tenancy in offers.tenancies],
        flavor__in=[flavor.pk for flavor in offers.flavors],
        offering="gpus",
        created_at__gte=now - RECENT,
    )
    return list(rows.select_related("team", "flavor__cluster")[:MOST_RECENT])


def _most_used(offers: Offers, recent: Sequence[Request]) -> Flavor:
    """The kind of GPU that was asked for most, else the one there is most of."""
    times = Counter(request.flavor_id for request in recent)
    return max(offers.flavors, key=lambda flavor: (times[flavor.pk], flavor.gpus_total))


def _point(
    offers: Offers,
    flavor: Flavor,
    count: int,
    until: datetime,
    length: str,
    now: datetime,
    team: str = "",
    purpose: str = "training",
) -> Point:
    tenancy = offers.tenancy(team, flavor)
    assert tenancy is not None  # noqa: S101 - flavors are offered where somebody is
    spec = {"flavor": flavor.key, "gpus": str(count), "purpose": purpose}
    cost = money.cost(gpus=count, price=flavor.price_per_gpu_hour, start=now, end=until)
    return {
        "title": f"{gpus(count, flavor.kind)} · {length}",
        "text": f"{tenancy.team.name} · {flavor.cluster.title}, {flavor.free_words}",
        "figure": usd(cost),
        "href": ask_link("gpus", team=tenancy.team.slug, spec=spec, until=until),
        "values": {"team": tenancy.team.slug, **spec, "until": until.strftime(INPUT)},
        "until": until,
        "is_last": False,
    }
