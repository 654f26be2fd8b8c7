"""How hard a cluster is worked on: so many tenancies at once, so many writes a second, and clusters take turns."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from connectors.errors import TemporaryError
from fleet.models import Cluster
from provisioning import scheduling, throttle
from provisioning.controller import acquire
from provisioning.drift.cluster_sweep import SWEEP_SECONDS
from provisioning.models import ClusterThrottle, Tenancy
from reconciling import breaker, lease, rate, slots
from reconciling.claims import claim_target, release_target
from reconciling.lease import LeaseLost
from tests import factories
from tests.services.process import wait_until

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def cluster(*, most_at_once: int = 2, writes_per_second: int = 20) -> Cluster:
    return factories.cluster(
        most_at_once=most_at_once, writes_per_second=writes_per_second
    )


def fresh(of: Cluster) -> Cluster:
    return Cluster.objects.select_related("throttle").get(pk=of.pk)


def wanted(on: Cluster, number: int) -> list[Tenancy]:
    """So many tenancies that wait for a worker, the first for longest."""
    made = [factories.tenancy(on=on) for _ in range(number)]
    for order, tenancy in enumerate(made):
        Tenancy.objects.filter(pk=tenancy.pk).update(
            requeue_at=NOW - timedelta(hours=1) + order * SECOND
        )
    return made


def settle(*tenancies: Tenancy) -> None:
    for tenancy in tenancies:
        factories.make_true(tenancy, at=NOW - timedelta(minutes=2))


def test_no_more_tenancies_of_a_cluster_are_worked_on_at_once_than_it_allows() -> None:
    first, second, third = wanted(cluster(), 3)
    held = [acquire(t.pk, now=NOW) for t in (first, second)]
    assert all(held)
    assert acquire(third.pk, now=NOW) is None
    third.refresh_from_db()
    assert (third.lease_no, third.attempts, third.requeue_at < NOW) == (0, 0, True)


def test_a_place_that_is_given_back_is_free_for_the_next() -> None:
    first, second, third = wanted(cluster(), 3)
    held = acquire(first.pk, now=NOW)
    acquire(second.pk, now=NOW)
    assert held
    assert held.release()
    assert acquire(third.pk, now=NOW)


def test_the_places_of_workers_that_died_are_free_with_their_leases() -> None:
    first, second, third = wanted(cluster(), 3)
    acquire(first.pk, now=NOW)
    acquire(second.pk, now=NOW)
    assert acquire(third.pk, now=NOW + (lease.SECONDS - 1) * SECOND) is None
    assert acquire(third.pk, now=NOW + lease.SECONDS * SECOND)


def test_who_lost_its_lease_is_told_so_before_its_next_write() -> None:
    [tenancy] = wanted(cluster(), 1)
    first = acquire(tenancy.pk, now=NOW)
    assert first is not None
    later = NOW + lease.SECONDS * SECOND
    second = acquire(tenancy.pk, now=later)
    assert second is not None
    with pytest.raises(LeaseLost):
        first.check(now=later)
    second.check(now=later)


@pytest.mark.django_db(transaction=True)
def test_who_waits_for_a_cluster_keeps_its_tenancy_and_its_place_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = wanted(cluster(most_at_once=1), 2)
    monkeypatch.setattr(lease, "BEAT_SECONDS", 0.01)
    held = acquire(first.pk, now=NOW)
    assert held is not None
    row = Tenancy.objects.filter(pk=first.pk)
    much_later = NOW + timedelta(minutes=1)
    with lease.heartbeat(held, now=lambda: much_later):
        wait_until(
            lambda: row.filter(lease_until__gt=much_later).exists(),
            what="a sign of life",
        )
        assert acquire(second.pk, now=much_later) is None
        assert held.at == NOW, "it says nothing about what may be written"
        held.release()
        assert not held.extend(now=much_later), "what was given back is not taken again"
    assert acquire(second.pk, now=much_later)


@pytest.mark.django_db(transaction=True)
def test_who_lost_its_tenancy_does_not_get_it_back_by_living(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [tenancy] = wanted(cluster(), 1)
    monkeypatch.setattr(lease, "BEAT_SECONDS", 0.01)
    held = acquire(tenancy.pk, now=NOW)
    assert held is not None
    later = NOW + lease.SECONDS * SECOND
    other = acquire(tenancy.pk, now=later)
    assert other is not None
    threads = threading.active_count()
    with lease.heartbeat(held, now=lambda: later + timedelta(hours=1)):
        wait_until(lambda: threading.active_count() == threads, what="it to give up")
    assert Tenancy.objects.get().lease_until == later + lease.SECONDS * SECOND


def test_one_cluster_takes_no_place_from_another() -> None:
    here, there = cluster(most_at_once=1), cluster(most_at_once=1)
    [first, second], [other] = wanted(here, 2), wanted(there, 1)
    assert acquire(first.pk, now=NOW)
    assert acquire(second.pk, now=NOW) is None
    assert acquire(other.pk, now=NOW)


def test_who_loses_the_place_to_another_in_that_moment_takes_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = wanted(cluster(), 2)
    acquire(first.pk, now=NOW)
    seen_free = iter([0, 1])
    monkeypatch.setattr(slots, "free_slot", lambda rows, *, limit, now: next(seen_free))
    assert acquire(second.pk, now=NOW)
    assert set(Tenancy.objects.values_list("slot", flat=True)) == {0, 1}


@pytest.mark.parametrize("trouble", ["unreachable", "left alone"])
def test_a_cluster_that_does_not_answer_has_one_place(trouble: str) -> None:
    here = cluster(most_at_once=8)
    first, second = wanted(here, 2)
    if trouble == "unreachable":
        Cluster.objects.update(reachable=False)
    else:
        breaker.open_everywhere(throttle.of(here), seconds=5, now=NOW)
    assert acquire(first.pk, now=NOW)
    assert acquire(second.pk, now=NOW) is None


def test_a_cluster_that_kept_somebody_waiting_is_called_by_one_worker_at_a_time() -> (
    None
):
    here = cluster(most_at_once=8)
    later = NOW + 6 * SECOND

    def allowed(*, at: datetime = later) -> bool:
        with throttle.probe(fresh(here), now=lambda: at) as may:
            return may

    with (
        throttle.probe(fresh(here), now=lambda: NOW) as one,
        throttle.probe(fresh(here), now=lambda: NOW) as other,
    ):
        assert (one, other) == (True, True)
    breaker.open_everywhere(throttle.of(here), seconds=5, now=NOW)
    with throttle.probe(fresh(here), now=lambda: later) as first:
        assert (first, allowed()) == (True, False)
        assert allowed(at=later + breaker.PROBE_SECONDS * SECOND), "its worker died"
    assert allowed()


def test_all_workers_leave_a_cluster_alone_until_it_answers() -> None:
    here = cluster()
    assert breaker.seconds_everywhere(throttle.of(fresh(here)), now=NOW) == 0
    breaker.open_everywhere(throttle.of(here), seconds=5, now=NOW)
    assert breaker.seconds_everywhere(throttle.of(fresh(here)), now=NOW + SECOND) == 4
    assert (
        breaker.seconds_everywhere(throttle.of(fresh(here)), now=NOW + 6 * SECOND) == 0
    )
    throttle.answered(fresh(here), now=NOW)
    assert ClusterThrottle.objects.get().open_until is None


def test_what_a_process_holds_against_a_cluster_is_forgotten_when_another_one_was_answered() -> (
    None
):
    here, silence = cluster(), TemporaryError("ReadTimeoutError")
    silence.__cause__ = TimeoutError()
    throttle.failed(here, silence, seconds=10, now=NOW)
    breaker.open_everywhere(throttle.of(here), seconds=3, now=NOW)
    assert throttle.seconds_to_wait(fresh(here), now=NOW) > 3  # its own five seconds
    throttle.answered(fresh(here), now=NOW)  # as another process says
    assert throttle.seconds_to_wait(fresh(here), now=NOW) == 0
    assert throttle.seconds_here(here) == 0


def test_what_waited_for_a_cluster_is_tried_at_once_when_it_answers() -> None:
    here = cluster()
    waited, refused, other = wanted(here, 2) + wanted(cluster(), 1)
    later = NOW + timedelta(minutes=1)
    for tenancy, reason in (
        (waited, "WillTryAgain"),
        (refused, "Refused"),
        (other, "WillTryAgain"),
    ):
        said = [
            {
                "type": "Ready",
                "status": "False",
                "reason": reason,
                "message": "",
                "since": NOW.isoformat(),
            }
        ]
        Tenancy.objects.filter(pk=tenancy.pk).update(
            conditions=said, requeue_at=later, attempts=6
        )
    throttle.answered(fresh(here), now=NOW)
    assert not Tenancy.objects.due(NOW).exists()
    breaker.open_everywhere(throttle.of(here), seconds=30, now=NOW)
    throttle.answered(fresh(here), now=NOW)
    assert Tenancy.objects.due(NOW).get() == waited
    assert Tenancy.objects.get(pk=waited.pk).attempts == 0


def test_steady_writes_are_twenty_a_second_and_one_second_ahead() -> None:
    here = cluster()
    assert [
        throttle.reserve(here, 10, on_boarding=False, now=NOW) for _ in range(2)
    ] == [None, None]
    wait = throttle.reserve(here, 10, on_boarding=False, now=NOW)
    assert wait is not None
    assert wait.total_seconds() == pytest.approx(0.5, abs=0.001)
    assert throttle.reserve(here, 10, on_boarding=False, now=NOW + wait) is None


@pytest.mark.slow
def test_over_a_minute_no_more_is_written_than_the_budget_and_its_head_start() -> None:
    here, written = cluster(), 0
    for tick in range(600):
        if (
            throttle.reserve(
                here, 7, on_boarding=False, now=NOW + tick * timedelta(seconds=0.1)
            )
            is None
        ):
            written += 7
    assert 20 * 60 - 7 <= written <= 20 * 61


def test_on_boarding_may_be_ten_seconds_ahead_and_others_then_wait() -> None:
    here, boarded = cluster(), 0
    while throttle.reserve(here, 10, on_boarding=True, now=NOW) is None:
        boarded += 10
    assert boarded == 200
    wait = throttle.reserve(here, 1, on_boarding=False, now=NOW)
    assert wait is not None
    assert wait > 8 * SECOND


def test_a_tenancy_with_more_objects_than_fit_comes_through_when_nothing_is_owed() -> (
    None
):
    here = cluster(writes_per_second=1)
    assert throttle.reserve(here, 14, on_boarding=False, now=NOW) is None
    assert throttle.reserve(here, 14, on_boarding=False, now=NOW) is not None
    assert throttle.reserve(here, 14, on_boarding=False, now=NOW + 14 * SECOND) is None


@pytest.mark.parametrize("writes", [130, rate.MAX_WRITES_OWED, 50_000])
def test_a_plan_of_any_size_is_owed_for_before_the_next_write(writes: int) -> None:
    here = cluster(writes_per_second=1)
    owed = min(writes, rate.MAX_WRITES_OWED)
    assert throttle.reserve(here, writes, on_boarding=True, now=NOW) is None
    wait = throttle.reserve(here, 1, on_boarding=False, now=NOW)
    assert wait is not None
    assert wait.total_seconds() == pytest.approx(owed, abs=0.001)
    due = NOW + owed * SECOND
    assert throttle.reserve(here, 1, on_boarding=False, now=due - SECOND) is not None
    assert throttle.reserve(here, 1, on_boarding=False, now=due) is None


def test_what_a_clock_that_went_wrong_wrote_is_forgotten() -> None:
    here = cluster()
    assert (
        throttle.reserve(here, 1, on_boarding=False, now=NOW + timedelta(days=1))
        is None
    )
    assert throttle.reserve(here, 1, on_boarding=False, now=NOW) is None
    assert ClusterThrottle.objects.get().spent_until == pytest.approx(
        NOW.timestamp() + 0.05
    )


def test_clusters_take_turns_and_ten_thousand_of_one_starve_no_other() -> None:
    many, few = cluster(), cluster()
    crowd, [waiting, last] = wanted(many, 7), wanted(few, 2)
    Tenancy.objects.filter(pk=waiting.pk).update(requeue_at=NOW - SECOND)
    Tenancy.objects.filter(pk=last.pk).update(requeue_at=NOW)
    turns = scheduling.in_turns(now=NOW)
    assert set(turns[:2]) == {crowd[0].pk, waiting.pk}
    assert set(turns[2:4]) == {crowd[1].pk, last.pk}
    assert turns[4:] == [crowd[2].pk, crowd[3].pk], (
        "twice what may be worked on at once"
    )


@pytest.mark.parametrize("trouble", ["unreachable", "left alone"])
def test_of_a_cluster_that_does_not_answer_no_more_are_enqueued_than_find_a_place(
    trouble: str,
) -> None:
    here = cluster(most_at_once=8)
    crowd = wanted(here, 4)
    if trouble == "unreachable":
        Cluster.objects.update(reachable=False)
    else:
        breaker.open_everywhere(throttle.of(here), seconds=5, now=NOW)
    assert scheduling.in_turns(now=NOW) == [crowd[0].pk, crowd[1].pk]


def test_a_sweep_adds_little_to_a_queue_that_is_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduling, "MAX_WAITING", 4)
    monkeypatch.setattr(scheduling, "MIN_ENQUEUED", 1)
    crowd = [tenancy.pk for tenancy in wanted(cluster(most_at_once=8), 6)]
    assert scheduling.in_turns(now=NOW) == crowd[:4]
    assert scheduling.in_turns(now=NOW, waiting=2) == crowd[:2]
    assert scheduling.in_turns(now=NOW, waiting=1_000) == crowd[:1], (
        "nothing waits for ever"
    )


def test_what_has_converged_is_swept_with_its_cluster_and_not_enqueued() -> None:
    here, there = cluster(), cluster()
    [settled, changed], [other] = wanted(here, 2), wanted(there, 1)
    settle(settled, other)
    assert scheduling.in_turns(now=NOW) == [changed.pk]
    assert set(scheduling.clusters_to_sweep(now=NOW)) == {here.pk, there.pk}
    Tenancy.objects.filter(pk=other.pk).update(requeue_at=NOW + SECOND)
    assert scheduling.clusters_to_sweep(now=NOW) == [here.pk]


def test_a_cluster_that_git_delivers_to_is_looked_at_tenancy_by_tenancy() -> None:
    here = cluster()
    [settled] = wanted(here, 1)
    settle(settled)
    Cluster.objects.update(delivery=Cluster.Delivery.GIT)
    assert (scheduling.in_turns(now=NOW), scheduling.clusters_to_sweep(now=NOW)) == (
        [settled.pk],
        [],
    )


def test_a_cluster_is_swept_by_one_at_a_time_and_not_while_it_is_left_alone() -> None:
    here = cluster()
    target = ClusterThrottle(pk=here.pk)
    settle(*wanted(here, 1))
    assert claim_target(target, now=NOW, seconds=SWEEP_SECONDS)
    assert not claim_target(target, now=NOW, seconds=SWEEP_SECONDS)
    assert scheduling.clusters_to_sweep(now=NOW) == []
    dead = NOW + SWEEP_SECONDS * SECOND
    assert scheduling.clusters_to_sweep(now=dead) == [here.pk], "its worker died"
    assert claim_target(target, now=dead, seconds=SWEEP_SECONDS)
    release_target(target, swept_at=dead)
    assert ClusterThrottle.objects.get().swept_at == dead
    breaker.open_everywhere(throttle.of(here), seconds=5, now=dead)
    assert scheduling.clusters_to_sweep(now=dead) == []


def test_who_ends_a_pass_enqueues_what_waited_longest_on_the_same_cluster() -> None:
    here, there = cluster(), cluster()
    done, longest, later = wanted(here, 3)
    wanted(there, 1)
    assert scheduling.next_due(done.pk, now=NOW) == longest.pk
    acquire(longest.pk, now=NOW)
    assert scheduling.next_due(done.pk, now=NOW) == later.pk
    settle(later)
    assert scheduling.next_due(done.pk, now=NOW) is None


@pytest.mark.slow
def test_each_cluster_has_its_turn_however_many_messages_wait() -> None:
    longest = [wanted(cluster(), 3)[0].pk for _ in range(scheduling.MIN_ENQUEUED + 2)]
    assert sorted(scheduling.in_turns(now=NOW, waiting=1_000)) == sorted(longest)
