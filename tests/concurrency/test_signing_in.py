"""Somebody signs in while others tell them something."""

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.actions import take_over
from accounts.models import Membership, User
from audit.events import Kind
from audit.log import record
from connectors.entra import Claims
from notices.actions import tell
from notices.kinds import NoticeKind
from notices.message import Message
from tests import factories
from tests.concurrency.together import held_up


def sign_in(user: User, group: str) -> User:
    claims = Claims(oid=str(user.oid), tid=str(user.tid), name=user.name)
    return take_over(claims, groups=[group], now=timezone.now())


def recorded(user: User) -> None:
    with transaction.atomic():
        about = ("person", user.pk)
        record(Kind.NOTICE_TESTED, actor=user.as_actor(), subject=about)


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
