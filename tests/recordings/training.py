"""The cluster on which training runs were recorded; what was done there is played at the pace of then."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sandbox.kubernetes import Cluster, Identity, NodeSpec
from sandbox.kubernetes.controllers_pods import POD
from sandbox.kubernetes.evicting import WORKLOAD
from sandbox.kubernetes.rbac import MASTERS
from tests.recordings.replaying import Step, namespace
from tests.recordings.replaying_jobs import JobPlayer

MEMBERS = "00000000-0000-4000-9000-000000000001"
CALLERS = {
    "admin": Identity("admin", (MASTERS,)),
    "ada": Identity("ada@example.com", (MEMBERS,)),
    "mallory": Identity(
        "mallory@example.com", ("00000000-0000-4000-9000-000000000002",)
    ),
    "stranger": Identity("nobody@example.com"),
}
TAINT = (("sku", "gpu", "NoSchedule"),)
A100, H100 = {"accelerator": "nvidia-a100"}, {"accelerator": "nvidia-h100"}
NODES = [
    *(
        NodeSpec(
            f"a100-{n}", gpus=8, cpu="96", memory="900Gi", labels=A100, taints=TAINT
        )
        for n in range(3)
    ),
    NodeSpec("h100-0", gpus=8, cpu="96", memory="900Gi", labels=H100, taints=TAINT),
    NodeSpec("gpu-plain-0", gpus=8, cpu="96", memory="900Gi"),
    NodeSpec("system-0", cpu="96", memory="900Gi"),
]
KUEUE, BATCH = "/apis/kueue.x-k8s.io/v1beta2", "/apis/batch/v1"
MADE_BY = {"app.kubernetes.io/managed-by": "quartermaster"}
APPLY = "application/apply-patch+yaml"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_NAMED = re.compile(
    r"\b([a-z0-9-]+)-(?:[0-9a-f]{5}|[bcdfghjklmnpqrstvwxz2456789]{5})\b"
)
_FORETOLD = ("deletionTimestamp", "requeueAt")
Object = dict[str, Any]


class TrainingPlayer(JobPlayer):
    """A cluster with six nodes and two teams; its time is that of the answers recorded."""

    def __init__(self, steps: list[Step], *queues: Object) -> None:
        super().__init__(
            Cluster("recorded", nodes=NODES, tokens=CALLERS), agent="Python-urllib/3.12"
        )
        self._start = next(
            (moment for step in steps if (moment := moment_of(step))), 0.0
        )
        self._began = self.time
        for name in ("qm-t-alpha", "qm-t-beta"):
            namespace(self, name)
        self._let_members_in()
        for name, value in (("low", 100), ("standard", 1000), ("high", 10000)):
            self._apply(
                "WorkloadPriorityClass",
                "workloadpriorityclasses",
                name,
                {"value": value},
            )
        sku = {
            "key": "sku",
            "operator": "Equal",
            "value": "gpu",
            "effect": "NoSchedule",
        }
        self.flavor("a100", nodeLabels=A100, tolerations=[sku])
        self.flavor("h100", nodeLabels=H100, tolerations=[{"operator": "Exists"}])
        for one in queues or (cluster_queue("qm-alpha"),):
            self._apply(
                "ClusterQueue",
                "clusterqueues",
                one["name"],
                {"spec": one["spec"]},
                MADE_BY,
            )
        self.local_queue("qm-t-alpha", "default", "qm-alpha")

    def flavor(self, name: str, **spec: Any) -> None:
        """A flavor as the recorder applied it."""
        self._apply("ResourceFlavor", "resourceflavors", name, {"spec": spec})

    def local_queue(self, place: str, name: str, queue: str) -> None:
        """A LocalQueue of a team."""
        path = f"{KUEUE}/namespaces/{place}/localqueues/{name}"
        body = {
            "metadata": {"name": name, "namespace": place},
            "spec": {"clusterQueue": queue},
        }
        self.apply(path, {"apiVersion": KUEUE[6:], "kind": "LocalQueue", **body})

    def apply(self, path: str, body: Object) -> None:
        """Server-side apply in the portal's name."""
        self.admin(
            "PATCH", f"{path}?force=true&fieldManager=quartermaster", body, APPLY
        )

    def merge(self, path: str, body: Object) -> None:
        """A merge patch of the recorder."""
        self.admin("PATCH", path, body, "application/merge-patch+json")

    def _apply(
        self,
        kind: str,
        plural: str,
        name: str,
        body: Object,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        metadata = {"name": name} | ({"labels": labels} if labels else {})
        self.apply(
            f"{KUEUE}/{plural}/{name}",
            {"apiVersion": KUEUE[6:], "kind": kind, "metadata": metadata, **body},
        )

    def _let_members_in(self) -> None:
        rbac, role = (
            "/apis/rbac.authorization.k8s.io/v1",
            {"name": "qm-test-training-user"},
        )
        verbs = ["get", "list", "watch", "create", "delete"]
        rules = [
            {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": verbs},
            {
                "apiGroups": [""],
                "resources": ["pods", "pods/log", "events"],
                "verbs": verbs[:3],
            },
        ]
        self.admin("POST", f"{rbac}/clusterroles", {"metadata": role, "rules": rules})
        group = {
            "kind": "Group",
            "apiGroup": "rbac.authorization.k8s.io",
            "name": MEMBERS,
        }
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **role}
        binding = {
            "metadata": {"name": "qm-test-training"},
            "subjects": [group],
            "roleRef": ref,
        }
        self.admin("POST", f"{rbac}/namespaces/qm-t-alpha/rolebindings", binding)

    def _find_names(self, step: Step) -> None:
        """Learn our name for a pod or Workload that the recorder had found without writing it down."""
        text = " ".join([step["request"]["path"], *step["request"]["query"].values()])
        for found in _NAMED.finditer(text):
            if found[0] not in self._ours and (own := self._likely(found[1])):
                self._ours[found[0]] = own

    def _likely(self, stem: str) -> str:
        pattern, known = re.compile(rf"{stem}-\w{{5}}"), {*self._ours.values()}
        for kind in (WORKLOAD, POD):
            for entry in self.cluster.store.table(kind).entries.values():
                name = str(entry.obj["metadata"]["name"])
                if pattern.fullmatch(name) and name not in known:
                    return name
        return ""

    def play_at_its_time(self, step: Step) -> list[str]:
        """Let time pass up to when the step was answered, then play it."""
        followed = step["request"]["query"].get("follow") == "true"
        if not followed and (moment := moment_of(step)):
            due = self._began + moment - self._start + 0.9
            if due > self.time:
                self.pass_time(due - self.time)
        if _is_watch(step):
            return ["a watch that the recorder cut off"]
        self._find_names(step)
        return self.play_job(step)


def cluster_queue(name: str, *namespaces: str, **spec: Any) -> Object:
    """A ClusterQueue of 8 A100 as the recorder applied it; without namespaces those of its own team."""
    amounts = (("cpu", "96"), ("memory", "900Gi"), ("nvidia.com/gpu", "8"))
    resources = [{"name": one, "nominalQuota": amount} for one, amount in amounts]
    group = {
        "coveredResources": [one for one, _ in amounts],
        "flavors": [{"name": "a100", "resources": resources}],
    }
    own = {"matchLabels": {"kubernetes.io/metadata.name": name.replace("qm-", "qm-t-")}}
    return {
        "name": name,
        "spec": {
            "namespaceSelector": {} if namespaces else own,
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": [group],
            "preemption": {
                "withinClusterQueue": "LowerPriority",
                "reclaimWithinCohort": "Any",
            },
            **spec,
        },
    }


def _is_watch(step: Step) -> bool:
    return (
        step["request"]["query"].get("watch") == "true"
        and "visibility" not in step["request"]["path"]
    )


def moment_of(step: Step) -> float:
    """The last time that an answer names, in seconds; 0 where it names none."""
    text = json.dumps(_without_future(step["response"]["body"]))
    return max(
        (datetime.fromisoformat(one).timestamp() for one in _TIME.findall(text)),
        default=0.0,
    )


def _without_future(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_future(inner)
            for key, inner in value.items()
            if key not in _FORETOLD
        }
    return [_without_future(one) for one in value] if isinstance(value, list) else value
