"""A cluster to provision on, and a team that wants a place there."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from accounts.models import User
from fleet.models import Cluster, Flavor
from provisioning import reconcile
from provisioning.delivery import client_for
from provisioning.models import Tenancy
from tests import factories
from tests.provisioning.kubernetes import GROUP, Kubernetes, served


@pytest.fixture(scope="session")
def kubernetes_server() -> Iterator[Kubernetes]:
    """The cluster all tests here share; use `kubernetes` instead."""
    with served() as running:
        yield running


@pytest.fixture
def kubernetes(kubernetes_server: Kubernetes) -> Iterator[Kubernetes]:
    """A prepared cluster without a tenancy, a fault or a write counted."""
    cluster = kubernetes_server.cluster
    state = kubernetes_server.snapshot()
    cluster.requests.clear()
    yield kubernetes_server
    cluster.faults.clear()
    kubernetes_server.restore(state)
    cluster.has_cilium = False


@pytest.fixture(scope="session")
def volcano_server() -> Iterator[Kubernetes]:
    """The cluster with Volcano that all tests here share; use `volcano` instead."""
    with served(queueing="volcano") as running:
        yield running


@pytest.fixture
def volcano(volcano_server: Kubernetes) -> Iterator[Kubernetes]:
    """A prepared cluster whose queues are Volcano's, without a tenancy, a fault or a write counted."""
    cluster = volcano_server.cluster
    state = volcano_server.snapshot()
    cluster.requests.clear()
    yield volcano_server
    cluster.faults.clear()
    volcano_server.restore(state)


@dataclass
class Place:
    """A tenancy that is wanted on a cluster, with a clock of its own."""

    kubernetes: Kubernetes
    cluster: Cluster
    a100: Flavor
    h100: Flavor
    ada: User
    tenancy: Tenancy
    time: datetime

    def now(self) -> datetime:
        """The time as the test set it."""
        return self.time

    def later(self, **span: float) -> None:
        """Move the clock on."""
        self.time += timedelta(**span)

    def reconcile(self) -> int | None:
        """One pass of a worker; returns its writes."""
        return reconcile.reconcile(self.tenancy.pk, now=self.now)

    @property
    def row(self) -> Tenancy:
        """The tenancy as it is stored now."""
        return Tenancy.objects.get(pk=self.tenancy.pk)

    def states(self) -> list[str]:
        """The state of each object on the checklist."""
        return [line["state"] for line in self.row.objects_seen]


@pytest.fixture
def place(
    db: None, kubernetes: Kubernetes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    """A team's place on the served cluster, not looked at yet."""
    monkeypatch.setattr(settings.ENV, "kubeconfig_dir", tmp_path)
    cluster = factories.cluster("training", kubeconfig=kubernetes.kubeconfig(tmp_path))
    a100 = factories.flavor(cluster, "a100", node_labels={"accelerator": "nvidia-a100"})
    h100 = factories.flavor(
        cluster, "h100", node_labels={"accelerator": "nvidia-h100"}, gpus_total=16
    )
    ada = factories.person("Ada Okafor")
    team = factories.team("Vision", by=ada)
    factories.join(team, ada)
    tenancy = factories.tenancy(team, cluster)
    yield Place(kubernetes, cluster, a100, h100, ada, tenancy, timezone.now())
    client_for(cluster).close()


@pytest.fixture
def gangs(
    db: None, volcano: Kubernetes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    """A team's place on a cluster with Volcano, not looked at yet; of its kinds of GPU one is whole, one is slices."""
    monkeypatch.setattr(settings.ENV, "kubeconfig_dir", tmp_path)
    cluster = factories.cluster(
        "gang", kubeconfig=volcano.kubeconfig(tmp_path), queueing="volcano"
    )
    a100 = factories.flavor(cluster, "a100", node_labels={"accelerator": "nvidia-a100"})
    slices = factories.flavor(cluster, "slices", resource="nvidia.com/mig-1g.10gb")
    ada = factories.person("Ada Okafor")
    team = factories.team("Vision", by=ada, entra_group=GROUP)
    factories.join(team, ada)
    tenancy = factories.tenancy(team, cluster)
    yield Place(volcano, cluster, a100, slices, ada, tenancy, timezone.now())
    client_for(cluster).close()
