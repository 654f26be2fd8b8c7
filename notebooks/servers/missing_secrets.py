"""Which Secret the pod of a notebook that starts waits for, and for how long it may keep its GPUs meanwhile.

The portal reads no Secret, so it learns from the pod alone that one is not there, or lacks a key.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from connectors.kubernetes import Ref
from notebooks.servers.models import NotebookServer
from notebooks.servers.on_cluster import asked
from provisioning.desired.variables import lacking_secret

POD: Ref = ("v1", "Pod")
# What KubeSpawner writes on the pods of servers.
SERVERS = "component=singleuser-server"
NO_CONFIG = "CreateContainerConfigError"
# In so many minutes somebody makes a Secret; nobody else has the GPUs until then.
WAITS_FOR_SECRET = timedelta(minutes=10)
MAKE_IT = (
    "Make it with kubectl within 10 minutes, and it starts by itself; after that it is stopped. "
    "You can also stop it now, and start it again with another Secret."
)
GIVEN_UP = "It waited for 10 minutes. Make the Secret with kubectl, then start it again, or start it with another one."


def missing_secret(server: NotebookServer, *, now: datetime) -> str | None:
    """Which Secret or key the pod of a server waits for, in a sentence; empty where it waits for none, None unsaid.

    It calls the cluster, unless that is left alone after failures, and not at all for a server without variables.
    """
    if not server.secrets:
        return ""
    pods = asked(
        server,
        lambda client: client.list(
            POD, server.tenancy.namespace, label_selector=SERVERS
        ),
        about="its pod",
        now=now,
    )
    if pods is None:
        return None
    own = [one for one in pods if server.is_pod(str(one["metadata"]["name"]))]
    complaints = (text for pod in own for text in _complaints(pod))
    return next(filter(None, map(lacking_secret, complaints)), "")


def given_up_at(server: NotebookServer) -> datetime | None:
    """When the start of a server that waits for a Secret is given up; None where it waits for none."""
    if server.secret_missed_at is None:
        return None
    return server.secret_missed_at + WAITS_FOR_SECRET


def _complaints(pod: Mapping[str, Any]) -> Iterator[str]:
    """What the kubelet says of containers that it cannot set up."""
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") == NO_CONFIG:
            yield str(waiting.get("message") or "")
