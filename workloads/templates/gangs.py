"""Runs over several nodes that start together or not at all: JobSet with Kueue, or a Volcano Job. Pure."""

from dataclasses import replace

from workloads.templates.jobs import LOST_NODE, job_spec
from workloads.templates.pods import (
    PORT,
    Manifest,
    metadata,
    pod_template,
    script_map,
    torchrun,
)
from workloads.templates.run import TTL_SECONDS, Run

WORKER = "worker"
# Where its pods meet and how many nodes they are on, for programs that bring a launcher of their own.
RENDEZVOUS = ("MASTER_ADDR", "MASTER_PORT", "NNODES")
# The time limit is that of the run: a Job that has reached it is not started anew, which would begin the limit anew.
OUT_OF_TIME = {
    "name": "timeLimit",
    "action": "FailJobSet",
    "onJobFailureReasons": ["DeadlineExceeded"],
}
# When a node is lost all start anew together, and that counts as no restart.
LOST_WORKER = {
    "name": "lostNode",
    "action": "RestartJobSetAndIgnoreMaxRestarts",
    "onJobFailureReasons": ["PodFailurePolicy"],
}


def jobset(run: Run) -> list[Manifest]:
    """PyTorch on several nodes: one Job with a pod for each node, which find each other by name."""
    address = f"{run.name}-{WORKER}-0-0.{run.name}"
    command = torchrun(run, rank="$(JOB_COMPLETION_INDEX)", address=address)
    template = {
        **job_spec(run),
        "completionMode": "Indexed",
        "parallelism": run.nodes,
        "completions": run.nodes,
        # A worker that is made again alone would wait for ever for the others, which wait for the lost one.
        "podFailurePolicy": {"rules": [LOST_NODE | {"action": "FailJob"}]},
        "template": pod_template(run, command, own=_rendezvous(address, run)),
    }
    spec = {
        "suspend": True,
        "ttlSecondsAfterFinished": TTL_SECONDS,
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "failurePolicy": {
            "maxRestarts": run.count("restarts", 0),
            "rules": [OUT_OF_TIME, LOST_WORKER],
        },
        "replicatedJobs": [
            {"name": WORKER, "replicas": 1, "template": {"spec": template}}
        ],
    }
    set_ = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata(run),
        "spec": spec,
    }
    return [*script_map(run), set_]


def volcano(run: Run) -> list[Manifest]:
    """The same on a cluster whose queues are Volcano's, which knows nothing of Kueue's labels and annotations."""
    address = f"{run.name}-{WORKER}-0.{run.name}"
    command = torchrun(run, rank="$(VC_TASK_INDEX)", address=address)
    pod = pod_template(
        replace(run, topology=None), command, own=_rendezvous(address, run)
    )
    pod["spec"]["activeDeadlineSeconds"] = run.seconds
    spec = {
        "schedulerName": "volcano",
        "queue": run.where.queue,
        "priorityClassName": run.where.priority,
        "minAvailable": run.nodes,
        "maxRetry": run.count("restarts", 0) + 1,
        "ttlSecondsAfterFinished": TTL_SECONDS,
        "plugins": {"env": [], "svc": []},
        "policies": [
            {"event": "PodEvicted", "action": "RestartJob"},
            {"event": "PodFailed", "action": "RestartJob"},
            {"event": "TaskCompleted", "action": "CompleteJob"},
        ],
        "tasks": [{"name": WORKER, "replicas": run.nodes, "template": pod}],
    }
    if run.topology is not None:
        spec["networkTopology"] = run.topology.network
    head = metadata(run, is_queued=False)
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": head,
        "spec": spec,
    }
    return [*script_map(run), job]


def _rendezvous(address: str, run: Run) -> list[Manifest]:
    values = (address, str(PORT), str(run.nodes))
    return [
        {"name": name, "value": value}
        for name, value in zip(RENDEZVOUS, values, strict=True)
    ]
