"""Access of teams to the registry: given when they come on board, to another group when theirs changes, and taken."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from django.conf import settings
from django.db import DatabaseError, transaction
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import Team
from audit.models import Event
from capacity import tasks
from capacity.models import RegistryAccess
from capacity.registry import actions, plan
from capacity.registry.plan import Grant, Step
from capacity.registry.reconcile import reconcile
from connectors.azure.authorization import (
    ACR_PULL,
    REPOSITORY_WRITER,
    AzureAuthorization,
    RoleAssignment,
)
from connectors.graph import Group
from offboarding import actions as offboarding
from offboarding.models import Departure
from onboarding import actions as onboarding
from onboarding.images import access_of
from onboarding.team_changes import TeamChange, change_team
from provisioning.models import Tenancy
from provisioning.stages import Stage
from sandbox.world import group_id
from tests import factories
from tests.calling import Caller
from tests.capacity.connected import Time, connected
from tests.capacity.test_books_and_azure import Crash, crashing
from tests.sandbox.azure.running import INSIDE, Running
from tests.scene import Scene, scene
from ui.stories import object_checklist

pytestmark = pytest.mark.django_db
WHOLE = f"{INSIDE}/Microsoft.ContainerRegistry/registries/gpuplatform"
BY_REPOSITORY = f"{INSIDE}/Microsoft.ContainerRegistry/registries/gpuplatformabac"
UNKNOWN = "12345678-1234-4234-8234-123456789abc"


@dataclass
class Here:
    """A scene whose team has a group that Azure knows, with a registry that is configured."""

    scene: Scene
    azure: Running
    patch: pytest.MonkeyPatch
    time: Time = field(default_factory=Time)

    def use(self, registry: str) -> None:
        """Have the settings name a registry."""
        self.patch.setattr(settings.ENV, "azure_registry", registry)

    def work(self) -> None:
        """Let the sweep and workers do what is due."""
        actions.follow_all(now=self.time())
        for _ in range(5):
            for pk in (
                RegistryAccess.objects.unfinished()
                .due(self.time())
                .values_list("pk", flat=True)
            ):
                reconcile(pk, now=self.time)
            self.time.pass_(seconds=30)

    def roles(self, registry: str) -> list[RoleAssignment]:
        """Who of the sandbox's groups has which role on a registry, as Azure's own client sees it."""
        azure = AzureAuthorization(self.azure.session())
        rows = [
            one
            for number in range(1, 10)
            for one in azure.assignments(registry, group_id(number))
        ]
        return [one for one in rows if one.scope.lower() == registry.lower()]

    def who(self, registry: str) -> list[tuple[str, str]]:
        """The same as pairs of group and role."""
        return [(one.principal, one.role) for one in self.roles(registry)]

    def regroup(self, group: str) -> None:
        """Have the team made of another group."""
        team = Team.objects.get(pk=self.scene.team.pk)
        change = TeamChange(group=Group(group, "another-team"))
        change_team(team, change, by=self.scene.priya, now=self.time())


@pytest.fixture
def here(azure: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    with connected(azure, monkeypatch):
        made = scene()
        Team.objects.filter(pk=made.team.pk).update(entra_group=group_id(1))
        made.team.refresh_from_db()
        found = Here(made, azure, monkeypatch)
        found.use(WHOLE)
        yield found


def test_a_team_that_is_there_gets_access_by_the_sweep(here: Here) -> None:
    here.work()
    assert here.who(WHOLE) == [(group_id(1), ACR_PULL)]
    access = RegistryAccess.objects.get()
    assert access.sentence == (
        "Your group can pull from gpuplatform.azurecr.io. "
        "Platform leads push to gpuplatform.azurecr.io/vision/ for you."
    )
    assert (
        Event.objects.filter(
            kind="registry.granted", team_id=here.scene.team.pk
        ).count()
        == 1
    )
    here.time.pass_(hours=2)
    here.work()
    assert Event.objects.filter(kind="registry.granted").count() == 1


def test_a_registry_that_gives_rights_by_repository_gives_the_teams_own(
    here: Here,
) -> None:
    here.use(BY_REPOSITORY)
    here.work()
    [role] = here.roles(BY_REPOSITORY)
    assert (role.principal, role.role) == (group_id(1), REPOSITORY_WRITER)
    assert "StringStartsWithIgnoreCase 'vision/'" in role.condition
    assert RegistryAccess.objects.get().sentence == (
        "Your group can pull from and push to gpuplatformabac.azurecr.io/vision/"
    )


@pytest.mark.slow
def test_another_registry_takes_the_place_of_the_first(here: Here) -> None:
    here.work()
    here.use(BY_REPOSITORY)
    here.work()
    assert here.roles(WHOLE) == []
    assert here.who(BY_REPOSITORY) == [(group_id(1), REPOSITORY_WRITER)]
    here.use("")
    here.work()
    assert here.roles(BY_REPOSITORY) == []
    assert access_of(here.scene.team) is None


def test_a_role_of_another_mode_is_taken_when_the_registry_changes_its_mode(
    here: Here,
) -> None:
    here.use(BY_REPOSITORY)
    AzureAuthorization(here.azure.session()).assign(
        BY_REPOSITORY, ACR_PULL, group_id(1)
    )
    here.work()
    assert here.who(BY_REPOSITORY) == [(group_id(1), REPOSITORY_WRITER)]


def test_another_group_gets_it_instead_of_the_old_one(here: Here) -> None:
    here.work()
    here.regroup(group_id(2))
    assert RegistryAccess.objects.get().granted_at is None
    here.work()
    assert here.who(WHOLE) == [(group_id(2), ACR_PULL)]


def test_a_group_that_azure_does_not_know_yet_gets_it_later(here: Here) -> None:
    here.regroup(UNKNOWN)
    here.work()
    access = RegistryAccess.objects.get()
    assert access.sentence == (
        "Azure does not know the team’s group yet; it is told of a new group within minutes."
    )
    assert access.granted_at is None
    here.regroup(group_id(3))
    here.work()
    assert here.who(WHOLE) == [(group_id(3), ACR_PULL)]


def leave(here: Here, *stages: Stage) -> None:
    """Have the team's place go through these stages."""
    for stage in stages:
        now, is_here, is_off = (
            here.time(),
            stage == Stage.HERE,
            stage not in (Stage.HERE, Stage.LEAVING),
        )
        Tenancy.objects.filter(team=here.scene.team).update(
            stage=stage,
            is_protected=False,
            leaves_at=None if is_here else now,
            retained_until=now if is_off else None,
            gone_at=now if stage == Stage.GONE else None,
            stop="HoldAndDrain" if is_off else "None",
        )


def test_a_team_that_leaves_loses_it_when_it_may_work_no_more_and_has_it_again_when_it_is_restored(
    here: Here,
) -> None:
    here.work()
    leave(here, Stage.LEAVING)
    here.work()
    assert here.who(WHOLE) == [(group_id(1), ACR_PULL)]
    leave(here, Stage.RETAINED)
    here.work()
    assert here.roles(WHOLE) == []
    access = RegistryAccess.objects.get()
    assert (access.is_wanted, access.granted_group, access.granted_at) == (
        False,
        None,
        None,
    )
    assert Event.objects.filter(kind="registry.withdrawn").exists()
    leave(here, Stage.HERE)
    here.work()
    assert here.who(WHOLE) == [(group_id(1), ACR_PULL)]


def test_off_boarding_withdraws_it(here: Here) -> None:
    here.work()
    now, priya = here.time(), here.scene.priya
    departure = Departure.objects.create(
        team=here.scene.team,
        is_whole=True,
        leaves_at=now,
        hold=False,
        retention_days=1,
        reason="The project is over.",
        needs_second=False,
        asked_by=priya,
        asked_at=now,
        confirmed_by=priya,
        confirmed_at=now,
    )
    departure.places.create(tenancy=here.scene.tenancy)
    leave(here, Stage.LEAVING, Stage.RETAINED, Stage.REMOVING, Stage.GONE)
    assert offboarding.finish(departure.pk, actor=priya.as_actor(), now=now)
    access = RegistryAccess.objects.get()
    assert not access.is_wanted
    reconcile(access.pk, now=here.time)
    assert here.roles(WHOLE) == []


@pytest.mark.slow
def test_on_boarding_gives_it_and_shows_it_in_the_checklist(
    here: Here, client: Client
) -> None:
    by = here.scene.priya
    enrolment = onboarding.Enrolment(
        name="Speech",
        entra_group=group_id(2),
        cost_centre="CC-7",
        project="main",
        environment="dev",
        cluster=here.scene.flavor.cluster,
    )
    brought = onboarding.Brought(Group(group_id(2), "speech-team"), is_news=True)
    factories.cost_centre("CC-7")
    made = onboarding.enrol(enrolment, brought=brought, by=by, now=timezone.now())
    assert RegistryAccess.objects.filter(team=made.team, is_wanted=True).exists()
    client.force_login(by)
    path = f"/teams/{made.team.slug}/onboarding"
    assert "Your group gets access to the registry within minutes." in _text(
        client, path
    )
    # It is listed, and not counted: the promise is about what stands on the cluster.
    shown = client.get(path).context
    assert shown["total"] == len(shown["checklist"]["items"]) - 1
    counted = f"0 of {shown['total']} ready"
    assert object_checklist(shown["checklist"])["how_many"] == counted
    here.time.at = timezone.now()
    here.work()
    said = "Your group can pull from gpuplatform.azurecr.io."
    assert said in _text(client, path)
    assert said in _text(client, f"/teams/{made.team.slug}/")


def _text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    return str(answer.content.decode())


def test_without_a_registry_nothing_is_kept_and_nothing_is_shown(
    here: Here, client: Client
) -> None:
    here.use("")
    here.work()
    assert not RegistryAccess.objects.exists()
    client.force_login(here.scene.ada)
    assert "registry" not in _text(client, "/teams/vision/").lower()


@pytest.mark.slow
@pytest.mark.parametrize("point", ["registry.grant", "registry.withdraw"])
def test_a_worker_that_dies_in_the_middle_is_followed_by_one_that_goes_on(
    here: Here, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with crashing(monkeypatch):
        here.work()
        monkeypatch.setenv("FAILPOINT", point)
        here.regroup(group_id(2))
        with pytest.raises(Crash):
            here.work()
        monkeypatch.delenv("FAILPOINT")
        # By then it is another one again.
        here.regroup(group_id(4))
        here.time.pass_(minutes=3)
        here.work()
    assert here.who(WHOLE) == [(group_id(4), ACR_PULL)]


def test_a_team_at_which_the_sweep_fails_keeps_no_other_from_its_access(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    actions.follow_all(now=here.time())
    # Its next generation is more than the database counts.
    RegistryAccess.objects.update(is_wanted=False, generation=2**31 - 1)
    other = factories.team("Zebra", entra_group=group_id(5))
    told: list[int] = []
    monkeypatch.setattr(tasks, "enqueue_access", told.append)
    with pytest.raises(ExceptionGroup):
        tasks.reconcile_registry_accesses()
    access = RegistryAccess.objects.get(team=other)
    assert access.is_wanted
    assert access.pk in told


def test_what_is_given_by_hand_otherwise_stays(here: Here) -> None:
    acr_push = "8311e382-0749-4cb8-b61a-304f252e45ec"
    AzureAuthorization(here.azure.session()).assign(WHOLE, acr_push, group_id(1))
    here.work()
    leave(here, Stage.LEAVING, Stage.RETAINED)
    here.work()
    assert here.who(WHOLE) == [(group_id(1), acr_push)]


@pytest.mark.slow
def test_an_access_that_is_tried_no_more_is_tried_again_by_platform_leads_alone(
    here: Here, client: Client
) -> None:
    actions.follow_all(now=here.time())
    RegistryAccess.objects.update(parked_at=here.time(), message="5 tries ended.")
    page, path = "/teams/vision/", "/teams/vision/images/look-again"
    client.force_login(here.scene.ada)
    assert path not in client.get(page).content.decode()
    assert client.post(path).status_code == 403
    client.force_login(here.scene.priya)
    shown = client.get(page).content.decode()
    assert path in shown
    assert "5 tries ended." in shown
    assert client.post(path)["Location"] == page
    assert RegistryAccess.objects.get().parked_at is None
    assert Event.objects.filter(kind="registry.tried_again").count() == 1
    RegistryAccess.objects.update(requeue_at=here.time())
    here.work()
    assert here.who(WHOLE) == [(group_id(1), ACR_PULL)]
    assert path not in client.get(page).content.decode()


def test_it_is_tried_again_over_the_api_where_there_is_a_registry(here: Here) -> None:
    path = "teams/vision/images/look-again/"
    lead = Caller(here.scene.priya)
    answer = lead.post(path, {})
    assert (answer.status_code, answer.json()["code"]) == (409, "no_registry")
    actions.follow_all(now=here.time())
    assert lead.post(path, {}).json() == {
        "repositories": "",
        "sentence": "Your group gets access to the registry within minutes.",
    }
    assert Caller(here.scene.ada).post(path, {}).status_code == 403


def test_a_registry_that_is_gone_says_so(here: Here) -> None:
    here.use(WHOLE.replace("gpuplatform", "gpuplatformx"))
    here.work()
    assert (
        RegistryAccess.objects.get().sentence
        == "There is no such registry in Azure any more."
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        {"is_wanted": False},
        {"granted_group": None},
        {"group": UNKNOWN},
        {"login_server": ""},
        {"observed_generation": 9},
    ],
    ids=str,
)
def test_the_database_refuses_an_access_that_makes_no_sense(
    here: Here, values: dict[str, Any]
) -> None:
    here.work()
    with pytest.raises(DatabaseError), transaction.atomic():
        RegistryAccess.objects.update(**values)


def test_a_team_has_one_access_to_a_registry(here: Here) -> None:
    here.work()
    row = RegistryAccess.objects.get()
    row.pk = None
    with pytest.raises(DatabaseError), transaction.atomic():
        row.save(force_insert=True)


grants = st.builds(
    Grant,
    st.sampled_from("pw"),
    st.sampled_from("ab"),
    st.sampled_from(["", "c d", "cd"]),
)


@given(
    st.none() | grants,
    st.lists(grants, max_size=4, unique_by=lambda one: (one.role, one.group)),
)
def test_steps_end_where_the_wanted_role_alone_is_there(
    wanted: Grant | None, there: list[Grant]
) -> None:
    for _ in range(9):
        step, grant = plan.next_step(wanted, there)
        if grant is None:
            break
        if step is Step.WITHDRAW:
            there = [one for one in there if one != grant]
        else:
            assert all(
                (one.role, one.group) != (grant.role, grant.group) for one in there
            )
            there = [*there, replace(grant)]
    assert [one.is_like for one in there] == ([wanted.is_like] if wanted else [])
