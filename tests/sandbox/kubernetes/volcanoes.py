"""A sandbox cluster whose queues are Volcano's, and jobs handed in to them; its time passes when a test says so."""

import json
from dataclasses import dataclass, field
from typing import Any

from sandbox.kubernetes import Cluster, NodePool, NodeSpec
from tests.recordings.calling import call
from tests.sandbox.kubernetes.test_cluster import HEADERS, TOKENS

BATCH, SCHEDULING = "batch.volcano.sh/v1alpha1", "scheduling.volcano.sh/v1beta1"
BUS, GPU = "bus.volcano.sh/v1alpha1", "nvidia.com/gpu"
MERGE = {**HEADERS, "content-type": "application/merge-patch+json"}
TEAM = "team"


@dataclass
class VolcanoWorld:
    """One cluster with 16 GPUs on two nodes."""

    nodes: tuple[NodeSpec, ...] = (NodeSpec("n-0", gpus=8), NodeSpec("n-1", gpus=8))
    pools: tuple[NodePool, ...] = ()
    time: float = 1_000_000_000.0
    cluster: Cluster = field(init=False)

    def __post_init__(self) -> None:
        self.cluster = Cluster(
            "dev", nodes=self.nodes, pools=self.pools, tokens=TOKENS, queueing="volcano"
        )
        self.cluster.controllers.now = lambda: self.time

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """An administrator's request, and its answer whatever it is."""
        headers = MERGE if method == "PATCH" else HEADERS
        content = b"" if body is None else json.dumps(body).encode()
        return call(self.cluster.app, method, path, {}, headers, content)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """An administrator's request, which must succeed."""
        answer = self.ask(method, path, body)
        assert answer.status < 300, answer.text
        return answer.json()

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """An administrator's request, which must not: code and message."""
        answer = self.ask(method, path, body)
        assert answer.status >= 400, answer.text
        return answer.status, answer.json()["message"]

    def namespace(self, name: str = TEAM, **metadata: Any) -> None:
        """A namespace."""
        self.send(
            "POST", "/api/v1/namespaces", {"metadata": {"name": name, **metadata}}
        )

    def queue_body(self, name: str = TEAM, **spec: Any) -> dict[str, Any]:
        """A queue as it is handed in."""
        return {
            "apiVersion": SCHEDULING,
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": spec,
        }

    def queue(
        self, name: str = TEAM, gpus: int = 16, deserved: int | None = None, **spec: Any
    ) -> None:
        """A namespace and its queue, both of this name, that may hold so many GPUs and deserves so many."""
        self.namespace(name)
        own = gpus if deserved is None else deserved
        amounts = {"capability": {GPU: str(gpus)}, "deserved": {GPU: str(own)}}
        self.send(
            "POST",
            f"/apis/{SCHEDULING}/queues",
            self.queue_body(name, **{**amounts, **spec}),
        )

    def get_queue(self, name: str = TEAM) -> Any:
        """A queue as it is now."""
        return self.send("GET", f"/apis/{SCHEDULING}/queues/{name}")

    def job_body(
        self, name: str, workers: int = 2, gpus: int = 4, **more: Any
    ) -> dict[str, Any]:
        """A job of pods that run until somebody deletes them, or for so many `seconds`, and end with `code`."""
        marks = {"test/exit-code": str(more.pop("code", 0))}
        if (seconds := more.pop("seconds", None)) is not None:
            marks["test/run-for"] = str(seconds)
        container = {
            "name": "main",
            "image": "train:1",
            "resources": {"limits": {GPU: str(gpus)}},
        }
        pod = {
            "restartPolicy": "Never",
            "containers": [container],
            **more.pop("pod", {}),
        }
        template = {"metadata": {"annotations": marks}, "spec": pod}
        task = {
            "name": "worker",
            "replicas": workers,
            "template": template,
            **more.pop("task", {}),
        }
        queue = more.pop("queue", TEAM)
        spec = {"queue": queue, "minAvailable": workers, "tasks": [task], **more}
        return {
            "apiVersion": BATCH,
            "kind": "Job",
            "metadata": {"name": name},
            "spec": spec,
        }

    def jobs(self, namespace: str = TEAM) -> str:
        """Where the jobs of a namespace are."""
        return f"/apis/{BATCH}/namespaces/{namespace}/jobs"

    def job(
        self,
        name: str,
        workers: int = 2,
        gpus: int = 4,
        *,
        namespace: str = TEAM,
        **more: Any,
    ) -> Any:
        """Hand in a job, in the queue that has the name of its namespace unless `queue` names one."""
        body = self.job_body(name, workers, gpus, **{"queue": namespace, **more})
        return self.send("POST", self.jobs(namespace), body)

    def get_job(self, name: str, namespace: str = TEAM) -> Any:
        """A job as it is now."""
        return self.send("GET", f"{self.jobs(namespace)}/{name}")

    def phase(self, name: str, namespace: str = TEAM) -> str:
        """The phase of a job."""
        return str(self.get_job(name, namespace)["status"]["state"]["phase"])

    def groups(self, namespace: str = TEAM) -> list[Any]:
        """The groups of a namespace."""
        found: list[Any] = self.send(
            "GET", f"/apis/{SCHEDULING}/namespaces/{namespace}/podgroups"
        )["items"]
        return found

    def group(self, job: str, namespace: str = TEAM) -> Any:
        """The group of a job; None where there is none."""
        mine = (
            one
            for one in self.groups(namespace)
            if one["metadata"]["ownerReferences"][0]["name"] == job
        )
        return next(mine, None)

    def said(
        self, job: str, word: str = "Unschedulable", namespace: str = TEAM
    ) -> tuple[str, str]:
        """Reason and message of a condition of a job's group."""
        conditions = self.group(job, namespace)["status"].get("conditions", [])
        found: dict[str, str] = next(
            (one for one in conditions if one["type"] == word), {}
        )
        return found.get("reason", ""), found.get("message", "")

    def pods(self, namespace: str = TEAM) -> list[Any]:
        """The pods of a namespace."""
        found: list[Any] = self.send("GET", f"/api/v1/namespaces/{namespace}/pods")[
            "items"
        ]
        return found

    def phases(self, namespace: str = TEAM) -> dict[str, str]:
        """The phases of the pods of a namespace, by their names."""
        return {
            pod["metadata"]["name"]: pod["status"]["phase"]
            for pod in self.pods(namespace)
        }

    def events(self, kind: str, namespace: str = TEAM) -> list[tuple[str, str, str]]:
        """Type, reason and message of what was told of objects of a kind."""
        found: list[Any] = self.send("GET", f"/api/v1/namespaces/{namespace}/events")[
            "items"
        ]
        return [
            (one["type"], one["reason"], one["message"])
            for one in found
            if one["involvedObject"]["kind"] == kind
        ]

    def command(
        self, kind: str, name: str, action: str, namespace: str = "default"
    ) -> None:
        """What `vcctl` does: ask something of a queue or of a job."""
        version = BATCH if kind == "Job" else SCHEDULING
        target = {"apiVersion": version, "kind": kind, "name": name, "uid": "0"}
        body = {
            "metadata": {"generateName": f"{name}-"},
            "action": action,
            "target": target,
        }
        whole = {"apiVersion": BUS, "kind": "Command", **body}
        self.send("POST", f"/apis/{BUS}/namespaces/{namespace}/commands", whole)

    def pass_time(self, seconds: float = 0.1) -> None:
        """Let pods start and end."""
        self.time += seconds
        self.cluster.controllers.settle()
