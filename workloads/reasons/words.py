"""Words that several reasons share: amounts, other jobs, requests, and what is quoted for experts. Pure."""

import re

from fleet.names import profile_of, slice_words
from provisioning.desired.quantities import counted
from ui.amounts import gpus
from workloads.explanations import Action, Answer, Outlook, Step
from workloads.observed import Elsewhere, Facts, JobKey, OpenRequest, Slices, by_profile
from workloads.reading.values import is_gpu

ANOTHER = "a job of another team"
# What follows names other teams' queues and jobs by their ids.
PRIVATE = re.compile(
    r" \(UID: [^)]*\)|; (?:preemptor|preemptee)(?: path: | effective priority: )[^;]*"
)
SIZES = {"memory": "memory", "ephemeral-storage": "local disk"}
QUANTITY = re.compile(r"(\d+)([KMGTPE]i|[kMGTPE])?", re.ASCII)


def display_name(key: JobKey, facts: Facts) -> str:
    """A job's name for those who may see it, as people gave it first; for others, that it is another team's."""
    if not facts.viewer.may_see(key):
        return ANOTHER
    title = facts.called.get((key.namespace, key.name))
    return f"“{title}” ({key})" if title else str(key)


def redacted(message: str) -> str:
    """What Kubernetes wrote, without what identifies other teams' work."""
    return PRIVATE.sub("", message)


def amount(count: str, resource: str, flavor: str, facts: Facts) -> str:
    """An amount of a resource: "4 × A100", "0.5 CPUs", "2 GiB of memory", "2 rdma/hca"."""
    if is_gpu(resource):
        return f"{count} × {facts.title(flavor)}"
    return size(count, resource)


def size(count: str, resource: str) -> str:
    """An amount of what is no GPU: "0.5 CPUs", "2 GiB of memory", "2 rdma/hca"."""
    if resource == "cpu":
        return "1 CPU" if count == "1" else f"{_cpus(count)} CPUs"
    return (
        f"{_bytes(count)} of {SIZES[resource]}"
        if resource in SIZES
        else f"{count} {resource}"
    )


def _cpus(count: str) -> str:
    thousandths = count.removesuffix("m")
    return (
        f"{int(thousandths) / 1000:g}"
        if thousandths != count and thousandths.isdecimal()
        else count
    )


def _bytes(count: str) -> str:
    found = QUANTITY.fullmatch(count)
    if found is None:
        return count
    return (
        f"{found[1]} {found[2].upper().replace('I', 'i')}B"
        if found[2]
        else f"{found[1]} bytes"
    )


def gpu_words(count: int, slices: Slices) -> str:
    """GPUs of which some are MIG slices: "4 GPUs", "2 × 1g.10gb slice", "1 GPU, 2 × 1g.10gb slice"; empty for none."""
    found = sorted(by_profile(count, slices).items())
    return ", ".join(
        gpus(each, slice_words(profile)) if profile else gpus(each)
        for profile, each in found
    )


def never_more(requested: str, most: str) -> str:
    """What is said of a job that is larger than its queue, before it is sent and after: both are amounts in words."""
    return f"It asks for {requested}; your queue can never give it more than {most}."


def larger_than(cluster: str, wanted: str, has: int) -> str:
    """What is said of a job that is larger than all of a cluster's GPUs of its kind, before it is sent and after."""
    return f"It asks for {wanted}; {cluster} has {has} in all."


def waits_for(missing: str) -> str:
    """What is said of a job that its queue has no room for now, before it is sent and after."""
    return f"It waits for {missing} more."


def resource_words(resource: str) -> str:
    """What a resource is called where its amount is not told: "GPUs", "1g.10gb slices", "CPUs", "rdma/hca"."""
    if is_gpu(resource):
        profile = profile_of(resource)
        return f"{slice_words(profile)}s" if profile else "GPUs"
    return {"cpu": "CPUs"}.get(resource, resource)


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
        f"Use {count} × {found.title} on {found.cluster_title}: free now",
        {
            "cluster": found.cluster,
            "namespace": found.namespace,
            "flavor": found.flavor,
            "gpus": count,
        },
    )


def _elsewhere(facts: Facts) -> Elsewhere | None:
    if not facts.elsewhere or facts.workload is None or not facts.workload.gpus:
        return None
    requested, pod = facts.workload.gpus, facts.workload.largest_pod
    # Pods ask for whole GPUs or for slices by name: neither takes the place of the other.
    kinds = {*by_profile(requested, facts.workload.slices)}
    return next(
        (
            one
            for one in facts.elsewhere
            if one.gpus >= requested and one.largest >= pod and kinds == {one.profile}
        ),
        None,
    )


def open_request(asked: OpenRequest) -> Step:
    """The step to a request for more GPUs that is sent already."""
    label = f"Open request {asked.number}"
    return Step(Action.OPEN_REQUEST, label, {"request": asked.number})


def asked_already(asked: OpenRequest) -> str:
    """That the team has asked for more, and who has to answer it."""
    return f"Your team's request for {asked.gpus} more waits for {asked.who}."


def request_waits(
    asked: OpenRequest, what: str, *, detail: str, lacking: int
) -> Answer:
    """The answer where the queue has too few, which `what` says, and the team has asked for more.

    `lacking` are the GPUs that the job needs beyond all that waits.
    """
    more = f", and ask for {lacking} more than that" if lacking > 0 else ""
    return Answer(
        code="request_open",
        outlook=Outlook.ESCALATE,
        what=f"{what} {asked_already(asked)}",
        do=f"Remind them{more}, or run it with fewer GPUs.",
        since=asked.since,
        step=open_request(asked),
        detail=detail,
    )


def request_more(count: int, flavor: str, facts: Facts) -> Step:
    """The step to a request for more GPUs, or to the one that is already sent."""
    if (asked := facts.requests.get(flavor)) is not None:
        return open_request(asked)
    return Step(
        Action.REQUEST_GPUS, f"Ask for {count} more", {"flavor": flavor, "gpus": count}
    )
