"""Runs that are a Job of Kubernetes: one node, a sweep, batch inference. Pure."""

from collections.abc import Sequence

from workloads.templates.pods import (
    Manifest,
    metadata,
    pod_template,
    program,
    script_map,
    torchrun,
)
from workloads.templates.run import TTL_SECONDS, Run

# A pod that its node lost (spot capacity taken back, a drain) is made again and counts as no failure.
LOST_NODE: Manifest = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}
PARTIAL = "kueue.x-k8s.io/job-min-parallelism"


def single_node(run: Run) -> list[Manifest]:
    """One pod with all its GPUs on one node."""
    pod = pod_template(run, torchrun(run, rank="0", address="localhost"))
    return [*script_map(run), job(run, {"template": pod})]


def sweep(run: Run) -> list[Manifest]:
    """One pod for each trial, some at once; a trial finds its number in JOB_COMPLETION_INDEX."""
    trials = run.count("trials")
    own = [{"name": "QM_TRIALS", "value": str(trials)}]
    return [*script_map(run), _indexed(run, trials, program(run), own)]


def batch(run: Run) -> list[Manifest]:
    """One pod for each shard of the input, some at once; a shard finds its number in JOB_COMPLETION_INDEX."""
    shards = run.count("shards")
    own = [{"name": "QM_SHARDS", "value": str(shards)}]
    return [*script_map(run), _indexed(run, shards, program(run), own)]


def job(run: Run, spec: Manifest) -> Manifest:
    """A Job that waits for its queue, ends at its time limit and goes away after its time."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(run),
        "spec": {
            **job_spec(run),
            "suspend": True,
            "ttlSecondsAfterFinished": TTL_SECONDS,
            **spec,
        },
    }


def job_spec(run: Run) -> Manifest:
    """What every Job has, also those inside of a JobSet: no retry but for lost nodes, and the time limit."""
    return {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 0,
        "activeDeadlineSeconds": run.seconds,
        "podFailurePolicy": {"rules": [LOST_NODE]},
    }


def _indexed(
    run: Run, count: int, command: Sequence[str], own: Sequence[Manifest]
) -> Manifest:
    """Many pods of one shape; Kueue may let in fewer at once than asked for, down to one."""
    at_once = min(run.count("at_once"), count)
    spec = {
        "completionMode": "Indexed",
        "parallelism": at_once,
        "completions": count,
        "backoffLimitPerIndex": 1,
        "maxFailedIndexes": max(1, count // 10),
        "template": pod_template(run, command, own=own),
    }
    found = job(run, spec)
    # A limit for each index takes the place of one for all of them.
    del found["spec"]["backoffLimit"]
    found["metadata"].setdefault("annotations", {})[PARTIAL] = "1"
    return found
