"""A cluster that is maintained: nothing new starts, what runs is stopped where that is wished, and it says so."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from allocations.sync import keep_in_step
from audit.actors import PORTAL
from fleet.maintenance import SETTLES, Maintenance
from fleet.models import Cluster as ClusterRow
from provisioning import leaving
from provisioning.models import Tenancy
from tests import factories
from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching
from tests.workloads.known import NOW, admitted, condition, waiting, why
from tests.workloads.test_explaining_queues import FULL, STOPPED, evicted
from tests.workloads.test_latest_starts import QUEUE, asks, holds
from tests.workloads.test_lending import deliver
from tests.workloads.test_runs import ASKED, look_after, submit, until
from tests.workloads.test_runs_page import client, page
from ui.parts import Verdict
from workloads.explanations import Outlook
from workloads.models import Run
from workloads.observed import Cluster, Facts, Line, Queue, QuotaHolder
from workloads.reasons.latest_starts import latest_starts
from workloads.reasons.stops import why_stopped
from workloads.runs import actions
from workloads.runs.planning.maintained import AFTER, with_maintenance
from workloads.runs.planning.start_verdict import start_verdict_of_plan

HOUR = timedelta(hours=1)
HELD = Queue(name="team-nlp", stop_policy="Hold", active=STOPPED)


def maintained(
    starts: float, ends: float, *, drains: bool = False, silent: bool = False
) -> Cluster:
    """A cluster with a maintenance, in hours from `NOW` on."""
    return Cluster(
        title="Training",
        silent_since=NOW - timedelta(minutes=5) if silent else None,
        maintenance=Maintenance(
            starts=NOW + starts * HOUR, ends=NOW + ends * HOUR, drains=drains
        ),
    )


def maintain(
    watched: Watched, starts: float, ends: float, *, drains: bool = False
) -> None:
    """Plan a maintenance, in hours from now on; it reaches the cluster."""
    now = timezone.now()
    ClusterRow.objects.filter(pk=watched.cluster.pk).update(
        maintenance_starts_at=now + starts * HOUR,
        maintenance_ends_at=now + ends * HOUR,
        maintenance_drains=drains,
    )
    watched.tenancy = Tenancy.objects.select_related("cluster", "team", "project").get(
        pk=watched.tenancy.pk
    )
    deliver()


def words(watched: Watched, run: Run) -> str:
    """What the page of a run says to who sent it."""
    return page(client(watched.ada).get(f"/runs/{run.pk}")).words


def test_what_waits_is_told_until_when_and_that_the_queue_is_opened_again() -> None:
    found = why(waiting(FULL), queue=HELD, cluster=maintained(-1, 3), line=Line(0, 3))
    assert (found.code, found.outlook) == ("maintenance", Outlook.WAIT)
    assert found.what == (
        "Training is maintained until Sun 22 Nov, 19:00 UTC, and nothing new starts before."
    )
    assert found.when == "Not before Sun 22 Nov, 19:00 UTC."
    assert found.line == "It is number 1 of 3 in the line. Nobody in it starts now."
    assert found.until == NOW + 3 * HOUR
    just_over = maintained(-2, -0.1)
    found = why(waiting(FULL), queue=HELD, cluster=just_over, line=Line(0, 3))
    assert "its queues are being opened again" in found.what
    over = maintained(-5, -SETTLES / HOUR)
    assert why(waiting(FULL), queue=HELD, cluster=over).code == "queue_stopped"
    # Nobody has merged what opens it.
    found = why(waiting(FULL), queue=HELD, cluster=over, is_queue_behind=True)
    assert "its queues are being opened again" in found.what
    planned = maintained(1, 3)
    assert why(waiting(FULL), queue=HELD, cluster=planned).code == "queue_stopped"
    # The queue is open: the worker has not come to it yet.
    assert why(waiting(FULL), cluster=maintained(-1, 3)).code == "quota_full"


def test_what_runs_is_told_before_it_is_stopped_and_why_it_was() -> None:
    running = admitted(PodsReady=condition("PodsReady", is_true=True, reason="Started"))
    found = why(running, cluster=maintained(2, 3, drains=True))
    assert found.code == "running"
    assert found.do == (
        "Save what you keep of it before Sun 22 Nov, 18:00 UTC: the maintenance of Training stops what runs then."
    )
    assert found.until == NOW + 2 * HOUR
    assert why(running, cluster=maintained(2, 3)).do == (
        "Save what you keep of it before Sun 22 Nov, 18:00 UTC: while Training is maintained, it can be interrupted."
    )
    during = maintained(-1, 3, drains=True)
    assert why(running, cluster=during).do == "There is nothing to do."
    # Its time limit ends it before.
    own = QuotaHolder(running.key, "a100", 8, NOW + HOUR)
    soon = maintained(2, 3, drains=True)
    assert why(running, cluster=soon, running=(own,)).do == "There is nothing to do."
    stopped = waiting(FULL, conditions=evicted("ClusterQueueStopped", "stopped"))

    def because(cluster: Cluster) -> str:
        return why_stopped(stopped, Facts(cluster=cluster))

    assert because(during) == (
        "The queue stopped it because the maintenance of Training began."
    )
    somebody = "The queue stopped it because somebody stopped its queue."
    assert because(maintained(-1, 3)) == somebody
    # The copy of its queue is behind, or the queue is open again already.
    for cluster in (during, maintained(-3, -0.1, drains=True)):
        moved = waiting("The ClusterQueue is stopped")
        assert why(moved, cluster=cluster).code == "maintenance"
    assert because(maintained(2, 3, drains=True)) == somebody


def test_a_silence_in_a_maintenance_is_nobodys_trouble() -> None:
    found = why(waiting(FULL), cluster=maintained(-1, 3, silent=True))
    assert (found.code, found.outlook) == ("cluster_silent", Outlook.WAIT)
    assert found.do == "Wait: it is maintained until Sun 22 Nov, 19:00 UTC."
    found = why(waiting(FULL), cluster=maintained(1, 3, silent=True))
    assert found.outlook == Outlook.ESCALATE


def test_queues_that_are_away_in_a_maintenance_are_nobodys_trouble() -> None:
    away = NOW - timedelta(minutes=5)
    now = replace(maintained(-1, 3), queues_down_since=away)
    found = why(waiting(FULL), queue=HELD, cluster=now)
    assert (found.code, found.outlook) == ("queues_down", Outlook.WAIT)
    assert found.do.startswith("Wait: it is maintained until Sun 22 Nov, 19:00 UTC.")
    later = replace(maintained(1, 3), queues_down_since=away)
    assert why(waiting(FULL), cluster=later).outlook == Outlook.ESCALATE


@pytest.mark.parametrize(
    ("drains", "window", "found"),
    [
        pytest.param(False, (5, 9), [2, 3], id="it comes later"),
        pytest.param(False, (1, 2), [2, 3], id="it is over before"),
        pytest.param(False, (1, 5), [5, 6], id="in it, and who is behind"),
        pytest.param(False, (2.5, 6), [2, 6], id="who is behind alone"),
        pytest.param(True, (1, 5), [None, None], id="what it stops changes the line"),
        pytest.param(True, (2.5, 6), [2, None], id="for who comes later"),
    ],
)
def test_by_when_it_starts_goes_round_it(
    drains: bool, window: tuple[float, float], found: list[float | None]
) -> None:
    starts, ends = (NOW + hours * HOUR for hours in window)
    said = latest_starts(
        QUEUE,
        [holds(8, 2)],
        [],
        [asks(8), asks(8)],
        maintenance=Maintenance(starts=starts, ends=ends, drains=drains),
        now=NOW,
    )
    assert [None if at is None else (at - NOW) / HOUR for at in said] == found


def test_the_answer_before_sending_says_what_a_maintenance_does(
    watched: Watched,
) -> None:
    def start(minutes: int = 60) -> Verdict:
        asked = replace(ASKED, values={**ASKED.values, "minutes": minutes})
        found = actions.preview(watched.tenancy.pk, asked, by=watched.ada, key="one")
        return start_verdict_of_plan(found, watched.tenancy, "a100", timezone.now())

    maintain(watched, 2.05, 3)
    assert "maintenance" not in start()["detail"]
    during = start(180)
    assert during["tone"] == "good"
    assert (
        "before it may have ended: it goes on, and can be interrupted."
        in (during["detail"])
    )
    assert "With a time limit of up to 2 h " in during["detail"]
    maintain(watched, 2.05, 3, drains=True)
    assert "it is stopped then, and starts anew after" in start(180)["detail"]
    waits: Verdict = {
        "tone": "waiting",
        "sentence": "",
        "detail": "It waits.",
        "rules": [],
    }
    said = with_maintenance(waits, watched.tenancy.cluster, HOUR, now=timezone.now())
    assert said["detail"].startswith("It waits. If it runs when the maintenance of")
    maintain(watched, -1, 3)
    assert (start()["tone"], start()["sentence"]) == ("waiting", AFTER)
    assert "and nothing new starts before. 2 of your 2" in start()["detail"]


@pytest.mark.slow
def test_queues_are_held_while_it_lasts_and_opened_again(watched: Watched) -> None:
    def policy() -> str:
        queue = watched.kubernetes.get(
            ("kueue.x-k8s.io/v1beta2", "ClusterQueue"), watched.namespace
        )
        return str((queue or {})["spec"]["stopPolicy"])

    for stage in ("here", "leaving"):
        leaves_at = timezone.now() + HOUR if stage == "leaving" else None
        Tenancy.objects.update(
            stage=stage, leaves_at=leaves_at, is_protected=stage == "here"
        )
        maintain(watched, 1, 2)
        assert policy() == "None", stage
        maintain(watched, -1, 2)
        assert policy() == "Hold", stage
        maintain(watched, -1, 2, drains=True)
        assert policy() == "HoldAndDrain", stage
        maintain(watched, -2, -1, drains=True)
        assert policy() == "None", stage
    assert keep_in_step(now=timezone.now) == 0


def test_a_team_that_comes_back_during_it_finds_its_queue_held(
    watched: Watched,
) -> None:
    now = timezone.now()
    factories.leave(watched.tenancy, to="retained", at=now, kept=HOUR)
    ClusterRow.objects.update(maintenance_starts_at=now, maintenance_ends_at=now + HOUR)
    back = leaving.restore(watched.tenancy.pk, actor=PORTAL, now=now)
    assert (back.stop, back.desired.stop_policy) == ("None", "Hold")


@pytest.mark.slow
def test_a_run_is_stopped_for_it_and_starts_anew_when_it_is_over(
    watched: Watched,
) -> None:
    run = submit(watched)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "running")
        maintain(watched, 0.5, 2, drains=True)
        text = words(watched, run)
        assert "Save what you keep of it before" in text
        assert "Stopped for the maintenance of its cluster" in text
        maintain(watched, 1.5, 2, drains=True)
        text = words(watched, run)
        assert "maintenance" not in text, "its time limit of an hour ends it before"
        maintain(watched, -1, 2, drains=True)
        until(run, "waiting")
        [first] = run.run_attempts.all()
        assert first.why == (
            f"The queue stopped it because the maintenance of {watched.cluster.title} began."
        )
        text = words(watched, run)
        assert "and nothing new starts before" in text
        maintain(watched, -2, -0.01, drains=True)
        until(run, "running")
    assert run.run_attempts.count() == 2
