"""Inference on groups of nodes that serve one model together: LeaderWorkerSet. Pure."""

from workloads.templates.pods import (
    Manifest,
    metadata,
    pod_template,
    program,
    script_map,
)
from workloads.templates.run import Run


def leader_worker(run: Run) -> list[Manifest]:
    """Replicas of a model, each over `nodes` pods, of which a leader answers; it runs until it is stopped.

    The strategies are written out: Kueue's webhook sends empty ones where they are absent, which are refused.
    """
    pod = pod_template(run, program(run))
    # A server is started anew where a run is over; LeaderWorkerSet takes no other policy.
    pod["spec"]["restartPolicy"] = "Always"
    spec = {
        "replicas": run.count("replicas"),
        "startupPolicy": "LeaderCreated",
        "rolloutStrategy": {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0},
        },
        "leaderWorkerTemplate": {
            "size": run.nodes,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "workerTemplate": pod,
        },
    }
    return [
        *script_map(run),
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": metadata(run),
            "spec": spec,
        },
    ]
