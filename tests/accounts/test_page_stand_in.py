"""The pages of stand-ins and tiers, and the banner while the directory does not answer."""

from datetime import UTC, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Contact, Delegation, Team, User
from accounts.roles import Role
from accounts.stand_ins.actions import delegate, givers_for
from audit.models import RefusalCount
from tests import factories

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
NO_SCRIPT = "%Y-%m-%dT%H:%M"


@pytest.fixture
def priya(client: Client) -> User:
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    client.force_login(priya)
    return priya


def wanted(to: User, /, **fields: str) -> dict[str, str]:
    start = timezone.now().astimezone(UTC)
    usual = {
        "to": to.username,
        "starts_at": f"{start:{NO_SCRIPT}}",
        "until": f"{start + DAY:{NO_SCRIPT}}",
        "reason": "",
    }
    return usual | fields


@pytest.mark.slow
def test_a_stand_in_is_named_shown_to_both_and_ended(
    client: Client, priya: User
) -> None:
    ada = factories.person("Ada Okafor")
    answer = client.post(
        "/stand-in/",
        wanted(ada, to=ada.username.upper(), reason="On holiday."),
        follow=True,
    )
    shown = answer.content.decode()
    assert "Ada Okafor is asked. It counts once they accept." in shown
    assert "no answer yet, counts for nothing" in shown
    assert givers_for(ada, timezone.now()) == []
    made = Delegation.objects.get()
    client.force_login(ada)
    assert "Priya Raman asks you to stand in" in client.get("/").content.decode()
    page = client.get("/stand-in/").content.decode()
    assert ("You are asked to stand in" in page, "You stand in for" in page) == (
        True,
        False,
    )
    assert client.get(f"/stand-in/{made.pk}/accept")["Location"] == "/stand-in/"
    assert client.post(f"/stand-in/{made.pk}/accept").status_code == 302
    assert givers_for(ada, timezone.now()) == [priya]
    assert "asks you to stand in" not in client.get("/").content.decode()
    page = client.get("/stand-in/").content.decode()
    assert ("You stand in for" in page, "Name a stand-in" in page) == (True, False)
    late = client.post(f"/stand-in/{made.pk}/decline", follow=True).content.decode()
    assert "You have accepted it. Give the seat back instead." in late
    assert client.get(f"/stand-in/{made.pk}/end")["Location"] == "/stand-in/"
    assert client.post(f"/stand-in/{made.pk}/end").status_code == 302
    assert givers_for(ada, timezone.now()) == []


def test_who_declines_is_shown_to_the_giver(client: Client, priya: User) -> None:
    ada = factories.person("Ada Okafor")
    client.post("/stand-in/", wanted(ada))
    made = Delegation.objects.get()
    for stranger in (priya, factories.person("Ben")):
        client.force_login(stranger)
        assert client.post(f"/stand-in/{made.pk}/decline").status_code == 404
    client.force_login(ada)
    assert client.post(f"/stand-in/{made.pk}/decline").status_code == 302
    client.force_login(priya)
    page = client.get("/stand-in/").content.decode()
    assert "Declined" in page
    assert f"/stand-in/{made.pk}/end" not in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"to": "nobody@example.com"}, "Nobody of this work address"),
        ({"to": ""}, "Nothing stands here yet"),
        ({"until": "2020-01-01T00:00"}, "The end has to come after the start"),
        ({"starts_at": "2020-01-01T00:00"}, "This lies in the past"),
        ({"until": "2999-01-01T00:00"}, "90 days at most"),
        ({"until": "soon"}, "Write a day and a time"),
        ({"giver": "1"}, "There is no field"),
    ],
)
def test_what_cannot_be_is_said_and_remembered(
    client: Client, priya: User, change: dict[str, str], said: str
) -> None:
    answer = client.post("/stand-in/", wanted(factories.person("Ada"), **change))
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert not Delegation.objects.exists()
    assert RefusalCount.objects.get(status=422).count == 1


def test_nobody_names_themselves_on_the_page(client: Client, priya: User) -> None:
    assert (
        "Name somebody else."
        in client.post("/stand-in/", wanted(priya)).content.decode()
    )


def test_who_decides_nothing_finds_no_form_and_sends_none(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    page = client.get("/stand-in/").content.decode()
    assert "No seat to lend" in page
    assert 'href="/stand-in/"' not in page
    assert client.post("/stand-in/", wanted(factories.person("Ben"))).status_code == 403


def test_a_strangers_stand_in_looks_like_a_missing_one(
    client: Client, priya: User
) -> None:
    marcus, now = factories.person("Marcus", Role.PLATFORM_LEAD), timezone.now()
    made = delegate(
        giver=marcus,
        to=factories.person("Ada"),
        starts_at=now,
        until=now + DAY,
        why="",
        now=now,
    )
    assert client.post(f"/stand-in/{made.pk}/end").status_code == 404
    assert Delegation.objects.get().ended_at is None


def test_two_people_of_one_address_are_nobody(client: Client, priya: User) -> None:
    ada = factories.person("Ada", email="ada@example.com")
    factories.person("Another Ada", email="ADA@example.com")
    assert (
        client.post("/stand-in/", wanted(ada, to="ada@example.com")).status_code == 422
    )


def test_deciders_are_told_that_the_directory_does_not_answer_and_others_are_not(
    client: Client, priya: User
) -> None:
    Contact.objects.failed(timezone.now(), "Graph answered 503")
    assert "decisions wait" in client.get("/").content.decode()
    client.force_login(factories.person("Ada"))
    assert "decisions wait" not in client.get("/").content.decode()


def test_a_platform_lead_sets_a_tier_on_the_teams_page(
    client: Client, priya: User
) -> None:
    team = factories.team("Vision")
    assert 'href="/teams/vision/tier"' in client.get("/teams/vision/").content.decode()
    assert client.post("/teams/vision/tier", {"tier": "gold"}).status_code == 422
    answer = client.post("/teams/vision/tier", {"tier": "trusted"}, follow=True)
    assert "Vision is trusted now." in answer.content.decode()
    assert Team.objects.get(pk=team.pk).tier == "trusted"


def test_a_member_reads_the_tier_and_cannot_set_it(client: Client) -> None:
    team = factories.team("Vision")
    client.force_login(factories.person("Ada", teams=[team]))
    assert "Platform leads set it." in client.get("/teams/vision/tier").content.decode()
    assert client.post("/teams/vision/tier", {"tier": "trusted"}).status_code == 403
    client.force_login(factories.person("Mallory"))
    assert client.get("/teams/vision/tier").status_code == 404
    assert Team.objects.get(pk=team.pk).tier == "standard"
