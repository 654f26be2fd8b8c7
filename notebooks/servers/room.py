"""Whether the cluster would take the pod of a notebook now.

Kubernetes refuses a pod that goes beyond its namespace's quota when it is made, and pods that wait in a queue count in
that quota, too. Such a pod never gets to Kueue's queue, so the portal waits in its place.
"""

from collections.abc import Mapping
from typing import Any

import structlog

from connectors.errors import ConnectorError
from connectors.kubernetes import Ref
from notebooks.servers.models import NotebookServer
from provisioning.delivery import client_for
from provisioning.desired.quantities import counted
from ui.amounts import gpus

log = structlog.get_logger(__name__)
QUOTA: Ref = ("v1", "ResourceQuota")
NAME = "team-quota"


def lacking(server: NotebookServer) -> str:
    """What keeps the pod of a server from being made now, in a sentence; empty where nothing does, or nobody says.

    It calls the cluster.
    """
    if server.flavor is None:
        return ""
    cluster = server.tenancy.cluster
    try:
        quota = client_for(cluster).get(QUOTA, NAME, server.tenancy.namespace)
    except ConnectorError as error:
        log.info("cluster does not say what its quota has left", server=server.pk, reason=error.message)
        return ""
    status: Mapping[str, Any] = (quota or {}).get("status") or {}
    resource = f"requests.{server.flavor.resource}"
    most, used = (counted((status.get(part) or {}).get(resource, "")) for part in ("hard", "used"))
    if resource not in (status.get("hard") or {}) or used + server.gpus <= most:
        return ""
    return (
        f"Pods of this namespace have {used} of the {gpus(most, server.flavor.kind)} that they may have, and it takes "
        f"{server.gpus}. It starts by itself when enough of them have ended."
    )
