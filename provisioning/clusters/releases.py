"""Which release of something a cluster runs, and how it is set up, as far as the portal may look."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import yaml

from connectors.errors import PermanentError
from connectors.kubernetes import Cluster, Manifest

T = TypeVar("T")
NUMBERS = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})", re.ASCII)


def version_of(image: str) -> str:
    """The release in an image's tag, such as `v0.19.2`; empty when the image has no tag that says one."""
    tag = image.partition("@")[0].rpartition(":")[2]
    return tag if NUMBERS.match(tag) else ""


def is_older(version: str, least: tuple[int, int]) -> bool:
    """Whether a release is older than this one; False for one that does not say."""
    found = NUMBERS.match(version)
    return bool(found) and (int(found[1]), int(found[2])) < least if found else False


def release_in(deployment: Manifest | None) -> str:
    """The release that a Deployment's images name; empty when none does."""
    containers = (
        deployment["spec"]["template"]["spec"]["containers"] if deployment else []
    )
    return next(
        (
            version
            for each in containers
            if (version := version_of(each.get("image", "")))
        ),
        "",
    )


def deployment_of(cluster: Cluster, name: str, namespace: str) -> Manifest | None:
    """A Deployment; None when there is none of this name, or without the right to see it."""
    return unless_forbidden(
        lambda: cluster.get(("apps/v1", "Deployment"), name, namespace)
    )


def settings_in(cluster: Cluster, name: str, namespace: str, key: str) -> str | None:
    """A file of a ConfigMap; None when there is none, or without the right to see it."""
    found = unless_forbidden(lambda: cluster.get(("v1", "ConfigMap"), name, namespace))
    text = (found or {}).get("data", {}).get(key)
    return text if isinstance(text, str) else None


def mapping_in(text: str) -> dict[str, Any] | None:
    """What a file of settings says; None when it cannot be read. Pure."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    return found if isinstance(found, dict) else None


def unless_forbidden(ask: Callable[[], T]) -> T | None:
    """What a cluster answers; None without the right to ask it: what is known without has to do then."""
    try:
        return ask()
    except PermanentError as error:
        if error.code != "forbidden":
            raise
        return None
