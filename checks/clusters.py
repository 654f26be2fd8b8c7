"""I1, I2, I8, I9 on the clusters: what stands there is what is held, once, and nothing else of ours or of others."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog
from django.db.models import Sum

from allocations.models import Allocation
from checks.findings import BROKE, Finding, Report, broke
from connectors.errors import ConnectorError
from connectors.kubernetes import Cluster as Client
from connectors.kubernetes import Ref
from fleet.models import Cluster
from provisioning.clusters import identity
from provisioning.clusters.installation import mark
from provisioning.clusters.observe import shared_steps
from provisioning.delivery import client_for
from provisioning.desired.manifests import (
    NAMED,
    SOMETIMES,
    TENANCY_LABEL,
    sometimes,
    tenancy_objects,
)
from provisioning.desired.objects import INSTALLATION_LABEL
from provisioning.desired.plan import FIELD_MANAGER, Key, Step, Verb, is_ours, plan
from provisioning.desired.quantities import counted
from provisioning.desired.usage import QUEUES, in_form
from provisioning.drift.models import Drift
from provisioning.drift.reconcile import left_alone, place_of
from provisioning.models import Tenancy

logger = structlog.get_logger(__name__)
SCOPE_LABEL = "quartermaster.io/scope"
AGAIN = "If it is still so in two minutes, press “Try again” on the team's page and read what it says."
AGAIN_SHARED = "If it is still so in two minutes, read what the cluster's page says."
STRAY = "See whose it is; delete it by hand when it is nobody's."
# Listed whole, to see whether something was written to that is not ours.
WATCHED = ("Namespace", "ResourceQuota", *QUEUES)
Live = Mapping[Key, dict[str, Any]]


@dataclass
class Seen:
    """One cluster as it was listed: our objects by tenancy, and the others that carry our field manager."""

    cluster: Cluster
    by_tenancy: dict[str, dict[Key, dict[str, Any]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    touched: list[Key] = field(default_factory=list)

    def add(self, found: dict[str, Any]) -> None:
        """Sort one object in."""
        labels = found["metadata"].get("labels") or {}
        if labels.get(INSTALLATION_LABEL, mark()) != mark():
            return  # another portal's, for it to look after
        if not is_ours(found):
            if any(
                e.get("manager") == FIELD_MANAGER
                for e in found["metadata"].get("managedFields") or []
            ):
                self.touched.append(Key.of(found))
        elif SCOPE_LABEL not in labels:
            self.by_tenancy[labels.get(TENANCY_LABEL, "")][Key.of(found)] = found


def look_at_clusters(report: Report, *, now: datetime) -> None:
    """Add what is found on every cluster; one that cannot be read is noted."""
    for cluster in Cluster.objects.not_written_off().order_by("name"):
        if cluster.delivery != Cluster.Delivery.APPLY:
            report.notes.append(
                f"{cluster.name}: delivered by Git, so what stands there was not compared."
            )
            continue
        try:
            report.findings += _wrong_on(cluster, report, now=now)
        except ConnectorError as error:
            report.notes.append(f"{cluster.name}: not looked at. {error.message}")
        except Exception as error:
            # Whatever is wrong with one entry must not hide what is wrong with the others.
            logger.exception("cluster not checked", cluster=cluster.name)
            report.findings.append(Finding("I8", cluster.name, broke(error), BROKE))
    report.checked |= {"I8", "I9"}


def _wrong_on(cluster: Cluster, report: Report, *, now: datetime) -> list[Finding]:
    tenancies = {str(t.pk): t for t in _standing(cluster)}
    client = client_for(cluster)
    # What stands on an API server that is refused is another cluster's to compare.
    identity.check(cluster, client)
    seen = _list(client, cluster, tenancies.values())
    found = [*_strays(seen, tenancies), *_wrong_shared(cluster, client)]
    for key, tenancy in tenancies.items():
        live = seen.by_tenancy.get(key, {})
        steps, rows = left_alone(
            tenancy, plan(tenancy_objects(tenancy.desired), live), live, now=now
        )
        if rows:
            report.notes.append(
                f"{cluster.name}: in {tenancy.namespace} {len(rows)} found changed from elsewhere, left alone or "
                "waiting for a lead, and not compared."
            )
        wrong = [*_wrong_of(tenancy, steps, _without(live, rows))]
        if wrong and _moves(tenancy):
            report.notes.append(
                f"{cluster.name}: {tenancy.namespace} was being changed, and was not compared."
            )
        elif not tenancy.is_settled:
            report.notes.append(
                f"{cluster.name}: {tenancy.namespace} is not ready yet. {tenancy.ready['message']}"
            )
        else:
            found += wrong
    return found


def _standing(cluster: Cluster) -> list[Tenancy]:
    rows = Tenancy.objects.present().filter(cluster=cluster, generation__gte=1)
    return list(rows.select_related("cluster", "team").order_by("pk"))


def _moves(before: Tenancy) -> bool:
    """Whether a worker is at it, or something was asked of it, since it was read."""
    now = Tenancy.objects.get(pk=before.pk)
    return (now.generation, now.lease_no, now.lease_until) != (
        before.generation,
        before.lease_no,
        None,
    )


def _list(client: Client, cluster: Cluster, tenancies: Any) -> Seen:
    seen, kinds = Seen(cluster), dict[Ref, None](dict.fromkeys(SOMETIMES))
    for tenancy in tenancies:
        kinds |= dict.fromkeys(
            Key.of(manifest).ref for manifest in tenancy_objects(tenancy.desired)
        )
        kinds |= dict.fromkeys(sometimes(tenancy.desired))
    marks = "app.kubernetes.io/managed-by=quartermaster"
    for ref in kinds:
        for found in client.list(
            ref,
            label_selector="" if ref[1] in WATCHED else marks,
            name=NAMED.get(ref, ""),
        ):
            seen.add(found)
    return seen


def _strays(seen: Seen, tenancies: Mapping[str, Tenancy]) -> Iterator[Finding]:
    """I9: ours without an owner or in somebody else's place, and others' with our hand in it."""
    for owner, objects in seen.by_tenancy.items():
        tenancy = tenancies.get(owner)
        for key in objects:
            if tenancy is None:
                yield _stray(
                    seen,
                    key,
                    f"It says it belongs to tenancy {owner or 'none'}, which is not here.",
                )
            elif (key.namespace or key.name) != tenancy.namespace:
                yield _stray(
                    seen,
                    key,
                    f"It belongs to {tenancy.namespace} and stands somewhere else.",
                )
    for key in seen.touched:
        yield _stray(seen, key, "It is not ours, and the portal has written to it.")


def _wrong_shared(cluster: Cluster, client: Client) -> Iterator[Finding]:
    """I8 of what all teams of a cluster share; what is missing comes with the next look at the cluster."""
    for step in shared_steps(cluster, client)[0]:
        if step.verb is Verb.UPDATE:
            words = (
                f"{step.key.kind} {step.key.name} would be written again: {step.why}."
            )
            yield Finding("I8", cluster.name, words, AGAIN_SHARED)


def _stray(seen: Seen, key: Key, words: str) -> Finding:
    place = f"{key.namespace}/{key.name}" if key.namespace else key.name
    return Finding("I9", f"{seen.cluster.name} {key.kind} {place}", words, STRAY)


def _without(live: Live, rows: Sequence[Drift]) -> Live:
    """What stands there but for the objects that people know to differ."""
    places = {row.place for row in rows}
    return {key: found for key, found in live.items() if place_of(key) not in places}


def _wrong_of(tenancy: Tenancy, steps: Sequence[Step], live: Live) -> Iterator[Finding]:
    subject = f"{tenancy.cluster.name} {tenancy.namespace}"
    yield from _wrong_quotas(tenancy, live, subject)
    for step in steps:
        if step.verb is Verb.CREATE:
            words = f"{step.key.kind} {step.key.name} is called true and is not there."
            yield Finding("I1", subject, words, AGAIN)
        elif step.verb is not Verb.KEEP:
            words = (
                f"{step.key.kind} {step.key.name} would be written again: {step.why}."
            )
            yield Finding("I8", subject, words, AGAIN)


def _wrong_quotas(tenancy: Tenancy, live: Live, subject: str) -> Iterator[Finding]:
    """I2, from the allocations themselves and not from what is desired: quota and queue as they stand."""
    if not tenancy.has_access:
        return  # its team leaves: quota and queue are of nothing, and what is held goes back a moment later
    rows = Allocation.objects.live().of_gpus().filter(tenancy=tenancy).order_by()
    sums = list(
        rows.values_list("flavor__name", "flavor__resource").annotate(sum=Sum("gpus"))
    )
    held = {name: number for name, _, number in sums}
    for key, found in live.items():
        if (key.kind, key.name) == ("ResourceQuota", "team-quota"):
            yield from _narrow(found["spec"]["hard"], sums, subject)
        if (
            key.kind in QUEUES
            and (nominal := _nominal(in_form(found, tenancy.desired))) != held
        ):
            yield Finding(
                "I2",
                subject,
                f"Its queue guarantees {nominal}, {held} are held.",
                AGAIN,
            )


def _narrow(
    hard: Mapping[str, Any], sums: Sequence[tuple[str, str, int]], subject: str
) -> Iterator[Finding]:
    """Where a quota has less room for a resource, whole GPUs or a slice of them, than is held of it."""
    held: dict[str, int] = defaultdict(int)
    for _, resource, number in sums:
        held[resource] += number
    for resource, number in held.items():
        room = hard.get(f"requests.{resource}", "0")
        if counted(room) < number:
            words = f"Its quota has room for {room} of {resource}, {number} are held."
            yield Finding("I2", subject, words, AGAIN)


def _nominal(queue: Mapping[str, Any]) -> dict[str, int]:
    """GPUs that a ClusterQueue guarantees, by flavor, without those it has none of."""
    gpus: dict[str, int] = defaultdict(int)
    for group in queue["spec"].get("resourceGroups", []):
        for flavor in group["flavors"]:
            # A queue with slices has both kinds of each flavor, one of which is 0.
            gpus[flavor["name"]] += sum(
                counted(one["nominalQuota"])
                for one in flavor["resources"]
                if one["name"].startswith("nvidia.com/")
            )
    return {name: number for name, number in gpus.items() if number}
