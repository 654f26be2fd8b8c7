"""A role that is withdrawn while its holder decides is waited for: what was withdrawn first counts."""

from threading import Event, Thread

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.directory.sweep import take_groups
from accounts.models import Delegation, User
from approvals.decisions.actions import approve
from approvals.models import Request
from tests import factories
from tests.concurrency.together import together
from tests.scene import DAY, scene
from web.refusals import NoRight


def withdraw_while(user: User, begun: Event, goes_on: Event) -> None:
    """Withdraw a platform lead's role, and commit only when told to."""
    try:
        with transaction.atomic():
            take_groups(
                user.pk, groups=[], withdrawn=["platform_lead"], now=timezone.now()
            )
            begun.set()
            goes_on.wait(timeout=2)
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("lent", [False, True])
def test_a_decision_waits_for_a_withdrawal_that_has_begun_and_is_refused(
    lent: bool,
) -> None:
    made = scene()
    now = timezone.now()
    request = factories.request(
        made.ada, made.tenancy, made.flavor, gpus=8, days=10, now=now
    )
    User.objects.filter(pk=made.priya.pk).update(groups_known_at=now)
    by = made.priya
    if lent:
        by = made.mallory
        User.objects.filter(pk=by.pk).update(groups_known_at=now)
        Delegation.objects.create(
            giver=made.priya, to=by, starts_at=now, until=now + DAY, accepted_at=now
        )
    begun, goes_on = Event(), Event()
    withdrawing = Thread(target=withdraw_while, args=(made.priya, begun, goes_on))
    withdrawing.start()
    assert begun.wait(timeout=10)
    with pytest.raises(NoRight):
        approve(request.pk, by=by, expected_version=request.version, now=now)
    goes_on.set()
    withdrawing.join()
    assert not Request.objects.get(pk=request.pk).decisions.exists()


@pytest.mark.django_db(transaction=True)
def test_two_who_stand_in_for_each_other_do_not_wait_for_each_other() -> None:
    made = scene()
    now = timezone.now()
    asked = [
        factories.request(made.ada, made.tenancy, made.flavor, gpus=8, days=10, now=now)
        for _ in range(2)
    ]
    Delegation.objects.create(
        giver=made.priya,
        to=made.marcus,
        starts_at=now,
        until=now + DAY,
        accepted_at=now,
    )
    Delegation.objects.create(
        giver=made.marcus,
        to=made.priya,
        starts_at=now,
        until=now + DAY,
        accepted_at=now,
    )
    together(
        *(
            lambda row=row, by=by: approve(
                row.pk, by=by, expected_version=row.version, now=now
            )
            for row, by in zip(asked, (made.priya, made.marcus), strict=True)
        )
    )
    assert all(Request.objects.get(pk=row.pk).decisions.count() == 1 for row in asked)
