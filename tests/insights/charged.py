"""GPUs that a team held, or holds, at times of a test's choice, and the cost centres that it went to."""

from datetime import UTC, datetime, timedelta

import pytest

from accounts.models import User
from allocations.actions import grant
from allocations.models import Allocation
from audit import clock
from fleet.models import Flavor
from onboarding.team_changes import TeamChange, change_team
from provisioning.models import Tenancy
from tests import factories
from tests.scene import NOW, Scene


def held(scene: Scene, gpus: int, *, start: datetime, end: datetime) -> Allocation:
    """GPUs at a dollar an hour each, there from start to end, which may be after NOW."""
    row = factories.allocation(scene.ada, scene.tenancy, scene.flavor, gpus=gpus)
    return _there(row, start=start, end=end, now=NOW)


def granted(
    by: User,
    at: Tenancy,
    of: Flavor,
    gpus: int,
    *,
    start: datetime,
    end: datetime,
    now: datetime = NOW,
) -> Allocation:
    """GPUs of any tenancy at the price of their kind, however many, there from start to end."""
    wanted = factories.granted(by, at, of, gpus=gpus, until=now + timedelta(days=1))
    row = grant(wanted, actor=by.as_actor(), now=now)
    return _there(row, start=start, end=end, now=now)


def _there(
    row: Allocation, *, start: datetime, end: datetime, now: datetime
) -> Allocation:
    ended = {"ended_at": end, "end_reason": "expired"} if end <= now else {}
    Allocation.objects.filter(pk=row.pk).update(
        starts_at=start,
        begun_at=start,
        charged_from=start,
        until=end,
        kept_until=end,
        remind_at=None,
        **ended,
    )
    return Allocation.objects.get(pk=row.pk)


def booked(scene: Scene, gpus: int, *, start: datetime, end: datetime) -> Allocation:
    """GPUs at a dollar an hour each that begin later."""
    row = held(scene, gpus, start=start, end=end)
    nothing = {"begun_at": None, "charged_from": None, "generation": None}
    Allocation.objects.filter(pk=row.pk).update(**nothing)
    return Allocation.objects.get(pk=row.pk)


def moved(scene: Scene, code: str, when: datetime, patch: pytest.MonkeyPatch) -> None:
    """The team goes to another cost centre at a moment."""
    patch.setattr(clock, "now", lambda: when)
    change_team(scene.team, TeamChange(cost_centre=code), by=scene.priya, now=when)
    patch.undo()


def at(day: int, hour: int = 0, month: int = 11) -> datetime:
    """A moment of autumn 2026."""
    return datetime(2026, month, day, hour, tzinfo=UTC)
