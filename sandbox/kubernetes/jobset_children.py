"""What a JobSet makes: its Jobs with their labels, the Service of its pods' names, and how its Jobs do. Pure."""

import copy
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.conditions import holds
from sandbox.kubernetes.creating import owned_by
from sandbox.kubernetes.kueue_pods import count_of
from sandbox.kubernetes.store import Obj

PREFIX = "jobset.sigs.k8s.io/"
NAME, REPLICATED, JOB_INDEX = (
    f"{PREFIX}jobset-name",
    f"{PREFIX}replicatedjob-name",
    f"{PREFIX}job-index",
)
ATTEMPT = f"{PREFIX}restart-attempt"
Object = dict[str, Any]


@dataclass
class Family:
    """The Jobs of a JobSet: those of attempts before this one, and how those of this one do."""

    previous: list[Obj] = field(default_factory=list)
    active: list[Obj] = field(default_factory=list)
    succeeded: list[Obj] = field(default_factory=list)
    failed: list[Obj] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """The names that are taken."""
        every = (*self.previous, *self.active, *self.succeeded, *self.failed)
        return {str(job["metadata"]["name"]) for job in every}

    def active_of(self, replicated: str) -> list[Obj]:
        """The Jobs of one replicated Job that go on."""
        return [job for job in self.active if replicated_of(job) == replicated]


def family_of(jobset: Obj, jobs: Iterable[Obj]) -> Family:
    """Sort the Jobs that a JobSet owns."""
    found, attempt = Family(), _attempt(jobset)
    for job in jobs:
        if int(job["metadata"]["labels"].get(ATTEMPT, attempt)) < attempt:
            found.previous.append(job)
        elif holds(job, "Failed"):
            found.failed.append(job)
        elif holds(job, "Complete"):
            found.succeeded.append(job)
        else:
            found.active.append(job)
    return found


def replicated_jobs(jobset: Obj) -> list[Object]:
    """The entries of a JobSet, each of which is made into so many Jobs."""
    return items(jobset["spec"], "replicatedJobs")


def replicas_of(replicated: Object) -> int:
    """How many Jobs an entry is made into."""
    return int(replicated.get("replicas", 1))


def replicated_of(job: Obj) -> str:
    """The name of the entry that a Job was made from."""
    return str(job["metadata"]["labels"].get(REPLICATED, ""))


def children(jobset: Obj, replicated: Object) -> Iterator[Object]:
    """Metadata and spec of each Job of an entry, as they are made."""
    for index in range(replicas_of(replicated)):
        whole = copy.deepcopy(dict(replicated["template"]))
        marks = _marks(jobset, replicated, index)
        name = _job_name(jobset, replicated, index)
        spec = part(whole, "spec")
        template = spec.setdefault("template", {})
        template["metadata"] = _marked(part(template, "metadata"), marks)
        if subdomain := subdomain_of(jobset):
            template.setdefault("spec", {})["subdomain"] = subdomain
        metadata = {
            **_marked(part(whole, "metadata"), marks),
            "name": name,
            "namespace": jobset["metadata"]["namespace"],
            "generation": 1,
            "ownerReferences": [owned_by(jobset)],
        }
        suspended = bool(jobset["spec"].get("suspend"))
        yield {"metadata": metadata, "spec": {**spec, "suspend": suspended}}


def subdomain_of(jobset: Obj) -> str:
    """The name under which the pods find each other; empty where they have no names."""
    network = part(dict(jobset["spec"]), "network")
    return (
        str(network.get("subdomain") or jobset["metadata"]["name"])
        if network.get("enableDNSHostnames")
        else ""
    )


def service_of(jobset: Obj) -> Object:
    """The Service without an address of its own that gives pods their names."""
    published = part(dict(jobset["spec"]), "network").get(
        "publishNotReadyAddresses", True
    )
    return {
        "clusterIP": "None",
        "clusterIPs": ["None"],
        "publishNotReadyAddresses": published,
        "selector": {NAME: jobset["metadata"]["name"]},
    }


def resumed(job: Obj, template: Object) -> Object:
    """A suspended Job that goes on, with what its entry's template says by now."""
    mine, pod = copy.deepcopy(dict(job["spec"]["template"])), part(template, "spec")
    for name in ("labels", "annotations"):
        if found := {
            **part(part(mine, "metadata"), name),
            **part(part(template, "metadata"), name),
        }:
            mine.setdefault("metadata", {})[name] = found
    if selector := {**part(mine["spec"], "nodeSelector"), **part(pod, "nodeSelector")}:
        mine["spec"]["nodeSelector"] = selector
    known = items(mine["spec"], "tolerations")
    if tolerations := [
        *known,
        *(one for one in items(pod, "tolerations") if one not in known),
    ]:
        mine["spec"]["tolerations"] = tolerations
    if gates := items(pod, "schedulingGates"):
        mine["spec"]["schedulingGates"] = gates
    return {**job, "spec": {**job["spec"], "suspend": False, "template": mine}}


def statuses_of(jobset: Obj, family: Family) -> list[Object]:
    """How the Jobs of each entry do, as the status says it."""
    return [_status(str(one["name"]), family) for one in replicated_jobs(jobset)]


def _status(name: str, family: Family) -> Object:
    active = family.active_of(name)
    return {
        "name": name,
        "active": sum(bool((job.get("status") or {}).get("active")) for job in active),
        "ready": sum(map(_is_ready, active)),
        "succeeded": sum(replicated_of(job) == name for job in family.succeeded),
        "failed": sum(replicated_of(job) == name for job in family.failed),
        "suspended": sum(bool(job["spec"].get("suspend")) for job in active),
    }


def _is_ready(job: Obj) -> bool:
    status = job.get("status") or {}
    return int(status.get("succeeded") or 0) + int(
        status.get("ready") or 0
    ) >= count_of(job["spec"])


def _attempt(jobset: Obj) -> int:
    return int((jobset.get("status") or {}).get("restarts") or 0)


def _job_name(jobset: Obj, replicated: Object, index: int) -> str:
    return f"{jobset['metadata']['name']}-{replicated['name']}-{index}"


def _marked(metadata: Object, marks: dict[str, str]) -> Object:
    """Metadata with labels, and annotations of the same words."""
    return {
        **metadata,
        **{
            name: {**part(metadata, name), **marks}
            for name in ("labels", "annotations")
        },
    }


def _marks(jobset: Obj, replicated: Object, index: int) -> dict[str, str]:
    metadata, group = jobset["metadata"], str(replicated.get("groupName", "default"))
    every = replicated_jobs(jobset)
    before = every[: [one["name"] for one in every].index(replicated["name"])]
    name = f"{metadata['namespace']}/{_job_name(jobset, replicated, index)}"
    marks = {
        NAME: str(metadata["name"]),
        f"{PREFIX}jobset-uid": str(metadata["uid"]),
        REPLICATED: str(replicated["name"]),
        f"{PREFIX}replicatedjob-replicas": str(replicas_of(replicated)),
        f"{PREFIX}global-replicas": _total(every),
        JOB_INDEX: str(index),
        f"{PREFIX}job-key": hashlib.sha1(
            name.encode(), usedforsecurity=False
        ).hexdigest(),
        f"{PREFIX}job-global-index": _total(before, index),
        f"{PREFIX}group-name": group,
        f"{PREFIX}group-replicas": _total(_in_group(every, group)),
        f"{PREFIX}job-group-index": _total(_in_group(before, group), index),
        ATTEMPT: str(_attempt(jobset)),
    }
    if coordinator := part(dict(jobset["spec"]), "coordinator"):
        numbers = f"{coordinator.get('jobIndex', 0)}-{coordinator.get('podIndex', 0)}"
        host = f"{metadata['name']}-{coordinator['replicatedJob']}-{numbers}"
        marks[f"{PREFIX}coordinator"] = f"{host}.{subdomain_of(jobset)}"
    return marks


def _in_group(replicated: list[Object], group: str) -> list[Object]:
    return [one for one in replicated if one.get("groupName", "default") == group]


def _total(replicated: list[Object], more: int = 0) -> str:
    return str(sum(map(replicas_of, replicated)) + more)
