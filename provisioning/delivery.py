"""The client for a cluster: one per process and kubeconfig, made when first needed."""

import os
from collections.abc import Callable
from pathlib import Path

from django.conf import settings

from connectors.errors import PermanentError
from connectors.kubernetes import Cluster as Client
from fleet.models import Cluster

# What a pass may spend on calls that a server fails at now and then: well below the five seconds of a lease.
PATIENCE = 2.0
_clients: dict[tuple[object, ...], Client] = {}


def client_for(cluster: Cluster) -> Client:
    """The client for one piece of work on this cluster; raises PermanentError when there is no access to it."""
    return _client(cluster).patient(seconds=PATIENCE)


def _client(cluster: Cluster) -> Client:
    if not cluster.is_observed:
        # Without a kubeconfig it would be the cluster that the portal itself runs on.
        raise PermanentError(
            f"The portal has no access to {cluster.title}: it follows Git.",
            code="not_observed",
        )
    if not cluster.kubeconfig:
        return _kept(("in-cluster", os.getpid()), Client.in_cluster)
    path = kubeconfig_path(cluster.kubeconfig)
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise PermanentError(
            f"The kubeconfig {cluster.kubeconfig} is not there.", code="no_kubeconfig"
        ) from error
    key = (str(path), cluster.context, changed, os.getpid())
    return _kept(
        key, lambda: Client.from_kubeconfig(str(path), context=cluster.context or None)
    )


def kubeconfig_path(name: str) -> Path:
    """Where a kubeconfig of this name lies; only plain names inside the configured folder are possible."""
    return Path(settings.ENV.kubeconfig_dir) / Path(name).name


def _kept(key: tuple[object, ...], make: Callable[[], Client]) -> Client:
    if key not in _clients:
        _clients[key] = make()
    return _clients[key]
