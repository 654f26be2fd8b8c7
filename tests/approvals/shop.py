"""One ask of every offering, as a person of the scene's team would make it."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from approvals.decisions import actions as decisions
from approvals.models import Request
from approvals.requests.actions import submit
from approvals.requests.wanted import Wanted, resolve
from approvals.states import State
from fleet.models import Cluster
from manual.models import Task
from tests import factories
from tests.scene import DAY, NOW, REASON, Scene

SPECS: Mapping[str, Mapping[str, Any]] = {
    "gpus": {"flavor": "training/a100", "gpus": 1, "purpose": "training"},
    "notebook": {"flavor": "training/a100", "gpus": 1, "profile": "pytorch"},
    "volume": {"cluster": "training", "name": "corpus", "gib": 100, "access": "ReadWriteMany"},
    "namespace": {"cluster": "dev", "environment": "dev", "project": "main"},
    "training": {"flavor": "training/a100", "gpus": 8, "purpose": "training"},
    "endpoint": {"flavor": "training/a100", "model": "mistral-7b", "gpus_per_replica": 1, "replicas": 2},
    "openai": {"region": "eastus", "model": "gpt-4o-mini", "thousand_tokens_per_minute": 2},
    "reservation": {"region": "eastus", "vm_size": "Standard_NC4as_T4_v3", "instances": 1},
    "cluster": {"region": "eastus", "vm_size": "Standard_NC4as_T4_v3", "nodes": 2, "purpose": "development"},
}
BY_PERSON = ("endpoint", "openai", "reservation", "cluster")


def wanted(scene: Scene, key: str, *, until: datetime | None = None, **changes: Any) -> Wanted:
    """An ask of an offering by the scene's team; a namespace is on a cluster where it is not yet."""
    if key == "namespace" and not Cluster.objects.filter(name="dev").exists():
        factories.cluster("dev")
    if key == "notebook":
        factories.notebooks_on(scene.flavor.cluster)
    said = {**SPECS[key], **changes}
    return resolve(key, said, team=scene.team, until=until or NOW + 3 * DAY, reason=REASON)


def granted(
    scene: Scene, key: str, *, until: datetime | None = None, now: datetime = NOW, **changes: Any
) -> Request:
    """The same, asked by Ada and approved by whoever has to; `now` is the real time where a page shows it."""
    asked = submit(wanted(scene, key, until=until or now + 3 * DAY, **changes), by=scene.ada, now=now)
    for lead in (scene.priya, scene.elena):
        row = Request.objects.get(pk=asked.pk)
        if row.state == State.WAITING:
            decisions.approve(row.pk, by=lead, expected_version=row.version, now=now)
    return Request.objects.select_related("flavor__cluster", "team").get(pk=asked.pk)


def task_of(asked: Request, kind: str = Task.Kind.SET_UP) -> Task:
    """The request's task."""
    return Task.objects.get(request_number=asked.pk, kind=kind)


def later(**length: float) -> datetime:
    """A moment after the scene's."""
    return NOW + timedelta(**length)
