"""Which kinds of jobs each cluster serves, and which of them its Kueue looks after: asked at once, then each minute."""

from collections.abc import Iterable
from datetime import datetime, timedelta

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

AGAIN = timedelta(minutes=1)
KUEUE = "kueue.x-k8s.io/v1beta2"
KINDS = frozenset(one.kind for one in TEMPLATES)


def learn(*, now: datetime) -> None:
    """Ask the clusters that were never asked, or not for a minute; of one that is silent, what was known stays."""
    known = Q(ability__seen_at__gt=now - AGAIN)
    for cluster in Cluster.objects.filter(enabled=True).exclude(known):
        if not cluster.is_observed or throttle.seconds_to_wait(cluster, now=now):
            continue
        try:
            _learn(cluster, client_for(cluster))
        except ConnectorError:
            continue


def _learn(cluster: Cluster, client: Client) -> None:
    groups = {kind.partition(".")[2] for kind in KINDS}
    served = {group: client.served_kinds(group) for group in sorted(groups)}
    kinds = sorted(kind for kind in KINDS if kind.partition(".")[0] in served[kind.partition(".")[2]])
    ClusterAbility.objects.update_or_create(
        cluster=cluster,
        defaults={
            "kinds": kinds,
            "integrations": integrations_in(settings_text(client)),
            "topologies": topologies_of(client, cluster.flavors.values_list("name", flat=True)),
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
                found[flavor] = [str(one["nodeLabel"]) for one in topology["spec"]["levels"]]
    except PermanentError as error:
        if error.code != "forbidden":
            raise
        return {}
    return found


def integrations_in(settings: str | None) -> list[str] | None:
    """The frameworks that Kueue's configuration names; None where it cannot be read or names none."""
    try:
        found = yaml.safe_load(settings or "")
    except yaml.YAMLError:
        return None
    integrations = found.get("integrations") if isinstance(found, dict) else None
    frameworks = integrations.get("frameworks") if isinstance(integrations, dict) else None
    return [str(one) for one in frameworks] if isinstance(frameworks, list) else None
