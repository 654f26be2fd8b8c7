"""Whether the cluster's queue stopped a notebook that has ended, and for what, as the cluster's own events say."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from connectors.errors import ConnectorError
from connectors.kubernetes import Ref
from notebooks.servers.models import NotebookServer
from notebooks.servers.states import StopReason
from provisioning.delivery import client_for

log = structlog.get_logger(__name__)
EVENT: Ref = ("v1", "Event")
# What Kueue says of a pod that it deletes: for a workload that goes first, and in a queue that is stopped.
STOPPED = "Stopped"
PREEMPTED, QUEUE_STOPPED = "Preempted to accommodate", "The ClusterQueue is stopped"
# Times of Kubernetes are whole seconds.
GRAIN = timedelta(seconds=1)


def stopped_by_queue(server: NotebookServer) -> StopReason | None:
    """Why Kueue deleted a server's pod since it was launched; None where it did not, or its cluster does not say.

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
        return None
    reasons = (_reason_in(one, server) for one in events)
    return next((reason for reason in reasons if reason is not None), None)


def _reason_in(event: Mapping[str, Any], server: NotebookServer) -> StopReason | None:
    about = event.get("involvedObject") or {}
    is_mine = about.get("kind") == "Pod" and server.is_pod(str(about.get("name")))
    if not is_mine or event.get("reason") != STOPPED:
        return None
    made = event["metadata"].get("creationTimestamp") or event.get("eventTime")
    at = datetime.fromisoformat(str(made)) if made else datetime.min.replace(tzinfo=UTC)
    if at < server.launched_at - GRAIN:
        return None
    said = str(event.get("message") or "")
    if said.startswith(PREEMPTED):
        return StopReason.PREEMPTED
    maintenance = server.tenancy.cluster.last_maintenance
    is_for_it = maintenance is not None and maintenance.explains_stop(at)
    return (
        StopReason.MAINTENANCE if said.startswith(QUEUE_STOPPED) and is_for_it else None
    )
