"""What services promise, how their requests are counted, and what is left of their error budgets."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import Team, User
from accounts.roles import Role
from allocations.models import Allocation
from approvals.models import Request
from audit.events import Kind
from audit.models import Event
from connectors.errors import TemporaryError
from fleet.models import Cluster
from manual import actions as manual
from notices.kinds import NoticeKind
from notices.models import Notice
from provisioning.models import Tenancy
from tests import factories
from tests.approvals.shop import granted, task_of
from tests.calling import Caller
from tests.pages import parsed, sent_by
from tests.scene import scene
from tests.workloads.conftest import Watched
from tests.workloads.test_gpu_use import BINDING, RIGHT
from tests.workloads.test_gpu_use import SERVICE as PROMETHEUS
from web.refusals import BadInput, Conflict, Missing, NoRight
from workloads import tasks
from workloads.models import ServiceDay, ServiceLevel
from workloads.service_levels import actions, measuring
from workloads.service_levels import page as levels_page
from workloads.service_levels.budget import Day, State, budget_of
from workloads.service_levels.meters import Meter, counted, query
from workloads.service_levels.standing import standings
from workloads.service_levels.tiers import OBJECTIVES, Tier, seconds

TODAY = date(2026, 11, 30)
AT = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
FIVE = timedelta(minutes=5)
NEAR = OBJECTIVES[Tier.NEAR_REAL_TIME]


def day(
    *, ago: int = 0, requests: float = 1e6, failed: float = 0, p99: float | None = None
) -> Day:
    return Day(day=TODAY - timedelta(ago), requests=requests, failed=failed, p99=p99)


# It is measured as long as the window is.
FULL = day(ago=29, requests=0)


@pytest.mark.parametrize(
    ("days", "state"),
    [
        ([], State.UNKNOWN),
        # Of 900 requests less than one may fail.
        ([FULL, day(requests=900, failed=1)], State.FEW),
        ([FULL, day(failed=400, ago=10), day(failed=99)], State.WELL),
        ([FULL, day(ago=10), day(failed=1_000, ago=6)], State.FAST),
        # The same, longer ago than a week.
        ([FULL, day(ago=10), day(failed=1_000, ago=7)], State.WELL),
        ([FULL, day(failed=1_000)], State.SPENT),
        ([day(failed=1_001, ago=29), day(requests=1)], State.SPENT),
        # It has left the window.
        ([day(failed=5_000, ago=30), FULL, day()], State.WELL),
    ],
)
def test_a_budget_is_what_may_fail_within_thirty_days(
    days: list[Day], state: State
) -> None:
    assert budget_of(days, NEAR, today=TODAY).state is state


@pytest.mark.parametrize(
    ("days", "state"),
    [
        # So many fail every day that half of the budget is used after thirty.
        ([day(failed=500)], State.WELL),
        ([day(failed=500, ago=6), day(failed=500)], State.WELL),
        # Of the first of thirty days, so many that half of what thirty days may have is gone, or all of it.
        ([day(failed=15_000)], State.FAST),
        ([day(failed=30_000)], State.SPENT),
        # A first request that fails is one of thirty a day.
        ([day(requests=1, failed=1)], State.FEW),
    ],
)
def test_the_budget_of_a_new_service_is_that_of_thirty_such_days(
    days: list[Day], state: State
) -> None:
    assert budget_of(days, NEAR, today=TODAY).state is state


@pytest.mark.parametrize(
    ("first", "counted"), [(None, 1), (-1, 1), (0, 1), (3, 4), (29, 30), (400, 30)]
)
def test_days_are_counted_from_the_first_one_however_long_ago_that_is(
    first: int | None, counted: int
) -> None:
    """A clock that is behind takes today for tomorrow."""
    since = None if first is None else TODAY - timedelta(first)
    assert budget_of([day()], NEAR, today=TODAY, first=since).days == counted


def test_what_is_left_of_a_budget_is_told_in_minutes_of_a_service_that_is_down() -> (
    None
):
    budget = budget_of([FULL, day(failed=400)], NEAR, today=TODAY)
    assert budget.used == pytest.approx(0.4)
    # 99.9 % of 30 days leave 43.2 minutes.
    assert budget.minutes_left == pytest.approx(0.6 * 43.2)
    assert budget.availability == pytest.approx(0.9996)
    spent = budget_of([FULL, day(failed=4_000)], NEAR, today=TODAY)
    assert spent.used == pytest.approx(4)
    assert spent.minutes_left == 0
    # A day on which a thirtieth of it failed.
    new = budget_of([day(failed=1_000)], NEAR, today=TODAY)
    assert new.minutes_left == pytest.approx(43.2 * 29 / 30)


@pytest.mark.parametrize(
    ("failed", "lately", "is_calm"),
    [(899, 0, True), (901, 0, False), (0, 399, True), (0, 401, False)],
)
def test_all_is_well_again_only_where_some_room_is_left(
    failed: float, lately: float, is_calm: bool
) -> None:
    days = [FULL, day(failed=failed, ago=20, requests=5e5)]
    days.append(day(failed=lately, requests=5e5))
    budget = budget_of(days, NEAR, today=TODAY)
    assert (budget.state, budget.is_calm) == (State.WELL, is_calm)


@pytest.mark.parametrize(
    ("used", "left"),
    [
        (0, "100 %"),
        (0.001, "99 %"),
        (0.4, "60 %"),
        (0.999, "less than 1 %"),
        (2, "0 %"),
    ],
)
def test_what_is_left_is_never_told_as_all_or_nothing_where_it_is_not(
    used: float, left: str
) -> None:
    budget = budget_of([FULL, day(failed=used * 1_000)], NEAR, today=TODAY)
    assert levels_page.left(budget) == left


@pytest.mark.parametrize(
    ("share", "words"),
    [(1, "100 %"), (0.999999, "99.999 %"), (0.9991, "99.910 %"), (None, "–")],
)
def test_what_is_not_whole_is_not_told_as_a_hundred_percent(
    share: float | None, words: str
) -> None:
    assert levels_page.percent(share) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.18, "180 ms"),
        (0.9999, "1 s"),
        (2, "2 s"),
        (1_500, "25 min"),
        (3_600, "1 h"),
        (7_300, "2.03 h"),
    ],
)
def test_a_latency_is_told_in_a_unit_that_people_read(value: float, words: str) -> None:
    assert seconds(value) == words


def test_its_latency_is_that_of_the_worst_hour_since_yesterday() -> None:
    days = [day(p99=1.5), day(ago=1, p99=2.5), day(ago=2, p99=9)]
    budget = budget_of(days, NEAR, today=TODAY)
    assert (budget.p99, budget.is_slow) == (2.5, True)
    assert not budget_of([day(p99=2)], NEAR, today=TODAY).is_slow


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1)), min_size=1, max_size=40))
def test_nothing_is_ever_left_of_a_budget_that_is_used_up(
    found: list[tuple[float, float]],
) -> None:
    days = [
        day(ago=number, requests=all_of, failed=all_of * share)
        for number, (all_of, share) in enumerate(found)
    ]
    budget = budget_of(days, NEAR, today=TODAY)
    if budget.state is State.SPENT:
        assert budget.minutes_left == 0
    assert budget.availability is None or 0 <= budget.availability <= 1


@pytest.mark.parametrize(
    ("meter", "failed"),
    [
        (Meter.NGINX, 'nginx_ingress_controller_requests{status=~"5.."}'),
        (
            Meter.ISTIO,
            'istio_requests_total{reporter=~"destination|waypoint", response_code=~"5.."}',
        ),
        (Meter.PROGRAM, 'http_requests_total{status=~"5.*"}'),
    ],
)
def test_a_query_names_the_moments_between_which_it_counts(
    meter: Meter, failed: str
) -> None:
    asked = query(meter, AT - FIVE, AT)
    assert f"increase({failed}[300s] @ {int(AT.timestamp())})" in asked
    assert f"[3600s] @ {int(AT.timestamp())}" in asked
    assert ("/ 1000" in asked) is (meter is Meter.ISTIO)


def sample(value: Any, **labels: str) -> dict[str, Any]:
    return {"metric": labels, "value": [0, value]}


def test_the_exporters_own_namespace_is_not_that_of_the_service() -> None:
    labels = {
        "namespace": "ingress-nginx",
        "service": "metrics",
        "exported_namespace": "qm-vision",
        "exported_service": "mistral",
    }
    other = labels | {"service": "metrics-2"}
    found = counted(
        Meter.NGINX,
        [
            sample("600", **labels, of="requests"),
            sample("400", **other, of="requests"),
            sample("7", **labels, of="failed"),
            sample("0.2", **labels, of="p99"),
            sample("0.4", **other, of="p99"),
            sample("100", **labels, of="hour"),
            sample("100", **labels, of="reached"),
        ],
    )
    [(service, one)] = found.items()
    assert service == ("qm-vision", "mistral")
    assert (one.requests, one.failed, one.p99) == (1_000, 7, 0.4)


@pytest.mark.parametrize("value", ["NaN", "+Inf", None, "many"])
def test_what_is_no_number_is_not_counted(value: Any) -> None:
    labels = {"namespace": "n", "service": "s"}
    found = counted(
        Meter.PROGRAM,
        [
            sample("1000", **labels, of="requests"),
            sample("1000", **labels, of="hour"),
            sample(value, **labels, of="p99"),
        ],
    )
    assert found["n", "s"].p99 is None
    assert not counted(Meter.PROGRAM, [sample(value, **labels, of="requests")])
    # Estimated each by itself, more may seem to fail than there were.
    more = counted(
        Meter.PROGRAM,
        [sample("10", **labels, of="requests"), sample("11", **labels, of="failed")],
    )
    assert more["n", "s"].failed == 10


@pytest.mark.parametrize("value", ["1e300", "9.9e12"])
def test_more_requests_than_any_service_has_are_not_believed(value: str) -> None:
    labels = {"namespace": "n", "service": "s"}
    assert not counted(Meter.PROGRAM, [sample(value, **labels, of="requests")])


@pytest.mark.parametrize("metric", [None, [], "up", 7])
def test_a_sample_without_labels_is_left_out(metric: Any) -> None:
    lying = {"metric": metric, "value": [0, "5"]}
    good = sample("10", namespace="n", service="s", of="requests")
    assert [*counted(Meter.PROGRAM, [lying, good])] == [("n", "s")]


def test_a_program_counts_for_no_namespace_but_its_own() -> None:
    # Prometheus renames what a program says of itself, and writes down whom it asked.
    claimed = {"exported_namespace": "qm-vision", "exported_service": "mistral"}
    asked = {"namespace": "qm-mallory", "service": "liar"}
    lie = sample("1000", **claimed, **asked, of="requests")
    assert [*counted(Meter.PROGRAM, [lie])] == [("qm-mallory", "liar")]


def test_spans_end_at_full_hours_and_lie_a_day_back_at_most() -> None:
    midnight = datetime(2026, 11, 30, tzinfo=UTC)
    hour = timedelta(hours=1)
    assert [*measuring.spans(midnight - FIVE, midnight + FIVE)] == [
        (midnight - FIVE, midnight),
        (midnight, midnight + FIVE),
    ]
    assert [*measuring.spans(AT, AT)] == []
    late = [*measuring.spans(AT - timedelta(days=9), AT + FIVE)]
    assert late[0] == (AT - 24 * hour + FIVE, AT - 23 * hour)
    assert late[-2:] == [(AT - hour, AT), (AT, AT + FIVE)]
    just_after = AT + timedelta(seconds=59)
    assert measuring.last_look(just_after) == AT - FIVE
    assert measuring.last_look(AT + timedelta(seconds=60)) == AT


@pytest.fixture
def served(watched: Watched) -> Iterator[Watched]:
    """A cluster whose Prometheus the portal may ask."""
    namespace = {"apiVersion": "v1", "kind": "Namespace"}
    watched.kubernetes.create({**namespace, "metadata": {"name": "monitoring"}})
    watched.kubernetes.create(RIGHT)
    watched.kubernetes.create(BINDING)
    Cluster.objects.filter(pk=watched.cluster.pk).update(prometheus=PROMETHEUS)
    yield watched
    watched.kubernetes.cluster.has_prometheus = True
    watched.kubernetes.cluster.traffic.clear()


def lead_of(team: Team) -> User:
    lead = factories.person("Lena of it")
    factories.join(team, lead, lead=True)
    return lead


def answers(
    watched: Watched,
    *,
    per_second: float = 100,
    failed: float = 0,
    p99: float = 0.15,
    meter: str = "istio",
    **more: float,
) -> None:
    watched.kubernetes.write(
        "POST",
        "/sandbox/traffic",
        {
            "namespace": watched.namespace,
            "service": "mistral",
            "meter": meter,
            "per_second": per_second,
            "failed": failed,
            "p99": p99,
            **more,
        },
    )


def promised(
    watched: Watched, *, tier: str = "near_real_time", meter: str = "istio"
) -> ServiceLevel:
    """Since nine o'clock."""
    return actions.add_level(
        watched.tenancy.pk,
        service="mistral",
        meter=meter,
        tier=tier,
        by=lead_of(watched.team),
        now=AT + timedelta(minutes=1),
    )


def look(minutes: float) -> None:
    """The clock's look so long after nine o'clock."""
    measuring.measure(now=lambda: AT + timedelta(minutes=minutes))


def days_of(level: ServiceLevel) -> list[tuple[float, float]]:
    level.refresh_from_db()
    return [(round(one.requests), round(one.failed)) for one in level.days.all()]


@pytest.mark.parametrize("meter", [*Meter])
def test_requests_are_counted_once_however_often_and_late_they_are_looked_at(
    served: Watched, meter: Meter
) -> None:
    answers(served, failed=0.002, meter=meter)
    level = promised(served, meter=meter)
    look(5)
    assert days_of(level) == []
    for minutes in (6, 6.5, 7):
        look(minutes)
    assert days_of(level) == [(30_000, 60)]
    # Five looks were missed.
    look(36)
    assert days_of(level) == [(210_000, 420)]
    assert level.days.get().p99 == 0.15


def test_a_look_over_midnight_counts_for_both_days(served: Watched) -> None:
    answers(served)
    level = promised(served)
    look(6)
    look(15 * 60 + 6)
    assert days_of(level) == [(30_000, 0), (15 * 360_000, 0)]


def test_a_slow_hour_before_midnight_is_none_of_the_day_after(served: Watched) -> None:
    level = promised(served)
    answers(served, p99=2.4)
    look(15 * 60 + 1)
    # The hours from 23:05 to 00:05, and so on: in each of them the day before was slow.
    for minutes in (6, 31, 56):
        look(15 * 60 + minutes)
    answers(served, p99=1.9)
    look(16 * 60 + 1)
    assert [one.p99 for one in level.days.order_by("day")] == [2.4, 1.9]


def test_a_slow_hour_over_midnight_is_of_the_day_in_which_it_began(
    served: Watched,
) -> None:
    level = promised(served)
    answers(served, p99=1.9)
    look(15 * 60 + 1)
    # The hour from 23:30 to 00:30.
    answers(served, p99=2.4)
    look(15 * 60 + 31)
    answers(served, p99=1.9)
    look(16 * 60 + 1)
    assert [one.p99 for one in level.days.order_by("day")] == [2.4, 1.9]


def test_a_look_that_another_one_overtook_leaves_nothing_out(
    served: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(served)
    level = promised(served)
    look(6)
    look(14 * 60 + 31)
    # Two spans, as midnight lies between; before the first is written down, another look has counted until 23:45.
    others = iter([14 * 60 + 46])

    def overtaken(*args: Any) -> Any:
        for minutes in others:
            look(minutes)
        return counted(*args)

    monkeypatch.setattr(measuring, "counted", overtaken)
    look(15 * 60 + 6)
    look(15 * 60 + 11)
    assert days_of(level) == [(60_000, 0), (15 * 360_000, 0)]


def test_a_meter_that_prometheus_cannot_count_holds_no_other_up(
    served: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(served)
    level = promised(served)
    other = factories.service_level(
        served.tenancy,
        level.set_by,
        service="other",
        meter="ingress_nginx",
        set_at=level.set_at,
    )

    def heavy(meter: Meter, *span: datetime) -> str:
        if meter is Meter.NGINX:
            raise TemporaryError("Prometheus: too many samples")
        return query(meter, *span)

    monkeypatch.setattr(measuring, "query", heavy)
    look(6)
    other.refresh_from_db()
    assert days_of(level) == [(30_000, 0)]
    assert (level.problem, other.problem) == ("", "Prometheus: too many samples")


def test_what_is_counted_late_has_the_latency_of_each_of_its_hours(
    served: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(served)
    level = promised(served)
    ends: list[datetime] = []

    def noted(meter: Meter, begins: datetime, until: datetime) -> str:
        ends.append(until)
        return query(meter, begins, until)

    monkeypatch.setattr(measuring, "query", noted)
    look(181)
    assert ends == [AT + timedelta(hours=number) for number in (1, 2, 3)]
    assert days_of(level) == [(3 * 360_000, 0)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"delivery": "git", "kubeconfig": ""}, "has no access to"),
        ({"reachable": False}, "does not answer"),
        ({}, "the worker"),
    ],
)
def test_a_service_that_is_counted_no_more_says_since_when_and_why(
    served: Watched, changes: dict[str, Any], words: str
) -> None:
    now = timezone.now()
    hour_ago = now - timedelta(hours=1)
    level = factories.service_level(
        served.tenancy, served.ada, set_at=hour_ago, seen_at=hour_ago
    )
    Cluster.objects.update(**changes)
    for until in (None, hour_ago):
        ServiceLevel.objects.update(measured_until=until)
        told = Caller(served.ada).get(f"service-levels/{level.pk}/").json()["problem"]
        assert told.startswith("Nothing was counted since ")
        assert words in told


@pytest.mark.parametrize(
    ("hours", "is_away", "words"),
    [
        (0, False, "The Prometheus of Training was not read: It says 403."),
        (1, False, "UTC: the Prometheus of Training was not read: It says 403."),
        # What it said last is not why nothing is counted now.
        (1, True, "UTC: Training does not answer."),
    ],
)
def test_what_prometheus_said_last_is_told_with_since_when(
    served: Watched, hours: float, is_away: bool, words: str
) -> None:
    until = timezone.now() - timedelta(hours=hours)
    factories.service_level(
        served.tenancy,
        served.ada,
        set_at=until,
        measured_until=until,
        problem="It says 403.",
    )
    Cluster.objects.update(reachable=not is_away, title="Training")
    [found] = standings(ServiceLevel.objects.all(), now=timezone.now())
    assert found.why_unknown.endswith(words)
    assert found.why_unknown.startswith("Nothing was counted since") is bool(hours)


def test_a_service_that_prometheus_knows_no_more_is_told_so(served: Watched) -> None:
    now = timezone.now()
    level = factories.service_level(
        served.tenancy,
        served.ada,
        measured_until=now,
        seen_at=now - timedelta(days=2),
    )
    told = Caller(served.ada).get(f"service-levels/{level.pk}/").json()["problem"]
    assert "has known no request of mistral" in told


def test_leads_are_told_once_when_a_budget_goes_too_fast_and_once_when_it_is_gone(
    served: Watched,
) -> None:
    level = promised(served)
    ServiceDay.objects.create(
        level=level, day=TODAY - timedelta(29), requests=1e6, failed=0
    )
    answers(served, failed=0.02)
    told = Notice.objects.filter(kind=NoticeKind.SERVICE_LEVEL).order_by("pk")
    look(6)
    [first] = told
    assert first.person == level.set_by
    assert first.message["title"] == "mistral uses its error budget too fast"
    assert first.link == f"/capacity/service-levels/{level.pk}"
    answers(served, failed=0)
    look(11)
    assert told.all().count() == 1
    answers(served, failed=0.04)
    for minutes in (16, 21):
        look(minutes)
    assert [one.message["title"] for one in told.all()] == [
        "mistral uses its error budget too fast",
        "mistral has used up its error budget",
    ]
    # There is something left again, but not much: the next failure is no news.
    answers(served, failed=0)
    today = ServiceDay.objects.filter(level=level, day=TODAY)
    for minutes, failed in ((26, 500), (31, 700)):
        today.update(failed=failed)
        look(minutes)
    assert told.all().count() == 2
    # All is well, and then it is not.
    for minutes, failed in ((36, 0), (41, 700)):
        today.update(failed=failed)
        look(minutes)
    assert told.all().count() == 3


@pytest.mark.slow
def test_leads_are_told_once_of_a_slow_service_until_it_was_in_time_for_a_day(
    served: Watched,
) -> None:
    level = promised(served)
    told = Notice.objects.filter(kind=NoticeKind.SERVICE_LEVEL)
    day_of = 24 * 60
    # In time, slow, in time again, but not for a whole day yet; then slow again.
    for p99, minutes in (
        (1.9, 6),
        (2.4, 11),
        (2.4, 16),
        (1.9, day_of),
        (2.4, day_of + 5),
    ):
        answers(served, p99=p99)
        look(minutes)
    [only] = told
    assert only.person == level.set_by
    assert only.message["title"] == "mistral is slower than it promises"
    assert "within 2.4 s in its worst hour" in only.message["sentence"]
    assert "2 s is promised" in only.message["sentence"]
    # Neither nothing nor little is a sign that it is well.
    answers(served, per_second=0.01)
    look(2 * day_of)
    answers(served, p99=2.4)
    look(2 * day_of + 5)
    assert told.all().count() == 1
    ServiceDay.objects.update(p99=1.9)
    for p99, minutes in ((1.9, 2 * day_of + 10), (2.4, 2 * day_of + 15)):
        answers(served, p99=p99)
        look(minutes)
    assert told.all().count() == 2


def test_a_slow_service_is_told_with_what_needs_care(served: Watched) -> None:
    level = promised(served)
    answers(served, p99=2.4)
    look(6)
    factories.service_level(served.tenancy, level.set_by, service="another")
    found = standings(ServiceLevel.objects.all(), now=AT + timedelta(minutes=7))
    assert [one.level.service for one in found] == ["mistral", "another"]
    figures = {
        one["label"]: one["value"]
        for one in levels_page.listed(found, is_filtered=False)["figures"]
    }
    assert figures["Need care"] == 1


@pytest.mark.parametrize(
    ("last_bucket", "is_told", "words"),
    [
        (10, True, "answered not even within 10 s, and 2 s is promised"),
        # It may have been fast enough, or not.
        (1, False, "Nobody can see whether it is slow"),
    ],
)
def test_more_than_a_histogram_can_tell_is_not_told_as_fast(
    served: Watched, last_bucket: float, is_told: bool, words: str
) -> None:
    promised(served)
    answers(served, p99=60, last_bucket=last_bucket)
    look(6)
    assert Notice.objects.filter(kind=NoticeKind.SERVICE_LEVEL).exists() is is_told
    [found] = standings(ServiceLevel.objects.all(), now=AT + timedelta(minutes=7))
    page = levels_page.one(found, viewer=served.ada)
    assert words in page["slow"]
    assert page["rows"][0]["cells"][-1] == f"over {last_bucket} s"


def test_an_hour_of_few_requests_has_no_latency(served: Watched) -> None:
    level = promised(served)
    answers(served, per_second=99 / 3_600, p99=60)
    look(6)
    assert level.days.get().p99 is None


def test_a_prometheus_that_does_not_answer_is_named_and_counts_later(
    served: Watched,
) -> None:
    answers(served)
    level = promised(served)
    served.kubernetes.cluster.has_prometheus = False
    look(6)
    level.refresh_from_db()
    assert "no endpoints available" in level.problem
    [line] = Caller(served.ada).get("service-levels/").json()["results"]
    assert "no endpoints available" in line["problem"]
    served.kubernetes.cluster.has_prometheus = True
    look(11)
    assert days_of(level) == [(60_000, 0)]
    assert level.problem == ""


def why_unknown(*, minutes: float) -> str:
    """What is said so long after nine o'clock of the only service."""
    [found] = standings(ServiceLevel.objects.all(), now=AT + timedelta(minutes=minutes))
    return found.why_unknown


def test_a_service_of_which_prometheus_knows_nothing_is_told_so(
    served: Watched,
) -> None:
    level = promised(served)
    first = "It is counted for the first time within ten minutes."
    assert why_unknown(minutes=2) == first
    look(6)
    assert "knows no request of mistral" in why_unknown(minutes=7)
    told = Caller(served.ada).get(f"service-levels/{level.pk}/").json()
    assert told["state"] == "unknown"
    Cluster.objects.update(prometheus="")
    assert "No Prometheus" in why_unknown(minutes=7)


def test_one_that_is_removed_while_it_is_counted_stays_removed(
    served: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(served)
    level = promised(served)

    def remove(*args: Any) -> Any:
        actions.remove_level(level.pk, by=level.set_by)
        return counted(*args)

    monkeypatch.setattr(measuring, "counted", remove)
    look(6)
    assert not ServiceLevel.objects.exists()
    assert not ServiceDay.objects.exists()


def test_the_clock_has_services_measured(
    served: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(served)
    level = promised(served)
    monkeypatch.setattr("audit.clock.now", lambda: AT + timedelta(minutes=6))
    tasks.measure_services()
    assert days_of(level) == [(30_000, 0)]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "name", ["Mistral", "mistral.svc", 'x"} or up{a="', "7b", "a" * 64]
)
def test_a_name_that_no_service_has_is_refused(name: str) -> None:
    tenancy, lead = somewhere()
    with pytest.raises(BadInput) as refused:
        actions.add_level(
            tenancy.pk,
            service=name,
            meter="istio",
            tier="batch",
            by=lead,
            now=timezone.now(),
        )
    assert refused.value.field == "service"
    assert not ServiceLevel.objects.exists()


def somewhere() -> tuple[Tenancy, User]:
    """A place, and a lead of its team."""
    tenancy = factories.tenancy(factories.team("Speech"), factories.cluster("east"))
    return tenancy, lead_of(tenancy.team)


def level_in(tenancy: Tenancy, by: User, *, service: str = "mistral") -> ServiceLevel:
    return actions.add_level(
        tenancy.pk,
        service=service,
        meter="istio",
        tier="batch",
        by=by,
        now=timezone.now(),
    )


@pytest.mark.django_db
def test_a_service_is_measured_once_and_a_place_has_twenty_at_most() -> None:
    tenancy, lead = somewhere()
    level_in(tenancy, lead)
    with pytest.raises(Conflict, match="measured already"):
        level_in(tenancy, lead)
    for number in range(19):
        level_in(tenancy, lead, service=f"other-{number}")
    with pytest.raises(Conflict, match="Remove one first"):
        level_in(tenancy, lead, service="one-more")
    tenancy.stage, tenancy.is_protected = "leaving", False
    tenancy.leaves_at = timezone.now()
    tenancy.save()
    with pytest.raises(Conflict, match="leaves this place"):
        level_in(tenancy, lead, service="late")


@pytest.mark.django_db
def test_leads_and_platform_leads_alone_say_what_is_promised() -> None:
    tenancy, lead = somewhere()
    member = factories.person("Ada", teams=[tenancy.team])
    level = level_in(tenancy, factories.person("Priya", Role.PLATFORM_LEAD))
    for refused in (
        lambda: level_in(tenancy, member, service="other"),
        lambda: actions.change_level(
            level.pk, meter="istio", tier="batch", by=member, now=timezone.now()
        ),
        lambda: actions.remove_level(level.pk, by=member),
    ):
        with pytest.raises(NoRight):
            refused()
    actions.change_level(
        level.pk, meter="istio", tier="real_time", by=lead, now=timezone.now()
    )
    # The same again is no event.
    actions.change_level(
        level.pk, meter="istio", tier="real_time", by=lead, now=timezone.now()
    )
    assert Event.objects.filter(kind=Kind.SERVICE_LEVEL_SET).count() == 2
    actions.remove_level(level.pk, by=lead)
    removed = Event.objects.get(kind=Kind.SERVICE_LEVEL_REMOVED)
    assert (removed.team_id, removed.subject_id) == (tenancy.team_id, str(level.pk))
    with pytest.raises(Missing):
        actions.remove_level(level.pk, by=lead)


@pytest.mark.django_db
def test_over_the_api_a_lead_has_a_service_measured_changed_and_removed() -> None:
    tenancy, lead = somewhere()
    caller = Caller(lead)
    body = {
        "tenancy": tenancy.pk,
        "service": "mistral",
        "meter": "program",
        "tier": "batch",
    }
    made = caller.post("service-levels/", body)
    assert made.status_code == 201, made.content
    where = f"service-levels/{made.json()['id']}/"
    assert made.headers["Location"].endswith(where)
    assert made.json()["promised"] == {"availability": 0.995, "p99_seconds": 3600}
    changed = caller.put(where, {"meter": "istio", "tier": "real_time"})
    assert changed.json()["tier"] == "real_time"
    stranger = Caller(factories.person("Mallory"))
    assert stranger.get(where).status_code == 404
    assert stranger.get("service-levels/").json() == {"results": []}
    elsewhere = stranger.post("service-levels/", {**body, "service": "other"})
    assert elsewhere.status_code == 404
    assert caller.delete(where).status_code == 204
    assert caller.get(where).status_code == 404


@pytest.mark.django_db
def test_the_list_has_what_needs_care_first_and_costs_the_same_with_one_and_three() -> (
    None
):
    tenancy, lead = somewhere()
    today = timezone.now().astimezone(UTC).date()
    queries = []
    for number, failed in enumerate((0, 9_000, 3_000)):
        level = level_in(tenancy, lead, service=f"model-{number}")
        level.days.create(day=today - timedelta(29), requests=0, failed=0)
        level.days.create(day=today, requests=1e6, failed=failed, p99=0.1)
        with CaptureQueriesContext(connection) as asked:
            standings(ServiceLevel.objects.all(), now=timezone.now())
        queries.append(len(asked))
    assert queries == [2, 2, 2]
    found = Caller(lead).get("service-levels/?team=speech").json()["results"]
    assert [(one["service"], one["state"]) for one in found] == [
        ("model-1", "spent"),
        ("model-2", "fast"),
        ("model-0", "well"),
    ]
    browser = Client()
    browser.force_login(lead)
    page = parsed(browser.get("/capacity/service-levels").text)
    assert "Budget used up" in page.words
    assert "99.100 %" in page.words


@pytest.mark.django_db
def test_a_lead_has_a_service_measured_by_the_page_once() -> None:
    tenancy, lead = somewhere()
    browser = Client()
    browser.force_login(lead)
    where = f"/teams/{tenancy.team.slug}/service-levels/new"
    form = next(
        one
        for one in parsed(browser.get(where).text).walk()
        if one.tag == "form" and one.attrs.get("class") == "form"
    )
    [token] = sent_by(form)["token"]
    sent = {
        "place": tenancy.pk,
        "service": "mistral",
        "tier": "batch",
        "meter": "istio",
        "token": token,
    }
    answers = [browser.post(where, sent) for _ in range(2)]
    level = ServiceLevel.objects.get()
    assert {one.headers["Location"] for one in answers} == {
        f"/capacity/service-levels/{level.pk}"
    }
    page = parsed(browser.get(f"/capacity/service-levels/{level.pk}").text)
    assert "No Prometheus of" in page.words
    refused = browser.post(where, {**sent, "service": "Mistral!", "token": ""})
    assert refused.status_code == 422
    assert "Give the name of the Service alone" in parsed(refused.text).words
    removed = browser.post(f"/capacity/service-levels/{level.pk}/remove")
    assert removed.headers["Location"] == "/capacity/service-levels?team=speech"
    assert not ServiceLevel.objects.exists()


def followed(person: User, where: str) -> str:
    """Where a link leads a person."""
    browser = Client()
    browser.force_login(person)
    return str(browser.get(where).headers.get("Location", ""))


@pytest.mark.slow
@pytest.mark.django_db
def test_an_endpoint_leads_to_its_service_level_and_back() -> None:
    made = scene()
    lead = lead_of(made.team)
    asked = granted(made, "endpoint", now=timezone.now())
    manual.finish(task_of(asked).pk, by=made.priya, note="It runs.", now=timezone.now())
    browser = Client()
    browser.force_login(lead)
    way = f"/requests/{asked.pk}/service-level"
    assert way in hrefs(browser.get(f"/requests/{asked.pk}/").text)
    # Nobody has said what it promises: a lead says it, and everybody else sees that there is nothing.
    assert followed(made.ada, way) == "/capacity/service-levels?team=vision"
    form = followed(lead, way)
    page = browser.get(form)
    known = page.context["form"]
    assert known["service"].value() == "mistral-7b"
    assert known["place"].value() == str(made.tenancy.pk)
    sent = {
        "place": made.tenancy.pk,
        "service": "mistral-7b",
        "tier": "near_real_time",
        "meter": "istio",
        "request": asked.pk,
    }
    level_page = browser.post(form, sent).headers["Location"]
    assert followed(made.ada, way) == level_page
    assert f"/requests/{asked.pk}/" in hrefs(browser.get(level_page).text)
    assert "/capacity/service-levels?team=vision" in hrefs(
        browser.get("/teams/vision/").text
    )
    told = Caller(made.ada).get("service-levels/").json()["results"]
    assert [one["request"] for one in told] == [asked.pk]
    assert followed(made.mallory, way) == ""


@pytest.mark.slow
@pytest.mark.django_db
def test_who_decided_for_another_team_is_led_to_nothing_of_that_team() -> None:
    made = scene()
    asked = granted(made, "endpoint", now=timezone.now())
    manual.finish(task_of(asked).pk, by=made.priya, note="It runs.", now=timezone.now())
    # Nobody sees all teams any more by having been a lead.
    made.priya.roles_held.all().delete()
    where = f"/requests/{asked.pk}/"
    reserved = factories.reservation(made.team)
    Allocation.objects.filter(hold=asked.hold).update(reservation=reserved)
    of_team = {
        f"{where}service-level",
        f"/tenancies/{made.tenancy.pk}/use",
        f"/capacity/reservations/{reserved.pk}",
    }
    assert not of_team & hrefs(page_of(made.priya, where))
    assert of_team <= hrefs(page_of(made.ada, where))


@pytest.mark.django_db
def test_a_service_in_another_namespace_does_not_run_on_the_request_that_led_there() -> (
    None
):
    made = scene()
    lead, asked = lead_of(made.team), made.ask(1)
    elsewhere = factories.tenancy(made.team, factories.cluster("other"))
    browser = Client()
    browser.force_login(lead)
    form = followed(lead, f"/requests/{asked.pk}/service-level")
    assert browser.get(form).context["form"]["request"].value() == str(asked.pk)
    sent = {
        "place": elsewhere.pk,
        "service": "mistral",
        "tier": "batch",
        "meter": "istio",
        "request": asked.pk,
    }
    answer = browser.post(form, sent)
    assert answer.status_code == 302, parsed(answer.text).words
    assert ServiceLevel.objects.get().request is None


@pytest.mark.django_db
def test_in_a_place_that_its_team_leaves_nothing_new_is_promised() -> None:
    made = scene()
    lead, asked = lead_of(made.team), made.ask(1)
    way = f"/requests/{asked.pk}/service-level"
    assert "/service-levels/new?" in followed(lead, way)
    factories.leave(made.tenancy, to="leaving", at=timezone.now())
    assert followed(lead, way) == "/capacity/service-levels?team=vision"


@pytest.mark.slow
@pytest.mark.django_db
def test_a_long_chain_of_renewals_costs_the_same() -> None:
    made, queries = scene(), []
    asked = made.ask(1)
    level = factories.service_level(made.tenancy, made.ada, request=asked)
    browser = Client()
    browser.force_login(made.ada)
    for _ in range(4):
        later = made.ask(1)
        Request.objects.filter(pk=later.pk).update(renews=asked)
        asked = later
        with CaptureQueriesContext(connection) as told:
            answer = browser.get(f"/requests/{asked.pk}/service-level")
        assert answer.headers["Location"] == f"/capacity/service-levels/{level.pk}"
        queries.append(len(told))
    assert queries[1:] == queries[1:2] * 3


def hrefs(text: str) -> set[str]:
    """Where the links of a page lead."""
    return {one.attrs.get("href", "") for one in parsed(text).walk() if one.tag == "a"}


@pytest.mark.django_db
def test_what_goes_on_under_another_request_leads_to_the_same_service() -> None:
    made = scene()
    first, second = (made.ask(1) for _ in range(2))
    level = factories.service_level(made.tenancy, made.ada, request=first)
    Request.objects.filter(pk=second.pk).update(renews=first)
    way = f"/requests/{second.pk}/service-level"
    assert followed(made.ada, way) == f"/capacity/service-levels/{level.pk}"


@pytest.mark.django_db
def test_a_service_runs_on_a_request_of_its_own_namespace() -> None:
    tenancy, lead = somewhere()
    elsewhere = scene().ask(1)
    body = {
        "tenancy": tenancy.pk,
        "service": "mistral",
        "meter": "program",
        "tier": "batch",
    }
    for number in (elsewhere.pk, 999_999):
        refused = Caller(lead).post("service-levels/", {**body, "request": number})
        assert refused.status_code == 422, refused.content
        assert refused.json()["code"] == "no_such_request"
    assert not ServiceLevel.objects.exists()


@pytest.mark.parametrize(
    ("model", "service"),
    [
        ("mistral-7b", "mistral-7b"),
        ("mistralai/Mistral-7B_Instruct.v0.2:latest", "mistral-7b-instruct-v0-2"),
        # No name of a Service begins with a digit, or is empty.
        ("7b", ""),
        ("", ""),
        ("a" * 62 + "--b", "a" * 62),
    ],
)
def test_a_model_suggests_the_name_of_its_service(model: str, service: str) -> None:
    assert levels_page.service_of(model) == service


@pytest.mark.django_db
def test_who_can_name_the_prometheus_that_is_missing_is_led_there() -> None:
    made = scene()
    level = factories.service_level(made.tenancy, made.ada)
    where = f"/capacity/service-levels/{level.pk}"
    way = "/clusters/training/edit#id_prometheus"

    assert way in hrefs(page_of(made.priya, where))
    assert 'id="id_prometheus"' in page_of(made.priya, way.partition("#")[0])
    assert way not in hrefs(page_of(made.ada, where))


def page_of(person: User, where: str) -> str:
    """A page as a person sees it."""
    browser = Client()
    browser.force_login(person)
    return browser.get(where).text


@pytest.mark.django_db
def test_the_list_costs_the_same_who_leads_one_team_and_who_leads_five() -> None:
    lead, queries = factories.person("Lena"), []
    browser = Client()
    browser.force_login(lead)
    for number in range(5):
        factories.join(factories.team(f"Team {number}"), lead, lead=True)
        with CaptureQueriesContext(connection) as asked:
            page = browser.get("/capacity/service-levels")
        assert page.text.count("Measure a service of") >= number + 1
        queries.append(len(asked))
    assert queries[1:] == queries[1:2] * 4


@pytest.mark.django_db
def test_a_service_that_is_counted_again_after_a_pause_is_not_a_new_one() -> None:
    """One that is scaled to zero in between, or runs once a month: Prometheus knows nothing of it meanwhile."""
    tenancy, lead = somewhere()
    level, now = level_in(tenancy, lead), timezone.now()
    today = now.astimezone(UTC).date()
    level.days.create(day=today - timedelta(200), requests=1e6, failed=0)
    # Of ten thousand requests fifty may fail.
    level.days.create(day=today, requests=1e4, failed=100)
    told = Caller(lead).get(f"service-levels/{level.pk}/").json()
    assert (told["state"], told["may_fail"]) == ("spent", 50)
    measuring._tell(level, now=now)
    [notice] = Notice.objects.filter(kind="service_level", person=lead)
    assert "failed since it is measured" not in notice.said.sentence
    assert "requests of the last 30 days failed; 50 may" in notice.said.sentence


@pytest.mark.django_db
def test_who_only_belongs_to_a_team_is_not_offered_to_measure_its_services() -> None:
    made = scene()
    assert "Measure a service of" not in page_of(made.ada, "/capacity/service-levels")
    lead = lead_of(made.team)
    assert "Measure a service of" in page_of(lead, "/capacity/service-levels")


@pytest.mark.django_db
def test_days_without_a_request_are_left_out_as_is_said() -> None:
    tenancy, lead = somewhere()
    level, today = level_in(tenancy, lead), timezone.now().astimezone(UTC).date()
    level.days.create(day=today - timedelta(1), requests=0, failed=0)
    level.days.create(day=today, requests=10, failed=0)
    told = Caller(lead).get(f"service-levels/{level.pk}/").json()["days"]
    assert [one["day"] for one in told] == [today.isoformat()]


@pytest.mark.django_db
def test_what_leads_were_told_stays_told_when_only_the_meter_changes() -> None:
    tenancy, lead = somewhere()
    level = level_in(tenancy, lead)
    told = []
    for meter, tier in (("program", "batch"), ("program", "real_time")):
        ServiceLevel.objects.update(told=State.SPENT, told_slow=True)
        changed = actions.change_level(
            level.pk, meter=meter, tier=tier, by=lead, now=timezone.now()
        )
        told.append((changed.told, changed.told_slow))
    assert told == [("spent", True), ("", False)]


def test_what_prometheus_says_of_itself_can_be_kept(
    served: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    level = promised(served)

    def refused(*_: Any) -> str:
        raise TemporaryError("Prometheus: \0 broken")

    monkeypatch.setattr(measuring, "query", refused)
    look(6)
    level.refresh_from_db()
    assert level.problem == "Prometheus:  broken"
