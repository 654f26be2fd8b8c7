"""A sandbox cluster with five GPU nodes and a team's queue, and JobSets handed in to it."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox.kubernetes import NodeSpec
from tests.recordings.calling import call
from tests.sandbox.kubernetes.jobs import GPU, QUEUE_NAME, World
from tests.sandbox.kubernetes.test_cluster import HEADERS
from tests.workloads.runs import WHERE, run
from workloads.templates.library import BY_SLUG

TEAM = WHERE.namespace
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2"
A100, SKU = {"accelerator": "nvidia-a100"}, ("sku", "gpu", "NoSchedule")
LABEL = "jobset.sigs.k8s.io/"


@dataclass
class JobSetWorld(World):
    """One cluster with 40 GPUs on five nodes, of which the team may use 32."""

    nodes: tuple[NodeSpec, ...] = tuple(
        NodeSpec(
            f"a100-{n}", gpus=8, cpu="96", memory="1900Gi", labels=A100, taints=(SKU,)
        )
        for n in range(5)
    )
    flavor: str = field(default="a100", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        sku = {
            "key": "sku",
            "operator": "Equal",
            "value": "gpu",
            "effect": "NoSchedule",
        }
        self.make(
            "resourceflavors",
            self.flavor,
            {"spec": {"nodeLabels": A100, "tolerations": [sku]}},
        )
        self.make("workloadpriorityclasses", WHERE.priority, {"value": 1000})
        amounts = (("cpu", "960"), ("memory", "9000Gi"), (GPU, "32"))
        resources = [{"name": name, "nominalQuota": amount} for name, amount in amounts]
        group = {
            "coveredResources": [name for name, _ in amounts],
            "flavors": [{"name": self.flavor, "resources": resources}],
        }
        self.queue(TEAM, 32, resourceGroups=[group])

    def hand_in(self, name: str, *entries: dict[str, Any], **spec: Any) -> Any:
        """Create a JobSet of these entries in the team's queue."""
        metadata = {"name": name, "labels": {QUEUE_NAME: "default"}}
        body = {"metadata": metadata, "spec": {"replicatedJobs": list(entries), **spec}}
        return self.send("POST", f"{JOBSETS}/namespaces/{TEAM}/jobsets", body)

    def hand_in_run(self) -> str:
        """Apply a run of a minute over four nodes as the portal renders it; its name."""
        whole = replace(
            run(BY_SLUG["pytorch"]), nodes=4, launcher="none", program=("sleep", "60")
        )
        *others, jobset = BY_SLUG["pytorch"].render(whole)
        for one in others:
            self.apply(f"/api/v1/namespaces/{TEAM}/configmaps", one)
        self.apply(f"{JOBSETS}/namespaces/{TEAM}/jobsets", jobset)
        return whole.name

    def apply(self, path: str, manifest: Any) -> None:
        """Server-side apply in the portal's name."""
        headers = {**HEADERS, "content-type": "application/apply-patch+yaml"}
        query = {"fieldManager": "quartermaster", "fieldValidation": "Strict"}
        name = manifest["metadata"]["name"]
        answer = call(
            self.cluster.app,
            "PATCH",
            f"{path}/{name}",
            query,
            headers,
            json.dumps(manifest).encode(),
        )
        assert answer.status == 201, answer.text

    def get_jobset(self, name: str) -> Any:
        """A JobSet as it is now."""
        return self.send("GET", f"{JOBSETS}/namespaces/{TEAM}/jobsets/{name}")

    def condition(self, name: str, word: str) -> tuple[str, str, str]:
        """Status, reason and message of a condition of a JobSet."""
        listed = self.get_jobset(name).get("status", {}).get("conditions", ())
        found = next((one for one in listed if one["type"] == word), None)
        return (
            (found["status"], found["reason"], found["message"])
            if found
            else ("", "", "")
        )

    def everything(self) -> list[str]:
        """Kind and name of what is in the team's namespace, apart from events and what belongs there."""
        paths = [
            f"{JOBSETS}/namespaces/{TEAM}/jobsets",
            f"/apis/batch/v1/namespaces/{TEAM}/jobs",
            f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{TEAM}/workloads",
            *(f"/api/v1/namespaces/{TEAM}/{plural}" for plural in ("pods", "services")),
        ]
        lists = [self.send("GET", path) for path in paths]
        return [
            f"{each['kind']} {one['metadata']['name']}"
            for each in lists
            for one in each["items"]
        ]

    def used_gpus(self) -> str:
        """The GPUs that the queue's admitted work holds."""
        status = self.send("GET", f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{TEAM}")[
            "status"
        ]
        [flavor] = status["flavorsReservation"]
        return next(
            str(one["total"]) for one in flavor["resources"] if one["name"] == GPU
        )

    def jobset_events(self, name: str) -> set[tuple[str, str]]:
        """Reason and message of what was told of a JobSet."""
        found = self.send("GET", f"/api/v1/namespaces/{TEAM}/events")["items"]
        return {
            (one["reason"], one["message"])
            for one in found
            if one["involvedObject"]["kind"] == "JobSet"
            and one["involvedObject"]["name"] == name
        }


def entry(
    name: str, pods: int = 2, gpus: int = 1, *, replicas: int = 1, **more: Any
) -> dict[str, Any]:
    """An entry of a JobSet: so many Jobs of so many pods, which run until they are deleted."""
    resources = (
        {"limits": {GPU: str(gpus)}, "requests": {GPU: str(gpus)}} if gpus else {}
    )
    container = {"name": "main", "image": "train:1", "resources": resources}
    template = {
        "metadata": {"annotations": more.pop("annotations", {})},
        "spec": {
            "restartPolicy": "Never",
            "containers": [container],
            **more.pop("pod", {}),
        },
    }
    spec = {
        "parallelism": pods,
        "completions": pods,
        "backoffLimit": 0,
        "template": template,
    }
    return {
        "name": name,
        "replicas": replicas,
        "template": {"spec": {**spec, **more.pop("spec", {})}},
        **more,
    }
