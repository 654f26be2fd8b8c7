"""From what was asked for to a place in Azure: the subscription, the region, the zone, the size, and whose nodes."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.conf import settings

from capacity.connection import home_subscription
from capacity.models import VmSize
from capacity.reservations.actions import Place
from capacity.subscriptions.ids import aks_of
from fleet.models import Flavor
from web.refusals import Conflict


def place_of(spec: Mapping[str, Any], *, usd_per_hour: Decimal) -> Place:
    """Where a granted spec is reserved; raises Conflict for a size or a kind of GPU that is there no more.

    `usd_per_hour` is what one machine costs, used or not.
    """
    flavor = flavor_of(spec.get("nodes_for", ""))
    subscription = subscription_of(flavor)
    size = size_in(subscription, spec["region"], spec["vm_size"])
    if size is None:
        raise Conflict(
            f"Azure has no {spec['vm_size']} in {spec['region']} for this subscription now.",
            code="no_such_size",
        )
    return Place(
        subscription=subscription,
        resource_group=settings.ENV.azure_resource_group,
        region=spec["region"],
        zone=spec.get("zone", ""),
        vm_size=size.name,
        gpus_each=size.gpus,
        usd_per_hour_each=usd_per_hour,
        flavor=flavor,
    )


def flavor_of(key: str) -> Flavor | None:
    """The kind of GPU for which nodes are made, by its key such as training-eastus/a100; None for none."""
    if not key:
        return None
    found = Flavor.objects.of_key(key).select_related("cluster").first()
    if found is None:
        raise Conflict(
            f"There is no kind of GPU {key} any more.",
            code="no_such_flavor",
            field="nodes_for",
        )
    return found


def quota_place(spec: Mapping[str, Any]) -> tuple[str, str]:
    """The subscription and the region whose quotas the machines of a spec count towards."""
    cluster, _, name = spec.get("nodes_for", "").partition("/")
    rows = Flavor.objects.select_related("cluster").filter(
        cluster__name=cluster, name=name
    )
    return subscription_of(rows.first() if cluster else None), spec["region"]


def subscription_of(flavor: Flavor | None) -> str:
    """The subscription of a flavor's cluster, where its nodes are made; else the portal's own."""
    aks = aks_of(flavor.cluster) if flavor is not None else None
    return aks.subscription.lower() if aks is not None else home_subscription()


def size_in(subscription: str, region: str, name: str) -> VmSize | None:
    """A size as a subscription may use it in a region, whatever its capitals; None where it was not seen there."""
    return VmSize.objects.filter(
        subscription=subscription, region=region, name__iexact=name
    ).first()
