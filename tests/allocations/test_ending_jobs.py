"""Real Jobs that run over the end of what is held: they finish, run until their date or stop, as the offering says."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from allocations.ends.actions import expire, give_back
from allocations.models import Allocation, Leftover, StoppedWork
from allocations.use import over_quota
from policy.document import Thresholds
from provisioning import reconcile
from provisioning.delivery import client_for
from provisioning.desired.manifests import fleet_objects
from provisioning.models import Tenancy
from tests import factories
from tests.provisioning.conftest import Place
from tests.services.process import wait_until

DAY = timedelta(days=1)
GPU = "nvidia.com/gpu"
JOB, POD = ("batch/v1", "Job"), ("v1", "Pod")
CLASS = "kueue.x-k8s.io/priority-class"


@pytest.fixture(autouse=True)
def generous(place: Place) -> None:
    """A policy that grants at once, and what all teams of the cluster share."""
    wide = Thresholds(
        automatic_gpus=24,
        window_gpus_team=1000,
        window_gpus_person=None,
        automatic_usd=Decimal(10_000),
        window_usd_team=None,
        window_usd_person=None,
        automatic_gpu_hours=None,
    )
    factories.policy(wide, now=place.time - DAY)
    flavors = [
        (one.name, one.node_labels, one.node_taints)
        for one in place.cluster.flavors.all()
    ]
    for manifest in fleet_objects(cohort=place.cluster.cohort, flavors=flavors):
        place.kubernetes.create(manifest)
    place.reconcile()


def hold(place: Place, at: Tenancy, gpus: int, when_over: str) -> Allocation:
    asked = factories.request(place.ada, at, place.a100, gpus=gpus, now=place.time)
    rows = Allocation.objects.filter(hold=asked.hold_id, ended_at=None)
    rows.update(
        grace_hours=0,
        when_over=when_over,
        drain_hours=24 if when_over == "drain" else 0,
    )
    reconcile.reconcile(at.pk, now=place.now)
    return rows.get()


def submit(
    place: Place,
    at: Tenancy,
    name: str,
    gpus: int,
    *,
    seconds: int = 0,
    priority: str = "",
) -> None:
    """Hand in a Job as a member does, and see it run; without seconds it runs until somebody stops it."""
    amounts = {"cpu": "1", "memory": "1Gi", GPU: str(gpus)}
    container: dict[str, Any] = {
        "name": "train",
        "image": "train:1",
        "resources": {"requests": amounts, "limits": amounts},
        "command": ["sleep", str(seconds)] if seconds else ["python", "train.py"],
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    labels = {CLASS: priority} if priority else {}
    place.kubernetes.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": at.namespace, "labels": labels},
            "spec": {"template": {"spec": pod}},
        }
    )
    wait_until(
        lambda: "Running" in phases(place, at, name), what=f"a pod of {name} to run"
    )


def phases(place: Place, at: Tenancy, name: str) -> list[str]:
    found = client_for(place.cluster).list(
        POD, at.namespace, label_selector=f"job-name={name}"
    )
    return [one["status"]["phase"] for one in found]


def is_suspended(place: Place, at: Tenancy, name: str) -> bool:
    found = place.kubernetes.get(JOB, name, at.namespace)
    assert found is not None
    return bool(found["spec"]["suspend"])


def rooms(place: Place, at: Tenancy) -> tuple[str, str]:
    """What the namespace has room for, and what the queue guarantees."""
    hard = (
        place.kubernetes.get(("v1", "ResourceQuota"), "team-quota", at.namespace) or {}
    )
    queue = place.kubernetes.get(over_quota.QUEUE, at.namespace) or {}
    flavors = {
        f["name"]: f
        for group in queue["spec"]["resourceGroups"]
        for f in group["flavors"]
    }
    nominal = next(
        r["nominalQuota"] for r in flavors["a100"]["resources"] if r["name"] == GPU
    )
    return hard["spec"]["hard"][f"requests.{GPU}"], nominal


def come_to_the_end(place: Place, row: Allocation) -> None:
    """The holding ends, the quota goes down, and somebody looks at what still runs."""
    assert expire(row.pk, now=row.until)
    place.time = row.until
    place.reconcile()
    over_quota.look(place.tenancy.pk, now=place.now)


def look_later(place: Place, **span: float) -> int | None:
    place.later(**span)
    return over_quota.look(place.tenancy.pk, now=place.now)


@pytest.mark.slow
def test_a_job_that_may_finish_runs_to_its_own_end_and_gives_its_room_back(
    place: Place,
) -> None:
    row = hold(place, place.tenancy, 2, "finish")
    submit(place, place.tenancy, "train", 2, seconds=2)
    come_to_the_end(place, row)
    assert rooms(place, place.tenancy) == ("2", "0")
    assert [one["job"] for one in Leftover.objects.get().running] == ["Job train"]
    assert (
        is_suspended(place, place.tenancy, "train"),
        look_later(place, days=30),
    ) == (False, 0)
    wait_until(
        lambda: phases(place, place.tenancy, "train") == ["Succeeded"],
        what="the job to finish",
    )
    look_later(place, minutes=1)
    place.reconcile()
    assert rooms(place, place.tenancy) == ("0", "0")
    assert (Leftover.objects.open().count(), StoppedWork.objects.count()) == (0, 0)


@pytest.mark.slow
def test_a_job_that_is_drained_runs_until_its_date_and_is_stopped_then(
    place: Place,
) -> None:
    row = hold(place, place.tenancy, 2, "drain")
    submit(place, place.tenancy, "train", 2)
    come_to_the_end(place, row)
    assert look_later(place, hours=23) == 0
    assert phases(place, place.tenancy, "train") == ["Running"]
    assert look_later(place, hours=1, minutes=1) == 1
    assert (
        is_suspended(place, place.tenancy, "train"),
        phases(place, place.tenancy, "train"),
    ) == (True, [])
    look_later(place, minutes=1)
    place.reconcile()
    assert rooms(place, place.tenancy) == ("0", "0")
    assert StoppedWork.objects.get().job == "Job train"


def test_a_job_that_has_to_stop_stops_at_the_end(place: Place) -> None:
    row = hold(place, place.tenancy, 2, "stop")
    submit(place, place.tenancy, "train", 2)
    come_to_the_end(place, row)
    assert (
        is_suspended(place, place.tenancy, "train"),
        phases(place, place.tenancy, "train"),
    ) == (True, [])
    assert StoppedWork.objects.get().gpus == 2


@pytest.mark.slow
def test_kueue_takes_back_by_priority_what_is_held_no_more_when_another_team_needs_it(
    place: Place,
) -> None:
    other = factories.tenancy(factories.team("Speech", by=place.ada), place.cluster)
    factories.join(other.team, place.ada)
    row = hold(place, place.tenancy, 24, "finish")
    for name, gpus, priority in (
        ("training", 8, "scheduled-training"),
        ("sweep", 8, "best-effort"),
        ("notebook", 8, "exploratory"),
    ):
        submit(place, place.tenancy, name, gpus, priority=priority)
    assert give_back(row.pk, gpus=8, by=place.ada, now=place.time) is not None
    place.reconcile()
    look_later(place, seconds=5)
    # A lower guarantee alone stops nobody: what is over runs on as borrowed.
    assert rooms(place, place.tenancy) == ("24", "16")
    assert not any(
        is_suspended(place, place.tenancy, name)
        for name in ("training", "sweep", "notebook")
    )
    hold(place, other, 8, "finish")
    submit(place, other, "theirs", 8, priority="best-effort")
    assert is_suspended(place, place.tenancy, "sweep")
    assert phases(place, place.tenancy, "sweep") == []
    assert [
        phases(place, place.tenancy, name) for name in ("training", "notebook")
    ] == [
        ["Running"],
        ["Running"],
    ]
    look_later(place, minutes=1)
    place.reconcile()
    assert (Leftover.objects.open().count(), rooms(place, place.tenancy)) == (
        0,
        ("16", "16"),
    )
    assert not StoppedWork.objects.exists()
