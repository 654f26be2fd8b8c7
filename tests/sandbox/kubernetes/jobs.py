"""A sandbox cluster with queues, and Jobs handed in to them; its time passes only when a test says so."""

import json
from dataclasses import dataclass, field
from typing import Any

from sandbox.kubernetes import Cluster, NodePool, NodeSpec
from tests.recordings.calling import call
from tests.sandbox.kubernetes.test_cluster import HEADERS, TOKENS

KUEUE, GPU = "kueue.x-k8s.io/v1beta2", "nvidia.com/gpu"
QUEUE_NAME, CLASS = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
MERGE = {**HEADERS, "content-type": "application/merge-patch+json"}


@dataclass
class World:
    """One cluster with 16 GPUs of one kind on two nodes."""

    nodes: tuple[NodeSpec, ...] = (
        NodeSpec("a-0", gpus=8, labels={"gpu": "a"}),
        NodeSpec("a-1", gpus=8, labels={"gpu": "a"}),
    )
    pools: tuple[NodePool, ...] = ()
    time: float = 1_000_000_000.0
    cluster: Cluster = field(init=False)

    def __post_init__(self) -> None:
        self.cluster = Cluster("dev", nodes=self.nodes, pools=self.pools, tokens=TOKENS)
        self.cluster.controllers.now = lambda: self.time
        self.make("resourceflavors", "a", {"spec": {"nodeLabels": {"gpu": "a"}}})
        for name, value in (("low", 10), ("high", 1000)):
            self.make("workloadpriorityclasses", name, {"value": value})

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """An administrator's request, which must succeed."""
        headers = MERGE if method == "PATCH" else HEADERS
        content = b"" if body is None else json.dumps(body).encode()
        answer = call(self.cluster.app, method, path, {}, headers, content)
        assert answer.status < 300, answer.text
        return answer.json()

    def make(
        self, plural: str, name: str, body: dict[str, Any], namespace: str = ""
    ) -> Any:
        """Create an object of Kueue's."""
        kind = {
            "resourceflavors": "ResourceFlavor",
            "workloadpriorityclasses": "WorkloadPriorityClass",
            "clusterqueues": "ClusterQueue",
            "localqueues": "LocalQueue",
        }[plural]
        place = f"/namespaces/{namespace}" if namespace else ""
        whole = {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, **body}
        return self.send("POST", f"/apis/{KUEUE}{place}/{plural}", whole)

    def queue(
        self, name: str, gpus: int, flavors: tuple[str, ...] = ("a",), **spec: Any
    ) -> None:
        """A namespace and its queue, both of this name, in a cohort; every flavor has so many GPUs."""
        limits: dict[str, Any] = {
            key: spec.pop(key)
            for key in ("borrowingLimit", "lendingLimit")
            if key in spec
        }
        quota: dict[str, Any] = {"name": GPU, "nominalQuota": str(gpus), **limits}
        preemption = {
            "withinClusterQueue": "LowerPriority",
            "reclaimWithinCohort": "Any",
        }
        body: dict[str, Any] = {
            "namespaceSelector": {},
            "cohortName": "all",
            "preemption": preemption,
            "resourceGroups": [
                {
                    "coveredResources": [GPU],
                    "flavors": [{"name": one, "resources": [quota]} for one in flavors],
                }
            ],
            **spec,
        }
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        self.make("clusterqueues", name, {"spec": body})
        self.make("localqueues", "default", {"spec": {"clusterQueue": name}}, name)

    def change(self, plural: str, name: str, body: Any, namespace: str = "") -> None:
        """Merge something into an object of Kueue's."""
        place = f"/namespaces/{namespace}" if namespace else ""
        self.send("PATCH", f"/apis/{KUEUE}{place}/{plural}/{name}", body)

    def job(
        self,
        namespace: str,
        name: str,
        gpus: int = 1,
        *,
        seconds: float | None = None,
        **more: Any,
    ) -> None:
        """Hand in a Job: `priority` names a class, `pod`, `template` and `spec` go into its parts."""
        resources = {"limits": {GPU: str(gpus)}} if gpus else {}
        container = {
            "name": "main",
            "image": "train:1",
            "resources": resources,
            **more.get("container", {}),
        }
        pod = {
            "restartPolicy": "Never",
            "containers": [container],
            **more.get("pod", {}),
        }
        annotations = {} if seconds is None else {"test/run-for": str(seconds)}
        template = {
            "metadata": {"annotations": annotations | more.get("annotations", {})},
            "spec": pod,
        }
        labels = (
            {QUEUE_NAME: more.get("queue", "default")}
            if more.get("queue", "default")
            else {}
        )
        if "priority" in more:
            labels[CLASS] = more["priority"]
        body = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"template": template, **more.get("spec", {})},
        }
        self.send("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", body)

    def end(self, namespace: str, name: str, policy: str = "Background") -> None:
        """Delete a Job."""
        self.send(
            "DELETE",
            f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}?propagationPolicy={policy}",
        )

    def pass_time(self, seconds: float = 0.1) -> None:
        """Let pods start and end."""
        self.time += seconds
        self.cluster.controllers.settle()

    def get_job(self, namespace: str, name: str) -> Any:
        """A Job as it is now."""
        return self.send("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")

    def pods(self, namespace: str) -> list[Any]:
        """The pods of a namespace."""
        found: list[Any] = self.send("GET", f"/api/v1/namespaces/{namespace}/pods")[
            "items"
        ]
        return found

    def phases(self, namespace: str) -> list[str]:
        """The phases of the pods of a namespace."""
        return [pod["status"]["phase"] for pod in self.pods(namespace)]

    def workload(self, namespace: str, job: str) -> Any:
        """The Workload of a Job; None where there is none."""
        found = self.send("GET", f"/apis/{KUEUE}/namespaces/{namespace}/workloads")[
            "items"
        ]
        return next(
            (
                one
                for one in found
                if one["metadata"]["ownerReferences"][0]["name"] == job
            ),
            None,
        )

    def said(
        self, namespace: str, job: str, word: str = "QuotaReserved"
    ) -> tuple[str, str, str]:
        """Status, reason and message of a condition of a Job's Workload."""
        conditions = self.workload(namespace, job)["status"]["conditions"]
        found = next((one for one in conditions if one["type"] == word), None)
        return (
            (found["status"], found["reason"], found["message"])
            if found
            else ("", "", "")
        )

    def running(self) -> list[str]:
        """The Jobs that are not suspended, by name."""
        jobs = self.send("GET", "/apis/batch/v1/jobs")["items"]
        return sorted(
            one["metadata"]["name"] for one in jobs if not one["spec"]["suspend"]
        )
