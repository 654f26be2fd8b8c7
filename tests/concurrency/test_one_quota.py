"""Whoever takes the last machines of a quota of Azure at the same moment as others, on another cluster."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from accounts.models import Team
from approvals.models import Request
from approvals.requests.actions import submit
from approvals.requests.wanted import resolve
from approvals.states import State
from capacity.models import NodePool
from capacity.subscriptions.pools import Catalogue
from catalogue.models import setting_of
from catalogue.offering import Gate
from catalogue.offerings import OFFERINGS
from fleet.models import Flavor
from tests import factories
from tests.approvals.shop import SPECS
from tests.capacity.shared import two_clusters
from tests.concurrency.books import wrong_in_the_books
from tests.concurrency.test_one_booking import WIDE
from tests.concurrency.together import together
from tests.insights.fleet import SIZE, VCPUS, connect
from tests.scene import NOW

ASKS = 8


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_last_machines_of_a_quota_are_promised_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect(monkeypatch)
    here, second, _ = two_clusters(machines=3)
    factories.policy(WIDE, now=NOW)
    # No node stands: whoever gets one has it added.
    NodePool.objects.update(nodes=0)
    Flavor.objects.update(gpus_ready=0)
    kinds = [here.flavor, second]
    teams = [factories.team() for _ in range(ASKS)]
    for team in teams:
        for flavor in kinds:
            factories.tenancy(team, flavor.cluster)

    def ask(team: Team, flavor: Flavor) -> None:
        wanted = resolve(
            "gpus",
            {"flavor": flavor.key, "gpus": 4, "purpose": "training"},
            team=team,
            until=NOW + timedelta(days=2),
            reason="Whoever comes first gets the last machines.",
        )
        submit(wanted, by=factories.person(teams=[team]), now=NOW)

    together(
        *(partial(ask, team, kinds[number % 2]) for number, team in enumerate(teams))
    )
    states = Counter(Request.objects.values_list("state", flat=True))
    assert states == {State.APPROVED: 3, State.WAITING: ASKS - 3}
    known = Catalogue.of([here.cluster])
    [family] = [key for key in known.quotas if key.family != "cores"]
    assert known.promised(family) == 3 * VCPUS
    assert wrong_in_the_books() == []


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_last_machines_of_a_quota_are_reserved_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect(monkeypatch)
    two_clusters(machines=3)
    factories.policy(replace(WIDE, reversible_minutes=60), now=NOW)
    setting = setting_of(OFFERINGS["reservation"])
    setting.gate = Gate.SELF_SERVICE
    setting.save()
    teams = [factories.team() for _ in range(ASKS)]

    def ask(team: Team) -> None:
        spec = {**SPECS["reservation"], "vm_size": SIZE, "instances": 1}
        wanted = resolve(
            "reservation",
            spec,
            team=team,
            starts=NOW + timedelta(days=1),
            until=NOW + timedelta(days=3),
            reason="Whoever comes first gets the last machines.",
        )
        submit(wanted, by=factories.person(teams=[team]), now=NOW)

    together(*(partial(ask, team) for team in teams))
    states = Counter(Request.objects.values_list("state", flat=True))
    assert states == {State.APPROVED: 3, State.WAITING: ASKS - 3}
