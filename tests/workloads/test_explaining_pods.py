"""Jobs that were let in and do not run: refused pods, no node, images, configuration, and jobs Kueue never saw."""

from datetime import timedelta

import pytest

from tests.workloads.known import (
    BEFORE,
    NOW,
    OWN,
    admitted,
    condition,
    waiting,
    why,
    workload,
)
from workloads.explaining import explain_pods
from workloads.explanations import Action, Explanation, Outlook
from workloads.observed import (
    Cluster,
    Condition,
    Elsewhere,
    Event,
    Exit,
    Facts,
    Job,
    Node,
    Nodes,
    Pod,
    Waiting,
)

WAIT, CHANGE, ESCALATE, NEVER = Outlook
QUOTA = (
    'Error creating: pods "bert-x" is forbidden: exceeded quota: team-quota, requested: '
    "requests.nvidia.com/gpu=4, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"
)
NO_SELECTOR = (
    "0/6 nodes are available: 6 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, "
    "preemption: 0/6 nodes are available: 6 Preemption is not helpful for scheduling."
)
CORDONED = NO_SELECTOR.replace(
    "6 node(s) didn't", "1 node(s) were unschedulable, 5 node(s) didn't"
)
SHORT = NO_SELECTOR.replace(
    "6 node(s) didn't match Pod's node affinity/selector",
    "6 Insufficient nvidia.com/gpu",
)
NOT_THERE = (
    'failed to pull and unpack image "r.example.com/x:1": failed to resolve reference "r.example.com/x:1": pull '
    "access denied, repository does not exist or may require authorization: authorization failed"
)


def refused(message: str) -> Explanation:
    event = Event(
        kind="Job",
        name="bert",
        reason="FailedCreate",
        message=message,
        is_warning=True,
        at=BEFORE,
    )
    return why(admitted(), events=(event,))


def unscheduled(message: str, **facts: object) -> Explanation:
    said = Condition("PodScheduled", False, "Unschedulable", message, BEFORE)
    return why(
        admitted(), pods=(Pod(name="bert-0", gpus=4, unscheduled=said),), **facts
    )


def stuck(reason: str, message: str = "", **pod: object) -> Explanation:
    waits = Waiting("main", "r.example.com/x:1", reason, message)
    fields = {
        "name": "bert-0",
        "node": "a100-0",
        "created": BEFORE,
        "waiting": (waits,),
        **pod,
    }
    return why(admitted(), pods=(Pod(**fields),))  # type: ignore[arg-type]


def event(reason: str, message: str = "") -> Event:
    return Event(kind="Pod", name="bert-0", reason=reason, message=message, at=BEFORE)


@pytest.mark.parametrize(
    ("message", "code", "outlook"),
    [
        (QUOTA, "namespace_quota", ESCALATE),
        (
            "failed quota: cpu: must specify limits.cpu for: c",
            "amounts_missing",
            CHANGE,
        ),
        (
            'pods "x" is forbidden: violates PodSecurity "baseline:latest": privileged',
            "pod_security",
            CHANGE,
        ),
        (
            "maximum cpu usage per Container is 64, but limit is 100",
            "limit_range",
            CHANGE,
        ),
        (
            'failed calling webhook "mpod.kb.io": connection refused',
            "webhook_down",
            ESCALATE,
        ),
        (
            'error looking up service account team-nlp/x: serviceaccount "x" not found',
            "service_account",
            CHANGE,
        ),
        ("no PriorityClass with name urgent was found", "unknown_priority", CHANGE),
        ('ValidatingAdmissionPolicy "gpus" denied request: no', "policy", CHANGE),
        ("something else", "pods_refused", ESCALATE),
    ],
)
def test_pods_that_the_cluster_refuses(
    message: str, code: str, outlook: Outlook
) -> None:
    found = refused(message)
    assert (found.code, found.outlook, found.since, found.detail) == (
        code,
        outlook,
        BEFORE,
        message,
    )
    assert (found.step is not None) == (outlook == CHANGE)


def test_a_refusal_that_was_overcome_is_not_told() -> None:
    event = Event(
        kind="Job", name="bert", reason="FailedCreate", message=QUOTA, at=BEFORE
    )
    pods = (Pod(name="a", is_ready=True), Pod(name="b", is_ready=True))
    assert why(admitted(), events=(event,), pods=pods).code == "running"
    made = Event(kind="Job", name="bert", reason="SuccessfulCreate", at=NOW)
    assert why(admitted(), events=(event, made)).code != "namespace_quota"


@pytest.mark.parametrize(
    ("message", "code", "outlook"),
    [
        (NO_SELECTOR, "node_labels_differ", CHANGE),
        (CORDONED, "nodes_away", ESCALATE),
        (SHORT, "no_room_on_nodes", WAIT),
        (
            "0/3 nodes are available: 3 node(s) had untolerated taint(s).",
            "taint_not_tolerated",
            CHANGE,
        ),
        (
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint(s).",
            "no_room_on_nodes",
            WAIT,
        ),
        ("no nodes available to schedule pods", "no_nodes", ESCALATE),
        (
            '0/3 nodes are available: persistentvolumeclaim "data" not found.',
            "claim_missing",
            CHANGE,
        ),
        (
            '0/3 nodes are available: persistentvolumeclaim "data" is being deleted.',
            "claim_missing",
            CHANGE,
        ),
        (
            "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
            "claim_unbound",
            ESCALATE,
        ),
        (
            "0/3 nodes are available: 3 node(s) had volume node affinity conflict.",
            "claim_elsewhere",
            CHANGE,
        ),
        ("0/3 nodes are available: 3 something new.", "no_node_fits", ESCALATE),
    ],
)
def test_pods_that_no_node_takes_after_the_quota_was_given(
    message: str, code: str, outlook: Outlook
) -> None:
    """Kueue writes no word about it: the Workload is admitted, and only the scheduler says why nothing runs."""
    found = unscheduled(message)
    assert (found.code, found.outlook, found.since, found.detail) == (
        code,
        outlook,
        BEFORE,
        message,
    )


def test_an_event_of_the_scheduler_does_where_the_pod_has_no_condition() -> None:
    pod = Pod(
        name="bert-0", created=BEFORE, events=(event("FailedScheduling", NO_SELECTOR),)
    )
    assert why(admitted(), pods=(pod,)).code == "node_labels_differ"


def test_free_gpus_in_pieces_are_told_with_the_largest_room() -> None:
    nodes = Nodes(
        Node(name=f"a100-{each}", flavor="a100", gpus=8, used=6) for each in range(4)
    )
    there = Elsewhere("training-eastus", "Training", "a100", "A100", 8, 8)
    found = unscheduled(SHORT, nodes=nodes, elsewhere=(there,))
    assert "One pod takes 4 GPUs, and the largest room on one node is 2." in found.what
    assert found.step is not None
    assert found.step.action == Action.USE_FLAVOR


def test_while_the_pool_grows_waiting_helps() -> None:
    said = Condition("PodScheduled", False, "Unschedulable", SHORT, BEFORE)
    growing = Pod(
        name="bert-0",
        unscheduled=said,
        events=(event("TriggeredScaleUp", "pool 0->1"),),
    )
    assert why(admitted(), pods=(growing,)).code == "nodes_coming"


@pytest.mark.parametrize(
    ("message", "outlook"),
    [
        (NOT_THERE, CHANGE),
        ("manifest unknown", CHANGE),
        ("dial tcp: lookup r.example.com: no such host", ESCALATE),
        ("429 Too Many Requests: toomanyrequests", WAIT),
        ("", CHANGE),
    ],
)
def test_images_that_do_not_come(message: str, outlook: Outlook) -> None:
    failed = event("Failed", f'Failed to pull image "r.example.com/x:1": {message}')
    found = stuck("ImagePullBackOff", "Back-off pulling image", events=(failed,))
    assert (found.code, found.outlook, found.since) == ("image_pull", outlook, BEFORE)
    assert found.what.startswith("Its image r.example.com/x:1 does not come: ")


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("CreateContainerConfigError", "container_configuration"),
        ("CrashLoopBackOff", "crashes"),
        ("SomethingNew", "container_waits"),
    ],
)
def test_containers_that_do_not_start(reason: str, code: str) -> None:
    found = stuck(reason, "it is so")
    assert (found.code, found.outlook, found.detail) == (code, CHANGE, "it is so")


def test_a_container_that_needs_more_memory_says_so() -> None:
    killed = stuck("CrashLoopBackOff", exit=Exit(code=137, reason="OOMKilled"))
    assert killed.what == (
        "Its container main ends again and again. It took more memory than it may, and was killed."
    )
    assert "Give it more memory" in killed.do


def test_what_passes_by_itself_is_a_wait() -> None:
    assert (
        stuck("ContainerCreating", events=(event("Pulling", "Pulling image"),)).code
        == "pulling_image"
    )
    assert stuck("ContainerCreating", events=(event("Scheduled"),)).code == "starting"
    gated = why(
        admitted(), pods=(Pod(name="bert-0", gates=("kueue.x-k8s.io/topology",)),)
    )
    assert (gated.code, gated.outlook) == ("pods_gated", WAIT)


def test_a_volume_that_is_not_there_is_yours_and_one_that_cannot_be_attached_is_not() -> (
    None
):
    missing = stuck(
        "ContainerCreating", events=(event("FailedMount", 'secret "token" not found'),)
    )
    assert (missing.code, missing.outlook) == ("volume_not_there", CHANGE)
    attach = stuck(
        "ContainerCreating", events=(event("FailedAttachVolume", "timed out"),)
    )
    assert attach.outlook == ESCALATE


def test_of_many_pods_the_one_that_has_to_be_mended_is_told() -> None:
    starting = Pod(
        name="a", node="n", waiting=(Waiting("main", "x:1", "ContainerCreating"),)
    )
    broken = Pod(
        name="b", node="n", waiting=(Waiting("main", "x:1", "InvalidImageName"),)
    )
    assert why(admitted(), pods=(starting, broken)).code == "image_pull"


def test_pods_that_are_ready_are_counted() -> None:
    pods = (
        Pod(name="a", phase="Running", is_ready=True),
        Pod(name="b", phase="Running"),
    )
    assert (
        why(admitted(), pods=pods).what
        == "It has its GPUs, and 1 of its 2 pods are ready."
    )


def test_a_job_that_nothing_carries_out_is_told_after_two_minutes() -> None:
    found = why(admitted())
    assert (found.code, found.outlook) == ("no_pods", ESCALATE)
    soon = condition("Admitted", is_true=True, reason="Admitted")
    fresh = Condition(soon.kind, True, soon.reason, "", NOW - timedelta(seconds=9))
    assert why(admitted(Admitted=fresh)).code == "starting"


def test_running_and_recovering() -> None:
    ready = condition("PodsReady", is_true=True, reason="Started")
    assert why(admitted(PodsReady=ready)).what == "It runs."
    again = condition("PodsReady", is_true=False, reason="WaitForRecovery")
    assert why(admitted(PodsReady=again)).code == "recovering"


def test_pods_that_were_ready_before_it_was_let_in_again_say_nothing_of_now() -> None:
    earlier = BEFORE - timedelta(seconds=1)
    ready = Condition("PodsReady", True, "Started", "", earlier)
    assert why(admitted(PodsReady=ready)).code != "running"
    same = Condition("PodsReady", True, "Started", "", BEFORE)
    assert why(admitted(PodsReady=same)).code == "running"


def job(**fields: object) -> Job:
    return Job(**{"key": OWN, "created": BEFORE, "queue": "default", **fields})  # type: ignore[arg-type]


def test_a_job_without_workload_says_why() -> None:
    labels = Cluster(labels_jobs=True)
    no_label = why(None, job=job(queue=""), cluster=labels)
    assert why(None, job=job(queue="")).code == "not_queued"
    assert (no_label.code, no_label.outlook, no_label.since) == (
        "no_queue",
        CHANGE,
        BEFORE,
    )
    suspended = why(
        None,
        job=job(queue="", is_suspended=True),
        cluster=labels,
    )
    assert (
        suspended.what
        == "It names no queue and somebody suspended it, so nobody starts it."
    )
    wrong = why(
        None,
        job=job(priority="urgent"),
        cluster=Cluster(priorities=frozenset({"low"})),
    )
    assert (wrong.code, wrong.outlook) == ("unknown_priority", CHANGE)
    fresh = why(None, job=job(created=NOW - timedelta(seconds=3)))
    assert (fresh.code, fresh.outlook) == ("just_created", WAIT)
    assert why(None, job=job(is_suspended=True)).outlook == ESCALATE
    down = why(None, job=job(), cluster=Cluster(queues_down_since=NOW))
    assert (down.code, down.since) == ("queues_down", NOW)
    assert why(None).code == "not_found"


@pytest.mark.parametrize(
    ("kind", "reason", "code", "action"),
    [
        ("Complete", "CompletionsReached", "finished", Action.RUN_AGAIN),
        ("Failed", "BackoffLimitExceeded", "failed", Action.SHOW_LOGS),
        ("Failed", "DeadlineExceeded", "stopped_at_limit", Action.RUN_AGAIN),
    ],
)
def test_what_is_over(kind: str, reason: str, code: str, action: Action) -> None:
    found = why(None, job=job(outcome=condition(kind, is_true=True, reason=reason)))
    assert (found.code, found.outlook, found.when) == (code, NEVER, "It is over.")
    assert found.step is not None
    assert found.step.action == action


def test_an_ended_workload_says_how() -> None:
    def ended(reason: str) -> Explanation:
        return why(
            workload({"Finished": condition("Finished", is_true=True, reason=reason)})
        )

    assert ended("OwnerNotFound").what == "Its job was deleted."
    assert ended("Failed").code == "failed"
    assert ended("Succeeded").code == "finished"


def test_pods_of_no_job_that_are_over_are_over_in_a_silence_too() -> None:
    silent = Cluster(title="training-westeurope", silent_since=BEFORE)

    def told(phase: str) -> str:
        return explain_pods(
            Facts(pods=(Pod(name="by-hand", phase=phase),), cluster=silent), now=NOW
        ).code

    assert [told(phase) for phase in ("Running", "Succeeded", "Failed")] == [
        "cluster_silent",
        "finished",
        "failed",
    ]


def test_pods_are_not_asked_before_quota_is_given() -> None:
    assert (
        why(waiting("Workload is pending evaluation"), pods=(Pod(name="a"),)).code
        == "just_queued"
    )
