"""Entra ID and Graph as the settings describe them; one client per process, made when first needed."""

from functools import cache

from django.conf import settings

from connectors.entra import Entra, EntraSettings
from connectors.graph import GRAPH_SCOPE, Graph


@cache
def entra() -> Entra:
    """Sign-in and token checks against the configured tenant."""
    env = settings.ENV
    return Entra(
        EntraSettings(
            authority=env.entra_authority,
            tenant_id=env.entra_tenant_id,
            client_id=env.entra_client_id,
            client_secret=env.entra_client_secret.get_secret_value(),
            ca_file=str(env.ca_file) if env.ca_file else None,
        )
    )


@cache
def graph() -> Graph:
    """The directory, read with the portal's own identity."""
    env = settings.ENV
    ca_file = str(env.ca_file) if env.ca_file else None
    return Graph(
        lambda: entra().app_token(GRAPH_SCOPE),
        base_url=env.graph_url,
        ca_file=ca_file,
        renew=lambda: entra().app_token(GRAPH_SCOPE, fresh=True),
    )
