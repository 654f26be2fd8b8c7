"""A Volcano job that nobody runs: it is there by decree with its group and its pod, and holds GPUs of its queue."""

import uuid
from typing import Any

from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.controllers_pods import POD
from sandbox.kubernetes.creating import owned_by
from sandbox.kubernetes.store import Store
from sandbox.kubernetes.volcano_children import group_name, group_spec, pod_of
from sandbox.kubernetes.volcano_webhook import GROUP, JOB, QUEUE

GPU, TASK = "nvidia.com/gpu", "sandbox"
# Where its pod is: no node that there is.
NODE = "sandbox"
Object = dict[str, Any]


def occupy_queue(store: Store, namespace: str, name: str, gpus: int) -> bool:
    """Have so many GPUs in use by a job of this name, in the queue that is called as its namespace; 0 ends it.

    False where there is no such queue.
    """
    if store.get(QUEUE, "", namespace) is None:
        return False
    if store.get(JOB, namespace, name) is not None:
        store.remove(JOB, namespace, name)
    if gpus:
        job = _job(namespace, name, gpus)
        store.put(JOB, job)
        store.put(GROUP, _group(job))
        store.put(POD, _pod(job))
    return True


def _metadata(namespace: str, name: str) -> Object:
    made = {"uid": str(uuid.uuid4()), "creationTimestamp": timestamp(), "generation": 1}
    return {"name": name, "namespace": namespace, **made}


def _job(namespace: str, name: str, gpus: int) -> Object:
    asks = {"cpu": "1", "memory": "1Gi", GPU: str(gpus)}
    container = {
        "name": "main",
        "image": "sandbox",
        "resources": {"requests": asks, "limits": asks},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {
        "name": TASK,
        "replicas": 1,
        "minAvailable": 1,
        "maxRetry": 3,
        "template": template,
    }
    spec = {
        "queue": namespace,
        "schedulerName": "volcano",
        "minAvailable": 1,
        "maxRetry": 3,
        "tasks": [task],
    }
    state = {"phase": "Running", "lastTransitionTime": timestamp()}
    status = {
        "state": state,
        "conditions": [{"status": "Running", "lastTransitionTime": timestamp()}],
    }
    whole = {"metadata": _metadata(namespace, name), "spec": spec, "status": status}
    return {"apiVersion": JOB.api_version, "kind": JOB.kind, **whole}


def _group(job: Object) -> Object:
    metadata = _metadata(job["metadata"]["namespace"], group_name(job))
    return {
        "apiVersion": GROUP.api_version,
        "kind": GROUP.kind,
        "metadata": {**metadata, "ownerReferences": [owned_by(job)]},
        "spec": group_spec(job, {}),
        "status": {"phase": "Running"},
    }


def _pod(job: Object) -> Object:
    head, spec = pod_of(job, job["spec"]["tasks"][0], 0)
    metadata = {**_metadata(job["metadata"]["namespace"], head["name"]), **head}
    status = {"phase": "Running", "startTime": timestamp()}
    whole = {"metadata": metadata, "spec": {**spec, "nodeName": NODE}, "status": status}
    return {"apiVersion": POD.api_version, "kind": POD.kind, **whole}
