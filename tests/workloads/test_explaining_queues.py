"""Queues that stand still, lines that go strictly in order, places, estimates, and what was stopped."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.workloads.known import BEFORE, NOW, OWN, condition, waiting, why, workload
from workloads.estimating import Wait, history_of
from workloads.explanations import Action, Outlook
from workloads.listing import line_in
from workloads.observed import (
    Ahead,
    Check,
    Cluster,
    Condition,
    Facts,
    JobKey,
    Line,
    Queue,
    Quota,
    QuotaHolder,
    Stop,
    TeamQueue,
    Viewer,
)
from workloads.reasons.stops import why_stopped

WAIT, CHANGE, ESCALATE, NEVER = Outlook
MAIN = "couldn't assign flavors to pod set main: "
FULL = (
    f"{MAIN}insufficient unused quota for nvidia.com/gpu in flavor a100, 2 more needed"
)
STOPPED = Condition(
    "Active", False, "Stopped", "Can't admit new workloads: is stopped.", NOW
)
STRICT = Queue(name="team-nlp", strategy="StrictFIFO")
OTHERS = Ahead(JobKey("team-vision", "yolo"))
MINE = Viewer(frozenset({"team-nlp"}))
PREEMPTED = "Preempted to accommodate a workload (UID: 1-a, JobUID: 2b) due to prioritization in the ClusterQueue"


def evicted(reason: str, message: str = "", **more: Condition) -> dict[str, Condition]:
    return {
        "Evicted": condition("Evicted", is_true=True, reason=reason, message=message),
        **more,
    }


def test_a_stopped_queue_is_told_from_when_both_the_stop_and_the_job_are_there() -> (
    None
):
    found = why(
        waiting(FULL),
        queue=Queue(name="team-nlp", stop_policy="Hold", active=STOPPED),
        line=Line(0, 3),
    )
    assert (found.code, found.outlook, found.since) == ("queue_stopped", ESCALATE, NOW)
    assert found.what == "The queue lets no job in: somebody has stopped it."
    assert found.line == "It is number 1 of 3 in the line. Nobody in it starts now."


def test_a_namespace_that_leaves_promises_no_recovery_of_its_queue() -> None:
    held = Queue(name="team-nlp", stop_policy="Hold", active=STOPPED)
    leaves_at = NOW + timedelta(days=3)
    found = why(waiting(FULL), queue=held, leaves_at=leaves_at, line=Line(0, 3))
    assert (found.code, found.outlook) == ("namespace_leaves", CHANGE)
    assert found.what == (
        "Your team's namespace leaves training-westeurope on Wed 25 Nov, 16:00 UTC, and nothing new starts in it."
    )
    assert "goes on by itself" not in found.do
    assert found.line == "It is number 1 of 3 in the line. Nobody in it starts now."
    # Where work goes on until the day, it waits as always.
    going_on = replace(held, stop_policy="None", active=None)
    assert why(waiting(FULL), queue=going_on, leaves_at=leaves_at).code == "quota_full"


def test_what_runs_in_a_namespace_that_leaves_is_told_until_when() -> None:
    said = {
        "QuotaReserved": condition(
            "QuotaReserved", is_true=True, reason="QuotaReserved"
        ),
        "Admitted": condition("Admitted", is_true=True, reason="Admitted"),
        "PodsReady": condition("PodsReady", is_true=True, reason="Started"),
    }
    found = why(workload(said), leaves_at=NOW + timedelta(days=3))
    assert (found.code, found.what) == ("running", "It runs.")
    assert found.do == (
        "Save what you keep of it: your team's namespace leaves on Wed 25 Nov, 16:00 UTC, "
        "and what runs then is stopped."
    )


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "Can't admit new workloads: references missing ResourceFlavor(s): gone.",
            "a kind of GPU that the cluster",
        ),
        (
            "Can't admit new workloads: references missing AdmissionCheck(s): nope.",
            "a check that does not exist",
        ),
        (
            "Can't admit new workloads: references inactive AdmissionCheck(s): x.",
            "its check does not run",
        ),
        (
            'Can\'t admit new workloads: there is no Topology "racks" for TAS flavor "x".',
            "topology that does not",
        ),
        (
            "Can't admit new workloads; clusterQueue is terminating",
            "it is being deleted",
        ),
        (
            "is stopped, references missing ResourceFlavor(s): gone.",
            "somebody has stopped it",
        ),
    ],
)
def test_a_queue_that_is_broken_says_what_is_wrong_with_it(
    message: str, words: str
) -> None:
    active = Condition("Active", False, "FlavorNotFound", message, BEFORE)
    found = why(
        waiting("ClusterQueue team-nlp is inactive", "Inadmissible"),
        queue=Queue(name="q", active=active),
    )
    assert (words in found.what, found.outlook, found.detail) == (
        True,
        ESCALATE,
        message,
    )


def test_the_teams_own_queue_that_is_held_is_named() -> None:
    own = TeamQueue(
        name="default", cluster_queue="team-nlp", stop_policy="HoldAndDrain"
    )
    found = why(waiting(FULL), team_queue=own)
    assert (found.code, found.what) == (
        "queue_stopped",
        "Somebody has stopped the team's queue default.",
    )


def test_a_queue_that_is_open_again_goes_before_what_the_workload_still_says() -> None:
    back = evicted(
        "ClusterQueueStopped",
        "The ClusterQueue is stopped",
        Requeued=condition("Requeued", is_true=True, reason="ClusterQueueRestarted"),
    )
    found = why(
        waiting("The ClusterQueue is stopped", conditions=back),
        queue=Queue(name="team-nlp"),
    )
    assert (found.code, found.outlook) == ("back_in_line", WAIT)


def test_those_behind_the_head_of_a_strict_queue_are_told_so_without_any_condition() -> (
    None
):
    line = Line(2, 4, (Ahead(JobKey("team-nlp", "big")), OTHERS))
    found = why(workload({}), queue=STRICT, line=line, viewer=MINE)
    assert (found.code, found.outlook, found.position) == ("strictly_in_order", WAIT, 2)
    assert (
        found.what
        == "This queue goes strictly in order, and 2 jobs are before it. The first is Job big."
    )
    assert found.line == "It is number 3 of 4 in the line."


def test_a_job_that_never_fits_at_the_head_of_a_strict_queue_stops_everybody() -> None:
    own = why(
        workload({}),
        queue=STRICT,
        line=Line(1, 2, (Ahead(JobKey("team-nlp", "big"), fits=False),)),
        viewer=MINE,
    )
    assert (own.code, own.outlook) == ("blocked_by_own", CHANGE)
    assert own.step is not None
    assert own.step.data == {"namespace": "team-nlp", "name": "big", "kind": "Job"}
    others = why(
        workload({}),
        queue=STRICT,
        line=Line(1, 2, (replace(OTHERS, fits=False),)),
        viewer=MINE,
    )
    assert (others.code, others.outlook, others.step) == (
        "blocked_by_other",
        ESCALATE,
        None,
    )
    assert "yolo" not in str(others)


def test_in_a_queue_that_lets_small_ones_pass_a_job_without_condition_waits() -> None:
    found = why(workload({}), queue=Queue(name="team-nlp"), line=Line(1, 2))
    assert (found.code, found.outlook) == ("not_evaluated", WAIT)
    assert "a smaller job may start earlier" in found.line


def test_the_first_of_the_line_may_be_one_that_never_fits() -> None:
    large = (
        "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor a100, previously "
        "considered podsets requests (0) + current podset request (8) > maximum capacity (4)"
    )
    found = why(waiting(large), line=Line(0, 5))
    assert (found.outlook, found.line, found.position) == (
        CHANGE,
        "It is in no line.",
        None,
    )


def test_an_estimate_comes_from_the_queues_history_with_its_spread() -> None:
    waits = [Wait(8, timedelta(minutes=each)) for each in (20, 30, 40, 50, 60, 70)]
    found = why(
        waiting(FULL),
        line=Line(0, 1),
        history=history_of(waits, source="the last 30 days"),
    )
    assert found.estimate is not None
    assert found.estimate.samples == 6
    assert (
        found.when
        == "An estimate: 13 min to 53 min more, half of such jobs within 33 min (6 waits, the last 30 days)."
    )


def test_without_five_waits_there_is_no_estimate_and_it_says_so() -> None:
    few = why(waiting(FULL), history=history_of([], source="the last 30 days"))
    assert (
        few.estimate,
        few.when.startswith("Nobody can say yet: fewer than 5 jobs"),
    ) == (None, True)
    unread = why(waiting(FULL))
    assert (
        unread.when
        == "Nobody can say yet: how long jobs waited in this queue before is not known."
    )


@pytest.mark.parametrize(
    ("reason", "code", "words"),
    [
        ("DeactivatedDueToAdmissionCheck", "check_rejected", "rejected it"),
        ("DeactivatedDueToMaximumExecutionTimeExceeded", "time_limit", "time limit"),
        ("DeactivatedDueToRequeuingLimitExceeded", "gave_up", "gave up"),
        ("DeactivatedDueToSomethingNew", "deactivated", "for good"),
    ],
)
@pytest.mark.parametrize("is_active", [True, False])
def test_what_the_queue_has_given_up_does_not_come_back_by_resuming(
    reason: str, code: str, words: str, is_active: bool
) -> None:
    said = evicted(reason, 'AdmissionCheck in Rejected state: "budget" (none left)')
    requeued = condition("Requeued", is_true=False, reason=reason)
    found = why(workload({**said, "Requeued": requeued}, is_active=is_active))
    assert (found.code, found.outlook, words in found.what) == (code, NEVER, True)
    assert found.step is not None
    assert found.step.action == Action.RUN_AGAIN


def test_what_a_person_stopped_can_be_resumed() -> None:
    found = why(workload(evicted("Deactivated"), is_active=False))
    assert (found.code, found.outlook) == ("stopped_by_person", CHANGE)
    assert found.step is not None
    assert found.step.action == Action.RESUME
    known = why(
        workload(evicted("Deactivated"), is_active=False),
        stop=Stop(BEFORE, "a100", 6),
    )
    assert known.code == "stopped_by_portal"
    assert "your team no longer holds the 6 × A100 that it used" in known.what
    assert known.step is not None
    assert known.step.data == {"flavor": "a100", "gpus": 6}


@pytest.mark.parametrize(("held", "is_enough"), [(0, False), (7, False), (8, True)])
def test_what_the_portal_stopped_is_run_again_once_its_gpus_are_held_again(
    held: int, is_enough: bool
) -> None:
    found = why(
        workload(evicted("Deactivated"), is_active=False),
        stop=Stop(BEFORE, "a100", 8),
        queue=Queue(name="q", quotas=(Quota("a100", "nvidia.com/gpu", held),)),
    )
    assert found.step is not None
    action = Action.RUN_AGAIN if is_enough else Action.REQUEST_GPUS
    assert (found.code, found.step.action) == ("stopped_by_portal", action)
    assert ("no longer holds" in found.what) is not is_enough
    assert ("Your team holds 8 × A100 now" in found.what) is is_enough


@pytest.mark.parametrize(
    ("reason", "is_first"),
    [
        ("Preempted", True),
        ("ClusterQueueStopped", True),
        ("PodsReadyTimeout", False),
        ("AdmissionCheck", False),
    ],
)
def test_who_is_stopped_keeps_the_old_place_unless_its_own_start_failed(
    reason: str, is_first: bool
) -> None:
    """Kueue: pkg/workload `GetQueueOrderTimestamp`."""
    came = NOW - timedelta(hours=2)
    back = waiting(FULL, created=came, name="back", conditions=evicted(reason))
    other = waiting(FULL, created=NOW - timedelta(hours=1), name="other")
    assert back.queued_at == BEFORE
    assert [one.name for one in line_in([other, back])] == (
        ["back", "other"] if is_first else ["other", "back"]
    )


def test_a_resumed_one_goes_back_into_the_line() -> None:
    said = evicted("Deactivated", "The workload is deactivated")
    assert (
        why(waiting("The workload is deactivated", conditions=said)).code == "resumed"
    )


def test_between_two_tries_the_next_one_is_told_to_the_minute() -> None:
    said = evicted(
        "PodsReadyTimeout", "Exceeded the PodsReady timeout team-nlp/job-bert"
    )
    at = NOW + timedelta(minutes=3)
    found = why(waiting("x", conditions=said, requeue_at=at, requeues=2))
    assert (found.code, found.outlook, found.at) == ("backing_off", WAIT, at)
    assert (
        found.what
        == "The queue stopped it because its pods were not ready in time. This was try 2."
    )
    assert found.when == "The next try is at Sun 22 Nov, 16:03 UTC."


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("InClusterQueue", "which ranks higher in your queue"),
        ("InCohortReclamation", "took back GPUs that are guaranteed to it"),
        ("InCohortFairSharing", "uses less of its share"),
        ("InCohortReclaimWhileBorrowing", "work on borrowed GPUs"),
    ],
)
def test_whoever_it_made_room_for_is_named_to_those_who_may_see_it(
    reason: str, words: str
) -> None:
    said = {
        "QuotaReserved": condition(
            "QuotaReserved", is_true=True, reason="QuotaReserved"
        ),
        "Preempted": condition("Preempted", is_true=True, reason=reason),
        **evicted("Preempted", PREEMPTED),
    }
    jobs = {"2b": JobKey("team-vision", "yolo")}
    hidden = why(workload(said), jobs=jobs, viewer=MINE)
    assert (hidden.code, hidden.outlook, words in hidden.what) == (
        "being_stopped",
        WAIT,
        True,
    )
    assert "a job of another team" in hidden.what
    assert (
        "Job yolo" in why(workload(said), jobs=jobs, viewer=Viewer(sees_all=True)).what
    )


def test_one_that_made_room_says_so_while_it_waits_and_is_not_told_to_stop_the_other() -> (
    None
):
    said = {
        "Preempted": condition("Preempted", is_true=True, reason="InClusterQueue"),
        **evicted("Preempted", PREEMPTED),
    }
    first, other = (
        JobKey("team-nlp", "prio", uid="2b"),
        JobKey("team-nlp", "side", uid="3c"),
    )
    facts = {"jobs": {"2b": first}, "viewer": MINE}
    held = (QuotaHolder(first, "a100", 2),)
    found = why(waiting(FULL, conditions=said), running=held, **facts)
    assert found.code == "quota_full"
    assert found.what == (
        "The queue stopped it because it made room for Job prio, which ranks higher in your queue. "
        "It waits for 2 × A100 more."
    )
    assert "Or stop" not in found.do
    both = why(
        waiting(FULL, conditions=said),
        running=(*held, QuotaHolder(other, "a100", 4)),
        **facts,
    )
    assert "Or stop Job side, which holds 4." in both.do


@pytest.mark.parametrize(
    ("state", "code", "outlook"),
    [
        ("Pending", "awaits_check", ESCALATE),
        ("Retry", "check_retry", WAIT),
        ("Rejected", "check_rejected", NEVER),
        ("Ready", "being_admitted", WAIT),
    ],
)
def test_checks_after_the_quota_is_reserved(
    state: str, code: str, outlook: Outlook
) -> None:
    said = {
        "QuotaReserved": condition(
            "QuotaReserved", is_true=True, reason="QuotaReserved"
        )
    }
    checks = (Check("budget", state, "none left", BEFORE), Check("other", "Ready"))
    found = why(workload(said, checks=checks))
    assert (found.code, found.outlook, found.since) == (code, outlook, BEFORE)


def test_a_cluster_that_is_silent_says_since_when_whatever_was_known_last() -> None:
    found = why(
        waiting(FULL), cluster=Cluster(title="training-westeurope", silent_since=BEFORE)
    )
    assert (found.code, found.outlook, found.since) == (
        "cluster_silent",
        ESCALATE,
        BEFORE,
    )
    assert found.what.startswith(
        "training-westeurope has not answered since Sun 22 Nov, 15:48 UTC"
    )


def test_in_a_silence_what_waits_keeps_its_place_and_what_is_over_is_over() -> None:
    silent = Cluster(title="training-westeurope", silent_since=BEFORE)
    found = why(waiting(FULL), cluster=silent, line=Line(position=0, length=2))
    assert (found.code, found.position, found.line) == (
        "cluster_silent",
        0,
        "It is number 1 of 2 in the line.",
    )
    ended = condition("Finished", is_true=True, reason="Failed")
    assert why(workload({"Finished": ended}), cluster=silent).code == "failed"


def test_while_kueue_is_down_nothing_starts_and_what_runs_goes_on() -> None:
    down = Cluster(title="training-westeurope", queues_down_since=BEFORE)
    assert why(waiting(FULL), cluster=down).code == "queues_down"
    running = {
        "QuotaReserved": condition(
            "QuotaReserved", is_true=True, reason="QuotaReserved"
        ),
        "Admitted": condition("Admitted", is_true=True, reason="Admitted"),
        "PodsReady": condition("PodsReady", is_true=True, reason="Started"),
    }
    assert why(workload(running), cluster=down).code == "running"


def test_an_own_job_is_named_by_its_kind() -> None:
    assert str(OWN) == "Job bert"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        pytest.param({}, "", id="never"),
        pytest.param(
            evicted(
                "Preempted",
                PREEMPTED,
                Preempted=condition(
                    "Preempted", is_true=True, reason="InCohortReclamation"
                ),
            ),
            "The queue stopped it because it made room for a job of another team, whose team took back GPUs that are "
            "guaranteed to it.",
            id="preempted",
        ),
        pytest.param(
            evicted("NodeFailures"),
            "The queue stopped it because a node that it ran on failed.",
            id="a node failed",
        ),
        pytest.param(evicted("Deactivated"), "Somebody stopped it.", id="a person"),
        pytest.param(
            evicted("DeactivatedDueToRequeuingLimitExceeded"),
            "Its pods were not ready in time, again and again, so the queue gave up. It does not come back, not even "
            "when somebody resumes it.",
            id="for good",
        ),
        pytest.param(
            {
                "Evicted": condition(
                    "Evicted",
                    is_true=False,
                    reason="QuotaReserved",
                    message=f"Previously: {PREEMPTED}",
                )
            },
            "The queue stopped it because it made room for a job of another team, and let it in again.",
            id="preempted and let in again",
        ),
        pytest.param(
            {
                "Evicted": condition(
                    "Evicted",
                    is_true=False,
                    reason="QuotaReserved",
                    message="Previously: Exceeded the PodsReady timeout",
                )
            },
            "The queue stopped it, and let it in again.",
            id="let in again",
        ),
    ],
)
def test_of_an_attempt_that_is_past_it_is_told_why_it_was_stopped(
    said: dict[str, Condition], words: str
) -> None:
    facts = Facts(jobs={"2b": JobKey("team-vision", "yolo")}, viewer=MINE)
    assert why_stopped(workload(said), facts) == words
