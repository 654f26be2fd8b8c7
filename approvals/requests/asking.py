"""The page for asking: where it starts from, and the answer beside the form."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Protocol

from django.urls import reverse

from accounts.models import User
from allocations.budgets import money
from approvals.judging.inputs import answer_of
from approvals.models import Request
from approvals.renewals import words as renewal
from approvals.requests.actions import Judged, judge
from approvals.requests.forms import Offers
from approvals.requests.presenting import (
    ask_link,
    changes,
    cost_per_day,
    cost_per_day_at,
    hint_of,
    offering_link,
    usual_wait,
    usual_words,
    verdict,
)
from approvals.requests.vacancies import of_plans
from approvals.requests.wanted import Wanted
from approvals.states import State
from catalogue.offering import in_sentence
from fleet.models import Flavor
from policy.evaluation import Outcome, duration
from provisioning.models import Tenancy
from ui.amounts import ago, gpus, usd
from web.fields import INPUT
from web.refusals import Refused

Part = dict[str, Any]
FIELDS = ("team", "flavor", "namespace", "gpus", "until", "purpose", "reason")
QUICK = [("day", "Today"), ("3", "3 days"), ("7", "1 week"), ("14", "2 weeks")]
RECENT = timedelta(days=90)
MOST_RECENT = 100
# Who needed GPUs for minutes last time seldom does again, and the end is easily overlooked.
LEAST_LENGTH = timedelta(days=1)


class Answerable(Protocol):
    """A form that may be clean enough to be judged; `wanted` raises Refused for what cannot be."""

    @property
    def is_answerable(self) -> bool: ...
    @property
    def wanted(self) -> Wanted: ...
    @property
    def errors(self) -> Any: ...

    fields: dict[str, Any]


def quick_until(choice: str, now: datetime) -> datetime:
    """The end that a quick choice stands for: tonight, or whole days from the next full hour."""
    if choice == "day":
        return end_of_day(now)
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    days = int(choice) if choice in dict(QUICK) else 1
    return hour + timedelta(days=days)


def end_of_day(now: datetime) -> datetime:
    """The next midnight in UTC that is at least four hours ahead."""
    later = now.astimezone(UTC) + timedelta(hours=4)
    return datetime.combine(later.date() + timedelta(days=1), time(0), UTC)


def starting_points(user: User, offers: Offers, now: datetime, *, team: str = "") -> list[Part]:
    """Presets with their price, made from what exists: cheapest, most used, many, and as last time.

    All are for `team` (its slug) where the person may ask for it.
    """
    own = [tenancy for tenancy in offers.tenancies if tenancy.team.slug == team]
    if own:
        clusters = {tenancy.cluster_id for tenancy in own}
        flavors = [flavor for flavor in offers.flavors if flavor.cluster_id in clusters]
        offers = replace(offers, tenancies=own, flavors=flavors) if flavors else offers
    if not offers.flavors:
        return []
    cheapest = min(offers.flavors, key=lambda f: (f.free < 1, f.price_per_gpu_hour))
    recent = recent_asks(user, offers, now)
    used = most_used(offers, recent)
    largest = max(offers.flavors, key=lambda f: (f.gpus_total >= 8, f == used, f.gpus_total))
    points = [
        _point(offers, cheapest, 1, end_of_day(now), "today", now),
        _point(offers, used, min(2, max(used.gpus_total, 1)), quick_until("7", now), "1 week", now),
    ]
    if largest.gpus_total >= 8:
        points.append(_point(offers, largest, 8, quick_until("3", now), "3 days", now))
    last = next((request for request in recent if request.requester_id == user.pk), None)
    if last is not None:
        points.append(_as_last_time(offers, last, now))
    return points


def _as_last_time(offers: Offers, last: Request, now: datetime) -> Part:
    """The person's last ask again, for a day at least; the form does not start with one that still waits."""
    length = max(last.until - last.created_at, LEAST_LENGTH)
    flavor = next(f for f in offers.flavors if f.pk == last.flavor_id)
    until = (now + length).replace(second=0, microsecond=0)
    again = _point(
        offers, flavor, last.gpus, until, duration(length), now, team=last.team.slug, purpose=last.purpose
    )
    if last.state != State.WAITING:
        text = f"{last.team.name} · as last time, {flavor.free_words}"
        return again | {"text": text, "is_last": True}
    asked = f"You asked for {in_sentence(last.name())} {ago(last.created_at, now)}, and it waits."
    return again | {
        "text": f"{last.team.name} · you asked for this {ago(last.created_at, now)}, it waits",
        "waits": {"text": asked, "href": reverse("request", args=[last.pk])},
    }


def recent_asks(user: User, offers: Offers, now: datetime) -> list[Request]:
    """What the person's teams asked for in the last 90 days and could ask for again, newest first, at most 100."""
    rows = Request.objects.of_member(user).filter(
        tenancy__in=[tenancy.pk for tenancy in offers.tenancies],
        flavor__in=[flavor.pk for flavor in offers.flavors],
        offering="gpus",
        created_at__gte=now - RECENT,
    )
    return list(rows.select_related("team", "flavor__cluster")[:MOST_RECENT])


def most_used(offers: Offers, recent: Sequence[Request]) -> Flavor:
    """The kind of GPU that was asked for most, else the one there is most of."""
    times = Counter(request.flavor_id for request in recent)
    return max(offers.flavors, key=lambda flavor: (times[flavor.pk], flavor.gpus_total))


def values_from(query: Mapping[str, str], points: list[Part]) -> dict[str, str]:
    """What the form starts with: what the link says, else the last starting point."""
    given = {name: query[name] for name in FIELDS if query.get(name)}
    if not points:
        return given
    usual: dict[str, str] = points[-1 if points[-1]["is_last"] else 0]["values"]
    # A link that names a team only must not bring a kind of GPU that this team cannot have.
    if given.get("team") and given["team"] != usual["team"] and "flavor" not in given:
        usual = next(
            (p["values"] for p in points if p["values"]["team"] == given["team"]), {"purpose": "training"}
        )
    return usual | given


def answer_context(form: Answerable, *, person: User, now: datetime, own: int = 0) -> Part:
    """The right-hand side: the answer when the form makes sense, else what it still lacks.

    `own` is the hold of the request that is being changed.
    """
    if not form.is_answerable:
        return {"answer": None, "lacks": list(_lacks(form))}
    try:
        wanted = form.wanted
        judged = judge(wanted, person=person, now=now, own=own)
    except Refused as refusal:
        return {"answer": None, "lacks": [refusal.message]}
    said = answer(wanted, judged, now=now)
    said["vacancy"] = of_plans(judged.answer.route, person).words if said["people"] else ""
    return {"answer": said, "lacks": []}


def answer(wanted: Wanted, judged: Judged, *, now: datetime) -> Part:
    """Verdict, price and what would change, of one ask."""
    stored = answer_of(judged.answer)
    people = judged.answer.outcome is Outcome.PEOPLE
    days = f"{duration(wanted.until - now)}"
    return {
        "verdict": verdict(
            stored,
            detail=usual_words(usual_wait(stored["route"])) if people else "",
            hint=_hint(wanted, judged),
        ),
        "total": usd(judged.answer.usd),
        "per_day": usd(judged.answer.usd_per_day),
        "formula": f"{wanted.size.formula} × {days}"
        if wanted.size.usd_per_hour_each
        else "It costs nothing by itself.",
        "changes": renewal.changes(wanted, judged, now=now)
        if wanted.renews is not None
        else changes(
            flavor=wanted.flavor,
            more=wanted.gpus,
            usd_per_hour=judged.ask.usd_per_hour,
            held=judged.standing.held_gpus,
            per_day=_per_day(wanted),
        ),
        "extra": renewal.extra_words(wanted, judged, now=now),
        "is_changing": wanted.gpus > 0 or wanted.size.usd_per_hour_each > 0,
        "people": people,
        "seats": ", then ".join(step.words for step in judged.answer.route) if people else "",
        "possible": judged.answer.outcome is not Outcome.IMPOSSIBLE,
        "button": f"Keep {in_sentence(wanted.name)} longer"
        if wanted.renews is not None
        else f"Ask for {in_sentence(wanted.name)}",
        "after": wanted.offering.after,
        "about": about(wanted),
    }


def _per_day(wanted: Wanted) -> Decimal:
    if wanted.tenancy is not None and hasattr(wanted.tenancy, "usd_per_hour"):
        return cost_per_day_at(wanted.tenancy)
    return cost_per_day(wanted.team.pk)


def about(wanted: Wanted) -> str:
    """What an answer was about; a form sent with another one is shown the new answer first."""
    said = sorted(wanted.spec.model_dump(mode="json").items())
    parts = (wanted.team.slug, wanted.offering.key, wanted.namespace, said, wanted.until.strftime(INPUT))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _hint(wanted: Wanted, judged: Judged) -> Part | None:
    nearest, hint = judged.nearest, hint_of(judged.remedies)
    if hint is None or nearest is None:
        return hint
    if wanted.flavor is None or wanted.offering.key != "gpus":
        fewer = wanted.spec.fewer(nearest.count)
        link = offering_link(
            wanted.offering.key,
            team=wanted.team.slug,
            spec=fewer,
            until=nearest.until,
            namespace=wanted.namespace,
        )
        return {**hint, "label": "Use that", "href": link}
    link = ask_link(
        team=wanted.team.slug,
        flavor=wanted.flavor,
        count=nearest.count,
        until=nearest.until,
        purpose=wanted.purpose,
        namespace=wanted.namespace,
    )
    return {**hint, "label": "Use that", "href": link}


def _lacks(form: Answerable) -> Iterator[str]:
    for name, errors in form.errors.items():
        label = form.fields[name].label if name in form.fields else ""
        said = " ".join(map(str, errors))
        yield f"{label or name.capitalize()}: {said}" if name in form.fields else said


def _point(
    offers: Offers,
    flavor: Flavor,
    count: int,
    until: datetime,
    length: str,
    now: datetime,
    team: str = "",
    purpose: str = "training",
) -> Part:
    tenancy: Tenancy = next(
        t for t in offers.tenancies if t.cluster_id == flavor.cluster_id and team in ("", t.team.slug)
    )
    team = tenancy.team.slug
    cost = money.cost(gpus=count, price=flavor.price_per_gpu_hour, start=now, end=until)
    link = ask_link(team=team, flavor=flavor, count=count, until=until, purpose=purpose)
    values = {
        "team": team,
        "flavor": flavor.key,
        "gpus": str(count),
        "until": until.strftime(INPUT),
        "purpose": purpose,
    }
    return {
        "title": f"{gpus(count, flavor.product)} · {length}",
        "text": f"{tenancy.team.name} · {flavor.cluster.name}, {flavor.free_words}",
        "figure": usd(cost),
        "href": link,
        "values": values,
        "is_last": False,
    }
