"""The client for a cluster's hub."""

from pathlib import Path

from django.conf import settings

from connectors.errors import PermanentError
from connectors.jupyterhub import JupyterHub
from notebooks.hubs.models import Hub

# With what `client_at` refuses a cluster without a hub.
NO_HUB = "no_hub"


def client_at(cluster: int) -> JupyterHub:
    """The client for the hub of a cluster by its id; raises PermanentError where none is connected any more."""
    hub = Hub.objects.filter(cluster=cluster).first()
    if hub is None:
        raise PermanentError(
            "The cluster's hub is no longer connected to the portal.", code=NO_HUB
        )
    return client_for(hub)


def client_for(hub: Hub) -> JupyterHub:
    """The client for a hub; raises PermanentError where its token file is not there."""
    path = token_path(hub.token_file)
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise PermanentError(
            f"The hub's token file {hub.token_file} cannot be read.",
            code="token_refused",
        ) from error
    ca_file = settings.ENV.ca_file
    return JupyterHub(
        hub.address,
        token,
        allowed=settings.ENV.hub_hosts_allowed,
        ca_file=str(ca_file) if ca_file else None,
    )


def token_path(name: str) -> Path:
    """Where a token file of this name lies; only plain names inside the configured folder are possible."""
    return Path(settings.ENV.hub_credentials_dir) / Path(name).name
