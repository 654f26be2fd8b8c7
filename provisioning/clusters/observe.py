"""Looking at a cluster: does it answer, how many GPUs has it, and does what every tenancy shares stand there?"""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import ConnectorError, PermanentError
from connectors.kubernetes import Cluster as Client
from fleet.models import Cluster
from provisioning import throttle, writing
from provisioning.clusters import away, capacity, health, identity, queueing
from provisioning.delivery import client_for
from provisioning.desired import cilium
from provisioning.desired import gitops as keepers
from provisioning.desired.manifests import Manifest, fleet_objects
from provisioning.desired.plan import Key, Step, Verb, plan
from provisioning.drift import replacing
from provisioning.git import pull_requests as git_delivery
from provisioning.models import Tenancy


def look_at(cluster_id: int, *, now: Callable[[], datetime]) -> bool:
    """Look at one cluster and record what was seen; returns whether it answered and accepts us.

    What is known not to answer is left alone as everywhere else, and while another worker finds out about it.
    """
    cluster = Cluster.objects.select_related("throttle").get(pk=cluster_id)
    if cluster.written_off_at is not None:
        return False
    if cluster.is_away and throttle.seconds_to_wait(cluster, now=now()):
        return False
    with throttle.probe(cluster, now=now) as may_call:
        return _look(cluster, now=now) if may_call else bool(cluster.reachable)


def _look(cluster: Cluster, *, now: Callable[[], datetime]) -> bool:
    started = time.monotonic()
    version, by_git = cluster.version, cluster.delivery == Cluster.Delivery.GIT
    parts: list[health.Part] = []
    try:
        if by_git:
            git_delivery.deliver_shared(cluster, now=now)
        if not by_git or cluster.kubeconfig:
            client = client_for(cluster)
            version = client.version()
            parts.append(health.api_server(version))
            identity.confirm(cluster, client)
            queueing.note(cluster, client)
            parts += _note_cilium(cluster, client)
            parts += queueing.parts(cluster, client)
            nodes = client.list(("v1", "Node"))
            parts.append(health.nodes(nodes))
            capacity.count(cluster, nodes, now=now())
            if not by_git:
                _put_shared_objects(cluster, client)
            queueing.note_priorities(cluster, client)
    except ConnectorError as error:
        throttle.failed(cluster, error, seconds=time.monotonic() - started, now=now())
        seen = health.after_failure(parts, error.message) if cluster.is_observed else []
        return _seen(cluster, error, version=version, parts=seen, now=now())
    return _seen(cluster, None, version=version, parts=parts, now=now())


def _note_cilium(cluster: Cluster, client: Client) -> list[health.Part]:
    """Keep whether ways out may be DNS names there; a part of the cluster's health where some are."""
    found = cilium.is_usable(client, is_written_to=cluster.is_written_to)
    Cluster.objects.filter(pk=cluster.pk).update(has_cilium=found)
    return (
        [health.names_outside(enforced=found)]
        if any(rule.get("names") for rule in cluster.egress)
        else []
    )


def shared_steps(
    cluster: Cluster, client: Client
) -> tuple[list[Step], dict[Key, Manifest]]:
    """What would make the objects that all teams share as wanted, and what stands there; writes nothing."""
    desired = fleet_objects(
        queueing=cluster.queueing,
        cohort=cluster.cohort,
        flavors=[
            (f.name, f.node_labels, f.node_taints)
            for f in cluster.flavors.order_by("name")
        ],
    )
    live: dict[Key, Manifest] = {}
    for manifest in desired:
        key = Key.of(manifest)
        found = client.get(key.ref, key.name)
        if found is not None:
            live[key] = found
    return plan(desired, live), live


def _put_shared_objects(cluster: Cluster, client: Client) -> None:
    steps, live = shared_steps(cluster, client)
    keepers.refuse_kept_by_others(steps, live)
    for step in steps:
        if step.verb in (Verb.CREATE, Verb.UPDATE):
            replacing.take_away(client, step, live.get(step.key))
            for _ in writing.write(client, step):
                continue
    foreign = next((step for step in steps if step.verb is Verb.FOREIGN), None)
    if foreign is not None:
        raise PermanentError(foreign.why, code="foreign")


def _seen(
    cluster: Cluster,
    error: ConnectorError | None,
    *,
    version: str,
    parts: list[health.Part],
    now: datetime,
) -> bool:
    reachable = error is None
    message = error.message if error is not None else ""
    fields: dict[str, Any] = {
        "reachable": reachable,
        "message": message,
        "failure_code": error.code if isinstance(error, PermanentError) else "",
        "version": version,
        "parts": health.dated(parts, cluster.parts, now),
        "looked_at": now,
    }
    if reachable or any(
        part["part"] == health.API and part["state"] == health.GOOD for part in parts
    ):
        fields["last_contact_at"] = now
    with transaction.atomic():
        # A look that was under way when the cluster was written off finds nothing out any more.
        mine = Cluster.objects.not_written_off().filter(pk=cluster.pk)
        if not mine.update(**fields):
            return False
        away.note(cluster, is_away=not reachable, now=now)
        if reachable and not cluster.reachable:
            # It is back: what waited for it need not wait for its next turn. Only then: a cluster may be read and
            # still hang at every write, which passes find out.
            throttle.answered(cluster, now=now)
            Tenancy.objects.filter(cluster=cluster, is_true=False).requeue(now)
        if cluster.reachable is not reachable:
            kind = Kind.CLUSTER_REACHABLE if reachable else Kind.CLUSTER_UNREACHABLE
            record(kind, actor=PORTAL, subject=("cluster", cluster.pk), message=message)
    return reachable
