"""Words that several reasons share: amounts, other jobs, and what is quoted for experts. Pure."""

import re

from provisioning.desired.quantities import counted
from workloads.answers import Action, Step
from workloads.observed import Elsewhere, Facts, JobKey

ANOTHER = "a job of another team"
# What follows names other teams' queues and jobs by their ids.
PRIVATE = re.compile(r" \(UID: [^)]*\)|; (?:preemptor|preemptee)(?: path: | effective priority: )[^;]*")
NAMES = {"cpu": "CPUs", "memory": "bytes of memory", "ephemeral-storage": "bytes of local disk"}


def display_name(key: JobKey, facts: Facts) -> str:
    """A job's name for those who may see it, and that it is another team's for everybody else."""
    return str(key) if facts.viewer.may_see(key) else ANOTHER


def redacted(message: str) -> str:
    """What Kubernetes wrote, without what identifies other teams' work."""
    return PRIVATE.sub("", message)


def amount(count: str, resource: str, flavor: str, facts: Facts) -> str:
    """An amount of a resource: "4 × A100", "8 CPUs", "2 rdma/hca"."""
    if "gpu" in resource or "/mig-" in resource:
        return f"{count} × {facts.title(flavor)}"
    return f"{count} {NAMES.get(resource, resource)}"


def whole(count: str) -> int:
    """A count that Kueue wrote; 0 for a fraction."""
    return counted(count)


def pods(count: int) -> str:
    """ "1 pod", "3 pods"."""
    return f"{count} pod" if count == 1 else f"{count} pods"


def use_elsewhere(facts: Facts) -> Step | None:
    """The step to free GPUs of another flavor or cluster that take this job now; None when there are none."""
    found = _elsewhere(facts)
    if found is None or facts.workload is None:
        return None
    count = facts.workload.gpus
    return Step(
        Action.USE_FLAVOR,
        f"Use {count} × {found.title} on {found.cluster}: free now",
        {"cluster": found.cluster, "flavor": found.flavor, "gpus": count},
    )


def _elsewhere(facts: Facts) -> Elsewhere | None:
    if facts.workload is None or not facts.workload.gpus:
        return None
    requested, pod = facts.workload.gpus, max(one.gpus for one in facts.workload.pod_sets)
    return next((one for one in facts.elsewhere if one.gpus >= requested and one.largest >= pod), None)


def request_more(gpus: int, flavor: str, facts: Facts) -> Step:
    """The step to a request for more GPUs, or to the one that is already sent."""
    if facts.open_request is not None and facts.open_request.reference:
        return Step(
            Action.OPEN_REQUEST,
            f"Open request {facts.open_request.reference}",
            {"reference": facts.open_request.reference},
        )
    return Step(Action.REQUEST_GPUS, f"Ask for {gpus} more", {"flavor": flavor, "gpus": gpus})
