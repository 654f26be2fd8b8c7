"""A team gets another group while a member of it asks: neither waits for the other for ever."""

import pytest
from django.utils import timezone

from accounts.actions import hold_groups
from accounts.models import Team
from approvals.models import Request
from connectors.graph import Group
from onboarding.team_changes import TeamChange, change_team
from tests import factories
from tests.concurrency.together import held_up
from tests.scene import scene

OTHER = Group(oid=str(factories.group_oid(77)), name="vision-research")


@pytest.mark.django_db(transaction=True)
def test_a_team_gets_another_group_while_a_member_asks() -> None:
    made, now = scene(), timezone.now()
    hold_groups(made.ada, [OTHER.oid])

    def change() -> None:
        change_team(made.team, TeamChange(group=OTHER), by=made.ada, now=now)

    held_up(change, by=lambda: factories.request(made.ada, made.tenancy, made.flavor))
    assert str(Team.objects.get(pk=made.team.pk).entra_group) == OTHER.oid
    assert Request.objects.count() == 1
