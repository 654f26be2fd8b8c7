"""Reading which models a region offers to a subscription, and what is used of their quota."""

from collections.abc import Iterable
from datetime import datetime

import structlog

from capacity.connection import Azure
from capacity.metering import actions as metering
from capacity.metering.actions import Level
from capacity.openai.models import ModelQuota
from capacity.openai.naming import GLOBAL, STANDARD
from capacity.subscriptions.models import Subscription
from capacity.subscriptions.replacing import replace
from connectors.azure.cognitive_services import Model, ModelUsage
from connectors.errors import PermanentError

log = structlog.get_logger(__name__)


def keep_models(
    subscription: Subscription, region: str, azure: Azure, now: datetime
) -> None:
    """Keep what a region offers in the ways that the portal deploys, and a reading of each quota of those.

    Nothing where the subscription may not ask.
    """
    try:
        usages = {one.name: one for one in azure.services.usages(region)}
        offered = [
            one
            for one in azure.services.models(region)
            if one.sku in (STANDARD, GLOBAL)
        ]
    except PermanentError as error:
        # A subscription without Azure OpenAI, or whose models the portal may not read, is read for the rest.
        log.info("no models are read", region=region, code=error.code)
        ModelQuota.objects.filter(subscription=subscription, region=region).delete()
        return
    rows = [
        _row(subscription, region, one, usages.get(one.quota), now)
        for one in _default(offered)
    ]
    replace(ModelQuota, rows, subscription=subscription, region=region, now=now)
    for row in {one.quota: one for one in rows if one.limit or one.used}.values():
        metering.note(_level(row), now=now)


def _default(offered: Iterable[Model]) -> list[Model]:
    """One version of each model and way to deploy it: what Azure offers by default, else the newest."""
    found: dict[tuple[str, str], Model] = {}
    for one in sorted(offered, key=lambda each: (each.is_default, each.version)):
        found[one.name, one.sku] = one
    return list(found.values())


def _row(
    subscription: Subscription,
    region: str,
    one: Model,
    usage: ModelUsage | None,
    now: datetime,
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


def _level(row: ModelQuota) -> Level:
    # Several models may share one quota, which is called by one of them.
    model = row.quota.split(".", 2)[-1]
    return Level(
        key=f"tokens:{row.subscription_id}/{row.region}/{row.quota}".lower()[:200],
        title=f"{model} ({row.sku}) in {row.region}"[:200],
        unit="k tokens a minute",
        limit=row.limit,
        used=row.used,
    )
