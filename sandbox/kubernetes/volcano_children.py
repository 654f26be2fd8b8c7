"""What a Volcano job makes: its group, its pods, and the names by which they find each other. Pure.

After pkg/controllers/job of volcano-sh/volcano 1.15: createOrUpdatePodGroup and calcPGMinResources in
job_controller_actions.go, createJobPod in job_controller_util.go, plugins/env/env.go and plugins/svc/svc.go. Of the
plugins only these two do anything here, and a job's own volumes are not made.
"""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.creating import owned_by
from sandbox.kubernetes.pod_resources import pod_amounts
from sandbox.kubernetes.quantities import add
from sandbox.kubernetes.store import Obj
from sandbox.kubernetes.volcano_job_rules import least_of
from sandbox.kubernetes.volcano_webhook import GROUP_NAME, tasks_of

PREFIX = "volcano.sh/"
JOB_NAME, TASK, INDEX = f"{PREFIX}job-name", f"{PREFIX}task-spec", f"{PREFIX}task-index"
VERSION, QUEUE_OF = f"{PREFIX}job-version", f"{PREFIX}queue-name"
Object = dict[str, Any]


def group_name(job: Obj) -> str:
    """The name of a job's group."""
    return f"{job['metadata']['name']}-{job['metadata']['uid']}"


def group_spec(job: Obj, priorities: Mapping[str, int]) -> Object:
    """The spec of a job's group; `priorities` are the values of priority classes."""
    spec = job["spec"]
    found: Object = {
        "minMember": int(spec.get("minAvailable", 0)),
        "minTaskMember": {str(one["name"]): least_of(one) for one in tasks_of(job)},
        "queue": spec["queue"],
        "minResources": _least_resources(job, priorities),
    }
    if spec.get("priorityClassName"):
        found["priorityClassName"] = spec["priorityClassName"]
    if spec.get("networkTopology"):
        found["networkTopology"] = spec["networkTopology"]
    return found


def _least_resources(job: Obj, priorities: Mapping[str, int]) -> Object:
    """What the pods ask for that have to run at the least, those of the highest priority first.

    What every task needs comes before what only fills up (CalcFirstCountResources and CalcPGMinResources in
    job_controller_util.go).
    """

    def priority(task: Object) -> int:
        return -priorities.get(str(_pod_spec(task).get("priorityClassName")), 0)

    tasks, wanted = (
        sorted(tasks_of(job), key=priority),
        int(job["spec"].get("minAvailable", 0)),
    )
    counts = [int(one.get("replicas", 0)) for one in tasks]
    least = [least_of(one) for one in tasks]
    spare = [replicas - own for replicas, own in zip(counts, least, strict=True)]
    total = dict[str, str]()
    for turn in [counts] if wanted < sum(least) else [least, spare]:
        for task, most in zip(tasks, turn, strict=True):
            count = min(wanted, most)
            wanted -= count
            for name, amount in quota_usage(_pod_spec(task)).items():
                for _ in range(count):
                    total[name] = add(total.get(name), amount)
    return total


def quota_usage(spec: Object) -> dict[str, str]:
    """What a quota counts of a pod (GetPodQuotaUsage in pkg/controllers/util/util.go): with both names of a request."""
    filled = copy.deepcopy(spec)
    for container in (*items(filled, "containers"), *items(filled, "initContainers")):
        resources = container.setdefault("resources", {})
        resources["requests"] = {
            **part(resources, "limits"),
            **part(resources, "requests"),
        }
    requests, limits = pod_amounts(filled, "requests"), pod_amounts(filled, "limits")
    found = {"count/pods": "1", "pods": "1"}
    for name, amount in requests.items():
        if "/" in name:
            found[f"requests.{name}"] = amount
        else:
            found |= {name: amount, f"requests.{name}": amount}
    found |= {name: amount for name, amount in requests.items() if "/" in name}
    return found | {
        f"limits.{name}": amount for name, amount in limits.items() if "/" not in name
    }


def _pod_spec(task: Object) -> Object:
    return part(part(task, "template"), "spec")


def pod_names(job: Obj, task: Object) -> list[str]:
    """The names of a task's pods."""
    stem = f"{job['metadata']['name']}-{task['name']}"
    return [f"{stem}-{index}" for index in range(int(task.get("replicas", 0)))]


def pod_of(job: Obj, task: Object, index: int) -> tuple[Object, Object]:
    """Metadata and spec of a pod of a job."""
    template, spec, metadata = part(task, "template"), job["spec"], job["metadata"]
    marks = {
        INDEX: str(index),
        JOB_NAME: str(metadata["name"]),
        TASK: str(task["name"]),
        QUEUE_OF: str(spec["queue"]),
    }
    status = part(dict(job), "status")
    annotations = {
        **part(part(template, "metadata"), "annotations"),
        **marks,
        GROUP_NAME: group_name(job),
        VERSION: str(status.get("version", 0)),
        f"{PREFIX}template-uid": f"{metadata['name']}-{task['name']}",
        f"{PREFIX}job-retry-count": str(status.get("retryCount", 0)),
    }
    labels = {
        **part(part(template, "metadata"), "labels"),
        **marks,
        f"{PREFIX}job-namespace": str(metadata["namespace"]),
    }
    name = pod_names(job, task)[index]
    pod = copy.deepcopy(part(template, "spec"))
    pod["schedulerName"] = pod.get("schedulerName") or spec["schedulerName"]
    if not pod.get("priorityClassName") and spec.get("priorityClassName"):
        pod["priorityClassName"] = spec["priorityClassName"]
    _plug_in(job, pod, name, index)
    head = {
        "name": name,
        "namespace": metadata["namespace"],
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [owned_by(job)],
        "generation": 1,
    }
    return head, pod


def _plug_in(job: Obj, pod: Object, name: str, index: int) -> None:
    plugins = part(dict(job["spec"]), "plugins")
    containers = [*items(pod, "containers"), *items(pod, "initContainers")]
    if "env" in plugins:
        for container in containers:
            known = container.setdefault("env", [])
            known += [
                {"name": word, "value": str(index)}
                for word in ("VK_TASK_INDEX", "VC_TASK_INDEX")
            ]
    if "svc" in plugins:
        pod.setdefault("hostname", name)
        pod.setdefault("subdomain", job["metadata"]["name"])
        hosts = f"{job['metadata']['name']}-svc"
        pod.setdefault("volumes", []).append(
            {"name": hosts, "configMap": {"name": hosts}}
        )
        for container in containers:
            known = container.setdefault("env", [])
            known += [
                {
                    "name": word,
                    "valueFrom": {"configMapKeyRef": {"name": hosts, "key": word}},
                }
                for word in _host_words(job)
            ]
            mounts = container.setdefault("volumeMounts", [])
            mounts.append({"mountPath": "/etc/volcano", "name": hosts})


def _host_words(job: Obj) -> Iterable[str]:
    for task in tasks_of(job):
        yield from (f"VC_{_shouted(task)}_HOSTS", f"VC_{_shouted(task)}_NUM")


def _shouted(task: Object) -> str:
    return str(task["name"]).replace("-", "_").upper()


def host_files(job: Obj) -> dict[str, str]:
    """What stands in the ConfigMap of the svc plugin: the names of all pods of each task."""
    found: dict[str, str] = {}
    for task in tasks_of(job):
        pod = _pod_spec(task)
        names = [pod["hostname"]] if pod.get("hostname") else pod_names(job, task)
        hosts = [
            f"{name}.{pod.get('subdomain') or job['metadata']['name']}"
            for name in names
        ]
        found[f"{str(task['name']).replace('-', '_')}.host"] = "\n".join(hosts)
        found[f"VC_{_shouted(task)}_HOSTS"] = ",".join(hosts)
        found[f"VC_{_shouted(task)}_NUM"] = str(len(hosts))
    return found


def svc_says(job: Obj, flag: str) -> bool:
    """Whether a flag of the svc plugin is set (addFlags in svc.go)."""
    said = part(dict(job["spec"]), "plugins").get("svc") or []
    return any(one.lstrip("-") in (flag, f"{flag}=true") for one in said)


def selector_of(job: Obj) -> dict[str, str]:
    """The labels that all pods of a job have."""
    metadata = job["metadata"]
    return {
        JOB_NAME: str(metadata["name"]),
        f"{PREFIX}job-namespace": str(metadata["namespace"]),
    }


def service_spec(job: Obj) -> Object:
    """The Service without an address of its own that gives pods their names."""
    port = {
        "name": "placeholder-volcano",
        "port": 1,
        "protocol": "TCP",
        "targetPort": 1,
    }
    spec = {"clusterIP": "None", "ports": [port], "selector": selector_of(job)}
    early = svc_says(job, "publish-not-ready-addresses")
    return {**spec, "publishNotReadyAddresses": True} if early else spec


def network_spec(job: Obj) -> Object:
    """The NetworkPolicy that lets the pods of a job reach each other."""
    peers = {"podSelector": {"matchLabels": selector_of(job)}}
    return {**peers, "ingress": [{"from": [peers]}], "policyTypes": ["Ingress"]}
