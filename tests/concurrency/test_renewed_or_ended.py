"""GPUs that are renewed, given back and at their end at the same moment have one outcome, and are never held twice."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connections
from django.utils import timezone

from accounts.models import User
from allocations.ends.actions import expire, give_back
from allocations.models import Allocation, Leftover
from approvals.models import Request
from approvals.renewals import renewing
from approvals.requests.actions import submit
from fleet.models import Flavor
from policy.document import Thresholds
from tests import factories
from tests.concurrency.books import wrong_in_the_books
from web.refusals import Conflict

ROUNDS = 6


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_renewing_giving_back_and_ending_at_once_has_one_outcome() -> None:
    ada = factories.person()
    team, flavor = factories.team(), factories.flavor(gpus_total=1)
    factories.join(team, ada)
    tenancy = factories.tenancy(team, flavor.cluster)
    factories.policy(
        Thresholds(window_gpus_team=1000, window_gpus_person=None),
        now=timezone.now() - timedelta(days=1),
    )
    for _ in range(ROUNDS):
        held = factories.allocation(ada, tenancy, flavor, days=0.5)
        won = race(held, ada)
        live = list(Allocation.objects.live())
        assert len(won) == 1, won
        assert (
            sum(row.gpus for row in live)
            == Flavor.objects.get().allocated
            == (won == ["renew"])
        )
        assert Leftover.objects.filter(allocation=held).exists() == (won != ["renew"])
        for row in live:
            give_back(row.pk, gpus=None, by=ada, now=timezone.now())
    assert wrong_in_the_books() == []


def race(held: Allocation, ada: User) -> list[str]:
    """Let the three loose on one holding at its very end; the names of those that took effect."""
    start = Barrier(3)
    last = held.until - timedelta(seconds=1)
    asked = renewing.request_of(held)
    assert asked is not None
    wanted = renewing.wanted(
        asked, until=held.until + timedelta(hours=2), reason="", now=last
    )

    def renew() -> bool:
        return submit(wanted, by=ada, now=last).state == "approved"

    def back() -> bool:
        return give_back(held.pk, gpus=None, by=ada, now=last) is None

    def end() -> bool:
        return expire(held.pk, now=held.until)

    def play(name: str) -> str:
        start.wait()
        try:
            return name if {"renew": renew, "back": back, "end": end}[name]() else ""
        except Conflict:
            return ""
        finally:
            connections.close_all()

    with ThreadPoolExecutor(3) as pool:
        return [name for name in pool.map(play, ("renew", "back", "end")) if name]


def test_there_is_a_request_behind_every_holding_that_can_be_renewed(db: None) -> None:
    assert (
        renewing.request_of(Allocation(hold=factories.hold(factories.team()))) is None
    )
    assert not Request.objects.exists()
