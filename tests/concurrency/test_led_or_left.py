"""A team gets another owner while somebody leaves it: who has left is not put back into it."""

from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts import memberships
from accounts.directory.sweep import take_groups
from accounts.memberships import lead_by_owner
from accounts.models import Membership, Team, User
from tests import factories


@pytest.mark.django_db(transaction=True)
def test_who_leaves_a_team_while_it_gets_another_owner_is_out_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, after = factories.person(), factories.person()
    team = factories.team(by=before)
    for user in (before, after):
        factories.join(team, user, lead=user == before)
    leaves, part_of = Thread(target=leave, args=(before,)), memberships.part_in
    begun = Event()

    def leaves_meanwhile(team: Team, user: User) -> Any:
        if not begun.is_set():
            begun.set()
            leaves.start()
            # One that waits for this is let in by the commit.
            leaves.join(timeout=1)
        return part_of(team, user)

    monkeypatch.setattr(memberships, "part_in", leaves_meanwhile)
    with transaction.atomic():
        Team.objects.filter(pk=team.pk).update(owner=after)
        lead_by_owner(Team.objects.get(pk=team.pk))
    leaves.join(timeout=30)
    there = Membership.objects.filter(team=team).values_list("user", "part")
    assert list(there) == [(after.pk, "lead")]


def leave(user: User) -> None:
    """The directory says that somebody is in no group any more."""
    try:
        take_groups(
            user.pk, groups=[], withdrawn=["data_scientist"], now=timezone.now()
        )
    finally:
        connection.close()
