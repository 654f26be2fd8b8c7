"""Home tells somebody who comes back what their runs are at."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from fleet.models import Flavor
from provisioning.models import Tenancy
from tests import factories
from workloads.runs.states import State

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def place() -> Tenancy:
    return factories.tenancy(factories.team("Vision"), factories.cluster("training"))


@pytest.fixture
def a100(place: Tenancy) -> Flavor:
    return factories.flavor(place.cluster, "a100")


@pytest.fixture
def ada(place: Tenancy) -> User:
    return factories.person("Ada Okafor", teams=[place.team])


def lines(user: User) -> list[tuple[str, str, str]]:
    """What home says of runs: title, state, and the line below."""
    client = Client()
    client.force_login(user)
    return [
        (run.title, run.word, run.sub) for run in client.get("/").context["runs"] or []
    ]


def of_an_hour(**fields: Any) -> dict[str, Any]:
    """The fields of a run that began an hour ago and runs."""
    began = timezone.now() - HOUR
    return {
        "created_at": began,
        "sent_at": began,
        "started_at": began,
        "running_since": began,
        "state": State.RUNNING,
        **fields,
    }


def test_a_run_says_where_it_is(ada: User, place: Tenancy, a100: Flavor) -> None:
    over = of_an_hour(
        running_since=None,
        ran_seconds=1_800,
        state=State.FAILED,
        ended_at=timezone.now() - HOUR / 4,
    )
    factories.run(place, ada, title="Failed", flavor=a100, gpus=2, **over)
    running = of_an_hour(gpus=2, flavor=a100, limit_seconds=None)
    factories.run(place, ada, title="Runs", **running)
    factories.run(place, ada, title="Waits", gpus=0, state=State.WAITING)
    assert lines(ada) == [
        ("Waits", "Waiting", "submitted just now"),
        ("Runs", "Running", "2 × A100, runs for 1 h"),
        ("Failed", "Failed", "2 × A100, ended 15 min ago after 30 min"),
    ]


def test_it_says_until_when_a_time_limit_lets_it_run(
    ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.run(
        place, ada, **of_an_hour(flavor=a100, gpus=1, limit_seconds=24 * 3_600)
    )
    [(_, _, sub)] = lines(ada)
    assert sub.startswith("1 × A100, runs for 1 h, until ")
    assert sub.endswith(" at the latest")


def test_what_ended_the_day_before_and_what_others_run_is_not_there(
    ada: User, place: Tenancy
) -> None:
    long_ago = timezone.now() - timedelta(days=2)
    ended = of_an_hour(
        created_at=long_ago,
        sent_at=long_ago,
        started_at=long_ago,
        running_since=None,
        state=State.FINISHED,
        ended_at=long_ago + HOUR,
    )
    factories.run(place, ada, title="Old", **ended)
    factories.run(place, factories.person("Ben", teams=[place.team]), title="Ben's")
    assert lines(ada) == []


def test_runs_of_a_team_that_one_is_no_member_of_any_more_are_not_there(
    ada: User, place: Tenancy
) -> None:
    factories.run(place, ada)
    ada.memberships.all().delete()
    assert lines(ada) == []


def test_of_more_than_five_it_leads_to_the_teams_list(
    ada: User, place: Tenancy
) -> None:
    for number in range(6):
        factories.run(place, ada, title=f"Run {number}")
    assert [title for title, _, _ in lines(ada)] == [
        f"Run {number}" for number in (5, 4, 3, 2, 1)
    ]
    client = Client()
    client.force_login(ada)
    more = client.get("/").context["more_runs"]
    assert more == {"label": "All runs of Vision", "href": "/teams/vision/runs"}
    assert client.get(more["href"]).status_code == 200


def test_five_runs_cost_no_more_queries_than_one(
    ada: User, place: Tenancy, a100: Flavor
) -> None:
    client = Client()
    client.force_login(ada)
    counts = []
    for many in (1, 4):
        for number in range(many):
            running = of_an_hour(flavor=a100, gpus=2, title=f"Run {many}-{number}")
            factories.run(place, ada, **running)
        with CaptureQueriesContext(connection) as seen:
            client.get("/")
        counts.append(len(seen))
    assert counts[0] == counts[1]
