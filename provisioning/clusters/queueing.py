"""What keeps a cluster's queues, Kueue or Volcano: its release, and what is seen of how it works."""

from connectors.kubernetes import Cluster as Client
from fleet.models import Cluster
from provisioning.clusters import health, kueue, volcano


def check(cluster: Cluster) -> None:
    """Refuse a release, as it was last seen, for which the portal's objects do not mean what they say.

    Raises PermanentError (codes `kueue_too_old`, `volcano_too_old`).
    """
    if cluster.has_volcano:
        volcano.check(cluster.volcano_version)
    else:
        kueue.check(cluster.kueue_version)


def note(cluster: Cluster, client: Client) -> None:
    """Keep which release runs there; raises PermanentError for one whose objects are not those that we write."""
    if cluster.has_volcano:
        cluster.volcano_version = volcano.installed(client)
    else:
        cluster.kueue_version = kueue.installed(client)
    known = {
        "kueue_version": cluster.kueue_version,
        "volcano_version": cluster.volcano_version,
    }
    Cluster.objects.filter(pk=cluster.pk).update(**known)
    check(cluster)


def note_priorities(cluster: Cluster, client: Client) -> None:
    """Keep which priorities its queues know: a job that names another one is accepted, and nothing ever comes of it."""
    known = None if cluster.has_volcano else kueue.priorities(client)
    Cluster.objects.filter(pk=cluster.pk).update(queue_priorities=known)


def parts(cluster: Cluster, client: Client) -> list[health.Part]:
    """What is seen of its controllers, its webhooks, its settings, and of Volcano's guards."""
    return _of_volcano(client) if cluster.has_volcano else _of_kueue(client)


def _of_kueue(client: Client) -> list[health.Part]:
    found = health.kueue_controller(kueue.controller(client))
    settings = kueue.settings_text(client)
    if settings is not None:
        found.append(health.kueue_settings(kueue.settings_lacking(settings)))
    return found


def _of_volcano(client: Client) -> list[health.Part]:
    found = health.volcano_scheduler(volcano.scheduler(client))
    settings = volcano.settings_text(client)
    if settings is not None:
        found.append(health.volcano_settings(volcano.settings_lacking(settings)))
    return [*found, health.volcano_guards(volcano.guards_missing(client))]
