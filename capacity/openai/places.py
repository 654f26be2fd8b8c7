"""From what was asked for to a place in Azure: the subscription, the region, the model and how it is deployed."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from capacity.connection import home_subscription
from capacity.openai.actions import Place
from capacity.openai.naming import STANDARD


def place_of(spec: Mapping[str, Any]) -> Place:
    """Where a granted spec is deployed."""
    return Place(
        subscription=home_subscription(),
        resource_group=settings.ENV.azure_resource_group,
        region=spec["region"],
        model=spec["model"],
        sku=spec.get("deployment_type", STANDARD),
    )
