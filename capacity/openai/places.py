"""From what was asked for to a place in Azure: the subscription, the region, the model and how it is deployed."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from capacity.connection import home_subscription
from capacity.openai.actions import Place
from capacity.openai.naming import GLOBAL, STANDARD


def place_of(spec: Mapping[str, Any]) -> Place:
    """Where a granted spec is deployed."""
    return Place(
        subscription=home_subscription(),
        resource_group=settings.ENV.azure_resource_group,
        region=spec["region"],
        model=spec["model"],
        sku=sku_of(spec.get("answered", "")),
    )


def sku_of(answered: str) -> str:
    """How a model is deployed that answers in its region, or anywhere, as Azure calls it."""
    return GLOBAL if answered == "anywhere" else STANDARD
