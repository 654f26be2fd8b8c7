"""A maintenance that a platform lead plans: what is refused, who is told and reads it, and how it is taken back."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from audit.models import Event
from fleet.actions import change_cluster
from fleet.maintenance import Maintenance
from fleet.models import Cluster
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.fleet.test_announcing import TEXT, announce, told
from web.refusals import BadInput

HOUR = timedelta(hours=1)
pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(second=0, microsecond=0)


def window(starts: datetime, ends: datetime, *, drains: bool = False) -> dict[str, Any]:
    """What is given of a maintenance."""
    return {
        "maintenance_starts_at": starts,
        "maintenance_ends_at": ends,
        "maintenance_drains": drains,
    }


NONE: dict[str, Any] = {"maintenance_starts_at": None, "maintenance_ends_at": None}


def plan(place: Tenancy, by: User, **values: Any) -> Cluster:
    """Change what is said of the cluster's maintenance."""
    return change_cluster(place.cluster_id, values=values, by=by)


def test_teams_are_told_when_it_is_planned_moved_and_taken_back(
    place: Tenancy, ada: User, priya: User, now: datetime
) -> None:
    factories.person("Mallory Finch", teams=[factories.team("Speech")])
    first = window(now + 24 * HOUR, now + 28 * HOUR)
    plan(place, priya, **first)
    plan(place, priya, **first)
    [[who, said]] = told()
    assert who == "Ada Okafor"
    assert said.startswith("Maintenance from ")
    assert "nothing new starts then; what runs then goes on" in said
    plan(place, priya, **window(now + 48 * HOUR, now + 52 * HOUR, drains=True))
    assert "runs are stopped when it starts and start anew after it" in told()[-1][1]
    found = plan(place, priya, **NONE)
    assert told()[-1][1].endswith("does not take place.")
    assert len(told()) == 3
    assert (found.last_maintenance, found.maintenance_drains) == (None, False)
    event = Event.objects.filter(kind="cluster.changed").latest("seq")
    assert event.details["maintenance_drains_before"] is True


def test_one_that_is_taken_back_while_it_is_on_ends_with_the_minute(
    place: Tenancy, ada: User, priya: User, now: datetime
) -> None:
    plan(place, priya, **window(now - HOUR, now + HOUR, drains=True))
    found = plan(place, priya, **NONE, maintenance_drains=False)
    assert found.maintenance_starts_at == now - HOUR
    ends = found.maintenance_ends_at
    assert ends is not None
    assert timezone.now() < ends <= timezone.now() + timedelta(minutes=1)
    assert found.maintenance_drains
    assert "Maintenance until " in told()[-1][1]
    # What is over is forgotten without a word.
    Cluster.objects.update(maintenance_ends_at=now - timedelta(minutes=1))
    assert plan(place, priya, **NONE).last_maintenance is None
    assert len(told()) == 2


@pytest.mark.parametrize(
    ("starts", "ends", "field", "code"),
    [
        (None, 4, "maintenance_starts_at", "half_a_window"),
        (4, None, "maintenance_ends_at", "half_a_window"),
        (4, 4, "maintenance_ends_at", "no_window"),
        (4, 3, "maintenance_ends_at", "no_window"),
        (1, 1 + 14 * 24 + 1, "maintenance_ends_at", "no_window"),
        (-4, -1, "maintenance_ends_at", "in_the_past"),
    ],
)
def test_what_is_no_maintenance_is_refused_at_its_field(
    starts: int | None,
    ends: int | None,
    field: str,
    code: str,
    place: Tenancy,
    priya: User,
    now: datetime,
) -> None:
    given = [None if one is None else now + one * HOUR for one in (starts, ends)]
    names = ("maintenance_starts_at", "maintenance_ends_at")
    with pytest.raises(BadInput) as refused:
        plan(place, priya, **dict(zip(names, given, strict=True)))
    assert (refused.value.field, refused.value.code) == (field, code)
    assert told() == []


def test_stopping_what_runs_takes_kueue_and_a_time(
    place: Tenancy, priya: User, now: datetime
) -> None:
    other = factories.cluster("gang", queueing="volcano")
    with pytest.raises(BadInput, match="Volcano"):
        change_cluster(
            other.pk, values=window(now + HOUR, now + 2 * HOUR, drains=True), by=priya
        )
    assert not plan(place, priya, maintenance_drains=True).maintenance_drains
    held = window(now + HOUR, now + 2 * HOUR)
    assert change_cluster(other.pk, values=held, by=priya).maintenance(now)


def test_it_is_written_and_read_by_form_and_api_and_stands_where_announcements_do(
    place: Tenancy, ada: User, priya: User, client: Client, now: datetime
) -> None:
    lead, address = Caller(priya), f"clusters/{place.cluster.name}/"
    given = window(now + 24 * HOUR, now + 28 * HOUR)
    said = {
        name: one if isinstance(one, bool) else f"{one:%Y-%m-%dT%H:%M:%SZ}"
        for name, one in given.items()
    }
    shown = lead.patch(address, said).json()
    assert {name: shown[name] for name in said} == said
    announce(place, priya)
    client.force_login(ada)
    cluster = f"/clusters/{place.cluster.name}/"
    for page in ("/", "/teams/vision/", "/clusters/", cluster, f"{cluster}queue"):
        text = client.get(page).content.decode()
        assert "Maintenance from " in text, page
        assert TEXT in text, page
    client.force_login(priya)
    form = client.get(f"/clusters/{place.cluster.name}/edit").content.decode()
    assert f'value="{given["maintenance_starts_at"]:%Y-%m-%dT%H:%M}"' in form
    Cluster.objects.update(maintenance_starts_at=now - HOUR, announcement="")
    assert "nothing new starts before" in client.get("/").content.decode()
    Cluster.objects.update(maintenance_ends_at=now - timedelta(minutes=1))
    assert "Maintenance" not in client.get("/").content.decode()
    form = client.get(f"/clusters/{place.cluster.name}/edit").content.decode()
    assert f"{now - HOUR:%Y-%m-%dT%H:%M}" not in form
    assert lead.patch(address, {"maintenance_drains": "perhaps"}).status_code == 422


def test_what_would_start_in_it_starts_when_it_ends() -> None:
    at = datetime.fromisoformat("2026-12-05T08:00:00+00:00")
    found = Maintenance(starts=at, ends=at + 4 * HOUR, drains=False)
    assert [found.start_of(at + hours * HOUR) for hours in (-1, 0, 3, 4)] == [
        at - HOUR,
        at + 4 * HOUR,
        at + 4 * HOUR,
        at + 4 * HOUR,
    ]
    assert found.window(at) == "Sat 5 Dec, 08:00 UTC to 12:00 UTC"
    over_night = Maintenance(starts=at, ends=at + 20 * HOUR, drains=False)
    assert over_night.window(at) == "Sat 5 Dec, 08:00 UTC to Sun 6 Dec, 04:00 UTC"
    moments = [at - HOUR, at, at + 4 * HOUR]
    assert [found.stop_policy(one) for one in moments] == ["None", "Hold", "None"]
