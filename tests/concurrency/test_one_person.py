"""Somebody in two teams who asks for both at the same moment is granted no more than one person may have."""

from functools import partial

import pytest
from django.utils import timezone

from approvals.models import Request
from approvals.states import State
from policy.document import Thresholds
from tests import factories
from tests.concurrency.together import together

ROUNDS = 5


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_two_teams_and_two_kinds_of_gpu_are_one_window_of_the_person() -> None:
    factories.policy(Thresholds(window_gpus_person=2), now=timezone.now())
    flavors = [factories.flavor(), factories.flavor()]
    for _ in range(ROUNDS):
        teams = [factories.team(), factories.team()]
        person = factories.person(teams=teams)
        places = [
            factories.tenancy(team, flavor.cluster)
            for team, flavor in zip(teams, flavors, strict=True)
        ]
        together(
            *(
                partial(factories.request, person, *where, gpus=2)
                for where in zip(places, flavors, strict=True)
            )
        )
        states = Request.objects.filter(requester=person).values_list(
            "state", flat=True
        )
        assert sorted(states) == [State.APPROVED, State.WAITING]
