"""Which kinds of jobs each cluster serves, and which of them its Kueue looks after: asked at once, then each minute."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import structlog
import yaml
from django.db.models import Q
from django.utils import timezone

from connectors.errors import ConnectorError, PermanentError
from connectors.kubernetes import Cluster as Client
from fleet.models import Cluster
from provisioning import throttle
from provisioning.clusters.kueue import settings_text
from provisioning.delivery import client_for
from workloads.runs.models import ClusterAbility
from workloads.templates.library import TEMPLATES

log = structlog.get_logger(__name__)
AGAIN = timedelta(minutes=1)
KUEUE = "kueue.x-k8s.io/v1beta2"
KINDS = frozenset(one.kind for one in TEMPLATES)
FIELDS = {one.kind: (one.topology_field,) for one in TEMPLATES if one.topology_field}


def learn(*, now: datetime) -> None:
    """Ask the clusters that were never asked, or not for a minute; of one that is silent, what was known stays."""
    known = Q(ability__seen_at__gt=now - AGAIN)
    for cluster in (
        Cluster.objects.looked_after().exclude(known).select_related("ability")
    ):
        if not cluster.is_observed or throttle.seconds_to_wait(cluster, now=now):
            continue
        try:
            _learn(cluster, client_for(cluster))
        except ConnectorError:
            continue


def _learn(cluster: Cluster, client: Client) -> None:
    earlier: ClusterAbility | None = getattr(cluster, "ability", None)
    groups = {kind.partition(".")[2] for kind in KINDS}
    served = {group: client.served_kinds(group) for group in sorted(groups)}
    kinds = sorted(
        kind
        for kind in KINDS
        if kind.partition(".")[0] in served[kind.partition(".")[2]]
    )
    with_kueue = not cluster.has_volcano
    flavors = cluster.flavors.values_list("name", flat=True)
    ClusterAbility.objects.update_or_create(
        cluster=cluster,
        defaults={
            "kinds": kinds,
            "integrations": integrations_in(settings_text(client))
            if with_kueue
            else None,
            "topologies": topologies_of(client, flavors) if with_kueue else {},
            "schemas": schemas_of(client, kinds, earlier.schemas if earlier else {}),
            "seen_at": timezone.now(),
        },
    )


def topologies_of(client: Client, flavors: Iterable[str]) -> dict[str, list[str]]:
    """The levels of the Topology of each flavor that has one, as node labels from the widest to the node.

    None where the portal may not read them, as on clusters that have an older `provisioner.yaml`.
    """
    found: dict[str, list[str]] = {}
    try:
        for flavor in flavors:
            live = client.get((KUEUE, "ResourceFlavor"), flavor)
            name = ((live or {}).get("spec") or {}).get("topologyName")
            topology = client.get((KUEUE, "Topology"), name) if name else None
            if topology is not None:
                found[flavor] = [
                    str(one["nodeLabel"]) for one in topology["spec"]["levels"]
                ]
    except PermanentError as error:
        if error.code != "forbidden":
            raise
        return {}
    return found


def schemas_of(
    client: Client, kinds: Collection[str], earlier: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Of the served kinds which of the fields are there that not every release has.

    A schema is large: it is read again only once its address has changed. None where the cluster shows none, which
    leaves out what needs such a field and nothing else.
    """
    wanted = sorted(kind for kind in FIELDS if kind in kinds)
    if not wanted:
        return {}
    try:
        addresses = client.schema_addresses()
        return {
            kind: _schema_of(client, kind, address, earlier.get(kind, {}))
            for kind in wanted
            if (address := addresses.get(kind.partition(".")[2]))
        }
    except PermanentError as error:
        log.warning("schemas are not read", problem=error.message)
        return {}


def _schema_of(
    client: Client, kind: str, address: str, known: Mapping[str, Any]
) -> Mapping[str, Any]:
    if known.get("address") == address:
        return known
    schema = client.schema(address, kind.partition(".")[0])
    fields = [one for one in FIELDS[kind] if has_field(schema, f"spec.{one}")]
    return {"address": address, "fields": fields}


def has_field(schema: Mapping[str, Any], path: str) -> bool:
    """Whether an object of this schema has a field, such as `spec.suspend`."""
    found: Any = schema
    for name in path.split("."):
        found = (
            (found.get("properties") or {}).get(name)
            if isinstance(found, Mapping)
            else None
        )
    return found is not None


def integrations_in(settings: str | None) -> list[str] | None:
    """The frameworks that Kueue's configuration names; None where it cannot be read or names none."""
    try:
        found = yaml.safe_load(settings or "")
    except yaml.YAMLError:
        return None
    integrations = found.get("integrations") if isinstance(found, dict) else None
    frameworks = (
        integrations.get("frameworks") if isinstance(integrations, dict) else None
    )
    return [str(one) for one in frameworks] if isinstance(frameworks, list) else None
