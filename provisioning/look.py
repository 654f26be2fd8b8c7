"""Looking at a cluster: does it answer, how many GPUs has it, and does what every tenancy shares stand there?"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import ConnectorError, PermanentError
from connectors.kubernetes import Cluster as Client
from fleet.models import Cluster, Flavor
from provisioning import breaker
from provisioning.delivery import client_for
from provisioning.manifests import GPU, Manifest, fleet_objects
from provisioning.models import Tenancy
from provisioning.plan import Key, Verb, plan


def look_at(cluster_id: int, *, now: Callable[[], datetime]) -> bool:
    """Look at one cluster and record what was seen; returns whether it answered and accepts us."""
    cluster = Cluster.objects.get(pk=cluster_id)
    try:
        client = client_for(cluster)
        version = client.version()
        _count_gpus(cluster, client, now())
        _put_shared_objects(cluster, client)
    except ConnectorError as error:
        return _seen(cluster, reachable=False, message=error.message, version=cluster.version, now=now())
    return _seen(cluster, reachable=True, message="", version=version, now=now())


def gpus_by_flavor(nodes: Iterable[Mapping[str, Any]], flavors: Iterable[Flavor]) -> Counter[int]:
    """GPUs that the ready, schedulable nodes of each flavor can give, by the flavor's id.

    A node belongs to the first flavor whose labels it carries.
    """
    ordered = sorted(flavors, key=lambda f: -len(f.node_labels))
    found: Counter[int] = Counter()
    for node in nodes:
        if node.get("spec", {}).get("unschedulable") or not _is_ready(node):
            continue
        marks = node["metadata"].get("labels") or {}
        gpus = int(node.get("status", {}).get("allocatable", {}).get(GPU, 0))
        owner = next((f for f in ordered if f.node_labels.items() <= marks.items()), None)
        if owner is not None:
            found[owner.pk] += gpus
    return found


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions") or []
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _count_gpus(cluster: Cluster, client: Client, now: datetime) -> None:
    flavors = list(cluster.flavors.all())
    found = gpus_by_flavor(client.list(("v1", "Node")), flavors)
    for flavor in flavors:
        Flavor.objects.filter(pk=flavor.pk).update(gpus_total=found[flavor.pk], gpus_seen_at=now)


def _put_shared_objects(cluster: Cluster, client: Client) -> None:
    desired = fleet_objects(
        cohort=cluster.cohort,
        flavors=[(f.name, f.node_labels, f.node_taints) for f in cluster.flavors.order_by("name")],
    )
    live: dict[Key, Manifest] = {}
    for manifest in desired:
        key = Key.of(manifest)
        found = client.get(key.ref, key.name)
        if found is not None:
            live[key] = found
    for step in plan(desired, live):
        if step.verb is Verb.FOREIGN:
            raise PermanentError(step.why, code="foreign")
        if step.verb in (Verb.CREATE, Verb.UPDATE) and step.manifest is not None:
            client.apply(step.manifest)


def _seen(cluster: Cluster, *, reachable: bool, message: str, version: str, now: datetime) -> bool:
    fields: dict[str, Any] = {
        "reachable": reachable,
        "message": message,
        "version": version,
        "looked_at": now,
    }
    if reachable:
        fields["last_contact_at"] = now
    with transaction.atomic():
        Cluster.objects.filter(pk=cluster.pk).update(**fields)
        if reachable and not cluster.reachable:
            # It is back: what waited for it need not wait for its next turn.
            breaker.has_answered(cluster.pk)
            Tenancy.objects.filter(cluster=cluster, is_true=False).update(next_look_at=now, attempts=0)
        if cluster.reachable is not reachable:
            kind = Kind.CLUSTER_REACHABLE if reachable else Kind.CLUSTER_UNREACHABLE
            record(kind, actor=PORTAL, subject=("cluster", cluster.pk), message=message)
    return reachable
