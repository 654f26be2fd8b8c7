"""Managers, members of named groups and stand-ins hold no role, and find and decide what waits for them like a lead."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Contact, Delegation, RoleHeld, User
from accounts.roles import Role
from approvals.models import Request
from approvals.requests.actions import withdraw
from policy.document import Policy, Route, StepPlan
from tests import factories
from tests.calling import Caller
from tests.scene import DAY, HOUR, Scene

GROUP = str(factories.group_oid(77))
BY = {
    "manager": StepPlan(by="managers"),
    "group": StepPlan(by=f"group:{GROUP}", name="the security board"),
    "stand_in": StepPlan(by="platform_leads"),
}
# The frame's entry and what it counts, the menu's entry, and home's part.
PLACES = ('href="/approvals/"', 'href="/stand-in/"', "To decide")
MOST_QUERIES = 13


def decided_by(step: StepPlan) -> None:
    """Everything goes to this step."""
    factories.policy(
        Policy(routes=(Route(name="all", steps=(step,)),)), now=timezone.now() - DAY
    )


def seated(scene: Scene, sort: str) -> User:
    """Grace, who decides for this reason and holds no role."""
    decided_by(BY[sort])
    grace = factories.person("Grace Hall", groups=[GROUP] if sort == "group" else [])
    if sort == "manager":
        User.objects.filter(pk=scene.ada.pk).update(managers=[str(grace.oid)])
        scene.ada.refresh_from_db()
    if sort == "stand_in":
        lend(scene.priya, grace)
    return grace


def lend(giver: User, to: User) -> None:
    now = timezone.now()
    Delegation.objects.create(
        giver=giver, to=to, starts_at=now - DAY, until=now + DAY, accepted_at=now
    )


def ask(scene: Scene, gpus: int = 3) -> Request:
    return factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=gpus, days=2)


def text(client: Client, path: str) -> str:
    """A page that is there."""
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.fixture(params=sorted(BY))
def grace(request: pytest.FixtureRequest, scene: Scene) -> User:
    return seated(scene, request.param)


@pytest.fixture
def page(client: Client, grace: User) -> Client:
    client.force_login(grace)
    return client


@pytest.mark.slow
def test_they_decide_several_together(page: Client, scene: Scene) -> None:
    asked = [ask(scene), ask(scene, 4)]
    done = page.post(
        "/approvals/together",
        {
            "do": "approve",
            "seen": [f"{each.pk}:{each.version}" for each in asked],
            "reason": "",
        },
    ).content.decode()
    assert "2 of 2 decided" in done
    assert "3 × A100 for Vision" in done
    assert set(Request.objects.values_list("state", flat=True)) == {"approved"}


@pytest.mark.slow
def test_they_decide_several_by_one_call(grace: User, scene: Scene) -> None:
    asked = ask(scene)
    answer = Caller(grace).post(
        "decisions/",
        {"decisions": [{"request": asked.pk, "version": 1, "verdict": "approve"}]},
    )
    assert [each["code"] for each in answer.json()["results"]] == [""]


@pytest.mark.slow
def test_what_waits_for_them_leads_there_from_every_page(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene)
    home = text(page, "/")
    for words in (*PLACES, f'href="/approvals/{asked.pk}/"'):
        assert words in home, words
    assert [
        place["count"]
        for place in page.get("/clusters/").context["rail"]
        if place["key"] == "g a"
    ] == [1]
    assert (
        "/approvals/"
        in page.get(
            "/palette", {"q": "appr"}, headers={"HX-Request": "true"}
        ).content.decode()
    )


@pytest.mark.slow
def test_they_are_told_that_decisions_wait_for_the_directory(
    page: Client, scene: Scene
) -> None:
    ask(scene)
    Contact.objects.failed(timezone.now(), "Graph answered 503")
    assert "decisions wait" in text(page, "/")


@pytest.mark.slow
def test_their_queue_is_narrowed_to_the_teams_of_who_asks(
    page: Client, scene: Scene
) -> None:
    ask(scene)
    assert '<option value="vision"' in text(page, "/approvals/")
    assert len(page.get("/approvals/", {"team": "vision"}).context["rows"]) == 1


@pytest.mark.slow
def test_fifty_requests_cost_no_more_queries_than_five(
    page: Client, scene: Scene
) -> None:
    addresses, counts = ("/", "/approvals/", "/clusters/", "/palette?q=appr"), []
    for number in (5, 45):
        factories.more_like(ask(scene), number - 1)
        for address in addresses:
            with CaptureQueriesContext(connection) as seen:
                page.get(address)
            counts.append(len(seen))
    assert counts[: len(addresses)] == counts[len(addresses) :]
    assert max(counts) <= MOST_QUERIES, counts


@pytest.mark.parametrize("sort", ["manager", "group"])
def test_nothing_leads_there_once_nothing_waits_at_their_seat(
    client: Client, scene: Scene, sort: str
) -> None:
    grace = seated(scene, sort)
    client.force_login(grace)
    asked = ask(scene)
    withdraw(asked.pk, by=scene.ada, now=timezone.now())
    home = text(client, "/")
    assert not [words for words in PLACES if words in home]


def test_a_step_that_was_passed_on_to_their_group_leads_there(
    client: Client, scene: Scene
) -> None:
    decided_by(StepPlan(by="platform_leads", escalate_to=f"group:{GROUP}"))
    client.force_login(factories.person("Grace Hall", groups=[GROUP]))
    asked = ask(scene)
    assert PLACES[0] not in text(client, "/")
    asked.steps.update(escalated_at=timezone.now() - HOUR)
    assert PLACES[0] in text(client, "/")


def test_who_stands_in_for_somebody_without_a_seat_is_led_nowhere(
    client: Client, scene: Scene
) -> None:
    grace = seated(scene, "stand_in")
    RoleHeld.objects.filter(user=scene.priya).update(role=Role.DATA_SCIENTIST)
    ask(scene)
    client.force_login(grace)
    assert PLACES[0] not in text(client, "/")


def test_the_teams_of_the_queue_are_those_of_what_waits_for_this_person(
    client: Client, scene: Scene
) -> None:
    ask(scene)
    asked_for_leadership = timezone.now() - timedelta(hours=1)
    client.force_login(scene.elena)
    assert '<option value="vision"' not in text(client, "/approvals/")
    Request.objects.get().steps.update(
        escalated_at=asked_for_leadership, escalate_to="engineering_leadership"
    )
    assert '<option value="vision"' in text(client, "/approvals/")
