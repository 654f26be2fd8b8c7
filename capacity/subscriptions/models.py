"""The subscriptions that the portal reads, and what they said last."""

from datetime import datetime

from django.db import models
from django.db.models import F, OuterRef, Q, Subquery, Sum, Value
from django.db.models.functions import Concat, Lower
from django.db.models.lookups import Exact

from capacity.chain.words import SPOT
from capacity.metering.keys import QUOTA
from capacity.metering.models import Meter
from capacity.reservations.models import Reservation
from fleet.models import Cluster
from web.rows import Row


class SubscriptionQuerySet(models.QuerySet["Subscription"]):
    """Ways to look at subscriptions."""

    def due(self, now: datetime) -> "SubscriptionQuerySet":
        """Those to read now."""
        return self.filter(next_look_at__lte=now)


class Subscription(Row):
    """An Azure subscription that a cluster or a reservation of the fleet is in, and how the last look at it went."""

    id = models.CharField(primary_key=True, max_length=36)
    # None before the first look; what failed, in words, while it is False.
    reachable = models.BooleanField(null=True)
    message = models.CharField(max_length=600, blank=True, default="")
    looked_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField(null=True)
    failures = models.PositiveSmallIntegerField(default=0)
    next_look_at = models.DateTimeField()
    # The actions that the portal lacks, by what they are needed for (connectors.azure.rights); None before it was
    # checked. Why they could not be read the last time, while they could not.
    missing_rights = models.JSONField(null=True)
    rights_checked_at = models.DateTimeField(null=True)
    rights_message = models.CharField(max_length=600, blank=True, default="")

    objects = SubscriptionQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=~Q(reachable=False) | (~Q(message="") & Q(failures__gte=1)),
                name="a_subscription_is_away_for_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(missing_rights__isnull=True, rights_checked_at=None)
                | Q(missing_rights__isnull=False, rights_checked_at__isnull=False),
                name="rights_were_checked_at_a_moment",
            ),
        ]

    def __str__(self) -> str:
        return self.id


class VmSizeQuerySet(models.QuerySet["VmSize"]):
    """Ways to look at sizes."""

    def with_machines_to_come(self) -> "VmSizeQuerySet":
        """With how many machines of reservations Azure has not made yet, in `machines_to_come`."""
        same = {one: OuterRef(one) for one in ("subscription", "region")}
        # Azure tells no capitals apart, and neither does whatever else looks for a size.
        is_of_size = Exact(Lower("vm_size"), Lower(OuterRef("name")))
        rows = Reservation.objects.to_come().filter(is_of_size, **same)
        sums = (
            rows.order_by()
            .values("region")
            .annotate(all=Sum(F("machines") - F("held")))
        )
        return self.annotate(machines_to_come=Subquery(sums.values("all")))  # type: ignore[no-redef]  # declared


class VmSize(Row):
    """A size of virtual machine in a region, as a subscription may use it; `zones` are those that have it."""

    # Where it was read `with_machines_to_come`; None for none.
    machines_to_come: int | None

    subscription = models.ForeignKey(Subscription, models.CASCADE, related_name="sizes")
    region = models.CharField(max_length=40)
    name = models.CharField(max_length=60)
    family = models.CharField(max_length=80)
    vcpus = models.PositiveIntegerField()
    gpus = models.PositiveSmallIntegerField()
    zones = models.JSONField(default=list)
    # Whether capacity of it can be reserved on demand, and why the subscription may not use it; empty when it may.
    is_reservable = models.BooleanField()
    restriction = models.CharField(max_length=200, blank=True, default="")
    seen_at = models.DateTimeField()

    objects = VmSizeQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["subscription", "region", "name"],
                name="a_size_is_in_a_region_once",
            ),
            models.CheckConstraint(condition=Q(vcpus__gte=1), name="a_size_has_a_vcpu"),
        ]

    def __str__(self) -> str:
        return f"{self.name} in {self.region}"


class FamilyQuotaQuerySet(models.QuerySet["FamilyQuota"]):
    """Ways to look at quotas."""

    def with_meters(self) -> "FamilyQuotaQuerySet":
        """With their subscriptions, and in `meter` the id of the limit that keeps their readings; one query."""
        parts = (
            Value(QUOTA),
            F("subscription_id"),
            Value("/"),
            F("region"),
            Value("/"),
            F("name"),
        )
        key = Lower(Concat(*parts, output_field=models.CharField()))
        readings = Meter.objects.filter(key=OuterRef("key")).values("pk")
        rows = self.select_related("subscription").alias(key=key)
        return rows.annotate(meter=Subquery(readings[:1]))  # type: ignore[no-redef]  # it is declared for its readers


class FamilyQuota(Row):
    """vCPUs that a subscription may use in a region: of a family of sizes, of all of them, or of spot machines."""

    REGIONAL, SPOT = "cores", SPOT
    # The id of its limit, where it was read by `with_meters`.
    meter: int | None

    subscription = models.ForeignKey(
        Subscription, models.CASCADE, related_name="quotas"
    )
    region = models.CharField(max_length=40)
    name = models.CharField(max_length=80)
    title = models.CharField(max_length=120)
    limit = models.PositiveIntegerField()
    used = models.PositiveIntegerField()
    seen_at = models.DateTimeField()

    objects = FamilyQuotaQuerySet.as_manager()

    class Meta:
        ordering = ["region", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["subscription", "region", "name"],
                name="a_quota_is_of_a_region_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} in {self.region}: {self.used} of {self.limit}"


class NodePool(Row):
    """A node pool of a managed cluster; `max_nodes` is None for one that no autoscaler looks after."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="node_pools")
    name = models.CharField(max_length=12)
    vm_size = models.CharField(max_length=60)
    nodes = models.PositiveIntegerField()
    min_nodes = models.PositiveIntegerField(null=True)
    max_nodes = models.PositiveIntegerField(null=True)
    is_spot = models.BooleanField(default=False)
    labels = models.JSONField(default=dict)
    # The capacity reservation group that its machines come from, as Azure writes it; empty for none.
    reservation_group = models.CharField(max_length=300, blank=True, default="")
    # Machines of its size in that group: reserved, and in use.
    reserved = models.PositiveIntegerField(default=0)
    reserved_used = models.PositiveIntegerField(default=0)
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "name"], name="a_pool_is_in_a_cluster_once"
            ),
            models.CheckConstraint(
                condition=Q(min_nodes=None, max_nodes=None)
                | Q(
                    min_nodes__isnull=False,
                    max_nodes__isnull=False,
                    min_nodes__lte=models.F("max_nodes"),
                ),
                name="an_autoscaler_has_both_ends",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.cluster_id}"
