"""Which Kueue a cluster runs, and whether the portal's objects mean there what they say."""

from collections.abc import Mapping
from typing import Any

from connectors.errors import PermanentError
from connectors.kubernetes import Cluster, Manifest
from provisioning.clusters import releases

LEAST = (0, 16)
NAMESPACE, DEPLOYMENT = "kueue-system", "kueue-controller-manager"
GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
# What is said of a cluster that serves what we write and does not let us see which release does.
NEW_ENOUGH = "0.16 or newer"
SETTINGS, SETTINGS_KEY = "kueue-manager-config", "controller_manager_config.yaml"
MANAGED = "kueue.x-k8s.io/managed=true"
FRAMEWORKS: Mapping[str, str] = {"batch/job": "Jobs", "pod": "pods made by hand"}


def check(version: str) -> None:
    """Refuse a Kueue that stores our queues in another form; an unknown version passes.

    Raises PermanentError (code `kueue_too_old`). Before 0.16 a ClusterQueue of v1beta2 is kept as v1beta1 or not at
    all, so what stands on the cluster is not what was written.
    """
    if releases.is_older(version, LEAST):
        raise too_old(version)


def too_old(version: str) -> PermanentError:
    """What is said of a cluster whose Kueue is none that we can provision."""
    least = ".".join(map(str, LEAST))
    return PermanentError(
        f"Kueue {version} is too old: the portal needs {least} or newer.",
        code="kueue_too_old",
    )


def installed(cluster: Cluster) -> str:
    """The release that a cluster runs, from its controller's image, or that it is new enough where we may not look.

    Raises PermanentError (code `no_kueue`, `kueue_too_old`) when nothing serves what we write.
    """
    served = cluster.served_versions(GROUP)
    if not served:
        raise missing()
    said = releases.release_in(controller(cluster))
    if VERSION not in served:
        raise too_old(said or "of this cluster")
    return said or NEW_ENOUGH


def controller(cluster: Cluster) -> Manifest | None:
    """The Deployment of Kueue's controller; None when there is none of this name, or without the right to see it."""
    return releases.deployment_of(cluster, DEPLOYMENT, NAMESPACE)


def priorities(cluster: Cluster) -> list[str] | None:
    """The names of the priorities that its queues know; None without the right to list them."""
    found = releases.unless_forbidden(
        lambda: cluster.list((f"{GROUP}/{VERSION}", "WorkloadPriorityClass"))
    )
    return None if found is None else sorted(one["metadata"]["name"] for one in found)


def settings_text(cluster: Cluster) -> str | None:
    """Kueue's own configuration as its release keeps it; None when there is none, or without the right to see it."""
    return releases.settings_in(cluster, SETTINGS, NAMESPACE, SETTINGS_KEY)


def settings_lacking(text: str) -> list[str]:
    """What Kueue's configuration has to say for teams' work and does not, each in words. Pure."""
    settings = releases.mapping_in(text)
    if settings is None:
        return ["it cannot be read"]
    integrations = settings.get("integrations")
    frameworks = (
        integrations.get("frameworks") if isinstance(integrations, dict) else None
    )
    # Without a list of its own a release has its defaults, which jobs are among.
    lacking = [
        f"integrations.frameworks does not name {each}: {what} start past the queue"
        for each, what in FRAMEWORKS.items()
        if isinstance(frameworks, list) and each not in frameworks
    ]
    if not _selects_teams(settings.get("managedJobsNamespaceSelector")):
        lacking.append(
            f"managedJobsNamespaceSelector does not select namespaces with {MANAGED}"
        )
    return lacking


def _selects_teams(selector: Any) -> bool:
    """Whether a selector takes a namespace with the label that teams' namespaces have; none is every namespace."""
    if not isinstance(selector, dict):
        return selector is None
    labels = selector.get("matchLabels") or {}
    name, _, value = MANAGED.partition("=")
    return isinstance(labels, dict) and all(
        (name, value) == pair for pair in labels.items()
    )


def missing() -> PermanentError:
    """What is said of a cluster without any Kueue that we know."""
    return PermanentError(
        "Kueue is not installed: install 0.16 or newer.", code="no_kueue"
    )
