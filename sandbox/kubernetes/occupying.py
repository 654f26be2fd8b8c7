"""Workloads that nobody runs: admitted by decree, so that queues report use without a scheduler."""

import json
import re
import uuid
from typing import Any

from sandbox.kubernetes.calls import Answer, Call, json_answer
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.kinds import KUEUE, VOLCANO
from sandbox.kubernetes.queueing import LOCAL_QUEUE, WORKLOAD
from sandbox.kubernetes.status import bad_request
from sandbox.kubernetes.store import Store
from sandbox.kubernetes.volcano_occupying import occupy_queue

GPU = "nvidia.com/gpu"
SHAPE = "give {namespace, flavor, gpus}: names as text, gpus 0 or more; and, if you like, name and priority"
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?")


def occupy(store: Store, call: Call, queueing: str = KUEUE) -> Answer:
    """Answer ``POST /sandbox/workloads {namespace, flavor, gpus}``: so many of a flavor are in use there from now on.

    It replaces what was said before for the same namespace and flavor, or under the same `name`; 0 ends it.
    `priority` is the workload's, 0 unless it is given. 400 for what has no LocalQueue. Where queues are Volcano's,
    which know neither flavors nor such priorities, a job is made of it, in the queue that is called as the namespace.
    """
    namespace, flavor, gpus, name, priority = _read(call)
    if queueing == VOLCANO:
        if not occupy_queue(store, namespace, name, gpus):
            raise bad_request(f"{namespace} has no Queue")
        return json_answer(
            200, {"namespace": namespace, "flavor": flavor, "gpus": gpus}
        )
    queue = next(store.objects(LOCAL_QUEUE, namespace), None)
    if queue is None:
        raise bad_request(f"{namespace} has no LocalQueue")
    if gpus:
        store.put(
            WORKLOAD, _workload(name, namespace, dict(queue), flavor, gpus, priority)
        )
    elif store.get(WORKLOAD, namespace, name) is not None:
        store.remove(WORKLOAD, namespace, name)
    return json_answer(200, {"namespace": namespace, "flavor": flavor, "gpus": gpus})


def _read(call: Call) -> tuple[str, str, int, str, int]:
    try:
        said = json.loads(call.body)
        namespace, flavor, gpus = said["namespace"], said["flavor"], said["gpus"]
    except (ValueError, KeyError, TypeError) as error:
        raise bad_request(SHAPE) from error
    name, priority = said.get("name", f"sandbox-{flavor}"), said.get("priority", 0)
    fits = (
        isinstance(namespace, str)
        and isinstance(flavor, str)
        and type(gpus) is int
        and gpus >= 0
    )
    if not (
        fits
        and isinstance(name, str)
        and NAME.fullmatch(name)
        and type(priority) is int
    ):
        raise bad_request(SHAPE)
    return namespace, flavor, gpus, name, priority


def _workload(
    name: str,
    namespace: str,
    queue: dict[str, Any],
    flavor: str,
    gpus: int,
    priority: int,
) -> dict[str, Any]:
    now = timestamp()
    asks = {"cpu": "1", "memory": "1Gi", GPU: str(gpus)}
    container = {
        "name": "main",
        "image": "sandbox",
        "resources": {"requests": asks, "limits": asks},
    }
    pod_set = {
        "name": "main",
        "count": 1,
        "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
    }
    said = {
        "status": "True",
        "message": "",
        "lastTransitionTime": now,
        "observedGeneration": 1,
    }
    conditions = [
        said | {"type": word, "reason": word} for word in ("QuotaReserved", "Admitted")
    ]
    assignment = {
        "name": "main",
        "count": 1,
        "flavors": dict.fromkeys(asks, flavor),
        "resourceUsage": asks,
    }
    admission = {
        "clusterQueue": queue["spec"]["clusterQueue"],
        "podSetAssignments": [assignment],
    }
    return {
        "apiVersion": f"{WORKLOAD.group}/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": str(uuid.uuid4()),
            "creationTimestamp": now,
            "generation": 1,
        },
        "spec": {
            "queueName": queue["metadata"]["name"],
            "active": True,
            "priority": priority,
            "podSets": [pod_set],
        },
        "status": {"conditions": conditions, "admission": admission},
    }
