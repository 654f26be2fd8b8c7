"""A decision and a new policy that names other people at the same moment: one is first, nobody is told twice."""

from contextlib import suppress
from functools import partial

import pytest
from django.utils import timezone

from accounts.roles import Role
from approvals.decisions import rerouting
from approvals.decisions.actions import approve
from approvals.models import Request, Step
from notices.models import Notice
from policy.document import LEADS, Policy, Route, StepPlan
from tests import factories
from tests.concurrency.books import wrong_in_the_books
from tests.concurrency.together import together
from web.refusals import Refused

ROUNDS = 6
GROUP = str(factories.group_oid(78))


def policy(step: StepPlan) -> None:
    """A policy that has one seat decide everything."""
    factories.policy(
        Policy(routes=(Route(name="all", steps=(step,)),)), now=timezone.now()
    )


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_decision_and_a_new_policy_at_once_have_one_order() -> None:
    team, flavor = factories.team(), factories.flavor(gpus_total=100)
    place = factories.tenancy(team, flavor.cluster)
    asker = factories.person(teams=[team])
    lead, other = (
        factories.person("", Role.PLATFORM_LEAD),
        factories.person(groups=[GROUP]),
    )
    for _ in range(ROUNDS):
        policy(LEADS)
        asked = factories.request(asker, place, flavor, gpus=4)
        policy(StepPlan(by=f"group:{GROUP}", name="Security"))

        def decide(number: int = asked.pk, version: int = asked.version) -> None:
            with suppress(Refused):
                approve(number, by=lead, expected_version=version, now=timezone.now())

        sweep = partial(lambda: rerouting.sweep(timezone.now()))
        together(decide, sweep, sweep)
        row = Request.objects.get(pk=asked.pk)
        is_other = row.reroutings.count()
        notices = Notice.objects.filter(subject_type="request", subject_id=row.pk)
        assert (row.state, is_other) in (("approved", 0), ("waiting", 1))
        for person, kind in (
            (asker, "request_rerouted"),
            (lead, "request_rerouted"),
            (other, "request_waiting"),
        ):
            assert notices.filter(person=person, kind=kind).count() == is_other
        assert (
            Step.objects.filter(request=row, dropped_at__isnull=False).count()
            == is_other
        )
        if is_other:
            approve(row.pk, by=other, expected_version=row.version, now=timezone.now())
    assert wrong_in_the_books() == []
