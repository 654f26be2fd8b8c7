"""A maintenance that a platform lead plans: what is refused, who is told and reads it, and how it is taken back."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from audit.models import Event
from fleet.clusters.actions import change_cluster
from fleet.declared import declare
from fleet.maintenance import Maintenance
from fleet.models import Cluster
from notices.models import Notice
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.fleet.test_announcing import TEXT, announce, told
from tests.pages import Element, parsed, sent_by
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
    moved = Notice.objects.filter(kind="cluster_announced").latest("pk").message
    assert moved["title"] == "Maintenance of Training has changed"
    assert moved["facts"][0][0] == "Before"
    found = plan(place, priya, **NONE)
    assert told()[-1][1].endswith("does not take place.")
    assert len(told()) == 3
    assert (found.last_maintenance, found.maintenance_drains) == (None, False)
    event = Event.objects.filter(kind="cluster.changed").latest("seq")
    assert event.details["maintenance_drains_before"] is True


def test_one_that_is_taken_back_while_it_is_on_ends_with_the_minute(
    place: Tenancy, ada: User, priya: User, now: datetime
) -> None:
    Cluster.objects.update(**window(now - HOUR, now + HOUR, drains=True))
    plan(place, priya, maintenance_ends_at=now + 2 * HOUR)
    asked_at = timezone.now()
    found = plan(place, priya, **NONE, maintenance_drains=False)
    assert found.maintenance_starts_at == now - HOUR
    ends = found.maintenance_ends_at
    assert ends is not None
    assert asked_at < ends <= timezone.now() + timedelta(minutes=1)
    assert found.maintenance_drains
    assert "Runs that it stopped start anew then" in told()[-1][1]
    # What is over stays known, whatever is saved later.
    over = now - timedelta(minutes=1)
    Cluster.objects.update(maintenance_ends_at=over)
    known = plan(place, priya, **NONE, maintenance_drains=False).last_maintenance
    assert known == Maintenance(starts=now - HOUR, ends=over, drains=True)
    assert len(told()) == 2


@pytest.mark.parametrize(
    ("values", "field", "code"),
    [
        ({"maintenance_ends_at": 5}, "maintenance_starts_at", "in_the_past"),
        ({"maintenance_starts_at": 5}, "maintenance_ends_at", "no_window"),
        ({"maintenance_drains": False}, "maintenance_starts_at", "in_the_past"),
    ],
)
def test_one_that_is_over_does_not_come_back_by_a_part_of_it(
    values: dict[str, Any],
    field: str,
    code: str,
    place: Tenancy,
    priya: User,
    now: datetime,
) -> None:
    Cluster.objects.update(**window(now - 4 * HOUR, now - HOUR, drains=True))
    given = {
        name: one if isinstance(one, bool) else now + one * HOUR
        for name, one in values.items()
    }
    with pytest.raises(BadInput) as refused:
        plan(place, priya, **given)
    assert (refused.value.field, refused.value.code) == (field, code)
    assert not Cluster.objects.get().maintenance(now)


def test_one_that_is_on_is_prolonged_and_what_begins_at_once_begins_now(
    place: Tenancy, priya: User, now: datetime
) -> None:
    Cluster.objects.update(**window(now - 4 * HOUR, now + HOUR))
    found = plan(place, priya, maintenance_ends_at=now + 2 * HOUR)
    assert found.maintenance(now) == Maintenance(
        starts=now - 4 * HOUR, ends=now + 2 * HOUR, drains=False
    )
    at_once = window(now - timedelta(minutes=10), now + HOUR)
    assert plan(place, priya, **at_once).stop_policy(now) == "Hold"


def test_the_form_plans_it_keeps_what_is_over_and_changes_nothing_else_by_the_way(
    place: Tenancy, priya: User, client: Client, now: datetime
) -> None:
    client.force_login(priya)
    address = f"/clusters/{place.cluster.name}/edit"

    def sent() -> dict[str, Any]:
        page = parsed(client.get(address).content.decode())
        [form] = [one for one in page.walk() if "enabled" in names_in(one)][-1:]
        return {name: texts[-1] for name, texts in sent_by(form).items()}

    def names_in(one: Element) -> set[str]:
        return set(sent_by(one)) if one.tag == "form" else set()

    given = {
        "maintenance_starts_at": f"{now + HOUR:%Y-%m-%dT%H:%M}",
        "maintenance_ends_at": f"{now + 3 * HOUR:%Y-%m-%dT%H:%M}",
        "maintenance_drains": "on",
    }
    assert client.post(address, sent() | given).status_code == 302
    planned = Cluster.objects.get().maintenance(now)
    assert planned == Maintenance(starts=now + HOUR, ends=now + 3 * HOUR, drains=True)
    Cluster.objects.update(**window(now - 3 * HOUR, now - HOUR, drains=True))
    assert (
        client.post(address, sent() | {"title": "Training, larger"}).status_code == 302
    )
    found = Cluster.objects.get()
    assert (found.title, found.maintenance_ends_at) == (
        "Training, larger",
        now - HOUR,
    )
    assert "maintenance_ends_at" not in Event.objects.latest("seq").details


def test_a_file_of_the_fleet_plans_none(place: Tenancy, now: datetime) -> None:
    with pytest.raises(BadInput) as refused:
        declare([{"name": place.cluster.name, "maintenance_ends_at": "2026-12-31"}])
    assert refused.value.field == "maintenance_ends_at"


@pytest.mark.parametrize(
    ("starts", "ends", "field", "code"),
    [
        (None, 4, "maintenance_starts_at", "half_a_window"),
        (4, None, "maintenance_ends_at", "half_a_window"),
        (4, 4, "maintenance_ends_at", "no_window"),
        (4, 3, "maintenance_ends_at", "no_window"),
        (1, 1 + 14 * 24 + 1, "maintenance_ends_at", "no_window"),
        (-4, -1, "maintenance_starts_at", "in_the_past"),
        (-4, 1, "maintenance_starts_at", "in_the_past"),
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
    with pytest.raises(BadInput, match="a start and an end"):
        plan(place, priya, maintenance_drains=True)
    held = window(now + HOUR, now + 2 * HOUR)
    assert change_cluster(other.pk, values=held, by=priya).maintenance(now)


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("drains", "policy"), [(False, "Hold"), (True, "HoldAndDrain")]
)
def test_queues_are_held_from_its_start_to_its_end(
    drains: bool, policy: str, now: datetime
) -> None:
    found = Cluster(**window(now, now + HOUR, drains=drains))
    moments = [now - HOUR, now, now + HOUR]
    assert [found.stop_policy(one) for one in moments] == ["None", policy, "None"]
    found.written_off_at = now
    assert (found.stop_policy(now), found.announces(now)) == ("None", "")
