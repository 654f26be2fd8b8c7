"""Every message that Kueue writes about a job without quota, in both wordings: its class, its sentence, its step."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.workloads.known import BEFORE, NOW, condition, waiting, why, workload
from workloads.explanations import Action, Outlook
from workloads.observed import (
    Allocation,
    Elsewhere,
    JobKey,
    Node,
    Nodes,
    OpenRequest,
    PodSet,
    Queue,
    Quota,
    QuotaHolder,
    TeamQueue,
    Viewer,
)
from workloads.reasons.messages import Kind, decisive

WAIT, CHANGE, ESCALATE, NEVER = Outlook
MAIN = "couldn't assign flavors to pod set main: "
FULL = (
    f"{MAIN}insufficient unused quota for nvidia.com/gpu in flavor a100, 2 more needed"
)
LARGE = (
    f"{MAIN}insufficient quota for nvidia.com/gpu in flavor a100, previously considered podsets requests (0) + "
    "current podset request (8) > maximum capacity (4)"
)
# A run of the portal carries the node selector of its flavor, so every other flavor of the queue is excluded by it.
OTHERS = (
    "flavor quartermaster-cpu doesn't match node affinity, flavor h100 doesn't match node affinity, "
    "untolerated taint {spot true NoSchedule <nil>} in flavor a100-spot, "
)
PREEMPTED = (
    "Preempted to accommodate a workload (UID: 1-a, JobUID: 2-b) due to prioritization in the ClusterQueue; "
    "preemptor path: /coh/team-vision; preemptee path: /coh/team-nlp"
)
RACKS = f'{MAIN}topology "racks" '

# Message, reasons in both wordings, code, outlook, the sentence, and what the step does.
TABLE: list[tuple[str, tuple[str, ...], str, Outlook, str, Action | None]] = [
    (
        FULL,
        ("Pending", "WaitingForQuota"),
        "quota_full",
        WAIT,
        "It waits for 2 × A100 more.",
        Action.REQUEST_GPUS,
    ),
    (
        LARGE,
        ("Pending", "ExceedsMaxQuota"),
        "larger_than_quota",
        CHANGE,
        "It asks for 8 × A100; your queue can never give it more than 4.",
        Action.REQUEST_GPUS,
    ),
    (
        LARGE.replace(MAIN, MAIN + OTHERS),
        ("Pending", "ExceedsMaxQuota"),
        "larger_than_quota",
        CHANGE,
        "It asks for 8 × A100; your queue can never give it more than 4.",
        Action.REQUEST_GPUS,
    ),
    (
        f"{LARGE}, {OTHERS.removesuffix(', ')}",
        ("Pending", "ExceedsMaxQuota"),
        "larger_than_quota",
        CHANGE,
        "It asks for 8 × A100; your queue can never give it more than 4.",
        Action.REQUEST_GPUS,
    ),
    (
        FULL.replace(MAIN, MAIN + OTHERS),
        ("Pending", "WaitingForQuota"),
        "quota_full",
        WAIT,
        "It waits for 2 × A100 more.",
        Action.REQUEST_GPUS,
    ),
    (
        f"{FULL}, {OTHERS.removesuffix(', ')}. Pending the preemption of 1 workload(s)",
        ("Pending", "WaitingForPreemptedWorkloads"),
        "making_room",
        WAIT,
        "It needs 2 × A100 more, and the queue is stopping 1 other job to make room.",
        None,
    ),
    (
        f"{MAIN}flavor h100 doesn't match node affinity, flavor a100 doesn't match node affinity",
        ("Pending", "NoMatchingFlavor"),
        "node_labels_differ",
        CHANGE,
        "Its pods ask for node labels that the nodes of h100 do not have.",
        Action.CHANGE_RUN,
    ),
    (
        f"{MAIN}flavor h100 doesn't match node affinity, untolerated taint {{spot  NoSchedule <nil>}} in flavor a100",
        ("Pending", "NoMatchingFlavor"),
        "taint_not_tolerated",
        CHANGE,
        "The nodes of A100 take only pods that tolerate the taint spot.",
        Action.CHANGE_RUN,
    ),
    (
        "LocalQueue nope doesn't exist",
        ("Inadmissible", "Misconfigured"),
        "unknown_queue",
        CHANGE,
        "It names the queue nope, and this namespace has none of that name.",
        Action.CHANGE_RUN,
    ),
    (
        "ClusterQueue c-none doesn't exist",
        ("Inadmissible", "Misconfigured"),
        "queue_missing",
        ESCALATE,
        "The queue c-none, where its quota lies, does not exist.",
        None,
    ),
    (
        "ClusterQueue c-hold is inactive",
        ("Inadmissible", "Suspended"),
        "queue_inactive",
        ESCALATE,
        "The queue c-hold lets no job in.",
        None,
    ),
    (
        "LocalQueue default is inactive",
        ("Inadmissible", "Suspended"),
        "queue_inactive",
        ESCALATE,
        "The team's queue default lets no job in.",
        None,
    ),
    (
        "workload namespace doesn't match ClusterQueue selector",
        ("Pending", "Misconfigured"),
        "namespace_not_selected",
        ESCALATE,
        "The queue does not take jobs of this namespace.",
        None,
    ),
    (
        f"{MAIN}untolerated taint {{spot true NoSchedule <nil>}} in flavor gpu-spot",
        ("Pending", "NoMatchingFlavor"),
        "taint_not_tolerated",
        CHANGE,
        "The nodes of gpu-spot take only pods that tolerate the taint spot=true.",
        Action.CHANGE_RUN,
    ),
    (
        f"{MAIN}flavor a100 doesn't match node affinity",
        ("Pending", "NoMatchingFlavor"),
        "node_labels_differ",
        CHANGE,
        "Its pods ask for node labels that the nodes of A100 do not have.",
        Action.CHANGE_RUN,
    ),
    (
        f"{MAIN}resource amd.com/gpu unavailable in ClusterQueue",
        ("Pending", "NoMatchingFlavor"),
        "resource_not_offered",
        CHANGE,
        "It asks for amd.com/gpu, which your queue does not give at all.",
        Action.CHANGE_RUN,
    ),
    (
        f"{FULL}. Pending the preemption of 1 workload(s)",
        ("Pending", "WaitingForPreemptedWorkloads"),
        "making_room",
        WAIT,
        "It needs 2 × A100 more, and the queue is stopping 1 other job to make room.",
        None,
    ),
    (
        "Bypassed scheduling evaluation because an equivalent workload recently failed",
        ("Pending", "WaitingForQuota"),
        "behind_twin",
        WAIT,
        "A job that asks for exactly the same was just refused, so this one was not looked at again.",
        None,
    ),
    (
        "Workload is pending evaluation in the scheduling queue",
        ("Pending", "PendingEvaluation"),
        "just_queued",
        WAIT,
        "It is in the line, and it is about to be looked at.",
        None,
    ),
    (
        "Admission is gated by: portal.example.com/approval",
        ("AdmissionGated",),
        "awaits_approval",
        ESCALATE,
        "It waits for an approval.",
        None,
    ),
    (
        f"{RACKS}allows to fit only 1 out of 2 pod(s)",
        ("Pending", "TopologyPlacementFailed"),
        "never_together",
        CHANGE,
        "Its 2 pods must run close together, and only 1 fits.",
        Action.CHANGE_RUN,
    ),
    (
        f"{RACKS}doesn't allow to fit any of 2 pod(s)",
        ("Pending", "TopologyPlacementFailed"),
        "never_together",
        CHANGE,
        "Its 2 pods must run close together, and none of them fits.",
        Action.CHANGE_RUN,
    ),
    (
        f'{RACKS}allows to fit only 2 out of 3 pod(s). Total nodes: 3; excluded: resource "nvidia.com/gpu": 1',
        ("Pending", "TopologyPlacementFailed"),
        "no_room_together",
        WAIT,
        "Its 3 pods must run close together; beside what runs now, only 2 fit.",
        None,
    ),
    (
        f'{MAIN}Flavor "a100" does not contain the requested level',
        ("Pending", "NoMatchingFlavor"),
        "unknown_topology",
        CHANGE,
        "It asks for pods close together in a way that A100 does not know.",
        Action.CHANGE_RUN,
    ),
    (
        "waiting for all admitted workloads to be in PodsReady condition",
        ("Waiting", "WaitingForPodsReady"),
        "others_start_first",
        WAIT,
        "The queue lets in one job after the other, and waits until the pods of the one before are ready.",
        None,
    ),
    (
        "resources validation failed: [spec.podSets[0]: requests must not exceed its limits]",
        ("Pending", "Misconfigured"),
        "resources_refused",
        CHANGE,
        "What its pods ask for contradicts itself or the limits of the namespace.",
        Action.CHANGE_RUN,
    ),
    (
        "resources didn't satisfy LimitRange constraints: [spec.podSets[0]]",
        ("Pending", "Misconfigured"),
        "resources_refused",
        CHANGE,
        "What its pods ask for contradicts itself or the limits of the namespace.",
        Action.CHANGE_RUN,
    ),
    (
        "Workload no longer fits after processing another workload",
        ("Pending", "WaitingForQuota"),
        "overtaken",
        WAIT,
        "Another job took the GPUs in the same moment.",
        None,
    ),
    (
        "Workload has overlapping preemption targets with another workload",
        ("Pending", "WaitingForQuota"),
        "overtaken",
        WAIT,
        "Other jobs are being stopped to make room for somebody else first.",
        None,
    ),
    (
        (
            "Workload has overlapping preemption targets with another workload, but will fit after these preemptions "
            "complete"
        ),
        ("Pending", "WaitingForPreemptedWorkloads"),
        "making_room",
        WAIT,
        "The queue is stopping other jobs, and it fits when they have ended.",
        None,
    ),
    ("", ("OnHold",), "scaled_to_zero", CHANGE, "It is scaled to zero.", None),
    (
        "The ClusterQueue is stopped",
        ("Pending",),
        "queue_stopped",
        ESCALATE,
        "It was stopped because somebody stopped its queue.",
        None,
    ),
]


@pytest.mark.parametrize(
    ("message", "reason", "code", "outlook", "what", "action"),
    [
        (message, reason, *rest)
        for message, reasons, *rest in TABLE
        for reason in reasons
    ],
)
def test_a_message_has_its_class_sentence_and_step(
    message: str,
    reason: str,
    code: str,
    outlook: Outlook,
    what: str,
    action: Action | None,
) -> None:
    found = why(waiting(message, reason))
    assert (found.code, found.outlook, found.what) == (code, outlook, what)
    assert (found.step.action if found.step else None) == action
    assert found.detail == message
    assert found.since == BEFORE


@pytest.mark.parametrize(
    ("reason", "outlook"),
    [
        ("WaitingForQuota", WAIT),
        ("ExceedsMaxQuota", CHANGE),
        ("NoMatchingFlavor", CHANGE),
        ("WaitingForPreemptedWorkloads", WAIT),
        ("TopologyPlacementFailed", WAIT),
        ("WaitingForPodsReady", WAIT),
        ("PendingEvaluation", WAIT),
        ("Suspended", ESCALATE),
        ("Inadmissible", ESCALATE),
        ("Misconfigured", ESCALATE),
    ],
)
def test_a_new_wording_is_known_by_its_reason(reason: str, outlook: Outlook) -> None:
    found = why(waiting("words that no release has used yet", reason))
    assert (found.outlook, found.detail) == (
        outlook,
        "words that no release has used yet",
    )
    assert found.code != "unknown"


def test_what_nobody_knows_is_quoted_and_handed_to_a_platform_lead() -> None:
    found = why(waiting("words that no release has used yet", "Pending"))
    assert (found.code, found.outlook) == ("unknown", ESCALATE)
    assert found.detail == "words that no release has used yet"
    assert found.since == BEFORE


@pytest.mark.parametrize(
    ("resource", "missing", "words"),
    [
        ("cpu", "500m", "0.5 CPUs"),
        ("cpu", "1", "1 CPU"),
        ("cpu", "12", "12 CPUs"),
        ("memory", "2Gi", "2 GiB of memory"),
        ("memory", "500M", "500 MB of memory"),
        ("memory", "1024", "1024 bytes of memory"),
        ("memory", "strange", "strange of memory"),
        ("ephemeral-storage", "9k", "9 KB of local disk"),
        ("rdma/hca", "2", "2 rdma/hca"),
        ("nvidia.com/mig-1g.5gb", "3", "3 × A100"),
    ],
)
def test_amounts_are_read_as_people_write_them(
    resource: str, missing: str, words: str
) -> None:
    message = f"{MAIN}insufficient unused quota for {resource} in flavor a100, {missing} more needed"
    found = why(waiting(message))
    assert found.what == f"It waits for {words} more."
    assert (found.step is not None) == ("gb" in resource)


@pytest.mark.parametrize(
    ("resource", "previous", "requested", "maximum", "words"),
    [
        (
            "cpu",
            "60",
            "60",
            "96",
            "It asks for 120 CPUs; your queue can never give it more than 96 CPUs.",
        ),
        (
            "cpu",
            "500m",
            "98",
            "96",
            "It asks for 98 CPUs; your queue can never give it more than 96 CPUs.",
        ),
        (
            "rdma/hca",
            "0",
            "4",
            "2",
            "It asks for 4 rdma/hca; your queue can never give it more than 2 rdma/hca.",
        ),
    ],
)
def test_too_much_of_what_is_no_gpu(
    resource: str, previous: str, requested: str, maximum: str, words: str
) -> None:
    message = (
        f"{MAIN}insufficient quota for {resource} in flavor a100, previously considered podsets requests "
        f"({previous}) + current podset request ({requested}) > maximum capacity ({maximum})"
    )
    found = why(waiting(message))
    assert (found.what, found.outlook) == (words, CHANGE)
    assert found.step is not None
    assert found.step.data == {"resource": resource}


def test_a_queue_that_names_an_unknown_kind_of_gpu_is_for_the_platform_leads() -> None:
    found = why(waiting(f"{MAIN}flavor a100 not found"))
    assert (found.code, found.outlook) == ("queue_broken", ESCALATE)


def test_of_two_kinds_of_gpu_the_more_hopeful_one_counts() -> None:
    both = f"{MAIN}flavor a100 doesn't match node affinity, " + FULL.removeprefix(
        MAIN
    ).replace("a100", "h100")
    assert why(waiting(both)).what == "It waits for 2 × h100 more."
    full_or_large = f"{LARGE}, " + FULL.removeprefix(MAIN).replace("a100", "h100")
    assert why(waiting(full_or_large)).outlook == WAIT


def test_what_a_run_of_the_portal_lacks_is_the_quota_of_its_own_kind_of_gpu() -> None:
    found = why(waiting(LARGE.replace(MAIN, MAIN + OTHERS)))
    assert found.do == "Ask for 4 more for your team, or run it with at most 4."
    assert found.step is not None
    assert (found.step.label, found.step.data) == (
        "Ask for 4 more",
        {"flavor": "a100", "gpus": 4},
    )
    lacking = why(waiting(FULL.replace(MAIN, MAIN + OTHERS)))
    assert lacking.step is not None
    assert (lacking.step.label, lacking.step.data) == (
        "Ask for 2 more",
        {"flavor": "a100", "gpus": 2},
    )


def test_of_two_kinds_that_are_too_small_the_larger_one_counts() -> None:
    """Without a node selector, Kueue names the flavor for work without GPUs first: it has 0 of them."""
    none = LARGE.replace("a100", "quartermaster-cpu").replace("(4)", "(0)")
    for message in (
        f"{none}, {LARGE.removeprefix(MAIN)}",
        f"{LARGE}, {none.removeprefix(MAIN)}",
    ):
        assert (
            why(waiting(message)).what
            == "It asks for 8 × A100; your queue can never give it more than 4."
        )


def test_one_pod_set_without_a_kind_of_its_own_is_the_cause_though_another_has_one() -> (
    None
):
    """A leader whose nodes nobody has keeps the whole job out, however full the queue is for its workers."""
    message = (
        "couldn't assign flavors to pod set leader: flavor a100 doesn't match node affinity; "
        + FULL.replace("pod set main", "pod set worker")
    )
    assert why(waiting(message)).code == "node_labels_differ"


def test_of_two_pod_sets_the_less_hopeful_one_counts() -> None:
    """Kueue says of a leader that it lacks only unused quota, though its workers never fit."""
    message = (
        "couldn't assign flavors to pod set master: insufficient unused quota for nvidia.com/gpu in flavor a100, "
        "1 more needed; couldn't assign flavors to pod set worker: insufficient quota for nvidia.com/gpu in flavor "
        "a100, previously considered podsets requests (5) + current podset request (5) > maximum capacity (8)"
    )
    found = why(waiting(message))
    assert (found.outlook, found.what) == (
        CHANGE,
        "It asks for 10 × A100; your queue can never give it more than 8.",
    )
    assert found.step is not None
    assert found.step.label == "Ask for 2 more"


def test_flavors_of_different_groups_do_not_stand_in_for_each_other() -> None:
    message = f"{MAIN}insufficient unused quota for cpu in flavor plain, 500m more needed, {LARGE.removeprefix(MAIN)}"
    groups = (frozenset({"plain"}), frozenset({"a100"}))
    apart = decisive(message, groups)
    together = decisive(message, ())
    assert apart is not None
    assert apart.kind == Kind.TOO_LARGE
    assert together is not None
    assert together.kind == Kind.FULL


def test_a_flavor_name_with_dots_is_read_whole() -> None:
    found = decisive(
        f"{MAIN}untolerated taint {{spot  NoSchedule <nil>}} in flavor a100.80gb, and so on"
    )
    assert found is not None
    assert (found.flavor, found.resource) == ("a100.80gb", "spot")


def test_what_the_queue_uses_is_said_with_what_is_borrowed() -> None:
    quota = Quota("a100", "nvidia.com/gpu", 8, 4, 10, 2)
    queue = Queue(name="team-nlp", quotas=(quota,))
    found = why(waiting(FULL), queue=queue)
    assert found.what == (
        "It waits for 2 × A100 more. Your queue uses 10 and is guaranteed 8; 2 of them are borrowed."
    )
    full = replace(
        queue, quotas=(replace(quota, reserved=8, borrowed=0, borrowing=None),)
    )
    assert why(waiting(FULL), queue=full).what.endswith(
        "it may borrow what other teams leave unused, which is too little now. "
        "GPUs that no team holds are not lent: ask for them."
    )


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (
            8,
            (
                "; it may borrow at most 8 of what other teams leave unused, which is too little now. "
                "GPUs that no team holds are not lent: ask for them."
            ),
        ),
        # Its own limit may be what stops it, whatever others leave unused.
        (4, "; it may borrow at most 4 of what other teams leave unused."),
        (0, "."),
    ],
)
def test_a_limit_of_borrowing_is_no_promise_that_anybody_lends(
    limit: int, words: str
) -> None:
    quota = Quota("a100", "nvidia.com/gpu", 8, limit, 8, 0)
    found = why(waiting(FULL), queue=Queue(name="team-nlp", quotas=(quota,)))
    assert (
        found.what
        == f"It waits for 2 × A100 more. Your queue uses 8 and is guaranteed 8{words}"
    )


def test_free_gpus_elsewhere_are_the_step_when_they_take_the_job() -> None:
    title = "Training, East US"
    there = Elsewhere("training-eastus", title, "a100", "A100", 8, 8, "qm-vision")
    found = why(waiting(FULL), elsewhere=(replace(there, gpus=4), there))
    assert found.step is not None
    assert found.step.label == "Use 8 × A100 on Training, East US: free now"
    assert found.step.data == {
        "cluster": "training-eastus",
        "namespace": "qm-vision",
        "flavor": "a100",
        "gpus": 8,
    }
    in_pieces = why(waiting(FULL), elsewhere=(replace(there, largest=2),))
    assert in_pieces.step is not None
    assert in_pieces.step.action == Action.REQUEST_GPUS


def test_more_than_the_cluster_has_is_never_and_asks_for_nothing() -> None:
    found = why(waiting(LARGE), capacity={"a100": 6})
    assert (found.code, found.outlook) == ("larger_than_cluster", NEVER)
    assert found.what == "It asks for 8 × A100; training-westeurope has 6 in all."
    assert found.step is not None
    assert found.step.label == "Run it with 4"


def test_a_request_for_more_that_waits_is_the_step_instead_of_another_one() -> None:
    request = OpenRequest(17, 4, "Grace Hopper", BEFORE, 4)
    found = why(waiting(LARGE), requests={"a100": request})
    assert (found.outlook, found.since) == (ESCALATE, BEFORE)
    assert found.what.endswith("Your team's request for 4 more waits for Grace Hopper.")
    assert found.step is not None
    assert found.step.data == {"request": 17}
    assert "waits for Grace Hopper" in why(waiting(FULL), requests={"a100": request}).do
    assert "waits for Grace" not in why(waiting(FULL), requests={"h100": request}).do


@pytest.mark.parametrize(
    ("gpus", "in_all", "do"),
    [
        (4, 4, "Remind them, or run it with fewer GPUs."),
        (1, 4, "Remind them, or run it with fewer GPUs."),
        (
            1,
            1,
            "Remind them, and ask for 3 more than that, or run it with fewer GPUs.",
        ),
    ],
)
def test_a_request_that_waits_for_too_few_does_not_help_by_itself(
    gpus: int, in_all: int, do: str
) -> None:
    request = OpenRequest(17, gpus, "Grace Hopper", BEFORE, in_all)
    assert why(waiting(LARGE), requests={"a100": request}).do == do


def test_gpus_that_ended_or_begin_later_are_named() -> None:
    ended = Allocation(flavor="a100", gpus=8, ends=NOW - timedelta(hours=1))
    found = why(waiting(LARGE), allocations=(ended,))
    assert (found.code, found.outlook) == ("allocation_ended", CHANGE)
    assert (
        found.what
        == "Your team's 8 × A100 ended on Sun 22 Nov, so the queue cannot give them."
    )
    assert found.step is not None
    assert found.step.action == Action.RENEW
    begins = NOW + timedelta(days=1)
    later = why(
        waiting(LARGE), allocations=(Allocation(flavor="a100", gpus=8, begins=begins),)
    )
    assert (later.code, later.outlook, later.at) == ("allocation_begins", WAIT, begins)


def test_a_pod_that_is_larger_than_any_node_has_to_be_spread() -> None:
    large = waiting(FULL, pod_sets=(PodSet("main", 1, 16),))
    node = Node(name="a100-0", flavor="a100", gpus=8)
    found = why(large, nodes=Nodes((node,)))
    assert (found.code, found.outlook) == ("larger_than_node", CHANGE)
    assert (
        found.what
        == "One of its pods asks for 16 GPUs; the largest node of training-westeurope has 8."
    )
    assert found.step is not None
    assert found.step.data == {"nodes": 2, "gpus_per_node": 8}
    # A kind without a node now may have larger ones when its pool grows.
    other = Queue(name="q", quotas=(Quota("h200", "nvidia.com/gpu", 16),))
    assert why(large, nodes=Nodes((node,)), queue=other).code == "quota_full"


def test_nodes_that_take_no_pods_are_for_the_platform_leads() -> None:
    cordoned = Node(name="a100-0", flavor="a100", gpus=8, is_cordoned=True)
    found = why(
        waiting(f"{RACKS}allows to fit only 2 out of 3 pod(s)"),
        nodes=Nodes((cordoned,)),
    )
    assert (found.code, found.outlook) == ("nodes_away", ESCALATE)


def test_an_own_job_that_could_make_room_is_named_and_nobody_elses() -> None:
    def held(name: str, gpus: int, namespace: str = "team-nlp") -> QuotaHolder:
        return QuotaHolder(JobKey(namespace, name), "a100", gpus)

    jobs = (
        held("large", 8),
        held("right", 2),
        held("small", 1),
        held("yolo", 2, "team-vision"),
    )
    mine = Viewer(frozenset({"team-nlp"}))
    assert (
        "Or stop Job right, which holds 2."
        in why(waiting(FULL), running=jobs, viewer=mine).do
    )
    assert "Or stop" not in why(waiting(FULL), running=jobs).do
    assert (
        "Or stop"
        not in why(waiting(FULL), running=jobs[2:], viewer=Viewer(sees_all=True)).do
    )


def test_the_teams_own_queue_that_is_gone_is_not_the_jobs_mistake() -> None:
    found = why(
        waiting("LocalQueue gpus doesn't exist", "Inadmissible"),
        team_queue=TeamQueue(name="gpus", cluster_queue="team-nlp"),
    )
    assert (found.code, found.outlook) == ("queue_missing", ESCALATE)


def test_what_identifies_another_teams_job_is_not_quoted() -> None:
    found = why(waiting(PREEMPTED))
    assert "2-b" not in found.detail
    assert "team-vision" not in found.detail


def test_whoever_holds_none_any_more_is_not_told_to_run_it_with_none() -> None:
    none = (
        "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor a100, "
        "previously considered podsets requests (0) + current podset request (8) > maximum capacity (0)"
    )
    assert why(waiting(none)).do == "Ask for 8 more for your team."


def test_what_runs_on_gpus_that_its_queue_no_longer_has_is_told_that_it_is_stopped() -> (
    None
):
    said = {
        "QuotaReserved": condition(
            "QuotaReserved", is_true=True, reason="QuotaReserved"
        ),
        "Admitted": condition("Admitted", is_true=True, reason="Admitted"),
        "PodsReady": condition("PodsReady", is_true=True, reason="Started"),
    }
    runs = workload(said, flavors=("a100",))
    quota = Quota("a100", "nvidia.com/gpu", 0, 0, 8, 8)
    found = why(runs, queue=Queue(name="team-nlp", quotas=(quota,)))
    assert (found.code, found.what) == ("running", "It runs.")
    assert found.do == (
        "Save what you keep of it: the jobs in its queue use 8 × A100 more than your team holds, and what is too "
        "much is stopped. The team's page says when."
    )
    # What is borrowed goes on until others call it back.
    borrowed = replace(quota, borrowing=8)
    assert (
        why(runs, queue=Queue(name="team-nlp", quotas=(borrowed,))).do
        == "There is nothing to do."
    )
