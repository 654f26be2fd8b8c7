"""A team's work on a cluster with Volcano, from its registration to the end of what was granted."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from allocations.actions import grant
from allocations.ends.actions import expire, give_back
from allocations.models import Allocation, Leftover
from allocations.use import over_quota
from connectors.errors import PermanentError
from connectors.kubernetes import Cluster as Client_
from fleet.models import Cluster, Flavor
from notebooks.hubs.actions import connect
from notebooks.servers.actions import check_offer
from provisioning import reconcile
from provisioning.clusters.observe import look_at
from provisioning.delivery import client_for
from provisioning.desired.volcano import JOB, POD_GROUP, QUEUE
from tests import factories
from tests.calling import Caller
from tests.provisioning.kubernetes import GROUP, MEMBER, Kubernetes, served
from tests.services.process import wait_until
from tests.workloads.conftest import (
    POD,
    Watched,
    is_read,
    is_seen,
    watching,
    worker_pass,
)
from web.refusals import Conflict
from workloads.models import ClusterObject, Run
from workloads.runs.planning.abilities import learn
from workloads.watching import watcher

GPU = "nvidia.com/gpu"
GANG: dict[str, Any] = {
    "template": "volcano",
    "title": "Gang",
    "flavor": "a100",
    "values": {
        "image": "registry.example.com/vision/train:1",
        "launcher": "none",
        "program": ["train.py"],
        "nodes": 2,
        "gpus": 2,
        "cpus": 4,
        "memory": 16,
        "minutes": 60,
    },
}


@pytest.fixture(scope="module")
def volcano_server() -> Iterator[Kubernetes]:
    """A cluster whose queues are Volcano's."""
    with served(queueing="volcano") as running:
        yield running


@dataclass
class Gangs(Watched):
    """A team's namespace on a cluster with Volcano, with 4 GPUs."""

    priya: User

    @cached_property
    def caller(self) -> Caller:
        """A member of the team, over the API."""
        return Caller(self.ada)

    def submit(self, title: str, **values: Any) -> Run:
        """Submit the gang template over the API."""
        asked = GANG | {
            "title": title,
            "tenancy": self.tenancy.pk,
            "values": GANG["values"] | values,
        }
        answer = self.caller.post("runs/", asked, key=title)
        assert answer.status_code == 201, answer.content
        return Run.objects.get(pk=answer.json()["id"])

    def live(
        self, ref: tuple[str, str], name: str, namespace: str | None = None
    ) -> dict[str, Any]:
        """An object as it stands on the cluster."""
        found = self.kubernetes.get(ref, name, namespace)
        assert found is not None
        return found

    def pods(self, run: Run) -> list[dict[str, Any]]:
        """The pods of a run."""
        names = sorted(
            one for one in self.kubernetes.names(POD) if one.startswith(run.name)
        )
        return [self.live(POD, one, self.namespace) for one in names]

    def work(self) -> dict[str, Any]:
        """What runs and waits, by name, as the API tells it."""
        found = self.caller.get(f"work/{self.team.slug}/").json()["work"]
        return {one["name"]: one for one in found}


@pytest.fixture
def gangs(
    transactional_db: None,
    volcano_server: Kubernetes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Gangs]:
    """A cluster that a platform lead registered over the API, with a team that holds 4 GPUs there."""
    state = volcano_server.snapshot()
    monkeypatch.setattr(
        settings, "ENV", settings.ENV.model_copy(update={"kubeconfig_dir": tmp_path})
    )
    monkeypatch.setattr(watcher, "SECONDS", 1)
    monkeypatch.setattr(watcher, "LOOK_ROUND", 0.1)
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    lead = Caller(priya)
    registered = lead.post(
        "clusters/",
        {
            "name": "gang",
            "title": "Gangs",
            "region": "eastus",
            "purpose": "training",
            "queueing": "volcano",
            "kubeconfig": volcano_server.kubeconfig(tmp_path),
        },
    )
    assert registered.status_code == 201, registered.content
    flavor = lead.post(
        "flavors/",
        {
            "cluster": "gang",
            "name": "a100",
            "product": "A100",
            "memory_gb": 80,
            "gpus_per_node": 8,
            "price_per_gpu_hour": "3.67",
            "node_labels": {"accelerator": "nvidia-a100"},
            "node_taints": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}],
        },
    )
    assert flavor.status_code == 201, flavor.content
    cluster = Cluster.objects.get(name="gang")
    assert look_at(cluster.pk, now=timezone.now)
    learn(now=timezone.now())
    ada = factories.person("Ada Okafor")
    team = factories.team("Vision", by=ada, entra_group=GROUP)
    factories.join(team, ada)
    tenancy = factories.tenancy(team, cluster)
    now = timezone.now()
    a100 = Flavor.objects.get(cluster=cluster)
    held = factories.granted(ada, tenancy, a100, gpus=4, until=now + timedelta(days=1))
    grant(held, actor=ada.as_actor(), now=now)
    reconcile.reconcile(tenancy.pk, now=timezone.now)
    tenancy.refresh_from_db()
    assert tenancy.is_settled, tenancy.ready
    yield Gangs(volcano_server, cluster, team, ada, tenancy, priya)
    client_for(cluster).close()
    volcano_server.cluster.faults.clear()
    volcano_server.restore(state)


def until(run: Run, state: str) -> None:
    def reached() -> bool:
        worker_pass()
        return is_seen(run, state)

    wait_until(reached, what=f"{run.name} to be {state}")


@pytest.mark.slow
def test_two_gangs_share_what_the_team_holds_one_after_the_other(gangs: Gangs) -> None:
    """The whole of it: the first runs, the second waits with a reason, runs, is stopped, and nothing is left."""
    with watching(gangs.kubernetes):
        wait_until(is_read, what="everything to be listed")
        first = gangs.submit("First", program=["sleep", "6"])
        until(first, "running")
        job = gangs.live(JOB, first.name, gangs.namespace)
        assert (job["spec"]["queue"], job["spec"]["minAvailable"]) == (
            gangs.namespace,
            2,
        )
        assert [one["spec"]["nodeName"][:5] for one in gangs.pods(first)] == [
            "a100-",
            "a100-",
        ]

        second = gangs.submit("Second", program=["sleep", "600"])
        until(second, "waiting")
        wait_until(
            lambda: (
                gangs.work().get(second.name, {}).get("why", {}).get("code")
                == "quota_full"
            ),
            what="the reason why the second waits",
        )
        told = gangs.work()
        waits = told[second.name]
        assert (waits["kind"], waits["state"], waits["why"]["outlook"]) == (
            "VolcanoJob",
            "waiting",
            "wait",
        )
        assert waits["why"]["what"] == (
            "It waits until enough of its queue's GPUs are free. Your team uses 4 of its 4 here."
        )
        assert waits["why"]["line"] == "It is number 1 of 1 in the line."
        assert gangs.pods(second) == []
        runs = told[first.name]
        assert (runs["state"], runs["gpus"], runs["held"], runs["flavors"]) == (
            "running",
            4,
            4,
            ["a100"],
        )

        until(first, "finished")
        until(second, "running")
        stopped = gangs.caller.post(f"runs/{second.pk}/stop/", {}, key="stop")
        assert stopped.status_code in (200, 202), stopped.content
        until(second, "stopped")
        assert gangs.pods(second) == []
        assert gangs.kubernetes.get(JOB, second.name, gangs.namespace) is None
        assert not [
            one
            for one in gangs.kubernetes.names(POD_GROUP)
            if one.startswith(second.name)
        ]

    allocation = Allocation.objects.live().get(tenancy=gangs.tenancy)
    after = timezone.now() + timedelta(days=8)
    assert expire(allocation.pk, now=after)
    reconcile.reconcile(gangs.tenancy.pk, now=lambda: after)
    over_quota.look(gangs.tenancy.pk, now=lambda: after)
    assert not Leftover.objects.open().exists()
    reconcile.reconcile(gangs.tenancy.pk, now=lambda: after + timedelta(minutes=1))
    queue = gangs.live(QUEUE, gangs.namespace)
    assert (queue["spec"]["deserved"][GPU], queue["spec"]["capability"][GPU]) == (
        "0",
        "0",
    )
    assert queue["status"]["allocated"].get(GPU, "0") == "0"


@pytest.mark.slow
def test_gpus_that_a_gang_was_promised_are_offered_to_nobody(gangs: Gangs) -> None:
    Flavor.objects.update(
        node_taints=[]
    )  # no pod tolerates the taint that the nodes have

    def code_of(run: Run) -> str:
        worker_pass()
        return str(gangs.work().get(run.name, {}).get("why", {}).get("code"))

    with watching(gangs.kubernetes):
        wait_until(is_read, what="everything to be listed")
        first = gangs.submit("First")
        wait_until(
            lambda: code_of(first) == "node_labels_differ",
            what="no node to take the first",
        )
        second = gangs.submit("Second")
        wait_until(lambda: code_of(second) == "quota_full", what="the second to wait")
        assert gangs.work()[first.name]["held"] == 0
        assert gangs.work()[second.name]["why"]["step"] is None
        before = gangs.caller.post(
            "runs/preview/", GANG | {"tenancy": gangs.tenancy.pk}, key="third"
        ).json()
        assert before["start"]["sentence"] == "It waits in line first"
        assert before["start"]["detail"].startswith("0 of your 4 × A100 are free now.")


@pytest.mark.slow
def test_a_run_that_outlives_what_is_held_is_stopped_on_its_date(gangs: Gangs) -> None:
    with watching(gangs.kubernetes):
        wait_until(is_read, what="everything to be listed")
        run = gangs.submit("Long", program=["sleep", "600"])
        until(run, "running")
        live = Allocation.objects.live().filter(tenancy=gangs.tenancy)
        live.update(when_over="drain", drain_hours=24)
        give_back(live.get().pk, gpus=None, by=gangs.ada, now=timezone.now())
        reconcile.reconcile(gangs.tenancy.pk, now=timezone.now)
        over_quota.look(gangs.tenancy.pk, now=timezone.now)
        left = Leftover.objects.get()
        assert [(one["job"], one["gpus"]) for one in left.running] == [
            (f"VolcanoJob {run.name}", {"a100": 4})
        ]
        assert len(gangs.pods(run)) == 2
        later = timezone.now() + timedelta(days=3)
        assert over_quota.look(gangs.tenancy.pk, now=lambda: later) == 1
        wait_until(lambda: gangs.pods(run) == [], what="its pods to end")
        until(run, "gone")


@pytest.mark.slow
def test_the_queue_page_tells_who_runs_and_who_waits(
    gangs: Gangs, client: Client
) -> None:
    with watching(gangs.kubernetes):
        wait_until(is_read, what="everything to be listed")
        first = gangs.submit("First")
        until(first, "running")
        second = gangs.submit("Second")
        until(second, "waiting")
        wait_until(
            lambda: len(ClusterObject.objects.filter(kind="Workload")) == 2,
            what="both to be copied",
        )
        client.force_login(gangs.ada)
        page = " ".join(client.get("/clusters/gang/queue").content.decode().split())
    assert "4 GPUs in use, 4 guaranteed" in page
    assert first.name in page
    assert second.name in page


@pytest.mark.slow
def test_what_somebody_made_by_kubectl_is_told_and_stopped_in_the_portal(
    gangs: Gangs,
) -> None:
    with watching(gangs.kubernetes):
        wait_until(is_read, what="everything to be listed")
        run = gangs.submit("Model")
        job = {
            **run.main,
            "metadata": {"name": "by-hand", "namespace": gangs.namespace},
        }
        gangs.kubernetes.create(job)
        wait_until(
            lambda: gangs.work().get("by-hand", {}).get("state") == "running",
            what="it to run",
        )
        told = gangs.work()["by-hand"]
        target = {
            name: told[name] for name in ("cluster", "namespace", "kind", "name", "uid")
        }
        assert (
            gangs.caller.post(f"work/{gangs.team.slug}/stop/", target).status_code
            == 200
        )
        wait_until(
            lambda: (
                not [
                    one
                    for one in gangs.kubernetes.names(POD)
                    if one.startswith("by-hand")
                ]
            ),
            what="its pods to go",
        )


@pytest.mark.slow
def test_only_the_gang_for_volcano_is_offered_and_the_others_say_why(
    gangs: Gangs,
) -> None:
    refused = gangs.caller.post(
        "runs/",
        GANG | {"tenancy": gangs.tenancy.pk, "template": "single-node"},
        key="kueues",
    )
    assert refused.status_code == 422
    assert "The queues of this cluster are Volcano's" in refused.content.decode()


@pytest.mark.slow
def test_the_gang_on_one_node_is_its_single_node_run(gangs: Gangs) -> None:
    with watching(gangs.kubernetes):
        wait_until(is_read, what="everything to be listed")
        run = gangs.submit("Alone", nodes=1, gpus=4)
        until(run, "running")
    assert len(gangs.pods(run)) == 1


def test_there_are_no_notebooks_and_it_is_said(gangs: Gangs) -> None:
    with pytest.raises(Conflict, match="notebooks get their GPUs through Kueue"):
        connect(
            gangs.cluster,
            address="https://hub.example.com",
            token_file="none",
            by=gangs.priya,
            now=timezone.now(),
        )
    with pytest.raises(Conflict, match="notebooks get their GPUs through Kueue"):
        check_offer(gangs.tenancy, "pytorch", flavor="a100", gpus=1)


@pytest.mark.slow
def test_a_member_names_no_other_teams_queue(gangs: Gangs, tmp_path: Path) -> None:
    other = factories.tenancy(factories.team("Speech"), gangs.cluster)
    reconcile.reconcile(other.pk, now=timezone.now)
    run = gangs.submit("Mine")
    member = Client_.from_kubeconfig(
        tmp_path / gangs.kubernetes.kubeconfig(tmp_path, MEMBER)
    )
    stolen = {**run.main, "metadata": {"name": "stolen", "namespace": gangs.namespace}}
    stolen["spec"] = stolen["spec"] | {"queue": other.namespace}
    with pytest.raises(
        PermanentError, match="jobs here name the queue of their namespace"
    ):
        member.create(stolen)
    member.close()
