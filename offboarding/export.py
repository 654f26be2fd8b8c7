"""What a team takes along as a file: claims, members, holdings and history, as JSON or CSV."""

from datetime import datetime
from typing import Any

from allocations.models import Allocation
from audit.models import Event
from offboarding.models import Departure
from offboarding.preview import places_of
from web.spreadsheets import csv_lines

MOST_EVENTS = 1000
COLUMNS = ("what", "where", "name", "detail", "from", "until")


def export(departure: Departure, *, now: datetime) -> dict[str, Any]:
    """Everything as plain values; times are ISO, in UTC, and claims are those last read from the clusters."""
    team = departure.team
    places = list(
        departure.places.select_related("tenancy__cluster", "tenancy__project")
    )
    held = Allocation.objects.filter(
        tenancy__in=places_of(departure).values("pk")
    ).select_related("flavor__cluster", "tenancy__cluster")
    people = team.memberships.of_people().select_related("user").order_by("user__name")
    events = list(Event.objects.visible_to_teams([team.pk])[:MOST_EVENTS])
    return {
        "team": team.slug,
        "name": team.name,
        "cost_centre": team.cost_centre,
        "written_at": now.isoformat(),
        "leaves_at": departure.leaves_at.isoformat(),
        "kept_until": departure.retained_until.isoformat(),
        "claims": [
            {
                "cluster": place.tenancy.cluster.name,
                "namespace": place.tenancy.namespace,
                "name": claim["name"],
                "size": claim["size"],
                "read_at": place.claims_at.isoformat() if place.claims_at else None,
            }
            for place in places
            for claim in place.claims
        ],
        "members": [
            {
                "name": row.user.name,
                "username": row.user.username,
                "part": row.part,
                "since": row.since.isoformat(),
            }
            for row in people
        ],
        "holdings": [_holding(row) for row in held.order_by("starts_at", "pk")],
        "history": [
            {
                "at": event.at.isoformat(),
                "who": event.actor_name,
                "what": event.words,
                "kind": event.kind,
            }
            for event in sorted(events, key=lambda event: event.seq)
        ],
    }


def _holding(row: Allocation) -> dict[str, Any]:
    place = row.tenancy.cluster.name if row.tenancy is not None else row.place
    return {
        "cluster": place,
        "what": row.what,
        "flavor": row.flavor.name if row.flavor is not None else "",
        "gpus": row.gpus if row.flavor is not None else 0,
        "from": row.starts_at.isoformat(),
        "until": (row.ended_at or row.until).isoformat(),
        "usd": str(row.usd_in_all),
    }


def as_csv(found: dict[str, Any]) -> str:
    """The same as one table, a line per claim, member, holding and event."""
    return csv_lines([COLUMNS, *_rows(found)])


def _rows(found: dict[str, Any]) -> list[tuple[str, ...]]:
    claims = [
        ("claim", c["cluster"], c["name"], c["size"], "", "") for c in found["claims"]
    ]
    members = [
        ("member", "", m["name"], m["part"], m["since"], "") for m in found["members"]
    ]
    held = [
        (
            "holding",
            h["cluster"],
            h["flavor"] or h["what"],
            f"{h['gpus']} GPUs" if h["flavor"] else "",
            h["from"],
            h["until"],
        )
        for h in found["holdings"]
    ]
    events = [("event", "", e["who"], e["what"], e["at"], "") for e in found["history"]]
    return [*claims, *members, *held, *events]
