"""One ask of every offering, as a person of the scene's team would make it."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from accounts.models import User
from approvals.decisions import actions as decisions
from approvals.models import Request
from approvals.requests.actions import submit
from approvals.requests.wanted import Wanted, resolve
from approvals.states import State
from fleet.models import Cluster
from manual import actions as tasks
from manual.briefs import Brief
from manual.models import Task
from tests import factories
from tests.scene import DAY, NOW, REASON, Scene

SPECS: Mapping[str, Mapping[str, Any]] = {
    "gpus": {"flavor": "training/a100", "gpus": 1, "purpose": "training"},
    "notebook": {"flavor": "training/a100", "gpus": 1, "profile": "pytorch"},
    "volume": {
        "cluster": "training",
        "name": "corpus",
        "gib": 100,
        "access": "ReadWriteMany",
    },
    "namespace": {"cluster": "dev", "environment": "dev", "project": "main"},
    "training": {"flavor": "training/a100", "gpus": 8, "purpose": "training"},
    "endpoint": {
        "flavor": "training/a100",
        "model": "mistral-7b",
        "gpus_per_replica": 1,
        "replicas": 2,
    },
    "openai": {
        "region": "eastus",
        "model": "gpt-4o-mini",
        "thousand_tokens_per_minute": 2,
        "deployment_type": "Standard",
    },
    "reservation": {
        "region": "eastus",
        "vm_size": "Standard_NC4as_T4_v3",
        "instances": 1,
        "zone": "",
        "nodes_for": "",
    },
    "cluster": {
        "region": "eastus",
        "vm_size": "Standard_NC4as_T4_v3",
        "nodes": 2,
        "purpose": "development",
    },
}
BY_PERSON = ("endpoint", "openai", "reservation", "cluster")


def wanted(
    scene: Scene, key: str, *, until: datetime | None = None, **changes: Any
) -> Wanted:
    """An ask of an offering by the scene's team; a namespace is on a cluster where it is not yet."""
    if key == "namespace" and not Cluster.objects.filter(name="dev").exists():
        factories.cluster("dev")
    if key == "notebook":
        factories.notebooks_on(scene.flavor.cluster)
    said = {**SPECS[key], **changes}
    return resolve(
        key, said, team=scene.team, until=until or NOW + 3 * DAY, reason=REASON
    )


def granted(
    scene: Scene,
    key: str,
    *,
    until: datetime | None = None,
    now: datetime = NOW,
    **changes: Any,
) -> Request:
    """The same, asked by Ada and approved by whoever has to; `now` is the real time where a page shows it."""
    asked = submit(
        wanted(scene, key, until=until or now + 3 * DAY, **changes),
        by=scene.ada,
        now=now,
    )
    approve(asked, by=(scene.priya, scene.elena), now=now)
    return Request.objects.select_related("flavor__cluster", "team").get(pk=asked.pk)


def approve(
    asked: Request, *, by: Iterable[User], now: datetime, count: int | None = None
) -> None:
    """Have these people approve a request, or `count` of it, one after another, as long as it waits."""
    for lead in by:
        row = Request.objects.get(pk=asked.pk)
        if row.state == State.WAITING:
            decisions.approve(
                row.pk, by=lead, expected_version=row.version, now=now, count=count
            )


def task_of(asked: Request, kind: str = Task.Kind.SET_UP) -> Task:
    """The request's task."""
    return Task.objects.get(request_number=asked.pk, kind=kind)


def asked_of_people(asked: Request, *, now: datetime) -> Task:
    """A task to carry a request out, whatever was decided about it."""
    brief = Brief(
        title="Set it up",
        instruction="Set it up.",
        facts=(),
        offering=asked.offering,
        request=asked.pk,
        until=asked.until,
    )
    return tasks.ask(
        brief,
        kind=Task.Kind.SET_UP,
        team=asked.team,
        wanted_by=asked.requester,
        hours=24,
        now=now,
    )


def later(**length: float) -> datetime:
    """A moment after the scene's."""
    return NOW + timedelta(**length)
