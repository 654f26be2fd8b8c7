"""Which Volcano a cluster runs, whether its scheduler counts as the portal's queues mean it, and how it is guarded."""

from typing import Any

from connectors.errors import PermanentError
from connectors.kubernetes import Cluster, Manifest
from provisioning.clusters import releases
from provisioning.desired.volcano import BATCH, SCHEDULING

# The first with `deserved` and the plugin `capacity`.
LEAST = (1, 9)
NAMESPACE, DEPLOYMENT = "volcano-system", "volcano-scheduler"
NEW_ENOUGH = "1.9 or newer"
SETTINGS, SETTINGS_KEY = "volcano-scheduler-configmap", "volcano-scheduler.conf"
ACTIONS = ("enqueue", "allocate")
# What each plugin is for, said where it is missing.
PLUGINS = {
    "gang": "jobs start with a part of their pods",
    "capacity": "queues do not have what their teams hold",
}
ADMISSION = "admissionregistration.k8s.io/v1"
GUARDS = ("quartermaster-volcano-queues", "quartermaster-volcano-pods")


def check(version: str) -> None:
    """Refuse a Volcano that does not know what a queue deserves; an unknown version passes.

    Raises PermanentError (code `volcano_too_old`).
    """
    if releases.is_older(version, LEAST):
        raise too_old(version)


def too_old(version: str) -> PermanentError:
    """What is said of a cluster whose Volcano is none that we can provision."""
    least = ".".join(map(str, LEAST))
    return PermanentError(
        f"Volcano {version} is too old: the portal needs {least} or newer.",
        code="volcano_too_old",
    )


def missing() -> PermanentError:
    """What is said of a cluster without any Volcano that we know."""
    return PermanentError(
        "Volcano is not installed: install 1.9 or newer.", code="no_volcano"
    )


def installed(cluster: Cluster) -> str:
    """The release that a cluster runs, from its scheduler's image, or that it is new enough where we may not look.

    Raises PermanentError (code `no_volcano`, `volcano_too_old`) when nothing serves what we write.
    """
    served = [
        cluster.served_versions(each.partition("/")[0]) for each in (SCHEDULING, BATCH)
    ]
    if not all(served):
        raise missing()
    said = releases.release_in(scheduler(cluster))
    wanted = [each.partition("/")[2] for each in (SCHEDULING, BATCH)]
    if any(version not in found for version, found in zip(wanted, served, strict=True)):
        raise too_old(said or "of this cluster")
    return said or NEW_ENOUGH


def scheduler(cluster: Cluster) -> Manifest | None:
    """The Deployment of Volcano's scheduler; None when there is none of this name, or without the right to see it."""
    return releases.deployment_of(cluster, DEPLOYMENT, NAMESPACE)


def settings_text(cluster: Cluster) -> str | None:
    """The scheduler's configuration; None when there is none, or without the right to see it."""
    return releases.settings_in(cluster, SETTINGS, NAMESPACE, SETTINGS_KEY)


def settings_lacking(text: str) -> list[str]:
    """What the scheduler's configuration has to say for teams' work and does not, each in words. Pure."""
    settings = releases.mapping_in(text)
    if settings is None:
        return ["it cannot be read"]
    actions, plugins = _actions(settings), _plugins(settings)
    lacking = [
        f"actions does not name {each}: no job gets nodes"
        for each in ACTIONS
        if each not in actions
    ]
    lacking += [
        f"no tier names the plugin {name}: {what}"
        for name, what in PLUGINS.items()
        if name not in plugins
    ]
    if "proportion" in plugins:
        lacking.append(
            "a tier names the plugin proportion, which shares by weight and not by what teams hold"
        )
    return lacking


def guards_missing(cluster: Cluster) -> list[str] | None:
    """What of deploy/kubernetes/volcano-guards.yaml is not there; None without the right to see it."""
    return releases.unless_forbidden(
        lambda: [
            f"{kind} {name}"
            for name in GUARDS
            for kind in (
                "ValidatingAdmissionPolicy",
                "ValidatingAdmissionPolicyBinding",
            )
            if cluster.get((ADMISSION, kind), name) is None
        ]
    )


def _actions(settings: dict[str, Any]) -> set[str]:
    return {each.strip() for each in str(settings.get("actions") or "").split(",")}


def _plugins(settings: dict[str, Any]) -> set[str]:
    tiers = settings.get("tiers")
    found = (
        [
            one
            for tier in tiers
            if isinstance(tier, dict)
            for one in tier.get("plugins") or ()
        ]
        if tiers
        else []
    )
    return {str(one.get("name")) for one in found if isinstance(one, dict)}
