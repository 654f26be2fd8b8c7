"""Who has a seat to lend: people of groups that the policy names decide without a role and without reports."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Delegation, User
from accounts.roles import Role
from approvals.decisions.actions import approve
from approvals.stand_ins.actions import (
    accept,
    decline,
    end,
    groups_that_decide,
    lend,
    may_lend,
)
from notices.models import Notice
from policy.document import Policy, Route, StepPlan
from tests import factories
from tests.calling import Caller
from tests.scene import DAY, NOW, Scene
from web.refusals import BadInput, NoRight

BOARD, NEXT = (str(factories.group_oid(number)) for number in (77, 78))
NO_SCRIPT = "%Y-%m-%dT%H:%M"


@pytest.fixture
def board(scene: Scene) -> None:
    """The security board decides everything; what it leaves lying goes on to another group."""
    step = StepPlan(
        by=f"group:{BOARD}", name="the security board", escalate_to=f"group:{NEXT}"
    )
    factories.policy(Policy(routes=(Route(name="all", steps=(step,)),)), now=NOW - DAY)


def of_group(group: str, *, is_active: bool = True) -> User:
    return factories.person("Grace Hall", groups=[group], is_active=is_active)


@pytest.mark.usefixtures("board")
@pytest.mark.parametrize("group", [BOARD, NEXT])
def test_one_of_a_group_that_the_policy_names_lends_their_seat(
    scene: Scene, group: str
) -> None:
    grace = of_group(group)
    assert may_lend(grace, now=NOW)
    made = lend(
        giver=grace, to=scene.mallory, starts_at=NOW, until=NOW + DAY, why="", now=NOW
    )
    assert (made.giver, made.to) == (grace, scene.mallory)


@pytest.mark.usefixtures("board")
def test_who_stands_in_for_them_decides(scene: Scene) -> None:
    made = lend(
        giver=of_group(BOARD),
        to=scene.mallory,
        starts_at=NOW,
        until=NOW + DAY,
        why="",
        now=NOW,
    )
    request = scene.ask(4)
    with pytest.raises(NoRight):
        approve(request.pk, by=scene.mallory, expected_version=1, now=NOW)
    accept(made, by=scene.mallory, now=NOW)
    assert (
        approve(request.pk, by=scene.mallory, expected_version=1, now=NOW).state
        == "approved"
    )


@pytest.mark.usefixtures("board")
def test_nobody_else_has_a_seat_for_it(scene: Scene) -> None:
    others = (
        of_group(str(factories.group_oid(79))),
        of_group(BOARD, is_active=False),
        scene.ada,
    )
    for person in others:
        assert not may_lend(person, now=NOW)
        with pytest.raises(NoRight):
            lend(
                giver=person,
                to=scene.mallory,
                starts_at=NOW,
                until=NOW + DAY,
                why="",
                now=NOW,
            )
    assert not Delegation.objects.exists()


@pytest.mark.usefixtures("board")
def test_what_waits_at_a_group_counts_after_the_policy_has_changed(
    scene: Scene,
) -> None:
    request = scene.ask(4)
    factories.policy(Policy(), now=NOW - timedelta(hours=1))
    assert groups_that_decide(NOW) == {BOARD, NEXT}
    request.steps.update(done_at=NOW)
    assert groups_that_decide(NOW) == frozenset()


@pytest.mark.usefixtures("board")
def test_the_page_and_the_api_let_them(client: Client, scene: Scene) -> None:
    grace, now = of_group(BOARD), timezone.now()
    client.force_login(grace)
    assert "Name a stand-in" in client.get("/stand-in/").content.decode()
    said = {
        "to": scene.mallory.username,
        "starts_at": f"{now:{NO_SCRIPT}}",
        "until": f"{now + DAY:{NO_SCRIPT}}",
    }
    assert client.post("/stand-in/", said | {"reason": ""}).status_code == 302
    later = {
        "to": str(scene.mallory.oid),
        "starts_at": (now + 2 * DAY).isoformat(),
        "until": (now + 3 * DAY).isoformat(),
    }
    assert Caller(grace).post("delegations/", later).status_code == 201
    assert Delegation.objects.filter(giver=grace, to=scene.mallory).count() == 2


def test_who_only_audits_stands_in_for_nobody(scene: Scene) -> None:
    sam = factories.person("Sam Achebe", Role.AUDITOR)
    with pytest.raises(BadInput, match="Auditors see everything and change nothing"):
        lend(giver=scene.priya, to=sam, starts_at=NOW, until=NOW + DAY, why="", now=NOW)


def notices(person: User) -> list[str]:
    """The titles of what somebody was told of stand-ins, oldest first."""
    rows = Notice.objects.filter(person=person, kind="stand_in").order_by("pk")
    return [row.message["title"] for row in rows]


def test_each_side_is_told_of_what_the_other_does(scene: Scene) -> None:
    priya, marcus = scene.priya, scene.marcus
    for answer in (decline, accept):
        made = lend(
            giver=priya,
            to=marcus,
            starts_at=NOW,
            until=NOW + DAY,
            why="At sea.",
            now=NOW,
        )
        answer(made, by=marcus, now=NOW)
        answer(made, by=marcus, now=NOW)
    end(Delegation.objects.get(accepted_at__isnull=False), by=marcus, now=NOW)
    again = lend(
        giver=priya, to=marcus, starts_at=NOW, until=NOW + DAY, why="", now=NOW
    )
    end(again, by=priya, now=NOW)
    end(again, by=priya, now=NOW)
    assert notices(marcus) == [
        "Priya Raman asks you to stand in",
        "Priya Raman asks you to stand in",
        "Priya Raman asks you to stand in",
        "Priya Raman has taken it back",
    ]
    assert notices(priya) == [
        "Marcus Weber declined to stand in",
        "Marcus Weber stands in for you",
        "A stand-in has ended",
    ]
    first = Notice.objects.filter(person=marcus, kind="stand_in").earliest("pk")
    assert (
        "from Fri 20 Nov, 12:00 UTC until Sat 21 Nov, 12:00 UTC"
        in first.message["sentence"]
    )
    assert (first.link, first.message["facts"]) == ("/stand-in/", [["Why", "At sea."]])
