"""What the cluster of a notebook says of it, where the portal can do without the answer."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import structlog

from connectors.errors import ConnectorError
from connectors.kubernetes import Cluster as Client
from notebooks.servers.models import NotebookServer
from provisioning import throttle
from provisioning.delivery import client_for

log = structlog.get_logger(__name__)
T = TypeVar("T")


def asked(
    server: NotebookServer, read: Callable[[Client], T], *, about: str, now: datetime
) -> T | None:
    """What a call to a server's cluster reads; None while that is left alone after failures, or does not answer."""
    cluster = server.tenancy.cluster
    if throttle.seconds_to_wait(cluster, now=now):
        return None
    try:
        return read(client_for(cluster))
    except ConnectorError as error:
        log.info(
            "cluster does not answer about a notebook",
            server=server.pk,
            about=about,
            reason=error.message,
        )
        return None
