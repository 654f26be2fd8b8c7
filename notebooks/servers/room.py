"""Whether a namespace has GPUs left for the pod of a notebook.

Kubernetes refuses a pod that goes beyond its namespace's quota when it is made, and pods that wait in a queue count in
that quota, too. Such a pod never gets to Kueue's queue, so the portal waits in its place.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from connectors.kubernetes import Ref
from notebooks.servers.models import NotebookServer
from notebooks.servers.on_cluster import asked
from provisioning.desired.limits import QUOTA, ceilings
from provisioning.desired.quantities import counted
from ui.amounts import gpus

RESOURCE_QUOTA: Ref = ("v1", "ResourceQuota")


def too_large(server: NotebookServer) -> str:
    """Why a server can never start as its namespace is meant to be, in a sentence; empty where it can."""
    if server.flavor is None:
        return ""
    most = ceilings(server.tenancy.desired).get(server.flavor.resource, 0)
    if server.gpus <= most:
        return ""
    wanted, there = gpus(server.gpus), gpus(most)
    return f"It takes {wanted}, and the namespace may have {there} by now. Ask for more, then start it again."


def lacking(server: NotebookServer, *, now: datetime) -> str:
    """What keeps the pod of a server from being made now, in a sentence; empty where nothing does, or nobody says.

    It calls the cluster, unless that is left alone after failures.
    """
    if server.flavor is None:
        return ""
    quota = asked(
        server,
        lambda client: client.get(RESOURCE_QUOTA, QUOTA, server.tenancy.namespace),
        about="its quota",
        now=now,
    )
    status: Mapping[str, Any] = (quota or {}).get("status") or {}
    resource = resource_of(server)
    most, used = (
        counted((status.get(part) or {}).get(resource, "")) for part in ("hard", "used")
    )
    if resource not in (status.get("hard") or {}) or used + server.gpus <= most:
        return ""
    return (
        f"Pods of this namespace have {used} of the {gpus(most)} that they may have, and it takes {server.gpus}. "
        "It starts by itself when enough of them have ended."
    )


def is_for_room(server: NotebookServer, why: str) -> bool:
    """Whether a hub's reason for a failed start is that the quota had no GPUs left for its pod."""
    return server.flavor is not None and f"requested: {resource_of(server)}=" in why


def resource_of(server: NotebookServer) -> str:
    """What a quota calls the GPUs of a server that has some."""
    return f"requests.{server.flavor.resource}" if server.flavor is not None else ""
