"""A cluster whose queues are Volcano's, looked at and written to over its real protocol."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from allocations.actions import grant
from audit.actors import PORTAL
from checks.clusters import look_at_clusters
from checks.findings import Report
from connectors.errors import PermanentError
from connectors.kubernetes import Cluster as Client
from fleet.models import Cluster
from provisioning import leaving
from provisioning.clusters.access import use_of
from provisioning.clusters.observe import look_at
from provisioning.desired.volcano import JOB, QUEUE
from provisioning.drift.cluster_sweep import sweep
from provisioning.models import Tenancy
from provisioning.stages import Stage
from tests import factories
from tests.provisioning.conftest import Place
from tests.provisioning.kubernetes import MEMBER

NAMESPACE, POD = ("v1", "Namespace"), ("v1", "Pod")
SETTINGS = ("v1", "ConfigMap"), "volcano-scheduler-configmap", "volcano-system"
POLICY = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")
GPU = "nvidia.com/gpu"
PARTS = ("API server", "Volcano", "Volcano's settings", "Volcano's guards", "Nodes")


def look(place: Place) -> Cluster:
    look_at(place.cluster.pk, now=place.now)
    return Cluster.objects.get(pk=place.cluster.pk)


def states(cluster: Cluster) -> dict[str, str]:
    return {part["part"]: part["state"] for part in cluster.parts}


def hold(place: Place, gpus: int) -> None:
    """Let the team hold so many GPUs, and make that true."""
    until = place.time + timedelta(days=30)
    granted = factories.granted(
        place.ada, place.tenancy, place.a100, gpus=gpus, until=until
    )
    grant(granted, actor=place.ada.as_actor(), now=place.time)
    place.tenancy.refresh_from_db()
    place.reconcile()


def job(
    place: Place, name: str = "train", *, workers: int = 2, gpus: int = 1, **spec: Any
) -> dict[str, Any]:
    """A Volcano Job whose pods run until somebody deletes them."""
    container = {
        "name": "main",
        "image": "x:1",
        "resources": {"limits": {GPU: str(gpus), "cpu": "1"}},
    }
    pod = {
        "restartPolicy": "Never",
        "nodeSelector": {"accelerator": "nvidia-a100"},
        "tolerations": [{"key": "sku", "operator": "Exists"}],
        "containers": [container],
    }
    task = {"name": "worker", "replicas": workers, "template": {"spec": pod}}
    return {
        "apiVersion": JOB[0],
        "kind": "Job",
        "metadata": {"name": name, "namespace": place.tenancy.namespace},
        "spec": {
            "schedulerName": "volcano",
            "queue": place.tenancy.namespace,
            "minAvailable": workers,
            "tasks": [task],
        }
        | spec,
    }


def pods(place: Place) -> list[str]:
    found = place.kubernetes.names(POD)
    return sorted(one for one in found if one.startswith("train"))


def live_queue(place: Place) -> dict[str, Any]:
    found = place.kubernetes.get(QUEUE, place.tenancy.namespace)
    assert found is not None
    return found


def test_a_look_finds_its_release_and_its_parts_and_puts_the_priorities_there(
    gangs: Place,
) -> None:
    found = look(gangs)
    assert (found.reachable, found.message) == (True, "")
    assert (found.volcano_version, found.kueue_version) == ("v1.15.1", "")
    assert states(found) == dict.fromkeys(PARTS, "good")
    assert len(gangs.kubernetes.names(("scheduling.k8s.io/v1", "PriorityClass"))) >= 4
    written = gangs.kubernetes.writes
    look(gangs)
    assert gangs.kubernetes.writes == written == 4


def test_a_cluster_without_volcano_cannot_be_used_as_one_that_has_it(
    place: Place,
) -> None:
    Cluster.objects.update(queueing="volcano", borrow_percent=0)
    found = look(place)
    assert (found.reachable, found.message) == (
        False,
        "Volcano is not installed: install 1.9 or newer.",
    )


def test_without_a_guard_any_team_could_use_any_queue_and_that_is_said(
    gangs: Place,
) -> None:
    gangs.kubernetes.delete(POLICY, "quartermaster-volcano-queues")
    found = look(gangs)
    assert states(found)["Volcano's guards"] == "bad"
    [words] = [
        part["words"] for part in found.parts if part["part"] == "Volcano's guards"
    ]
    assert "ValidatingAdmissionPolicy quartermaster-volcano-queues" in words


def test_a_scheduler_that_shares_by_weight_is_said(gangs: Place) -> None:
    settings = gangs.kubernetes.get(*SETTINGS)
    assert settings is not None
    text = settings["data"]["volcano-scheduler.conf"].replace("capacity", "proportion")
    gangs.kubernetes.patch(*SETTINGS, {"data": {"volcano-scheduler.conf": text}})
    assert states(look(gangs))["Volcano's settings"] == "bad"


def test_its_queue_follows_what_the_team_holds_and_a_converged_pass_writes_nothing(
    gangs: Place,
) -> None:
    hold(gangs, 4)
    assert gangs.row.is_settled
    found = live_queue(gangs)
    assert (found["spec"]["deserved"][GPU], found["spec"]["capability"][GPU]) == (
        "4",
        "4",
    )
    assert found["status"]["state"] == "Open"
    gangs.later(minutes=1)
    assert gangs.reconcile() == 0


def test_what_somebody_changes_in_its_queue_is_put_back(gangs: Place) -> None:
    hold(gangs, 4)
    gangs.kubernetes.patch(
        QUEUE, gangs.tenancy.namespace, None, {"spec": {"capability": {GPU: "24"}}}
    )
    gangs.later(minutes=1)
    assert gangs.reconcile() == 1
    assert live_queue(gangs)["spec"]["capability"][GPU] == "4"


def test_its_invariants_hold_and_a_queue_of_less_than_is_held_is_found(
    gangs: Place,
) -> None:
    look(gangs)
    hold(gangs, 4)
    report = Report()
    look_at_clusters(report, now=gangs.time)
    assert report.findings == []
    gangs.kubernetes.patch(
        QUEUE, gangs.tenancy.namespace, None, {"spec": {"deserved": {GPU: "2"}}}
    )
    look_at_clusters(report, now=gangs.time)
    assert "Its queue guarantees {'a100': 2}, {'a100': 4} are held." in [
        one.words for one in report.findings
    ]


def test_a_sweep_of_the_cluster_compares_its_queues(gangs: Place) -> None:
    hold(gangs, 4)
    assert sweep(gangs.cluster.pk, now=gangs.now) == []
    gangs.kubernetes.patch(
        QUEUE, gangs.tenancy.namespace, None, {"spec": {"weight": 9}}
    )
    assert sweep(gangs.cluster.pk, now=gangs.now) == [gangs.tenancy.pk]


def test_what_its_work_uses_is_kept_by_flavor(gangs: Place) -> None:
    hold(gangs, 4)
    gangs.kubernetes.create(job(gangs))
    gangs.later(minutes=1)
    gangs.reconcile()
    assert gangs.row.used == {"a100": 2, "slices": 0}


def test_how_a_team_uses_its_place_names_its_queue_and_a_job_that_runs_as_it_stands(
    gangs: Place,
) -> None:
    hold(gangs, 4)
    use = use_of(gangs.row)
    assert use.queue_label == f"spec.queue: {gangs.tenancy.namespace}"
    assert (
        use.logs
        == f"kubectl --namespace {gangs.tenancy.namespace} logs first-job-main-0 --follow"
    )
    gangs.kubernetes.create(yaml.safe_load(use.job))
    pod = gangs.kubernetes.get(POD, "first-job-main-0", gangs.tenancy.namespace)
    assert pod is not None
    assert pod["spec"]["nodeName"].startswith("a100-")


def announce(place: Place, *, hold: bool = False, days: float = 0) -> None:
    Tenancy.objects.filter(pk=place.tenancy.pk).update(is_protected=False)
    leaving.announce(
        place.tenancy.pk,
        leaves_at=place.time + timedelta(days=days),
        hold=hold,
        actor=PORTAL,
        now=place.time,
    )


def drain(place: Place) -> None:
    announce(place)
    until = place.time + timedelta(days=30)
    assert leaving.drain(
        place.tenancy.pk, retained_until=until, actor=PORTAL, now=place.time
    )
    place.later(seconds=20)
    place.reconcile()


def test_held_nothing_new_starts_and_what_runs_runs_on(gangs: Place) -> None:
    hold(gangs, 4)
    gangs.kubernetes.create(job(gangs))
    announce(gangs, hold=True, days=7)
    gangs.later(seconds=20)
    gangs.reconcile()
    gangs.kubernetes.create(job(gangs, "train-later"))
    assert pods(gangs) == ["train-worker-0", "train-worker-1"]


def test_drained_its_pods_are_gone_and_its_jobs_stay(gangs: Place) -> None:
    hold(gangs, 4)
    gangs.kubernetes.create(job(gangs))
    assert len(pods(gangs)) == 2
    drain(gangs)
    gangs.kubernetes.terminate()
    assert pods(gangs) == []
    assert gangs.kubernetes.get(JOB, "train", gangs.tenancy.namespace) is not None
    gangs.later(minutes=1)
    assert gangs.reconcile() == 0


def test_restored_its_queue_is_as_it_was(gangs: Place) -> None:
    hold(gangs, 4)
    before = live_queue(gangs)["spec"]
    drain(gangs)
    assert live_queue(gangs)["spec"]["capability"][GPU] == "0"
    gangs.later(seconds=20)
    leaving.restore(gangs.tenancy.pk, actor=PORTAL, now=gangs.time)
    gangs.reconcile()
    assert live_queue(gangs)["spec"] == before


def test_removed_the_queue_goes_after_the_namespace(gangs: Place) -> None:
    hold(gangs, 4)
    drain(gangs)
    gangs.later(days=31)
    assert leaving.remove(gangs.tenancy.pk, actor=PORTAL, now=gangs.time)
    gangs.reconcile()
    assert gangs.kubernetes.get(QUEUE, gangs.tenancy.namespace) is not None
    for _ in range(10):
        gangs.kubernetes.terminate()
        gangs.later(seconds=61)
        gangs.reconcile()
        if gangs.row.stage == Stage.GONE:
            break
    assert gangs.row.stage == Stage.GONE
    assert gangs.kubernetes.get(QUEUE, gangs.tenancy.namespace) is None
    assert gangs.kubernetes.get(NAMESPACE, gangs.tenancy.namespace) is None


@pytest.fixture
def member(gangs: Place, tmp_path: Path) -> Iterator[Client]:
    """A member of the team, by kubectl."""
    hold(gangs, 4)
    client = Client.from_kubeconfig(
        tmp_path / gangs.kubernetes.kubeconfig(tmp_path, MEMBER)
    )
    yield client
    client.close()


def gpu_pod(place: Place, name: str = "by-hand", **changed: Any) -> dict[str, Any]:
    spec = job(place)["spec"]["tasks"][0]["template"]["spec"]
    annotations = changed.pop("annotations", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": place.tenancy.namespace,
            "annotations": annotations,
        },
        "spec": spec | changed,
    }


def test_a_member_starts_jobs_in_the_own_queue(gangs: Place, member: Client) -> None:
    member.create(job(gangs))
    assert pods(gangs) == ["train-worker-0", "train-worker-1"]


@pytest.mark.slow
@pytest.mark.parametrize("queue", ["qm-others", "default", None])
def test_a_member_cannot_name_another_queue(
    gangs: Place, member: Client, queue: str | None
) -> None:
    others = {**live_queue(gangs), "metadata": {"name": "qm-others"}}
    gangs.kubernetes.create({**others, "status": {}})
    manifest = job(gangs)
    if queue is None:
        del manifest["spec"]["queue"]
    else:
        manifest["spec"]["queue"] = queue
    with pytest.raises(PermanentError) as refused:
        member.create(manifest)
    assert "name the queue of their namespace" in refused.value.message
    assert pods(gangs) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param({}, "is scheduled by Volcano", id="Kubernetes' scheduler"),
        pytest.param(
            {"schedulerName": "volcano"}, "is of a job in the queue", id="no queue"
        ),
        pytest.param(
            {
                "schedulerName": "volcano",
                "annotations": {"scheduling.volcano.sh/queue-name": "default"},
            },
            "is of a job in the queue",
            id="another queue",
        ),
        pytest.param(
            {"schedulerName": "volcano", "nodeName": "a100-0"},
            "names no node",
            id="past every scheduler",
        ),
    ],
)
def test_no_pod_with_gpus_starts_past_the_queue(
    gangs: Place, member: Client, changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(PermanentError) as refused:
        member.create(gpu_pod(gangs, **changed))
    assert words in refused.value.message


def test_a_pod_by_hand_may_take_gpus_through_the_own_queue(
    gangs: Place, member: Client
) -> None:
    annotations = {"scheduling.volcano.sh/queue-name": gangs.tenancy.namespace}
    member.create(
        gpu_pod(gangs, "train-alone", schedulerName="volcano", annotations=annotations)
    )
    found = gangs.kubernetes.get(POD, "train-alone", gangs.tenancy.namespace)
    assert found is not None
    assert found["spec"]["nodeName"].startswith("a100-")


def test_a_pod_without_gpus_is_nothing_to_volcano(gangs: Place, member: Client) -> None:
    plain = gpu_pod(gangs)
    plain["spec"] = {
        "containers": [{"name": "main", "image": "x:1"}],
        "restartPolicy": "Never",
    }
    assert member.create(plain)["metadata"]["name"] == "by-hand"


def test_the_policies_say_nothing_where_kueue_looks_after_the_namespace(
    place: Place,
) -> None:
    factories.allocation(place.ada, place.tenancy, place.a100, gpus=2)
    place.reconcile()
    place.kubernetes.create(gpu_pod(place, "by-hand"))
    assert place.kubernetes.get(POD, "by-hand", place.tenancy.namespace) is not None
