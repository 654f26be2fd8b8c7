"""What the page of one reservation shows, and the one on which machines of it are given back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import TypedDict

from django.urls import reverse

from accounts.models import User
from accounts.roles import Permission
from allocations.ends.actions import may_give_back
from allocations.models import Allocation
from approvals.requests.links import ask_link
from capacity.models import Reservation
from capacity.reservations.advice import Advice, Deed
from capacity.reservations.costs import Costs, DayCost
from capacity.reservations.reconcile import Names
from capacity.reservations.states import State
from insights.reservations.charting import UseChart, use_chart
from insights.reservations.gathering import (
    Use,
    advice_of,
    costs_by_day,
    days_of,
    grants_of,
    summed,
    uses_of,
    waiting_of,
)
from insights.reservations.presenting import Standing, place, standing
from ui.amounts import day, machines, moment, share, usd
from ui.parts import Cell, Columns, Fact, Figure, Link, Row

# A chart of more days than these shows nothing more.
DAYS_SHOWN = 60
DAY_COLUMNS: Columns = [
    "Day",
    {"label": "Reserved", "kind": "number"},
    {"label": "In use, on average", "kind": "number"},
    {"label": "Most at once", "kind": "number"},
    {"label": "Cost", "kind": "number"},
    {"label": "Of it idle", "kind": "number"},
]
GRANT_COLUMNS: Columns = [
    "Grant",
    "State",
    {"label": "An hour", "kind": "number"},
    {"label": "Until", "kind": "end"},
]
USE_COLUMNS: Columns = [
    "Team",
    {"label": "Pods", "kind": "number"},
    {"label": "GPUs", "kind": "number"},
]
ADVICE_TONES = {
    Deed.WAIT: "past",
    Deed.KEEP: "good",
    Deed.RELEASE: "waiting",
    Deed.GROW: "waiting",
}


@dataclass(frozen=True, kw_only=True)
class Rights:
    """What the reader may do with a reservation."""

    give_back: bool
    ask: bool
    retry: bool


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """What is advised, and the button for who may do it."""

    tone: str
    sentence: str
    button: Link | None


class ReservationPage(TypedDict):
    """The page of one reservation."""

    reservation: Reservation
    title: str
    standing: Standing
    figures: Sequence[Figure]
    may: Rights
    suggested: Suggestion | None
    chart: UseChart | None
    day_columns: Columns
    days: Sequence[Row]
    grant_columns: Columns
    grants: Sequence[Row]
    use_columns: Columns
    uses: Sequence[Row]
    facts: Sequence[Fact]
    names: Sequence[Fact]
    more_href: str


def rights(row: Reservation, by: User, grants: Sequence[Allocation]) -> Rights:
    """What a person may do with it, as it stands."""
    held = any(one.ended_at is None for one in grants)
    return Rights(
        give_back=held and may_give_back(by, row.team_id),
        ask=row.team_id in by.team_ids,
        retry=by.may(Permission.MANAGE_CLUSTERS)
        and row.state != State.RELEASED
        and _is_stuck(row),
    )


def _is_stuck(row: Reservation) -> bool:
    """Whether a try by hand may help: it is parked, refused, not what is wanted, or its pool was made anew in vain."""
    is_wrong = not row.is_true or row.is_refused or row.pool_remade
    return row.parked_at is not None or (
        bool(row.message) and is_wrong and row.operation is None
    )


def context(row: Reservation, *, by: User, now: datetime) -> ReservationPage:
    """Everything on the page of a reservation, which comes with its team and its flavor's cluster."""
    days = days_of([row])[row.pk]
    by_day, grants = costs_by_day(row, days, now), grants_of(row)
    shown, suggested, may = (
        by_day[-DAYS_SHOWN:],
        advice_of(row, days),
        rights(row, by, grants),
    )
    return {
        "reservation": row,
        "title": f"{row.machines} × {row.vm_size}" if row.machines else row.vm_size,
        "standing": standing(row, now, grant_waits=row.pk in waiting_of([row])),
        "figures": figures(row, summed(by_day)),
        "may": may,
        "suggested": _suggestion(row, suggested, may, grants, now=now),
        "chart": use_chart(shown),
        "day_columns": DAY_COLUMNS,
        "days": [_day(one, now) for one in reversed(shown)],
        "grant_columns": GRANT_COLUMNS,
        "grants": [_grant(one) for one in grants],
        "use_columns": USE_COLUMNS,
        "uses": [_use(one) for one in uses_of(row, by)],
        "facts": _facts(row),
        "names": _names(row),
        "more_href": _more(row, grants, count=1, now=now),
    }


def figures(row: Reservation, costs: Costs) -> list[Figure]:
    """What is reserved, used and idle, and what that cost."""
    if row.state != State.RELEASED and not row.held and not costs.usd:
        return _figures_to_come(row)
    gpus = f"{row.held * row.gpus_each} GPUs" if row.gpus_each else ""
    wanted = (
        f"{row.machines} wanted"
        if row.machines != row.held and row.state != State.RELEASED
        else gpus
    )
    idle_share = share(int(costs.idle_usd * 100), int(costs.usd * 100))
    return [
        {
            "label": "Reserved",
            "value": row.held,
            "unit": "machine" if row.held == 1 else "machines",
            "note": wanted,
        },
        {
            "label": "In use",
            "value": row.used,
            "note": f"{row.over} more beyond it, without a guarantee"
            if row.over
            else share(row.used, row.held),
            "tone": "waiting" if row.over else "",
        },
        {
            "label": "Idle now",
            "value": row.idle,
            "note": f"{usd(row.idle * row.usd_per_hour_each)} an hour"
            if row.idle
            else "",
            "tone": "waiting" if row.idle else "",
        },
        {
            "label": "Cost so far",
            "value": usd(costs.usd),
            "note": f"{usd(row.usd_per_hour)} an hour, used or not",
        },
        {
            "label": "Idle so far",
            "value": usd(costs.idle_usd),
            "note": f"{idle_share} of the cost",
        },
    ]


def _figures_to_come(row: Reservation) -> list[Figure]:
    """Of what Azure does not hold yet nothing is used, and nothing has cost anything."""
    unit = "machine" if row.machines == 1 else "machines"
    return [
        {
            "label": "Wanted",
            "value": row.machines,
            "unit": unit,
            "note": "none of them is reserved yet",
        },
        {
            "label": "Price",
            "value": usd(row.usd_per_hour),
            "note": "an hour, once it is reserved",
        },
    ]


def give_back_choices(
    grants: Sequence[Allocation], now: datetime
) -> list[tuple[Allocation, str]]:
    """The grants of which machines can be given back, each in words; the one that ends last stands first."""
    live = [one for one in grants if one.ended_at is None and one.kept_until > now]
    live.sort(key=lambda one: (one.until, one.pk), reverse=True)
    return [
        (one, f"{_of_request(one)}, until {moment(one.until, now)}") for one in live
    ]


def _of_request(one: Allocation) -> str:
    number = one.hold.request_id
    return (
        machines(one.count)
        if number is None
        else f"{machines(one.count)} of request {number}"
    )


def _suggestion(
    row: Reservation,
    found: Advice | None,
    may: Rights,
    grants: Sequence[Allocation],
    *,
    now: datetime,
) -> Suggestion | None:
    if found is None:
        return None
    button: Link | None = None
    if found.deed is Deed.RELEASE and may.give_back:
        href = f"{reverse('reservation-give-back', args=[row.pk])}?machines={found.machines}"
        button = {"label": f"Release {found.machines}", "href": href, "icon": "undo-2"}
    elif found.deed is Deed.GROW and may.ask:
        href = _more(row, grants, count=found.machines, now=now)
        button = {
            "label": f"Reserve {found.machines} more",
            "href": href,
            "icon": "plus",
        }
    return Suggestion(
        tone=ADVICE_TONES[found.deed], sentence=found.sentence, button=button
    )


def _more(
    row: Reservation, grants: Sequence[Allocation], *, count: int, now: datetime
) -> str:
    """The form for so many more of the same, until the last of what is held ends."""
    live = [one.until for one in grants if one.ended_at is None and one.until > now]
    nodes_for = row.flavor.key if row.flavor else ""
    spec = {
        "region": row.region,
        "vm_size": row.vm_size,
        "instances": count,
        "zone": row.zone,
        "nodes_for": nodes_for,
    }
    until = max(live, default=None)
    if until is None:
        return ""
    return ask_link("reservation", team=row.team.slug, spec=spec, until=until)


def _day(one: DayCost, now: datetime) -> Row:
    words = day(datetime.combine(one.day, time(), UTC), now)
    return {
        "cells": [
            {
                "text": words,
                "sub": "" if one.is_read else "not read, taken as the day before",
            },
            _average(one.reserved),
            _average(one.used),
            one.most,
            usd(one.usd),
            usd(one.idle_usd),
        ]
    }


def _average(value: Decimal) -> str:
    """To one place where there is something in it."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def _grant(one: Allocation) -> Row:
    request = one.hold.request_id
    what: Cell = {"text": machines(one.count), "sub": one.requester.name}
    if request is not None:
        what["text"] = f"{machines(one.count)}, request {request}"
        what["href"] = reverse("request", args=[request])
    if one.ended_at is not None:
        state: Cell = {
            "tone": "past",
            "word": "Ended",
            "sub": f"{one.get_end_reason_display()}",
        }
    elif one.charged_from is None:
        state = {"tone": "moving", "word": "Not there yet", "sub": "costs nothing yet"}
    else:
        state = {"tone": "good", "word": "Held"}
    return {
        "cells": [what, state, usd(one.usd_per_hour), {"at": one.ended_at or one.until}]
    }


def _use(one: Use) -> Row:
    if one.team is None:
        return {
            "cells": [
                {"text": "Others", "sub": "teams that you do not see"},
                one.pods,
                one.gpus,
            ]
        }
    who: Cell = {
        "text": one.team.name,
        "href": reverse("team", args=[one.team.slug]),
        "sub": one.namespace,
    }
    return {"cells": [who, one.pods, one.gpus]}


def _facts(row: Reservation) -> list[Fact]:
    flavor = row.flavor
    facts: list[Fact] = [
        {
            "label": "Team",
            "text": row.team.name,
            "href": reverse("team", args=[row.team.slug]),
        },
        {"label": "Size", "text": row.vm_size},
        {"label": "Where", "text": place(row)},
        {
            "label": "Price of one",
            "money": row.usd_per_hour_each,
            "period": "an hour, used or not",
        },
    ]
    if flavor is not None:
        facts.append(
            {
                "label": "Nodes for",
                "text": f"{flavor.kind} on {flavor.cluster.title}",
                "href": reverse("cluster", args=[flavor.cluster.name]),
            }
        )
    facts.append({"label": "Asked for", "at": row.created_at})
    if row.reserved_at:
        facts.append({"label": "Reserved", "at": row.reserved_at})
    if row.released_at:
        facts.append({"label": "Released", "at": row.released_at})
    if row.seen_at:
        facts.append({"label": "Read from Azure", "at": row.seen_at})
    return facts


def _names(row: Reservation) -> list[Fact]:
    names = Names.of(row)
    found: list[Fact] = [
        {"label": "Subscription", "copyable": row.subscription},
        {"label": "Resource group", "copyable": row.resource_group},
        {"label": "Reservation group", "copyable": names.group},
        {"label": "Reservation", "copyable": names.reservation},
    ]
    return (
        [*found, {"label": "Node pool", "copyable": names.pool}]
        if row.flavor_id
        else found
    )
