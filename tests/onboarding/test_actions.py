"""Bringing a team on board: everything at once, or nothing."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.actions import take_over
from accounts.directory.client import graph
from accounts.models import CostCentre, Team, User
from accounts.roles import Role
from audit.models import Event
from connectors.entra import Claims
from connectors.errors import ConnectorError
from connectors.graph import Group
from fleet.models import Cluster, Flavor
from notices.models import Notice
from onboarding.actions import (
    Brought,
    Enrolment,
    Start,
    check_name_free,
    enrol,
    onboard,
)
from onboarding.models import Onboarding
from provisioning.models import Tenancy
from sandbox.world import group_id, person_id
from tests import factories
from tests.sandbox.entra.running import Running
from web.refusals import BadInput, Conflict, Refused

ADA, MALLORY, PRIYA = 1, 8, 4


def person(number: int, *roles: str) -> User:
    """A sample person who has signed in."""
    claims = Claims(
        oid=person_id(number),
        tid=str(factories.TENANT),
        name=f"Person {number}",
        roles=roles,
    )
    return take_over(claims, groups=graph().groups_of(claims.oid), now=timezone.now())


def enrolment(**fields: Any) -> Enrolment:
    usual: dict[str, Any] = {
        "name": "Climate",
        "entra_group": group_id(9),
        "cost_centre": "CC-9",
        "project": "models",
        "environment": "dev",
        "cluster": Cluster.objects.first(),
    }
    return Enrolment(**(usual | fields))


def bring(by: User, **fields: Any) -> Onboarding:
    return onboard(enrolment(**fields), by=by, graph=graph(), now=timezone.now())


@pytest.fixture
def flavor(db: None, directory: Running) -> Flavor:
    """Something to ask for on the one cluster there is."""
    return factories.flavor(factories.cluster("training"), "a100")


def start(flavor: Flavor, gpus: int = 2) -> Start:
    return Start(
        flavor=Flavor.objects.select_related("cluster").get(pk=flavor.pk),
        gpus=gpus,
        until=timezone.now() + timedelta(days=3),
        purpose="training",
        reason="Train the first model.",
    )


def test_one_action_makes_team_place_and_first_gpus(flavor: Flavor) -> None:
    ada = person(ADA)
    made = bring(ada, start=start(flavor))
    assert made.request is not None
    assert (made.team.slug, made.team.entra_group_name, made.by) == (
        "climate",
        "climate-team",
        ada,
    )
    assert (made.request.state, made.request.approved_count) == ("approved", 2)
    assert made.tenancy.namespace.startswith("qm-climate-models-")
    assert made.tenancy.desired.gpus() == 2
    assert made.tenancy.desired.entra_group == group_id(9)
    assert made.team.memberships.get().part == "lead"
    assert made.seconds is None
    kinds = list(Event.objects.order_by("seq").values_list("kind", flat=True))
    assert kinds == [
        "team.created",
        "team.members_changed",
        "tenancy.changed",
        "request.submitted",
        "request.approved",
        "tenancy.changed",
        "allocation.issued",
    ]


def test_a_large_first_ask_waits_for_people_and_the_place_is_there_all_the_same(
    flavor: Flavor,
) -> None:
    made = bring(person(ADA), start=start(flavor, 5))
    assert made.request is not None
    assert (
        made.request.state,
        made.tenancy.desired.gpus(),
        made.tenancy.generation,
    ) == ("waiting", 0, 1)


def test_a_team_may_begin_without_gpus(flavor: Flavor) -> None:
    made = bring(person(ADA))
    assert (made.request, made.tenancy.generation) == (None, 1)


def test_who_answers_for_its_cost_centre_hears_of_a_new_team(flavor: Flavor) -> None:
    priya = person(PRIYA)
    CostCentre.objects.filter(code="CC-9").update(owner=priya)
    bring(person(ADA))
    assert Notice.objects.get(kind="cost_centre_joined").person == priya


def test_how_long_it_took_is_from_sending_to_true(flavor: Flavor) -> None:
    made = bring(person(ADA))
    factories.make_true(made.tenancy, at=made.submitted_at + timedelta(seconds=4))
    assert Onboarding.objects.get().seconds == 4


def refusal(action: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as refused, transaction.atomic():
        action()
    return refused.value


def rows() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Team, Tenancy, Onboarding, Event))


REFUSALS: dict[str, tuple[dict[str, Any], str, str]] = {
    "a group that is not there": (
        {"entra_group": str(factories.oid(999))},
        "no_such_group",
        "entra_group",
    ),
    "a name for a group": (
        {"entra_group": "climate-team"},
        "not_a_group_id",
        "entra_group",
    ),
    "everybody": (
        {"entra_group": "system:authenticated"},
        "not_a_group_id",
        "entra_group",
    ),
    "nobody": ({"entra_group": ""}, "not_a_group_id", "entra_group"),
    "another team's people": (
        {"entra_group": group_id(3)},
        "not_a_member",
        "entra_group",
    ),
    "a reserved name": ({"name": "kube-system"}, "bad_name", "name"),
    "a name of another script": ({"name": "Clim\u0430te"}, "bad_name", "name"),
    "a name with a second line": ({"name": "a\nb"}, "bad_name", "name"),
    "a project that is no name": ({"project": "{{x}}"}, "bad_name", "project"),
    "a cost centre that is no label": (
        {"cost_centre": "a b"},
        "bad_cost_centre",
        "cost_centre",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_it_refuses_at_the_field_and_leaves_nothing(flavor: Flavor, name: str) -> None:
    change, code, field = REFUSALS[name]
    ada, before = person(ADA), rows()
    refused = refusal(lambda: bring(ada, **change))
    assert (refused.code, refused.field, rows()) == (code, field, before)


def test_a_taken_group_and_a_taken_name_are_conflicts(flavor: Flavor) -> None:
    ada = person(ADA)
    bring(ada)
    before = rows()
    assert refusal(lambda: bring(ada, name="Other")).code == "group_taken"
    taken = refusal(lambda: bring(ada, entra_group=group_id(10), name="CLIMATE"))
    assert (taken.code, taken.field) == ("name_taken", "name")
    assert refusal(lambda: check_name_free("climate")).code == "name_taken"
    assert (check_name_free("Other"), rows()) == ("other", before)


def test_a_cluster_that_is_off_takes_no_team(flavor: Flavor) -> None:
    ada = person(ADA)
    Cluster.objects.update(enabled=False)
    assert refusal(lambda: bring(ada)).code == "cluster_off"
    assert rows() == (0, 0, 0, 0)


def test_a_first_ask_that_cannot_be_leaves_no_team(flavor: Flavor) -> None:
    ada = person(ADA)
    assert (
        refusal(lambda: bring(ada, start=start(flavor, 25))).code == "impossible_exists"
    )
    assert rows() == (0, 0, 0, 0)


def test_a_platform_lead_may_bring_any_group_and_others_only_their_own(
    flavor: Flavor,
) -> None:
    assert refusal(lambda: bring(person(MALLORY))).code == "not_a_member"
    priya = person(PRIYA, "PlatformLead")
    assert priya.roles == {Role.PLATFORM_LEAD}
    made = bring(priya)
    assert not made.team.memberships.exists()


def test_a_member_of_a_nested_group_may_bring_the_outer_one(flavor: Flavor) -> None:
    made = bring(person(2), name="Robotics", entra_group=group_id(7))
    assert made.team.memberships.get().user == made.by


def test_people_of_the_group_join_when_they_sign_in(flavor: Flavor) -> None:
    made = bring(person(ADA))
    ben, mallory = person(2), person(MALLORY)
    assert (ben.team_ids, mallory.team_ids) == (frozenset({made.team.pk}), frozenset())


def test_a_directory_that_is_away_leaves_nothing(
    flavor: Flavor, directory: Running
) -> None:
    ada = person(ADA)
    directory.admin("POST", "/sandbox/faults", path="^/v1.0/groups", status=403)
    with pytest.raises(ConnectorError):
        bring(ada)
    assert rows() == (0, 0, 0, 0)


@pytest.mark.django_db(transaction=True)
def test_of_eight_who_bring_one_name_at_once_one_does() -> None:
    factories.flavor(factories.cluster("training"), "a100")
    people = [
        factories.person(groups=[str(factories.group_oid(100 + n))]) for n in range(8)
    ]
    wanted, together = enrolment(), threading.Barrier(8)
    outcomes: list[str] = []

    def race(number: int) -> None:
        group = Group(oid=people[number].groups[0], name="g", description="")
        together.wait(10)
        try:
            enrol(
                replace(wanted, entra_group=group.oid),
                brought=Brought(group, is_news=False),
                by=people[number],
                now=timezone.now(),
            )
            outcomes.append("done")
        except Conflict as refused:
            outcomes.append(refused.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(outcomes) == ["done"] + ["name_taken"] * 7
    assert rows() == (1, 1, 1, 3)


def test_an_unknown_environment_is_no_conflict_over_the_place(flavor: Flavor) -> None:
    ada = person(ADA)
    refused = refusal(lambda: bring(ada, environment="prod"))
    assert isinstance(refused, BadInput)
    assert (refused.code, refused.field) == ("unknown_environment", "environment")
