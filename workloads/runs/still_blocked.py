"""Runs that wait for another one for long: nothing bounds that, so who submitted them is told, once."""

from datetime import datetime, timedelta

from django.db import transaction

from reconciling.sweeping import for_each
from workloads.runs.models import Run, RunQuerySet
from workloads.runs.notices import tell_blocked
from workloads.runs.states import State

TOLD_AFTER = timedelta(days=1)


def tell_of_blocked(*, now: datetime) -> None:
    """Tell each person of their runs that have waited for another one for a day, of all that are due at once."""
    people = _due(now).order_by("requester").values_list("requester", flat=True)
    for_each(people.distinct(), lambda person: _tell(person, now=now))


def _due(now: datetime) -> RunQuerySet:
    # A run is blocked from its submission on, or never.
    return Run.objects.filter(
        state=State.BLOCKED, blocked_told_at=None, created_at__lte=now - TOLD_AFTER
    )


@transaction.atomic
def _tell(person: int, *, now: datetime) -> None:
    mine = _due(now).filter(requester=person)
    locked = [one.pk for one in mine.locked().order_by("pk").only("pk")]
    Run.objects.filter(pk__in=locked).update(blocked_told_at=now)
    runs = [*Run.objects.filter(pk__in=locked).listed().order_by("pk")]
    if runs:
        tell_blocked(runs, now=now)
