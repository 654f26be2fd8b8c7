"""Sixty-four people who want the last of one budget at the same moment get exactly what it pays for."""

import logging
import time
from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest
import requests
from django.db.models import Sum
from django.utils import timezone

from allocations.budgets import money
from allocations.models import Allocation, Budget
from approvals.models import Request
from approvals.states import State
from policy.document import Thresholds
from tests import factories
from tests.concurrency.books import wrong_in_the_books
from tests.faults.calling import Caller, at_once, caller
from tests.faults.running import Portal

pytestmark = pytest.mark.slow

logger = logging.getLogger(__name__)
SUBMITTERS = 64
PAID_FOR = 20
WIDE = Thresholds(
    automatic_gpus=9999,
    automatic_gpu_hours=None,
    automatic_usd=Decimal(9_999_999),
    automatic_days=90,
    window_gpus_team=9999,
    window_gpus_person=None,
    window_usd_team=None,
    window_usd_person=None,
    automatic_beyond_soft_budget=True,
)


def test_sixty_four_submitters_spend_one_budget_to_the_last_ask_and_not_a_cent_more(
    web: Portal,
) -> None:
    now = timezone.now()
    factories.policy(WIDE, now=now)  # money alone decides
    team = factories.team()
    flavor = factories.flavor(gpus_total=SUBMITTERS)
    factories.tenancy(team, flavor.cluster)
    until = now.replace(microsecond=0) + timedelta(hours=10)
    # The price falls by a cent a second while they ask, so the half ask of a remainder never becomes a whole one.
    one = money.by_month(
        gpus=1, usd_per_hour=flavor.price_per_gpu_hour, start=now, end=until
    )
    for month, part in one.items():
        Budget.objects.create(
            team=team, month=month, limit_usd=part.usd * PAID_FOR + part.usd / 2
        )
    callers = [
        caller(factories.person(teams=[team]), web.url) for _ in range(SUBMITTERS)
    ]
    body = {
        "team": team.slug,
        "flavor": f"{flavor.cluster.name}/{flavor.name}",
        "gpus": 1,
        "until": until.isoformat(),
        "purpose": "training",
        "reason": "Whoever comes first gets the last of the month.",
    }

    def ask(who: Caller) -> requests.Response:
        return who.post("requests/", body)

    started = time.monotonic()
    answers = at_once([lambda who=who: ask(who) for who in callers])  # type: ignore[misc]
    took = time.monotonic() - started
    states = Counter(answer.json().get("state") for answer in answers)
    logger.info(
        "%s in %.1f s: %s", Counter(a.status_code for a in answers), took, states
    )
    assert Counter(answer.status_code for answer in answers) == {201: SUBMITTERS}
    assert states == {State.APPROVED: PAID_FOR, State.WAITING: SUBMITTERS - PAID_FOR}
    assert Request.objects.count() == SUBMITTERS
    assert Allocation.objects.live().aggregate(gpus=Sum("gpus"))["gpus"] == PAID_FOR
    assert wrong_in_the_books() == []
