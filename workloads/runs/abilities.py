"""Which kinds of jobs each cluster serves, and which of them its Kueue looks after: asked at once, then each minute."""

from datetime import datetime, timedelta

import yaml
from django.db.models import Q
from django.utils import timezone

from connectors.errors import ConnectorError
from connectors.kubernetes import Cluster as Client
from fleet.models import Cluster
from provisioning import throttle
from provisioning.clusters.kueue import settings_text
from provisioning.delivery import client_for
from workloads.runs.models import ClusterAbility
from workloads.templates.library import TEMPLATES

AGAIN = timedelta(minutes=1)
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
            "seen_at": timezone.now(),
        },
    )


def integrations_in(settings: str | None) -> list[str] | None:
    """The frameworks that Kueue's configuration names; None where it cannot be read or names none."""
    try:
        found = yaml.safe_load(settings or "")
    except yaml.YAMLError:
        return None
    integrations = found.get("integrations") if isinstance(found, dict) else None
    frameworks = integrations.get("frameworks") if isinstance(integrations, dict) else None
    return [str(one) for one in frameworks] if isinstance(frameworks, list) else None
