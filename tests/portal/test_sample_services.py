"""The demo's services have a month behind them, and the sandbox answers for them from then on."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from accounts.roles import Role
from notices.models import Notice
from portal.management import sample_services
from sandbox.kubernetes.traffic import traffic_of
from tests import factories
from workloads.models import ServiceLevel
from workloads.service_levels.budget import State
from workloads.service_levels.standing import standings

MONDAY = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("days", "hours"), [*product((0, 2, 3, 4, 5, 6), (0.2, 13.4, 23.9))]
)
def test_one_burns_its_budget_and_one_is_well_whenever_the_demo_begins(
    days: int, hours: float
) -> None:
    now = MONDAY + timedelta(days=days, hours=hours)
    tenancy = factories.tenancy(factories.team("Speech"), factories.cluster("dev"))
    lead = factories.person("Priya", Role.PLATFORM_LEAD)

    sample_services.add(tenancy, by=lead, now=now)

    found = standings(ServiceLevel.objects.all(), now=now)
    assert [(one.level.service, one.budget.state) for one in found] == [
        ("transcribe", State.FAST),
        ("speak", State.WELL),
    ]
    assert not any(one.budget.is_slow for one in found)
    assert {len(one.days) for one in found} == {30}


@pytest.mark.django_db
def test_the_sandbox_takes_what_they_answer() -> None:
    tenancy = factories.tenancy(factories.team("Speech"), factories.cluster("dev"))
    lead = factories.person("Priya", Role.PLATFORM_LEAD)
    sample_services.add(tenancy, by=lead, now=MONDAY)

    said = [*sample_services.traffic()]

    assert {one["cluster"] for one in said} == {"dev"}
    assert {traffic_of(one).namespace for one in said} == {tenancy.namespace}
    assert not Notice.objects.exists()
