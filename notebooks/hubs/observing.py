"""Observing a hub: does it answer, is it one, does it take the portal's token, and which version is it?"""

from collections.abc import Callable
from datetime import datetime

from connectors.errors import ConnectorError, TemporaryError
from notebooks.hubs import actions
from notebooks.hubs.clients import client_for
from notebooks.hubs.models import Hub


def observe(hub_id: int, *, now: Callable[[], datetime]) -> None:
    """Observe one hub and keep what was found; nothing is done while another worker does, or before its time."""
    if not actions.claim_observation(hub_id, now=now()):
        return
    hub = Hub.objects.get(pk=hub_id)
    try:
        version = client_for(hub).version()
    except ConnectorError as error:
        wait = error.retry_after if isinstance(error, TemporaryError) else None
        actions.note_observed(hub, now=now(), problem=error.message, retry_after=wait)
    else:
        actions.note_observed(hub, now=now(), version=version)
