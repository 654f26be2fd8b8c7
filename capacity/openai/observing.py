"""Reading which models a region offers to a subscription, and what is used of their quota."""

from collections.abc import Iterable
from datetime import datetime

import structlog

from capacity.connection import Azure
from capacity.metering import actions as metering
from capacity.metering.actions import Level
from capacity.openai.models import ModelQuota
from capacity.subscriptions.models import Subscription
from capacity.subscriptions.replacing import replace
from connectors.azure.cognitive_services import Model, ModelUsage
from connectors.errors import PermanentError

log = structlog.get_logger(__name__)
FIELDS = ["version", "quota", "limit", "used", "seen_at"]


def keep_models(subscription: Subscription, region: str, azure: Azure, now: datetime) -> None:
    """Keep what a region offers, and a reading of each quota; nothing where the subscription may not ask."""
    try:
        usages = {one.name: one for one in azure.services.usages(region)}
        offered = azure.services.models(region)
    except PermanentError as error:
        # A subscription without Azure OpenAI, or whose models the portal may not read, is read for the rest.
        log.info("no models are read", region=region, code=error.code)
        ModelQuota.objects.filter(subscription=subscription, region=region).delete()
        return
    rows = [_row(subscription, region, one, usages.get(one.quota), now) for one in _default(offered)]
    replace(ModelQuota, rows, FIELDS, subscription=subscription, region=region, now=now)
    for name in sorted({one.quota for one in rows if one.limit or one.used}):
        metering.note(_level(subscription, region, usages[name]), now=now)


def _default(offered: Iterable[Model]) -> list[Model]:
    """One version of each model and way to deploy it: what Azure offers by default, else the newest."""
    found: dict[tuple[str, str], Model] = {}
    for one in sorted(offered, key=lambda each: (each.is_default, each.version)):
        found[one.name, one.sku] = one
    return list(found.values())


def _row(
    subscription: Subscription, region: str, one: Model, usage: ModelUsage | None, now: datetime
) -> ModelQuota:
    return ModelQuota(
        subscription=subscription,
        region=region,
        model=one.name,
        sku=one.sku,
        version=one.version,
        quota=one.quota,
        limit=usage.limit if usage else 0,
        used=usage.used if usage else 0,
        seen_at=now,
    )


def _level(subscription: Subscription, region: str, usage: ModelUsage) -> Level:
    _, sku, model = usage.name.split(".", 2)
    return Level(
        key=f"tokens:{subscription.pk}/{region}/{usage.name}".lower()[:200],
        title=f"{model} ({sku}) in {region}"[:200],
        unit="k tokens a minute",
        limit=usage.limit,
        used=usage.used,
    )
