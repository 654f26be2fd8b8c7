"""The portal's identity in Azure: whether there is one, and the clients that call as it."""

from dataclasses import dataclass
from functools import cache

from django.conf import settings

from connectors.azure.authorization import AzureAuthorization
from connectors.azure.cognitive_services import AzureCognitiveServices
from connectors.azure.compute import AzureCompute
from connectors.azure.container_registry import AzureContainerRegistry
from connectors.azure.container_service import AzureContainerService
from connectors.azure.quota import AzureQuota
from connectors.azure.retail_prices import RetailPrices
from connectors.azure.session import AzureSession, AzureSettings
from connectors.errors import PermanentError


@dataclass(frozen=True)
class Azure:
    """What the portal calls of one subscription."""

    session: AzureSession
    compute: AzureCompute
    containers: AzureContainerService
    quota: AzureQuota
    services: AzureCognitiveServices
    authorization: AzureAuthorization
    registries: AzureContainerRegistry


def is_connected() -> bool:
    """Whether the installation's settings name an identity in Azure; without one nothing here is called."""
    return bool(settings.ENV.azure_subscription_id)


def home_subscription() -> str:
    """The subscription where the portal reserves; empty where Azure is not connected."""
    return settings.ENV.azure_subscription_id.lower()


def azure_of(subscription: str) -> Azure:
    """The clients for a subscription, made once in a process; raises PermanentError where Azure is not connected."""
    env = settings.ENV
    if not is_connected():
        raise PermanentError(
            "The portal is not connected to Azure.", code="not_connected"
        )
    return _made(
        AzureSettings(
            subscription_id=subscription,
            tenant_id=env.azure_tenant_id or env.entra_tenant_id,
            client_id=env.azure_client_id,
            credential=env.azure_credential,
            client_secret=env.azure_client_secret.get_secret_value(),
            token_file=env.azure_token_file,
            arm_url=env.azure_arm_url,
            authority=env.azure_authority,
            ca_file=str(env.ca_file) if env.ca_file else None,
        )
    )


def retail_prices() -> RetailPrices:
    """The client for Azure's price list, which takes no token; made once in a process."""
    env = settings.ENV
    return _made_prices(env.azure_prices_url, str(env.ca_file) if env.ca_file else None)


def forget() -> None:
    """Close every client, so that the next call makes them anew from the settings of then."""
    while _open:
        _open.pop().close()
    _made.cache_clear()
    _made_prices.cache_clear()


_open: list[AzureSession | RetailPrices] = []


@cache
def _made(given: AzureSettings) -> Azure:
    session = AzureSession(given)
    _open.append(session)
    return Azure(
        session=session,
        compute=AzureCompute(session),
        containers=AzureContainerService(session),
        quota=AzureQuota(session),
        services=AzureCognitiveServices(session),
        authorization=AzureAuthorization(session),
        registries=AzureContainerRegistry(session),
    )


@cache
def _made_prices(url: str, ca_file: str | None) -> RetailPrices:
    client = RetailPrices(url, ca_file)
    _open.append(client)
    return client
