"""Reading requests over the API: whatever was granted, in a fixed number of queries."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals.models import Request
from manual import actions as manual
from manual.models import Task
from tests.approvals import shop
from tests.calling import Caller
from tests.scene import Scene

pytestmark = pytest.mark.django_db
MOST_OF_A_DETAIL = 12


def queries(caller: Caller, path: str) -> int:
    """How many queries an answer takes, once the token's use is known."""
    caller.get(path)
    with CaptureQueriesContext(connection) as seen:
        answer = caller.get(path)
    assert answer.status_code == 200, answer.content
    return len(seen)


@pytest.fixture
def everything(scene: Scene) -> list[Request]:
    """One granted request of every offering."""
    now = timezone.now()
    return [shop.granted(scene, key, now=now) for key in shop.SPECS]


@pytest.mark.slow
def test_the_state_of_whatever_was_granted_takes_no_query_for_each_line(
    scene: Scene, everything: list[Request]
) -> None:
    priya = Caller(scene.priya)
    one = queries(priya, "requests/?limit=1&state=approved")
    assert queries(priya, "requests/?limit=100&state=approved") == one <= 4
    lines = priya.get("requests/?limit=100").json()["results"]
    assert {line["offering"] for line in lines} == set(shop.SPECS)
    assert {line["stage"] for line in lines} <= {"setting_up", "active"}


@pytest.mark.slow
def test_a_request_is_read_in_a_dozen_queries_at_most_whatever_it_is_for(
    scene: Scene, everything: list[Request]
) -> None:
    priya = Caller(scene.priya)
    for request in everything:
        assert queries(priya, f"requests/{request.pk}/") <= MOST_OF_A_DETAIL, (
            request.offering
        )


@pytest.mark.slow
def test_a_list_line_says_the_same_as_the_whole_request(
    scene: Scene, everything: list[Request]
) -> None:
    priya = Caller(scene.priya)
    for line in priya.get("requests/?limit=100").json()["results"]:
        whole = priya.get(f"requests/{line['id']}/").json()
        assert {name: whole[name] for name in line} == line


@pytest.mark.slow
def test_the_task_of_what_people_make_stands_in_its_request(
    scene: Scene, everything: list[Request]
) -> None:
    asked = next(each for each in everything if each.offering == "endpoint")
    task = shop.task_of(asked)
    manual.take(task.pk, to=scene.priya, by=scene.priya, now=timezone.now())
    shown = Caller(scene.priya).get(f"requests/{asked.pk}/").json()
    assert [(each["id"], each["state"]) for each in shown["tasks"]] == [
        (task.pk, Task.State.TAKEN)
    ]
