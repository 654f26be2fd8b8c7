"""A cluster on which a team works, and a watcher that copies what is there."""

import copy
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Team, User
from fleet.models import Cluster
from provisioning import reconcile
from provisioning.clusters.observe import look_at
from provisioning.delivery import client_for
from provisioning.models import Tenancy
from tests import factories
from tests.provisioning.kubernetes import Kubernetes, served
from tests.remembered import written
from tests.services.process import wait_until
from tests.services.redis import of_settings
from workloads.models import ClusterObject, Feed, Run
from workloads.runs import following, sending
from workloads.runs.pods import pods_of
from workloads.watching import watcher
from workloads.watching.kept import KINDS

POD, JOB = ("v1", "Pod"), ("batch/v1", "Job")


@pytest.fixture(scope="session")
def kubernetes_server() -> Iterator[Kubernetes]:
    """The cluster all tests here share; use `kubernetes` instead."""
    with served() as running:
        yield running


@pytest.fixture
def kubernetes(kubernetes_server: Kubernetes) -> Iterator[Kubernetes]:
    """A prepared cluster without a tenancy or a fault."""
    cluster = kubernetes_server.cluster
    state = kubernetes_server.snapshot()
    yield kubernetes_server
    cluster.faults.clear()
    kubernetes_server.restore(state)


@dataclass
class Watched:
    """A team's namespace on a served cluster."""

    kubernetes: Kubernetes
    cluster: Cluster
    team: Team
    ada: User
    tenancy: Tenancy

    @property
    def namespace(self) -> str:
        """Where the team works."""
        return self.tenancy.namespace

    def job(
        self,
        name: str,
        *,
        gpus: int = 1,
        pods: int = 1,
        namespace: str = "",
        **labels: str,
    ) -> None:
        """Somebody creates a Job in the team's queue."""
        container = {
            "name": "train",
            "image": "registry.example.com/train:1",
            "args": ["--token=hunter2"],
            "env": [{"name": "PASSWORD", "value": "hunter2"}],
            "resources": {
                "limits": {"nvidia.com/gpu": str(gpus), "cpu": "1", "memory": "1Gi"}
            },
        }
        pod = {"restartPolicy": "Never", "containers": [container]}
        self.kubernetes.create(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": name,
                    "namespace": namespace or self.namespace,
                    "labels": {"kueue.x-k8s.io/queue-name": "default", **labels},
                },
                "spec": {
                    "parallelism": pods,
                    "completions": pods,
                    "template": {"spec": pod},
                },
            }
        )

    def copies(self, kind: str) -> dict[str, dict[str, Any]]:
        """The copies of a kind, by name."""
        rows = ClusterObject.objects.filter(cluster=self.cluster, kind=kind)
        return dict(rows.values_list("name", "body"))


@pytest.fixture
def watched(
    transactional_db: None,
    kubernetes: Kubernetes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Watched]:
    """A team with 2 GPUs in its queue on a cluster that is set up."""
    monkeypatch.setattr(settings.ENV, "kubeconfig_dir", tmp_path)
    monkeypatch.setattr(watcher, "SECONDS", 1)
    monkeypatch.setattr(watcher, "LOOK_ROUND", 0.1)
    kubeconfig = kubernetes.kubeconfig(tmp_path)
    kept = _kept.get(kubernetes.port)
    if kept is None or time.monotonic() > kept.until:
        watched = make(kubernetes, kubeconfig)
        _kept[kubernetes.port] = Kept.of(watched)
    else:
        watched = kept.again(kubernetes)
    yield watched
    client_for(watched.cluster).close()


@dataclass
class Kept:
    """A team's namespace on a cluster as it was when it had been made, for the tests that follow."""

    rows: dict[str, Any]
    on_cluster: dict[str, Any]
    in_database: str
    in_redis: list[dict[Any, Any]]
    # What was seen so long ago is soon to be looked at anew.
    until: float

    @classmethod
    def of(cls, watched: Watched) -> "Kept":
        """What there is now."""
        rows = {
            name: getattr(watched, name)
            for name in ("cluster", "team", "ada", "tenancy")
        }
        return cls(
            copy.deepcopy(rows),
            watched.kubernetes.snapshot(),
            written(),
            [
                {key: client.dump(key) for key in client.scan_iter()}
                for client in of_settings()
            ],
            time.monotonic() + 30,
        )

    def again(self, kubernetes: Kubernetes) -> Watched:
        """Put it back: what stands on the cluster, the rows, and what their commit has left in cache and queue."""
        kubernetes.restore(self.on_cluster)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(self.in_database)
        for client, left in zip(of_settings(), self.in_redis, strict=True):
            for key, value in left.items():
                # Whatever still ends of a test before this one may have put something there meanwhile.
                client.restore(key, 0, value, replace=True)
        return Watched(kubernetes, **copy.deepcopy(self.rows))


_kept: dict[int, Kept] = {}


def make(kubernetes: Kubernetes, kubeconfig: str) -> Watched:
    """The team, its people, its GPUs, and everything of it on the cluster."""
    cluster = factories.cluster("training", kubeconfig=kubeconfig)
    a100 = factories.flavor(
        cluster,
        "a100",
        node_labels={"accelerator": "nvidia-a100"},
        node_taints=[{"key": "sku", "value": "gpu", "effect": "NoSchedule"}],
    )
    ada = factories.person("Ada Okafor")
    team = factories.team("Vision", by=ada)
    factories.join(team, ada)
    tenancy = factories.tenancy(team, cluster)
    factories.allocation(ada, tenancy, a100, gpus=2)
    assert look_at(cluster.pk, now=timezone.now)
    tenancy.refresh_from_db()
    reconcile.reconcile(tenancy.pk, now=timezone.now)
    return Watched(kubernetes, cluster, team, ada, tenancy)


@contextmanager
def watching(kubernetes: Kubernetes | None = None) -> Iterator[threading.Event]:
    """A watcher in this process; every thread of it has ended afterwards, at once where its watches can be ended."""
    stop = threading.Event()
    one = threading.Thread(
        target=watcher.watch, args=(stop,), kwargs={"now": timezone.now}
    )
    one.start()
    try:
        yield stop
    finally:
        stop.set()
        one.join()
        if kubernetes is not None:
            kubernetes.end_watches()
        wait_until(
            lambda: (
                not any(each.name.startswith("feed ") for each in threading.enumerate())
            ),
            what="the threads of the watcher to end",
        )


def is_seen(run: Run, state: str) -> bool:
    """Whether a run is known to be in a state; a running one with its pods, which come by a watch of their own."""
    run.refresh_from_db()
    return run.state == state and (
        state != "running" or any(one.started_at for one in pods_of(run))
    )


def worker_pass() -> None:
    """What worker and clock do meanwhile: send what is to be sent, and read what became of it."""
    Run.objects.live().update(requeue_at=timezone.now())
    for pk in Run.objects.live().values_list("pk", flat=True):
        sending.look_after(pk, now=timezone.now)
    following.follow(now=timezone.now, gone=partial(following.check, now=timezone.now))


def is_read() -> bool:
    """Whether everything of every cluster has been listed."""
    read = Feed.objects.filter(listed_at__isnull=False).count()
    return (
        bool(read)
        and read == Feed.objects.count() == len(KINDS) * Cluster.objects.count()
    )
