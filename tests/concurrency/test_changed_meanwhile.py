"""What changes while somebody waits for a lock counts for them: who may ask, what is offered, by which policy."""

from functools import partial

import pytest
from django.utils import timezone

from accounts.directory.sweep import take_groups
from accounts.models import User
from approvals.decisions.actions import approve
from approvals.models import Request
from fleet.flavors.actions import change_flavor
from fleet.models import Flavor
from policy.document import Thresholds
from tests import factories
from tests.concurrency.together import held_up
from tests.scene import Scene, scene
from web.refusals import Conflict, NoRight


def ask(made: Scene, *, gpus: int = 1, days: int = 3) -> Request:
    return factories.request(
        made.ada, made.tenancy, made.flavor, gpus=gpus, days=days, now=timezone.now()
    )


@pytest.mark.django_db(transaction=True)
def test_who_was_taken_out_of_the_team_before_is_granted_nothing() -> None:
    made = scene()
    assert made.ada.team_ids  # as a session has read them
    leave = partial(take_groups, made.ada.pk, groups=[], now=timezone.now())
    leave = partial(leave, withdrawn=["data_scientist"])
    with pytest.raises(NoRight):
        held_up(lambda: ask(made), by=leave)
    assert not Request.objects.exists()
    assert made.allocated() == 0


@pytest.mark.django_db(transaction=True)
def test_what_was_taken_out_of_the_offer_before_is_not_granted() -> None:
    made = scene()
    close = partial(
        change_flavor, made.flavor.pk, values={"is_offered": False}, by=made.priya
    )
    with pytest.raises(Conflict):
        held_up(lambda: ask(made), by=close)
    assert not Request.objects.exists()
    assert made.allocated() == 0


@pytest.mark.django_db(transaction=True)
def test_a_vote_is_judged_by_the_policy_that_came_into_force_before() -> None:
    made = scene()
    request = ask(made, gpus=4, days=10)
    now = timezone.now()
    User.objects.filter(pk=made.priya.pk).update(groups_known_at=now)
    flavors = Flavor.objects.select_for_update(no_key=True)
    held_up(
        partial(
            approve,
            request.pk,
            by=made.priya,
            expected_version=request.version,
            now=now,
        ),
        by=lambda: flavors.get(pk=made.flavor.pk),
        meanwhile=lambda: factories.policy(
            Thresholds(automatic_gpus=0), now=timezone.now()
        ),
    )
    assert request.evaluations.latest("id").policy.number == 2
