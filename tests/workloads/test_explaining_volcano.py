"""Every reason for which a job waits on a cluster with Volcano: its class, its sentence, its step."""

from typing import Any

import pytest

from tests.workloads.known import BEFORE, NOW, OWN, condition, why, workload
from workloads.explaining import explain
from workloads.explanations import Action, Explanation, Outlook
from workloads.listing import State, _state
from workloads.observed import (
    Condition,
    Event,
    Facts,
    Job,
    JobKey,
    Pod,
    Queue,
    Quota,
    Workload,
)

WAIT, CHANGE, ESCALATE, NEVER = Outlook
GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
VOLCANOS = JobKey("team-nlp", "bert", "VolcanoJob", "own")
FULL = f"queue resource quota insufficient: insufficient {GPU}"
UNSCHEDULABLE = (
    "2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Unschedulable. "
    "Origin reason is bert-worker-0: 0/3 nodes are unavailable: 3 Insufficient nvidia.com/gpu."
)


def group(phase: str, message: str = "", **conditions: Condition) -> Workload:
    """A PodGroup of two pods with four GPUs each, as it is read."""
    said = condition(
        "QuotaReserved", is_true=False, reason=f"PodGroup{phase}", message=message
    )
    return workload(
        {"QuotaReserved": said, **conditions},
        key=VOLCANOS,
        queue="team-nlp",
        cluster_queue="team-nlp",
    )


def event(message: str, reason: str = "Unschedulable") -> Event:
    return Event(
        kind="PodGroup", name="bert-own", reason=reason, message=message, at=BEFORE
    )


def queue(nominal: int = 8, reserved: int = 8, **fields: Any) -> Queue:
    return Queue(
        name="team-nlp", quotas=(Quota("a100", GPU, nominal, 0, reserved),), **fields
    )


def unscheduled(message: str, reason: str = "Unschedulable") -> Pod:
    return Pod(
        name="bert-worker-0",
        gpus=4,
        created=BEFORE,
        unscheduled=Condition("PodScheduled", False, reason, message, BEFORE),
    )


# What is known, then code, outlook, the beginning of the sentence, what the step does, and whether it is in a line.
TABLE: list[
    tuple[str, Workload, dict[str, Any], str, Outlook, str, Action | None, bool]
] = [
    (
        "its queue is full",
        group("Pending"),
        {"queue": queue(), "events": (event(FULL),)},
        "quota_full",
        WAIT,
        "It waits until enough of its queue's GPUs are free. Your team uses 8 of its 8 here.",
        None,
        True,
    ),
    (
        "its queue is too small",
        group("Pending"),
        {"queue": queue(nominal=4, reserved=0), "events": (event(FULL),)},
        "larger_than_quota",
        CHANGE,
        "It asks for 8 GPUs; your team has 4 here.",
        Action.REQUEST_GPUS,
        False,
    ),
    (
        "its queue has too few CPUs",
        group("Pending"),
        {
            "queue": queue(),
            "events": (event("queue resource quota insufficient: insufficient cpu"),),
        },
        "quota_full",
        WAIT,
        "It waits until enough of its queue's CPUs are free.",
        None,
        True,
    ),
    (
        "an older Volcano names no resource",
        group("Pending"),
        {"queue": queue(), "events": (event("queue resource quota insufficient"),)},
        "quota_full",
        WAIT,
        "It waits until enough of its queue's GPUs are free.",
        None,
        True,
    ),
    (
        "others were let in before",
        group("Pending"),
        {
            "queue": queue(),
            "events": (event(f"resource in cluster is overused: overused {GPU}"),),
        },
        "cluster_full",
        WAIT,
        "The cluster's free GPUs are promised to jobs that came before it.",
        None,
        True,
    ),
    (
        "nothing is said yet",
        group("Pending"),
        {"queue": queue()},
        "not_evaluated",
        WAIT,
        "It is in its line, and Volcano has said nothing about it yet.",
        None,
        True,
    ),
    (
        "its queue is of nothing",
        group("Pending"),
        {"queue": queue(stop_policy="Hold")},
        "queue_stopped",
        ESCALATE,
        "The queue lets no job in: somebody has stopped it.",
        None,
        True,
    ),
    (
        "somebody closed its queue",
        group("Pending"),
        {
            "queue": queue(
                active=Condition(
                    "Active", False, "Stopped", "Volcano says that it is Closed.", NOW
                )
            )
        },
        "queue_broken",
        ESCALATE,
        "The queue lets no job in.",
        None,
        True,
    ),
    (
        "it was let in just now",
        group("Inqueue"),
        {"queue": queue()},
        "let_in",
        WAIT,
        "Its turn has come, and nodes are sought that take all of its pods.",
        None,
        True,
    ),
    (
        "no node has room",
        group("Inqueue", UNSCHEDULABLE),
        {
            "queue": queue(),
            "pods": (
                unscheduled(
                    "0/3 nodes are unavailable: 3 Insufficient nvidia.com/gpu."
                ),
            ),
        },
        "no_room_on_nodes",
        WAIT,
        "Its GPUs are granted, but no node has enough free GPUs now.",
        None,
        True,
    ),
    (
        "one pod would find room alone",
        group("Inqueue", UNSCHEDULABLE),
        {
            "queue": queue(),
            "pods": (
                unscheduled(
                    "Pod team-nlp/bert-worker-0 can possibly be assigned to n-0",
                    "Schedulable",
                ),
            ),
        },
        "let_in",
        WAIT,
        "Its turn has come",
        None,
        True,
    ),
    (
        "no node has its labels",
        group("Inqueue", UNSCHEDULABLE),
        {
            "queue": queue(),
            "pods": (
                unscheduled(
                    "0/3 nodes are unavailable: 3 node(s) didn't match Pod's node affinity/selector."
                ),
            ),
        },
        "node_labels_differ",
        CHANGE,
        "Its GPUs are granted, but no node takes it.",
        Action.CHANGE_RUN,
        True,
    ),
    (
        "its pods are refused",
        group("Inqueue"),
        {
            "queue": queue(),
            "events": (
                event(
                    "Error creating pods: [failed to create pod x, err: exceeded quota]",
                    "Failed",
                ),
            ),
        },
        "pods_refused",
        ESCALATE,
        "Its turn has come, and the cluster refuses its pods.",
        None,
        False,
    ),
    (
        "its pods have ended",
        group("Completed"),
        {"queue": queue()},
        "ending",
        WAIT,
        "Its pods have ended, and Volcano is about to say how.",
        None,
        False,
    ),
]


@pytest.mark.parametrize(
    ("work", "facts", "code", "outlook", "what", "step", "in_line"),
    [row[1:] for row in TABLE],
    ids=[row[0] for row in TABLE],
)
def test_what_volcano_says_is_put_into_words(
    work: Workload,
    facts: dict[str, Any],
    code: str,
    outlook: Outlook,
    what: str,
    step: Action | None,
    in_line: bool,
) -> None:
    found = why(work, **facts)
    assert (found.code, found.outlook) == (code, outlook)
    assert found.what.startswith(what)
    assert (found.step.action if found.step else None) == step
    assert (found.line != "It is in no line.") is in_line
    assert found.do


def test_the_newest_event_counts() -> None:
    older = Event(
        kind="PodGroup", name="g", reason="Unschedulable", message=FULL, at=BEFORE
    )
    newer = Event(
        kind="PodGroup",
        name="g",
        reason="Unschedulable",
        message="resource in cluster is overused",
        at=NOW,
    )
    assert (
        why(group("Pending"), queue=queue(), events=(newer, older)).code
        == "cluster_full"
    )


def test_slices_are_called_slices() -> None:
    sliced = Queue(name="team-nlp", quotas=(Quota("small", SLICE, 2, 0, 2),))
    found = why(
        group("Pending"),
        queue=sliced,
        events=(event(f"queue resource quota insufficient: insufficient {SLICE}"),),
    )
    assert found.what == (
        "It waits until enough of its queue's 1g.10gb slices are free. Your team uses 2 of its 2 here."
    )


def of_phase(phase: str, *, created: Any = BEFORE) -> Explanation:
    return explain(
        Facts(job=Job(key=VOLCANOS, created=created, queue="team-nlp", phase=phase)),
        now=NOW,
    )


@pytest.mark.parametrize(
    ("phase", "code", "outlook"),
    [
        ("Restarting", "starting_anew", WAIT),
        ("Terminating", "ending", WAIT),
        ("Completing", "ending", WAIT),
        ("Aborting", "stopped_by_person", CHANGE),
        ("Aborted", "stopped_by_person", CHANGE),
        ("Pending", "not_queued", ESCALATE),
        ("", "not_queued", ESCALATE),
    ],
)
def test_a_job_whose_pods_are_of_no_group_says_why(
    phase: str, code: str, outlook: Outlook
) -> None:
    found = of_phase(phase)
    assert (found.code, found.outlook) == (code, outlook)
    assert "Kueue" not in found.what + found.do


def test_one_that_is_new_only_waits() -> None:
    assert (of_phase("", created=NOW).code, of_phase("", created=NOW).outlook) == (
        "just_created",
        WAIT,
    )


def test_what_somebody_aborted_is_stopped() -> None:
    facts = Facts(job=Job(key=VOLCANOS, created=BEFORE, phase="Aborted"))
    assert _state(facts, explain(facts, now=NOW)) == State.STOPPED


def test_what_is_kueues_is_never_told_in_volcanos_words() -> None:
    kueues = workload(
        {
            "QuotaReserved": condition(
                "QuotaReserved", is_true=False, reason="Pending", message=""
            )
        },
        key=OWN,
    )
    assert why(kueues, queue=queue(), events=(event(FULL),)).code not in (
        "quota_full",
        "not_evaluated",
    )
