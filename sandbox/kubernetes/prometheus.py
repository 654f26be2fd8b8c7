"""A Prometheus behind the API server's proxy: how busy the GPUs of running pods are, and the traffic of services.

GPUs are told as the DCGM exporter tells them, traffic as sandbox.kubernetes.traffic says.

Of a query it reads only whether it names a metric of the exporter, and whether it asks for averages or for the most,
under which label. A pod is as busy as its annotation `test/gpu-use` says: one number from 0 to 1, or one for each GPU.
It uses as much memory as `test/gpu-memory` says, in MiB and likewise; an empty one is an exporter that tells none.
"""

import re
import time
from collections.abc import Iterator
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sandbox.kubernetes import traffic
from sandbox.kubernetes.calls import Answer, Call, json_answer
from sandbox.kubernetes.controllers_pods import POD, phase_of
from sandbox.kubernetes.pod_resources import pod_amounts
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.store import Obj

if TYPE_CHECKING:
    from sandbox.kubernetes.cluster import Cluster

SERVICE, NAMESPACE = "prometheus-operated:9090", "monitoring"
METRICS = ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL")
MEMORY = "DCGM_FI_DEV_FB_USED"
USUAL, USUAL_MEMORY = "0.87", "8192"
PART = re.compile(r'label_replace\((avg|max) (.*?), "(\w+)", "(\w+)", "", ""\)')


def answer(cluster: "Cluster", call: Call) -> Answer:
    """The answer to an instant query; raises Refusal (503) where there is no such service."""
    at = call.target
    if (
        at is None
        or (at.namespace, at.name) != (NAMESPACE, SERVICE)
        or not cluster.has_prometheus
    ):
        raise Refusal(503, "no endpoints available for service", "ServiceUnavailable")
    if not call.path.endswith("/proxy/api/v1/query"):
        return json_answer(
            404,
            {"status": "error", "errorType": "not_found", "error": "page not found"},
        )
    query = call.query.get("query", "")
    if (told := traffic.samples(cluster.traffic, query)) is not None:
        return _vector(told)
    pods = cluster.store.objects(POD) if any(one in query for one in METRICS) else ()
    parts = PART.findall(query) or [("avg", query, "", "")]
    held = [pod for pod in pods if phase_of(pod) == "Running" and _has_gpus(pod)]
    return _vector([one for pod in held for one in _samples(pod, parts)])


def _vector(result: list[dict[str, Any]]) -> Answer:
    return json_answer(
        200, {"status": "success", "data": {"resultType": "vector", "result": result}}
    )


def _samples(
    pod: Obj, parts: list[tuple[str, str, str, str]]
) -> Iterator[dict[str, Any]]:
    metadata = pod["metadata"]
    for how, metric, label, value in parts:
        of_gpus = _of_gpus(pod, metric)
        if not of_gpus:
            continue
        labels = {"namespace": metadata["namespace"], "pod": metadata["name"]}
        use = max(of_gpus) if how == "max" else fmean(of_gpus)
        yield {
            "metric": labels | ({label: value} if label else {}),
            "value": [time.time(), str(use)],
        }


def _of_gpus(pod: Obj, metric: str) -> list[float]:
    """What a metric is for each GPU of a pod, or for all of them."""
    annotations = pod["metadata"].get("annotations") or {}
    found = (
        annotations.get("test/gpu-memory", USUAL_MEMORY)
        if MEMORY in metric
        else annotations.get("test/gpu-use", USUAL)
    )
    return [float(one) for one in found.split()]


def _has_gpus(pod: Obj) -> bool:
    amounts = pod_amounts(dict(pod["spec"]), "requests")
    return any(name.startswith("nvidia.com/") for name in amounts)
