"""A quota of Azure's with what it is used for in the fleet, and the requests for more of it."""

from capacity.increases.models import QuotaIncrease, QuotaIncreaseQuerySet
from capacity.increases.sizing import MachineSize
from capacity.increases.words import Told
from capacity.metering.keys import parsed_quota
from capacity.metering.models import Meter
from capacity.subscriptions.ids import aks_of
from capacity.subscriptions.models import FamilyQuota, NodePool, VmSize


def quota_of(meter: Meter) -> FamilyQuota | None:
    """The quota of Azure that a limit is; None for another limit, or one that Azure tells no more. One query."""
    key = parsed_quota(meter.key)
    if key is None:
        return None
    rows = FamilyQuota.objects.filter(subscription=key.subscription, region=key.region)
    return rows.filter(name__iexact=key.family).first()


def increases_of(meter: Meter) -> QuotaIncreaseQuerySet:
    """The requests for more of the quota that a limit is, the newest first; none for another limit."""
    key = parsed_quota(meter.key)
    rows = QuotaIncrease.objects.select_related("asked_by")
    return rows.none() if key is None else rows.of_quota(*key)


def sizes_of(quota: FamilyQuota) -> list[MachineSize]:
    """The sizes that pools of the fleet take from a quota; those of its family where none does. Two queries."""
    rows = VmSize.objects.filter(
        subscription=quota.subscription_id, region=quota.region
    )
    is_spot = quota.name.casefold() == FamilyQuota.SPOT
    is_family = not is_spot and quota.name.casefold() != FamilyQuota.REGIONAL
    if is_family:
        rows = rows.filter(family__iexact=quota.name)
    known = {one.name.casefold(): one for one in rows}
    pools = NodePool.objects.filter(
        cluster__region=quota.region, is_spot=is_spot
    ).select_related("cluster")
    used = {
        one.vm_size.casefold() for one in pools if _is_in(one, quota.subscription_id)
    } & known.keys()
    names = used or (known.keys() if is_family else set())
    return sorted(
        MachineSize(known[name].vcpus, known[name].gpus, known[name].name)
        for name in names
    )


def told_of(row: QuotaIncrease) -> Told:
    """What is said of a request, and since when."""
    since = row.answered_at or row.sent_at or row.asked_at
    return Told(state=row.status, message=row.message, since=since)


def _is_in(pool: NodePool, subscription: str) -> bool:
    aks = aks_of(pool.cluster)
    return aks is not None and aks.subscription.lower() == subscription
