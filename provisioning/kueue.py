"""Which Kueue a cluster runs, and whether the portal's objects mean there what they say."""

import re

from connectors.errors import PermanentError
from connectors.kubernetes import Cluster, Manifest

LEAST = (0, 16)
NAMESPACE, DEPLOYMENT = "kueue-system", "kueue-controller-manager"
GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
# What is said of a cluster that serves what we write and does not let us see which release does.
NEW_ENOUGH = "0.16 or newer"
NUMBERS = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})", re.ASCII)


def version_of(image: str) -> str:
    """The release in an image's tag, such as `v0.19.2`; empty when the image has no tag that says one."""
    tag = image.partition("@")[0].rpartition(":")[2]
    return tag if NUMBERS.match(tag) else ""


def check(version: str) -> None:
    """Refuse a Kueue that stores our queues in another form; an unknown version passes.

    Raises PermanentError (code `kueue_too_old`). Before 0.16 a ClusterQueue of v1beta2 is kept as v1beta1 or not at
    all, so what stands on the cluster is not what was written.
    """
    found = NUMBERS.match(version)
    if found and (int(found[1]), int(found[2])) < LEAST:
        raise too_old(version)


def too_old(version: str) -> PermanentError:
    """What is said of a cluster whose Kueue is none that we can provision."""
    least = ".".join(map(str, LEAST))
    return PermanentError(
        f"Kueue {version} is too old: the portal needs {least} or newer.", code="kueue_too_old"
    )


def installed(cluster: Cluster) -> str:
    """The release that a cluster runs, from its controller's image, or that it is new enough where we may not look.

    Raises PermanentError (code `no_kueue`, `kueue_too_old`) when nothing serves what we write.
    """
    served = cluster.served_versions(GROUP)
    if not served:
        raise missing()
    found = controller(cluster)
    containers = found["spec"]["template"]["spec"]["containers"] if found else []
    said = next((version for each in containers if (version := version_of(each.get("image", "")))), "")
    if VERSION not in served:
        raise too_old(said or "of this cluster")
    return said or NEW_ENOUGH


def controller(cluster: Cluster) -> Manifest | None:
    """The Deployment of Kueue's controller; None when there is none of this name, or without the right to see it."""
    try:
        return cluster.get(("apps/v1", "Deployment"), DEPLOYMENT, NAMESPACE)
    except PermanentError as error:
        # What is served has to do then.
        if error.code != "forbidden":
            raise
        return None


def missing() -> PermanentError:
    """What is said of a cluster without any Kueue that we know."""
    return PermanentError("Kueue is not installed: install 0.16 or newer.", code="no_kueue")
