"""Whoever books the last GPUs of a day, or takes them now and keeps them into it, at the same moment as others."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

import pytest
from django.utils import timezone

from accounts.models import Team
from allocations.models import Allocation
from approvals.models import Request
from approvals.requests.actions import submit
from approvals.requests.wanted import resolve
from approvals.states import State
from capacity.models import Reservation
from policy.document import Thresholds
from tests import factories
from tests.capacity.connected import Site, connected, site
from tests.concurrency.books import wrong_in_the_books
from tests.concurrency.together import together
from tests.sandbox.azure.fixtures import azure, azure_server
from tests.sandbox.azure.running import Running

__all__ = ["azure", "azure_server"]

GPUS, ASKS = 4, 12
WIDE = Thresholds(
    automatic_gpus=99,
    automatic_gpu_hours=None,
    automatic_usd=Decimal(999_999),
    automatic_days=90,
    window_gpus_team=999,
    window_gpus_person=None,
    window_usd_team=None,
    window_usd_person=None,
)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_day_is_promised_to_as_many_as_there_are_gpus() -> None:
    now = timezone.now().replace(microsecond=0)
    factories.policy(WIDE, now=now)
    flavor = factories.flavor(gpus_total=GPUS)
    # A team for each: those of one team wait for one another at its budget already.
    teams = [factories.team() for _ in range(ASKS)]
    for team in teams:
        factories.tenancy(team, flavor.cluster)
    day = now + timedelta(days=3)
    spec = {
        "flavor": f"{flavor.cluster.name}/{flavor.name}",
        "gpus": 1,
        "purpose": "training",
    }
    starts = [day if number % 2 else None for number in range(ASKS)]

    def ask(team: Team, begins: datetime | None) -> None:
        wanted = resolve(
            "gpus",
            spec,
            team=team,
            until=day + timedelta(days=1),
            starts=begins,
            reason="Whoever comes first gets the last of the day.",
        )
        submit(wanted, by=factories.person(teams=[team]), now=now)

    together(
        *(
            partial(ask, team, begins)
            for team, begins in zip(teams, starts, strict=True)
        )
    )
    states = Counter(Request.objects.values_list("state", flat=True))
    assert states == {State.APPROVED: GPUS, State.WAITING: ASKS - GPUS}
    promised = Allocation.objects.granted().filter(starts_at__lte=day, until__gt=day)
    assert sum(promised.values_list("gpus", flat=True)) == GPUS
    assert wrong_in_the_books() == []


@pytest.fixture
def here(
    transactional_db: None, azure: Running, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    with connected(azure, monkeypatch):
        yield site(azure)


@pytest.mark.slow
def test_grants_for_one_place_at_once_make_one_reservation_of_all_of_them(
    here: Site,
) -> None:
    together(*(partial(here.grant, 1) for _ in range(3)))
    row = Reservation.objects.get()
    together(*(partial(here.work, 1) for _ in range(3)))
    here.work()
    row.refresh_from_db()
    assert (row.machines, row.held) == (3, 3)
    assert list(here.in_azure().values()) == [3]
