"""Attacks on what the database holds of leaving: stages that cannot be, and departures nobody may make."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from offboarding.models import Departure, DeparturePlace
from provisioning.models import Tenancy
from tests.scene import NOW

Attack = Callable[[Any], Any]
DAY = timedelta(days=1)


def stage(w: Any, **fields: Any) -> None:
    """A second place in a stage that no action brought it to; kept for a day unless it is said otherwise."""
    kept = {
        "stage": "retained",
        "stop": "HoldAndDrain",
        "is_protected": False,
        "leaves_at": NOW,
        "retained_until": NOW + DAY,
        "gone_at": None,
    }
    place = Tenancy.objects.get(pk=w.other_place.pk)
    place.pk, place.namespace, place.environment = None, f"{place.namespace}-2", "test"
    for name, value in (kept | fields).items():
        setattr(place, name, value)
    Tenancy.objects.bulk_create([place])


def departure(w: Any, **fields: Any) -> Departure:
    """Ada asks that the other team leaves, written by nobody's action."""
    usual = {
        "team": w.other_team,
        "is_whole": False,
        "leaves_at": NOW + DAY,
        "hold": False,
        "retention_days": 30,
        "reason": "The project is over.",
        "needs_second": True,
        "asked_by": w.scene.ada,
        "asked_at": NOW,
    }
    row = Departure(**(usual | fields))
    Departure.objects.bulk_create([row])
    return row


def left_twice(w: Any) -> None:
    """The same place in two departures at once."""
    rows = [DeparturePlace(departure=departure(w), tenancy=w.other_place) for _ in "ab"]
    DeparturePlace.objects.bulk_create(rows)


NAMED: Mapping[str, Attack] = {
    "what_is_protected_does_not_leave": lambda w: stage(w, is_protected=True),
    "who_leaves_has_a_date": lambda w: stage(
        w, stage="leaving", stop="None", leaves_at=None, retained_until=None
    ),
    "what_is_kept_is_kept_until_a_date": lambda w: stage(w, retained_until=None),
    "what_is_gone_went_at_a_time": lambda w: stage(w, stage="gone"),
    "a_queue_stops_as_its_stage_says": lambda w: stage(w, stop="None"),
    "a_place_is_left_once_at_a_time": left_twice,
    "a_second_person_confirms_for_production": lambda w: departure(
        w, confirmed_by=w.scene.ada, confirmed_at=NOW
    ),
    "a_confirmed_departure_has_a_confirmer": lambda w: departure(w, confirmed_at=NOW),
    "what_a_team_leaves_is_kept_1_to_365_days": lambda w: departure(
        w, retention_days=0
    ),
    "a_departure_ends_as_it_went": lambda w: departure(w, ended_at=NOW, end="gone"),
}
ALSO: Mapping[str, Attack] = {
    "what a team leaves is kept for more than a year": lambda w: departure(
        w, retention_days=366
    ),
    "a departure that ended without a word": lambda w: departure(w, ended_at=NOW),
    "what is kept was given up before it was left": lambda w: stage(
        w, retained_until=NOW - DAY
    ),
}
