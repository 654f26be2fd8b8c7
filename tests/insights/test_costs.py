"""What a month costs: charge by charge, on whose cost centre, how much of it idle, and who sees it."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from accounts.cost_centres.models import CostCentre
from accounts.models import User
from allocations.actions import begin_charging
from allocations.budgets.money import Amount
from allocations.budgets.months import pace_of
from allocations.ends.actions import expire, give_back
from allocations.models import Allocation, Budget, LedgerEntry, UseDay
from approvals.renewals import renewing
from approvals.requests.actions import submit
from fleet.models import Flavor
from insights.costs.charges import Charge, charges_of, first_month, month_at
from insights.costs.focus import as_csv
from insights.costs.report import By, Line, lines, summed
from insights.costs.spans import Change, Span, spans
from policy.document import Thresholds
from tests import factories
from tests.insights.charged import at, booked, held, moved
from tests.scene import DAY, HOUR, NOW, Scene

pytestmark = pytest.mark.django_db
OCTOBER, NOVEMBER, DECEMBER = (date(2026, month, 1) for month in (10, 11, 12))


def november(user: User, now: datetime = NOW) -> Sequence[Charge]:
    return charges_of(user, month_at(NOVEMBER, now))


def same(number: int) -> Amount:
    """As many USD as GPU-hours: a dollar an hour."""
    return Amount(Decimal(number), Decimal(number))


def told(found: Sequence[Line]) -> list[tuple[str, str]]:
    """What each line is of, and what is spent."""
    return [(line.name, str(line.spent.usd)) for line in found]


# What a month costs


def test_a_month_under_way_is_charged_until_now_and_leads_to_its_end(
    scene: Scene,
) -> None:
    held(scene, 2, start=NOW - DAY, end=NOW + DAY)
    (charge,) = november(scene.ada)
    assert (charge.spent, charge.to_end) == (same(48), same(96))
    assert (charge.start, charge.end) == (NOW - DAY, NOW)


def test_what_goes_over_the_end_of_a_month_is_charged_to_each_of_both(
    scene: Scene,
) -> None:
    held(scene, 1, start=at(31, 12, month=10), end=at(2))
    (october,) = charges_of(scene.ada, month_at(OCTOBER, NOW))
    (charge,) = november(scene.ada)
    assert (october.spent, charge.spent) == (same(12), same(24))
    assert (october.start, october.end) == (at(31, 12, month=10), at(1))
    assert month_at(OCTOBER, NOW).is_over
    assert not month_at(NOVEMBER, NOW).is_over


def test_it_is_what_the_pace_of_the_budget_says(scene: Scene) -> None:
    held(scene, 1, start=NOW - 30 * HOUR, end=NOW + 77 * HOUR)
    held(scene, 2, start=NOW - 5 * DAY, end=NOW - 3 * DAY)
    budget = Budget(team=scene.team, month=NOVEMBER, limit_usd=Decimal(1000))
    pace = pace_of(budget, now=NOW)
    assert pace is not None
    total = summed(november(scene.ada))
    assert (total.spent.usd, total.to_end.usd) == (
        pace.usd.spent,
        pace.usd.held_to_end,
    )


def test_nothing_is_charged_before_it_is_there(scene: Scene) -> None:
    row = held(scene, 1, start=NOW - DAY, end=NOW + DAY)
    Allocation.objects.filter(pk=row.pk).update(charged_from=None)
    (charge,) = november(scene.ada)
    assert (charge.spent, charge.to_end) == (same(0), same(24))


def test_what_could_not_be_made_and_a_booking_that_was_let_go_is_no_charge(
    scene: Scene,
) -> None:
    failed = held(scene, 1, start=NOW - DAY, end=NOW + DAY)
    Allocation.objects.filter(pk=failed.pk).update(
        charged_from=None, ended_at=NOW, end_reason="failed"
    )
    let_go = booked(scene, 1, start=NOW + DAY, end=NOW + 2 * DAY)
    Allocation.objects.filter(pk=let_go.pk).update(ended_at=NOW, end_reason="cancelled")
    assert november(scene.ada) == []


def test_what_is_booked_costs_nothing_yet_and_counts_at_the_end_of_its_month(
    scene: Scene,
) -> None:
    booked(scene, 1, start=NOW + DAY, end=NOW + 2 * DAY)
    booked(scene, 1, start=at(30, 12), end=at(2, month=12))
    booked(scene, 1, start=at(1, month=12), end=at(2, month=12))
    found = november(scene.ada)
    assert [one.spent for one in found] == [same(0), same(0)]
    assert [one.to_end for one in found] == [same(24), same(12)]
    assert as_csv(found, month_at(NOVEMBER, NOW)).count("allocation-") == 0
    budget = Budget(team=scene.team, month=NOVEMBER, limit_usd=Decimal(1000))
    pace = pace_of(budget, now=NOW)
    assert pace is not None
    assert [pace.usd.held_to_end, pace.usd.at_pace] == [36, 0]


def test_what_was_to_begin_in_a_month_that_is_over_is_no_charge_of_it(
    scene: Scene,
) -> None:
    booked(scene, 1, start=at(29), end=at(30))
    assert charges_of(scene.ada, month_at(NOVEMBER, at(1, month=12))) == []


def test_a_later_month_is_charged_for_nothing_of_an_earlier_one(scene: Scene) -> None:
    held(scene, 1, start=at(1), end=at(2))
    assert charges_of(scene.ada, month_at(DECEMBER, at(3, month=12))) == []


def test_the_first_month_is_that_of_the_first_charge(scene: Scene) -> None:
    assert first_month(scene.ada, NOW) == NOVEMBER
    held(scene, 1, start=at(31, 12, month=10), end=at(2))
    assert first_month(scene.ada, NOW) == OCTOBER
    assert first_month(scene.mallory, NOW) == NOVEMBER


# Cost centres


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ([], [(1, 10, "C")]),
        ([(4, "A", "C")], [(1, 4, "A"), (4, 10, "C")]),
        ([(4, "A", "B"), (7, "B", "C")], [(1, 4, "A"), (4, 7, "B"), (7, 10, "C")]),
        ([(1, "A", "C")], [(1, 10, "C")]),
        ([(10, "A", "C")], [(1, 10, "A")]),
        ([(4, "A", "B"), (12, "B", "C")], [(1, 4, "A"), (4, 10, "B")]),
    ],
)
def test_a_time_is_cut_where_the_cost_centre_changed(
    changes: list[tuple[int, str, str]], found: list[tuple[int, int, str]]
) -> None:
    made = [Change(at(day), before, after) for day, before, after in changes]
    cut = spans(at(1), at(10), at_present="C", changes=made)
    assert list(cut) == [Span(at(first), at(last), code) for first, last, code in found]


def test_a_time_of_nothing_is_of_no_cost_centre() -> None:
    assert list(spans(at(2), at(1), at_present="C", changes=[])) == []


def test_what_was_charged_before_a_team_moved_stays_on_its_old_cost_centre(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = scene.team.cost_centre
    held(scene, 1, start=at(1), end=at(11))
    moved(scene, "CC-NEW", at(4), monkeypatch)
    found = lines(november(scene.ada), By.COST_CENTRE)
    assert told(found) == [("CC-NEW", "168.00"), (old, "72.00")]


def test_who_answers_for_a_cost_centre_sees_what_went_to_it_and_no_more(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    held(scene, 1, start=at(1), end=at(11))
    assert november(scene.mallory) == []
    CostCentre.objects.filter(code=scene.team.cost_centre).update(owner=scene.mallory)
    assert summed(november(scene.mallory)).spent.usd == 240
    moved(scene, "CC-NEW", at(4), monkeypatch)
    assert summed(november(scene.mallory)).spent.usd == 72
    assert first_month(scene.mallory, NOW) == NOVEMBER


# Idle


def measured(
    scene: Scene, day: int, *, idle_gpu_hours: int, held_gpu_hours: int
) -> None:
    """What the looks of a day of November saw, one a minute."""
    UseDay.objects.create(
        tenancy=scene.tenancy,
        flavor=scene.flavor,
        day=at(day).date(),
        samples=60,
        held_sum=60 * held_gpu_hours,
        used_sum=60 * (held_gpu_hours - idle_gpu_hours),
        last_at=at(day, 23),
    )


def test_what_no_work_used_is_told_in_money(scene: Scene) -> None:
    held(scene, 2, start=at(1), end=at(2))
    measured(scene, 1, idle_gpu_hours=12, held_gpu_hours=20)
    (charge,) = november(scene.ada)
    assert (charge.spent, charge.idle_usd) == (same(48), Decimal(12))


def test_no_more_is_idle_than_was_paid(scene: Scene) -> None:
    held(scene, 1, start=at(1), end=at(1, 1))
    measured(scene, 1, idle_gpu_hours=10, held_gpu_hours=10)
    (charge,) = november(scene.ada)
    assert charge.idle_usd == charge.spent.usd == 1


def test_what_was_idle_on_a_day_is_shared_by_what_was_held_on_it(scene: Scene) -> None:
    held(scene, 1, start=at(1), end=at(3))
    held(scene, 1, start=at(1, 12), end=at(2))
    held(scene, 2, start=at(2), end=at(3))
    measured(scene, 1, idle_gpu_hours=18, held_gpu_hours=36)
    measured(scene, 2, idle_gpu_hours=18, held_gpu_hours=72)
    found = november(scene.ada)
    assert [one.idle_usd for one in found] == [12 + 6, 6, 12]
    assert summed(found).idle_usd == 18 + 18


@pytest.mark.parametrize(
    ("begins", "ends", "day"),
    [
        (at(10, 9), at(10, 9) + timedelta(milliseconds=400), date(2026, 11, 10)),
        (at(10) - timedelta(milliseconds=400), at(12), date(2026, 11, 9)),
    ],
)
def test_a_part_of_a_second_has_nothing_idle(
    scene: Scene, begins: datetime, ends: datetime, day: date
) -> None:
    held(scene, 1, start=begins, end=ends)
    UseDay.objects.create(
        tenancy=scene.tenancy,
        flavor=scene.flavor,
        day=day,
        held_sum=120,
        used_sum=0,
        samples=60,
        last_at=NOW,
    )
    [charge] = charges_of(scene.ada, month_at(date(2026, 11, 1), NOW))
    assert charge.idle_usd in (None, Decimal(0))


def test_what_is_idle_on_later_days_changes_no_charge_that_has_ended(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A team moved to another cost centre: what it holds goes on, and is one charge of each."""
    held(scene, 1, start=at(1), end=at(11))
    moved(scene, "CC-NEW", at(4), monkeypatch)
    for day in (1, 2, 3):
        measured(scene, day, idle_gpu_hours=24, held_gpu_hours=24)
    before = [one.idle_usd for one in november(scene.ada)]
    for day in range(4, 11):
        measured(scene, day, idle_gpu_hours=0, held_gpu_hours=24)
    assert before == [72, 0]
    assert [one.idle_usd for one in november(scene.ada)] == before


def test_what_another_namespace_of_a_team_left_idle_is_not_its_own(
    scene: Scene,
) -> None:
    held(scene, 1, start=at(1), end=at(2))
    busy = held(scene, 1, start=at(1), end=at(2))
    other = factories.tenancy(scene.team, scene.tenancy.cluster, project="tracking")
    Allocation.objects.filter(pk=busy.pk).update(tenancy=other)
    measured(scene, 1, idle_gpu_hours=24, held_gpu_hours=24)
    assert [one.idle_usd for one in november(scene.ada)] == [24, 0]


# Added up


def test_the_same_adds_up_to_the_same_by_whatever_it_is_added_up(scene: Scene) -> None:
    held(scene, 1, start=at(1), end=at(3))
    held(scene, 2, start=at(2), end=at(5, 7))
    found = november(scene.priya)
    sums = {by: sum(one.spent.usd for one in lines(found, by)) for by in By}
    assert set(sums.values()) == {summed(found).spent.usd}
    names = {by: [one.name for one in lines(found, by)] for by in By}
    project = scene.tenancy.project.slug
    assert names == {
        By.TEAM: ["Vision"],
        By.COST_CENTRE: [scene.team.cost_centre],
        By.PROJECT: [f"vision/{project}"],
        By.KIND: [scene.flavor.words],
        By.PERSON: ["Ada Okafor"],
    }


def test_the_highest_comes_first(scene: Scene) -> None:
    held(scene, 1, start=at(1), end=at(2))
    other = factories.team("Audio", by=scene.ada)
    factories.join(other, scene.ada)
    row = held(scene, 2, start=at(1), end=at(2))
    Allocation.objects.filter(pk=row.pk).update(team=other)
    found = lines(november(scene.priya), By.TEAM)
    assert told(found) == [("Audio", "48.00"), ("Vision", "24.00")]


def test_a_month_is_read_in_five_queries_however_much_is_in_it(
    scene: Scene, django_assert_max_num_queries: Any
) -> None:
    for _ in range(3):
        held(scene, 1, start=at(1), end=at(2))
    with django_assert_max_num_queries(5):
        found = november(scene.priya)
        for by in By:
            lines(found, by)
        assert {one.allocation.what for one in found} == {f"1 × {scene.flavor.kind}"}
        assert as_csv(found, month_at(NOVEMBER, NOW)).count("allocation-") == 3


def test_whoever_is_of_no_team_sees_nothing(scene: Scene) -> None:
    held(scene, 1, start=NOW - timedelta(days=1), end=NOW)
    assert november(scene.mallory) == []


@pytest.mark.slow
def test_what_was_charged_of_a_month_that_is_over_is_what_its_ledger_holds(
    scene: Scene,
) -> None:
    """Ended early, renewed, given back in part and over the month's end: to the cent, in both months."""
    wide = Thresholds(
        automatic_gpus=24,
        automatic_days=60,
        window_gpus_team=1000,
        window_gpus_person=None,
        automatic_usd=Decimal(100_000),
        window_usd_team=None,
        window_usd_person=None,
        automatic_gpu_hours=None,
    )
    began = at(20, 7, month=10)
    factories.policy(wide, now=began)
    Flavor.objects.update(price_per_gpu_hour=Decimal("3.67"))
    flavor = Flavor.objects.get()
    asked = [
        factories.request(
            scene.ada, scene.tenancy, flavor, gpus=gpus, days=20, now=began
        )
        for gpus in (1, 2, 1)
    ]
    whole, part, kept = (
        Allocation.objects.get(hold=one.hold_id, ended_at=None) for one in asked
    )
    for row in (whole, part, kept):
        begin_charging(row, now=began + timedelta(minutes=7, seconds=13))
    give_back(whole.pk, gpus=1, by=scene.ada, now=at(24, 13, month=10))
    give_back(part.pk, gpus=1, by=scene.ada, now=at(2, 5))
    later = at(27, month=10)
    longer = renewing.wanted(
        asked[2], until=kept.until + DAY, reason="Not done yet.", now=later
    )
    assert submit(longer, by=scene.ada, now=later).state == "approved"
    for row in Allocation.objects.live():
        assert expire(row.pk, now=row.kept_until)
    over = at(1, month=12)
    for month in (OCTOBER, NOVEMBER):
        charged = summed(charges_of(scene.ada, month_at(month, over))).spent.usd
        entries = LedgerEntry.objects.filter(budget__month=month)
        in_ledger = sum((row.usd for row in entries), Decimal(0))
        assert in_ledger > 100
        assert round(charged, 2) == in_ledger, month
