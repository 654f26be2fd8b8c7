"""Whether the cluster's queue took the GPUs of a notebook that has ended, as the cluster's own events say."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from connectors.errors import ConnectorError
from connectors.kubernetes import Ref
from notebooks.servers.models import NotebookServer
from provisioning.delivery import client_for

log = structlog.get_logger(__name__)
EVENT: Ref = ("v1", "Event")
# What Kueue says of a pod that it deletes for a workload that goes first.
STOPPED, PREEMPTED = "Stopped", "Preempted to accommodate"
# Times of Kubernetes are whole seconds.
GRAIN = timedelta(seconds=1)


def is_preempted(server: NotebookServer) -> bool:
    """Whether Kueue deleted a server's pod since it was launched; False where its cluster does not say.

    It comes with `tenancy__cluster`, and calls the cluster.
    """
    try:
        events = client_for(server.tenancy.cluster).list(
            EVENT, server.tenancy.namespace
        )
    except ConnectorError as error:
        log.info(
            "cluster does not say why a notebook ended",
            server=server.pk,
            reason=error.message,
        )
        return False
    return any(_is_of(one, server) for one in events)


def _is_of(event: Mapping[str, Any], server: NotebookServer) -> bool:
    about = event.get("involvedObject") or {}
    is_mine = about.get("kind") == "Pod" and server.is_pod(str(about.get("name")))
    said = str(event.get("message") or "")
    if not is_mine or event.get("reason") != STOPPED or not said.startswith(PREEMPTED):
        return False
    made = event["metadata"].get("creationTimestamp") or event.get("eventTime")
    at = datetime.fromisoformat(str(made)) if made else datetime.min.replace(tzinfo=UTC)
    return at >= server.launched_at - GRAIN
