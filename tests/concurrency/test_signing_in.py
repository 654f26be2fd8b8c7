"""Somebody signs in while others tell them something, or change which group their team is made of."""

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.actions import take_over
from accounts.directory.sweep import take_groups
from accounts.memberships import members_by_group
from accounts.models import Membership, Team, User
from audit.events import Kind
from audit.log import record
from connectors.entra import Claims
from notices.actions import tell
from notices.kinds import NoticeKind
from notices.message import Message
from tests import factories
from tests.concurrency.together import held_up, uncommitted

GROUP = str(factories.group_oid(77))


def sign_in(user: User, group: str) -> User:
    claims = Claims(oid=str(user.oid), tid=str(user.tid), name=user.name)
    return take_over(claims, groups=[group], now=timezone.now())


def recorded(user: User) -> None:
    with transaction.atomic():
        about = ("person", user.pk)
        record(Kind.NOTICE_TESTED, actor=user.as_actor(), subject=about)


def change_group(team: Team) -> None:
    """What a change of a team's group does about its people."""
    with transaction.atomic():
        Team.objects.filter(pk=team.pk).update(entra_group=GROUP)
        members_by_group(Team.objects.get(pk=team.pk))


@pytest.mark.django_db(transaction=True)
def test_who_signs_in_and_who_has_told_them_something_do_not_wait_for_each_other() -> (
    None
):
    team, user = factories.team(), factories.person()
    recorded(user)  # the chain has begun

    def tell_them() -> None:
        tell(
            NoticeKind.TEST,
            to=[user],
            subject=("person", user.pk),
            link="/settings/notices/",
            message=Message("A test", "It is one."),
            now=timezone.now(),
        )
        recorded(user)

    held_up(lambda: sign_in(user, str(team.entra_group)), by=tell_them)
    assert Membership.objects.filter(team=team, user=user).exists()
    assert user.notices.count() == 1


@pytest.mark.django_db(transaction=True)
def test_who_signs_in_while_their_team_gets_their_group_is_in_it_after_the_next_look() -> (
    None
):
    team, user = factories.team(), factories.person()
    with uncommitted(lambda: sign_in(user, GROUP)):
        change_group(team)
    take_groups(user.pk, groups=[GROUP], now=timezone.now())
    assert Membership.objects.filter(team=team, user=user).exists()


@pytest.mark.django_db(transaction=True)
def test_who_signs_in_while_their_team_gets_another_group_is_out_of_it_after_the_next_look() -> (
    None
):
    team, user = factories.team(), factories.person()
    before = str(team.entra_group)
    with uncommitted(lambda: sign_in(user, before)):
        change_group(team)
    take_groups(user.pk, groups=[before], now=timezone.now())
    assert not Membership.objects.filter(team=team, user=user).exists()
