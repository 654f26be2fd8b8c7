"""Finding people: by right, by group, by object id, by who their managers are."""

from uuid import UUID

import pytest

from accounts.models import RoleHeld, User
from accounts.people import decides, holding, in_group, of_oids, reports_of
from accounts.roles import Permission, Role
from tests import factories
from tests.factories import group_oid

pytestmark = pytest.mark.django_db
BOARD = group_oid(50)


def names(people: object) -> list[str]:
    return sorted(user.name for user in people)  # type: ignore[attr-defined]


def test_holding_finds_the_active_people_whose_roles_give_it() -> None:
    factories.person("Priya", Role.PLATFORM_LEAD, Role.TEAM_LEAD)
    factories.person("Marcus", Role.PLATFORM_LEAD, is_active=False)
    factories.person("Elena", Role.ENGINEERING_LEADERSHIP)
    factories.person("Ada")
    assert names(holding(Permission.DECIDE_AS_PLATFORM)) == ["Priya"]
    assert names(holding(Permission.SEE_ALL_TEAMS)) == ["Elena", "Priya"]


def test_a_named_group_is_its_active_people() -> None:
    factories.person("Ada", groups=[BOARD, group_oid(51)])
    factories.person("Ben", groups=[group_oid(51)])
    factories.person("Tom", groups=[BOARD], is_active=False)
    blocked = factories.person("Eve", groups=[BOARD])
    RoleHeld.objects.filter(user=blocked).delete()
    assert names(in_group(BOARD)) == ["Ada"]
    assert names(in_group(str(BOARD).upper())) == ["Ada"]
    assert names(in_group("platform-leads")) == []


def test_object_ids_give_people_in_their_order_without_those_who_never_signed_in() -> (
    None
):
    ada, ben = factories.person("Ada"), factories.person("Ben")
    gone = factories.person("Tom", is_active=False)
    asked: list[str | UUID] = [
        str(ben.oid),
        str(factories.oid(77)),
        "no id",
        str(ada.oid).upper(),
        gone.oid,
        ben.oid,
    ]
    assert of_oids(asked) == [ben, ada]
    assert of_oids([]) == []


def test_who_manages_somebody_decides_and_nobody_else_without_a_role() -> None:
    chloe, priya = (
        factories.person("Chloe"),
        factories.person("Priya", Role.PLATFORM_LEAD),
    )
    ada = factories.person("Ada", managers=[str(chloe.oid), str(priya.oid)])
    assert list(reports_of(chloe)) == [ada]
    assert (decides(chloe), decides(priya), decides(ada)) == (True, True, False)
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert not decides(chloe)
