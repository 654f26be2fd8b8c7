"""A team that holds GPUs on a sandbox cluster of the run's own, and the portal's processes around it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils import timezone
from kubernetes.client import ApiClient
from kubernetes.config import new_client_from_config

from accounts.models import User
from accounts.tokens.actions import create_token
from bench import rig, tenancies
from bench.tenancies import Ground
from fleet.models import Cluster
from policy.document import Thresholds
from provisioning import reconcile
from provisioning.clusters.observe import look_at
from provisioning.models import Tenancy
from tests import factories
from tests.faults.running import Portal, environment

MUCH = Decimal(100_000)
GROUP, VERSION, PLURAL = "kueue.x-k8s.io", "v1beta2", "workloads"


@dataclass(frozen=True)
class Crew:
    """A team's namespace with its people; `portal` starts the processes that work for them."""

    ground: Ground
    tenancy: Tenancy
    people: Sequence[User]
    portal: Portal

    @property
    def cluster(self) -> Cluster:
        """Where they work."""
        return self.ground.cluster

    def headers(self, number: int = 0) -> dict[str, str]:
        """The headers of one of the people, whose token may change things."""
        person = self.people[number]
        _, secret = create_token(
            user=person, name="bench", scope="write", days=1, now=timezone.now()
        )
        return {"Authorization": f"Bearer {secret}"}


def job(
    name: str, namespace: str, *, annotations: dict[str, str], labels: dict[str, str]
) -> dict[str, Any]:
    """A Job with one GPU in the team's queue, whose pod has these annotations and labels."""
    size = {"nvidia.com/gpu": "1", "cpu": "1", "memory": "1Gi"}
    container = {
        "name": "train",
        "image": "registry.example.com/train:1",
        "resources": {"limits": size},
    }
    taint = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"kueue.x-k8s.io/queue-name": "default"},
        },
        "spec": {
            "template": {
                "metadata": {"annotations": annotations, "labels": labels},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [container],
                    "tolerations": [taint],
                },
            },
        },
    }


def kubeconfig(crew: Crew) -> str:
    """The file with which an administrator reaches the cluster."""
    return str(crew.ground.world.described()["admin_kubeconfig"])


def official(crew: Crew) -> ApiClient:
    """The Kubernetes project's own client, as a script makes it from such a file."""
    made: ApiClient = new_client_from_config(kubeconfig(crew))  # type: ignore[no-untyped-call]
    return made


@contextmanager
def crew(on: rig.Rig, *, gpus: int, people: int = 1) -> Iterator[Crew]:
    """A team whose namespace stands and whose queue has so many GPUs, until the block ends."""
    folder = on.folder / "training"
    with tenancies.ground(on) as ground:
        members = [factories.person(f"Member {number}") for number in range(people)]
        team = factories.team("Vision", by=members[0])
        for one in members:
            factories.join(team, one)
        tenancy = factories.tenancy(team, ground.cluster)
        # No person decides here.
        factories.policy(
            Thresholds(automatic_gpus=gpus, automatic_usd=MUCH), now=timezone.now()
        )
        factories.allocation(
            members[0], tenancy, ground.cluster.flavors.get(), gpus=gpus
        )
        look_at(ground.cluster.pk, now=timezone.now)
        reconcile.reconcile(tenancy.pk, now=timezone.now)
        tenancy.refresh_from_db()
        if not tenancy.is_true:
            raise RuntimeError(
                f"The team's namespace does not stand: {tenancy.conditions}"
            )
        portal = Portal(folder, environment(folder, kubeconfigs=ground.world.folder))
        try:
            yield Crew(ground, tenancy, members, portal)
        finally:
            portal.kill()
