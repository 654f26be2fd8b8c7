"""Changing a team: who may, what follows on its clusters, and what is refused."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.actions import hold_groups
from accounts.cost_centres.models import CostCentre
from accounts.models import Membership, Team, User
from accounts.roles import Role
from accounts.tokens.actions import create_team_token
from audit.models import Event
from connectors.graph import Group
from notices.digest import collect
from notices.models import Delivery, Notice, Preference
from onboarding.api import owner_from
from onboarding.team_changes import TeamChange, change_team, effects
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.factories import group_oid
from tests.scene import NOW, Scene
from web.refusals import BadInput, Conflict, NoRight

OTHER = Group(oid=str(group_oid(77)), name="vision-research")
COST_CENTRE = {"cost_centre": "CC-9000"}


@pytest.fixture
def lead(scene: Scene) -> Scene:
    """The scene, whose team Ada brought on board; Ben is in the team, too."""
    hold_groups(scene.ada, [str(scene.team.entra_group)])
    ben = factories.person("Ben Ruiz")
    hold_groups(ben, [str(scene.team.entra_group)])
    factories.join(scene.team, ben)
    return scene


def settled(tenancy: Tenancy) -> Tenancy:
    return Tenancy.objects.get(pk=tenancy.pk)


def test_another_cost_centre_reaches_every_namespace(lead: Scene) -> None:
    second = factories.tenancy(lead.team, lead.flavor.cluster, environment="test")
    before = settled(lead.tenancy).generation
    change_team(lead.team, TeamChange(cost_centre="CC-9000"), by=lead.ada, now=NOW)
    for tenancy in (lead.tenancy, second):
        assert settled(tenancy).desired.cost_centre == "CC-9000"
    assert settled(lead.tenancy).generation == before + 1


def test_another_cost_centre_is_listed_so_that_somebody_can_confirm_it(
    lead: Scene,
) -> None:
    change_team(lead.team, TeamChange(cost_centre="CC-9000"), by=lead.ada, now=NOW)
    assert CostCentre.objects.get(code="CC-9000").confirmed_at is None


def test_who_answers_for_a_cost_centre_hears_that_a_team_comes_to_it(
    lead: Scene,
) -> None:
    olga = factories.person("Olga Brandt")
    CostCentre.objects.create(
        code="CC-9000", owner=olga, created_at=NOW, confirmed_at=NOW
    )
    change_team(lead.team, TeamChange(cost_centre="cc-9000"), by=lead.ada, now=NOW)
    [notice] = Notice.objects.filter(kind="cost_centre_joined")
    assert notice.person == olga
    assert notice.said.title == "Vision spends on CC-9000 from now on"
    CostCentre.objects.update(owner=lead.ada)
    change_team(lead.team, TeamChange(cost_centre="CC-1"), by=lead.ada, now=NOW)
    change_team(lead.team, TeamChange(cost_centre="CC-9000"), by=lead.ada, now=NOW)
    assert Notice.objects.filter(kind="cost_centre_joined").count() == 1
    CostCentre.objects.update(owner=olga)
    same = TeamChange(name="Vision Two", cost_centre="CC-9000")
    change_team(lead.team, same, by=lead.ada, now=NOW)
    assert Notice.objects.filter(kind="cost_centre_joined").count() == 1


def moved(lead: Scene, *codes: str, now: datetime = NOW, name: str = "") -> None:
    """The team's lead puts it on one cost centre after the other."""
    for code in codes:
        change = TeamChange(cost_centre=code, name=name)
        change_team(lead.team, change, by=lead.ada, now=now)


@pytest.fixture
def olga(lead: Scene) -> User:
    """Who answers for CC-9000."""
    olga = factories.person("Olga Brandt")
    CostCentre.objects.create(
        code="CC-9000", owner=olga, created_at=NOW, confirmed_at=NOW
    )
    return olga


def test_who_answers_for_a_cost_centre_is_mailed_of_no_team_that_has_left_it_again(
    lead: Scene, olga: User
) -> None:
    mails = Delivery.objects.filter(way="email", notice__person=olga)
    moved(lead, *["CC-9000", "CC-1"] * 5)
    assert not mails.exists()
    moved(lead, "CC-9000", name="Vision Two")
    assert [mail.notice.said.title for mail in mails if mail.notice] == [
        "Vision Two spends on CC-9000 from now on"
    ]


@pytest.mark.slow
def test_who_answers_for_a_cost_centre_is_mailed_of_the_same_team_once_in_a_day(
    lead: Scene, olga: User, client: Client
) -> None:
    mails = Delivery.objects.filter(way="email", notice__person=olga)
    for number in range(5):
        moved(lead, "CC-9000", name=f"Vision {number}")
        mails.update(state="sent", sent_at=NOW)
        moved(lead, "CC-1")
    assert mails.count() == 1
    # Another cost centre of theirs is another thing, and so is the next day.
    CostCentre.objects.filter(code="CC-9").update(owner=olga)
    moved(lead, "CC-9", now=NOW + timedelta(hours=23))
    assert mails.count() == 2
    mails.update(state="sent", sent_at=NOW)
    moved(lead, "CC-9000", now=NOW + timedelta(hours=25))
    assert mails.count() == 3
    client.force_login(olga)
    for notice in Notice.objects.filter(person=olga):
        assert client.get(notice.link).status_code == 200


@pytest.mark.slow
def test_the_daily_mail_names_a_team_that_moves_to_and_fro_once_or_not_at_all(
    lead: Scene, olga: User
) -> None:
    Preference.objects.create(person=olga, kind="cost_centre_joined", pace="digest")
    waiting = Notice.objects.filter(person=olga)
    moved(lead, *["CC-9000", "CC-1"] * 5)
    assert not waiting.exists()
    moved(lead, "CC-9000")
    collect(now=NOW + timedelta(days=1))
    moved(lead, "CC-1", "CC-9000", now=NOW + timedelta(hours=1))
    assert waiting.count() == 1


def test_what_follows_is_said_before_and_writes_nothing(lead: Scene) -> None:
    found = effects(
        lead.team, TeamChange(cost_centre="CC-9000", name="Vision Research")
    )
    assert found.fields == {
        "name": ("Vision", "Vision Research"),
        "cost_centre": (lead.team.cost_centre, "CC-9000"),
    }
    [effect] = found.clusters
    assert effect.tenancy == lead.tenancy
    assert f"Namespace {lead.tenancy.namespace}" in effect.objects
    assert Team.objects.get(pk=lead.team.pk).name == "Vision"


def test_another_name_in_any_script_keeps_the_short_name_and_the_namespaces(
    lead: Scene,
) -> None:
    generation = settled(lead.tenancy).generation
    change_team(lead.team, TeamChange(name="  Équipe  Vision "), by=lead.ada, now=NOW)
    team = Team.objects.get(pk=lead.team.pk)
    assert (team.name, team.slug) == ("Équipe Vision", "vision")
    assert settled(lead.tenancy).generation == generation


def test_another_group_gives_the_binding_and_the_members(lead: Scene) -> None:
    cleo = factories.person("Cleo Novak")
    hold_groups(cleo, [OTHER.oid])
    change = TeamChange(group=OTHER)
    found = effects(lead.team, change)
    assert (found.joining, found.leaving) == (
        ["Cleo Novak"],
        ["Ada Okafor", "Ben Ruiz"],
    )
    change_team(lead.team, change, by=lead.priya, now=NOW)
    assert list(lead.team.memberships.values_list("user__name", flat=True)) == [
        "Cleo Novak"
    ]
    assert settled(lead.tenancy).desired.entra_group == OTHER.oid


def test_the_owner_is_a_member_of_the_group(lead: Scene) -> None:
    with pytest.raises(BadInput) as refused:
        change_team(lead.team, TeamChange(owner=lead.mallory), by=lead.ada, now=NOW)
    assert refused.value.field == "owner"
    ben = lead.team.memberships.get(user__name="Ben Ruiz").user
    change_team(lead.team, TeamChange(owner=ben), by=lead.ada, now=NOW)
    assert Team.objects.get(pk=lead.team.pk).accountable == ben


def test_who_answers_for_a_team_leads_it_and_who_did_before_no_more(
    lead: Scene, client: Client, directory: Any
) -> None:
    ben = lead.team.memberships.get(user__name="Ben Ruiz").user
    change = TeamChange(owner=ben)
    told = effects(lead.team, change).sentences
    assert told == [
        "Ben Ruiz leads the team: may change it, have it leave and stop its notebooks.",
        f"{lead.ada.name} leads it no more: is a member.",
    ]
    client.force_login(lead.ada)
    values = page_values(lead, owner=str(ben.oid))
    checked = client.post("/teams/vision/settings", values | {"check": "1"})
    assert told[0] in checked.content.decode()
    change_team(lead.team, change, by=lead.ada, now=NOW)
    parts = dict(lead.team.memberships.values_list("user__name", "part"))
    assert parts == {"Ben Ruiz": "lead", lead.ada.name: "member"}
    assert client.get("/teams/vision/settings").status_code == 403
    client.force_login(ben)
    assert client.get("/teams/vision/settings").status_code == 200
    assert client.get("/teams/vision/leaving").status_code == 200


def told_of_owner() -> dict[str, str]:
    rows = Notice.objects.filter(kind="team_owned", person__isnull=False)
    return {str(row.person): row.said.title for row in rows}


def test_who_answers_for_a_team_from_now_on_and_who_did_before_are_told(
    lead: Scene, client: Client
) -> None:
    ben = lead.team.memberships.get(user__name="Ben Ruiz").user
    change_team(lead.team, TeamChange(owner=ben), by=lead.priya, now=NOW)
    assert told_of_owner() == {
        "Ben Ruiz": "You answer for Vision from now on",
        lead.ada.name: "Ben Ruiz answers for Vision from now on",
    }
    for notice in Notice.objects.filter(person__isnull=False).select_related("person"):
        assert notice.person is not None
        client.force_login(notice.person)
        assert client.get(notice.link).status_code == 200


def test_who_changes_the_owner_and_who_has_left_the_team_are_not_told_of_it(
    lead: Scene,
) -> None:
    ben = lead.team.memberships.get(user__name="Ben Ruiz").user
    change_team(lead.team, TeamChange(owner=ben), by=lead.ada, now=NOW)
    assert set(told_of_owner()) == {"Ben Ruiz"}
    Notice.objects.all().delete()
    lead.team.memberships.filter(user=ben).delete()
    change_team(lead.team, TeamChange(owner=lead.ada), by=lead.priya, now=NOW)
    assert set(told_of_owner()) == {lead.ada.name}


def test_pipelines_neither_own_a_team_nor_leave_it(lead: Scene, client: Client) -> None:
    now = timezone.now()
    Membership.objects.filter(team=lead.team, user=lead.ada).update(part="lead")
    ada = User.objects.get(pk=lead.ada.pk)
    create_team_token(
        team=lead.team, by=ada, name="nightly", scope="run", days=3, now=now
    )
    pipelines = User.objects.get(pipelines_of=lead.team)
    assert pipelines.name not in effects(lead.team, TeamChange(group=OTHER)).leaving
    client.force_login(lead.ada)
    form = client.get(f"/teams/{lead.team.slug}/settings").context["form"]
    assert str(pipelines.oid) not in dict(form.fields["owner"].choices)
    with pytest.raises(BadInput):
        owner_from(str(pipelines.oid))


def test_a_person_of_the_same_name_is_another_owner(lead: Scene) -> None:
    other = factories.person(lead.ada.name, teams=[lead.team])
    other.groups_held.create(group=lead.team.entra_group)
    change_team(lead.team, TeamChange(owner=other), by=lead.ada, now=NOW)
    assert Team.objects.get(pk=lead.team.pk).accountable == other


def test_who_has_the_role_of_a_lead_stays_one_when_another_answers_for_the_team(
    lead: Scene,
) -> None:
    lead.ada.roles_held.create(role=Role.TEAM_LEAD)
    ben = lead.team.memberships.get(user__name="Ben Ruiz").user
    found = change_team(lead.team, TeamChange(owner=ben), by=lead.ada, now=NOW)
    assert len(found.sentences) == 1
    assert set(lead.team.memberships.values_list("part", flat=True)) == {"lead"}


def test_members_who_do_not_lead_change_nothing(lead: Scene) -> None:
    ben = lead.team.memberships.get(user__name="Ben Ruiz").user
    with pytest.raises(NoRight):
        change_team(lead.team, TeamChange(cost_centre="CC-9000"), by=ben, now=NOW)
    assert Caller(ben).patch("teams/vision/", COST_CENTRE).status_code == 403
    assert Caller(lead.mallory).patch("teams/vision/", COST_CENTRE).status_code == 404


def test_a_taken_name_is_refused_whatever_its_case(lead: Scene) -> None:
    factories.team("Speech")
    with pytest.raises(Conflict) as refused:
        change_team(lead.team, TeamChange(name="SPEECH"), by=lead.ada, now=NOW)
    assert refused.value.code == "name_taken"


def test_the_change_is_in_the_audit_log_with_before_and_after(lead: Scene) -> None:
    before = lead.team.cost_centre
    change_team(lead.team, TeamChange(cost_centre="CC-9000"), by=lead.ada, now=NOW)
    event = Event.objects.get(kind="team.changed")
    assert (event.details["before"], event.details["after"]) == (
        {"cost_centre": before},
        COST_CENTRE,
    )


def test_what_is_the_same_changes_nothing(lead: Scene) -> None:
    change_team(lead.team, TeamChange(name="Vision"), by=lead.ada, now=NOW)
    assert not Event.objects.filter(kind="team.changed").exists()


def test_the_api_previews_and_changes(lead: Scene) -> None:
    ada = Caller(lead.ada)
    shown = ada.post("teams/vision/change-preview/", COST_CENTRE)
    assert shown.status_code == 200
    assert [each["field"] for each in shown.json()["fields_changed"]] == ["cost_centre"]
    assert shown.json()["clusters"][0]["namespace"] == lead.tenancy.namespace
    changed = ada.patch("teams/vision/", COST_CENTRE)
    assert (changed.status_code, changed.json()["cost_centre"]) == (200, "CC-9000")
    unknown = ada.patch("teams/vision/", {"slug": "other"})
    assert unknown.status_code == 422


def test_a_tier_that_may_not_be_set_undoes_the_rest_of_the_call(lead: Scene) -> None:
    refused = Caller(lead.ada).patch("teams/vision/", COST_CENTRE | {"tier": "trusted"})
    assert refused.status_code == 403
    assert Team.objects.get(pk=lead.team.pk).cost_centre == lead.team.cost_centre


def page_values(scene: Scene, **changes: Any) -> dict[str, str]:
    team = scene.team
    usual = {
        "name": team.name,
        "cost_centre": team.cost_centre,
        "entra_group": str(team.entra_group),
    }
    return usual | {"owner": str(scene.ada.oid)} | changes


def test_the_page_shows_what_follows_and_then_changes_it(
    client: Client, lead: Scene, directory: Any
) -> None:
    client.force_login(lead.ada)
    assert client.get("/teams/vision/settings").status_code == 200
    values = page_values(lead, **COST_CENTRE)
    shown = client.post(
        "/teams/vision/settings", values | {"check": "1"}
    ).content.decode()
    assert "written again" in shown
    assert "Nobody has confirmed CC-9000 yet" in shown
    assert Team.objects.get(pk=lead.team.pk).cost_centre == lead.team.cost_centre
    assert client.post("/teams/vision/settings", values).status_code == 302
    assert Team.objects.get(pk=lead.team.pk).cost_centre == "CC-9000"
    team = client.get("/teams/vision/")
    assert "Nobody has confirmed CC-9000 yet" in team.content.decode()
    CostCentre.objects.filter(code="CC-9000").update(confirmed_at=NOW)
    assert "has confirmed" not in client.get("/teams/vision/").content.decode()


def test_the_page_is_shown_to_those_who_may_change_the_team(
    client: Client, lead: Scene
) -> None:
    client.force_login(lead.team.memberships.get(user__name="Ben Ruiz").user)
    assert client.get("/teams/vision/settings").status_code == 403
    client.force_login(lead.mallory)
    assert client.get("/teams/vision/settings").status_code == 404
