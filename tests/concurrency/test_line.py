"""What waits, what is asked and a policy that comes into force at the same moment: in order, and nothing twice."""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest
from django.db import connection, transaction
from django.utils import timezone

from approvals.judging import reevaluation
from approvals.models import Request
from approvals.states import State
from fleet.models import Flavor
from policy.document import Thresholds
from tests import factories
from tests.concurrency.books import wrong_in_the_books
from tests.concurrency.together import together, waiting_for_a_lock
from tests.services.process import wait_until

ROUNDS = 4
FREE = 3


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_two_who_ask_while_a_policy_comes_into_force_overtake_nobody_who_waits() -> (
    None
):
    for _ in range(ROUNDS):
        flavor = factories.flavor(gpus_total=FREE)
        people = [factories.person(teams=[factories.team()]) for _ in range(3)]
        places = [
            factories.tenancy(person.teams[0], flavor.cluster) for person in people
        ]
        factories.policy(Thresholds(automatic_gpus=2), now=timezone.now())
        older = factories.request(people[0], places[0], flavor, gpus=FREE)
        assert older.state == State.WAITING
        together(
            partial(
                factories.policy, Thresholds(automatic_gpus=FREE), now=timezone.now()
            ),
            *(
                partial(factories.request, people[n], places[n], flavor, gpus=FREE)
                for n in (1, 2)
            ),
            lambda: reevaluation.sweep(timezone.now()),
            lambda: reevaluation.sweep(timezone.now()),
        )
        reevaluation.sweep(timezone.now())
        states = dict(Request.objects.filter(flavor=flavor).values_list("pk", "state"))
        assert states.pop(older.pk) == State.APPROVED
        assert set(states.values()) == {State.WAITING}
    assert wrong_in_the_books() == []


@pytest.mark.django_db(transaction=True)
def test_an_ask_that_waited_for_a_lock_is_judged_by_the_policy_that_is_in_force_then() -> (
    None
):
    flavor = factories.flavor()
    team = factories.team()
    person = factories.person(teams=[team])
    place = factories.tenancy(team, flavor.cluster)
    factories.policy(Thresholds(automatic_gpus=2), now=timezone.now())
    asking: Future[Request]

    def ask() -> Request:
        try:
            return factories.request(person, place, flavor, gpus=2)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            Flavor.objects.select_for_update(no_key=True).get(pk=flavor.pk)
            asking = thread.submit(ask)
            wait_until(
                lambda: waiting_for_a_lock() == 1, what="the ask waits for the flavor"
            )
            factories.policy(Thresholds(automatic_gpus=0), now=timezone.now())
        assert asking.result(timeout=30).state == State.WAITING
    assert Request.objects.get().evaluations.get().policy.number == 3
