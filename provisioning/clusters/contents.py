"""What is in a tenancy's namespace now, read from its cluster: claims with their sizes, pods and queued work."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from connectors.errors import ConnectorError
from connectors.kubernetes import Cluster as Client
from provisioning import throttle
from provisioning.delivery import client_for
from provisioning.desired.kueue_form import workload_of
from provisioning.desired.manifests import KUEUE
from provisioning.desired.spec import TenancySpec
from provisioning.desired.volcano import POD_GROUP
from provisioning.models import Tenancy
from provisioning.pods import is_over

CLAIM, POD, WORKLOAD = (
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Pod"),
    (KUEUE, "Workload"),
)
MOST_NAMES = 50


@dataclass(frozen=True)
class Claim:
    """A claim on disk space: its size as Kubernetes writes it, and whether it is bound to a disk."""

    name: str
    size: str
    is_bound: bool


@dataclass(frozen=True)
class Contents:
    """What was found at `read_at`; `away` says why nothing was, and is empty otherwise."""

    read_at: datetime
    claims: tuple[Claim, ...] = ()
    pods: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    away: str = ""


def read(tenancy: Tenancy, *, now: Callable[[], datetime]) -> Contents:
    """What is in the namespace; outside of any transaction, and without an exception for a cluster that is away."""
    if not tenancy.cluster.is_observed:
        return Contents(
            now(),
            away=f"{tenancy.cluster.title} follows Git, and the portal has no access to it to look.",
        )
    if throttle.seconds_here(tenancy.cluster):
        return Contents(now(), away=f"{tenancy.cluster.title} does not answer.")
    started = time.monotonic()
    try:
        return _read(client_for(tenancy.cluster), tenancy.desired, now=now())
    except ConnectorError as error:
        throttle.failed(
            tenancy.cluster, error, seconds=time.monotonic() - started, now=now()
        )
        return Contents(
            now(), away=f"{tenancy.cluster.title} could not be read: {error.message}"
        )


def work_in(client: Client, spec: TenancySpec) -> list[dict[str, Any]]:
    """What is queued in a tenancy's namespace, in the form of Kueue's Workloads; raises ConnectorError."""
    if spec.has_volcano:
        return [
            workload_of(one, spec.flavor_of)
            for one in client.list(POD_GROUP, spec.namespace)
        ]
    return client.list(WORKLOAD, spec.namespace)


def _read(client: Client, spec: TenancySpec, *, now: datetime) -> Contents:
    namespace = spec.namespace
    claims = tuple(
        sorted(
            (claim_of(one) for one in client.list(CLAIM, namespace)),
            key=lambda c: c.name,
        )
    )
    pods = [one for one in client.list(POD, namespace) if not is_over(one)]
    work = [one for one in work_in(client, spec) if not _said(one, "Finished")]
    return Contents(
        now,
        claims=claims,
        pods=_names(pods),
        running=_names([one for one in work if _said(one, "Admitted")]),
        waiting=_names([one for one in work if not _said(one, "Admitted")]),
    )


def claim_of(live: Mapping[str, Any]) -> Claim:
    """A claim with the size it has or, before it is bound, asks for."""
    status, spec = live.get("status") or {}, live.get("spec") or {}
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "")
    size = (status.get("capacity") or {}).get("storage") or asked
    return Claim(live["metadata"]["name"], str(size), status.get("phase") == "Bound")


def _said(one: Mapping[str, Any], kind: str) -> bool:
    conditions = (one.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == kind and c.get("status") == "True" for c in conditions)


def _names(found: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(sorted(one["metadata"]["name"] for one in found)[:MOST_NAMES])
