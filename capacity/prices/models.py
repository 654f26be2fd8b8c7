"""Prices of machines as they were read last, what they were before, and how reading them went."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from django.db import models
from django.db.models import OuterRef, Q, Subquery

from capacity.prices.shipped import VM_GPUS
from capacity.subscriptions.models import VmSize
from web.rows import Row

# USD of one machine and hour; None where Azure does not sell the size in this way.
WAYS = ("on_demand", "spot", "one_year", "three_years")


def _usd() -> "models.DecimalField[Decimal | None, Decimal | None]":
    return models.DecimalField(max_digits=12, decimal_places=6, null=True)


def _has_prices(name: str) -> list[models.BaseConstraint]:
    """Each price is above zero, and one of them is known."""
    none = Q(**dict.fromkeys(WAYS))
    above_zero = Q()
    for way in WAYS:
        above_zero &= Q(**{way: None}) | Q(**{f"{way}__gt": Decimal(0)})
    return [
        models.CheckConstraint(condition=~none, name=f"a_{name}_is_known_in_some_way"),
        models.CheckConstraint(condition=above_zero, name=f"a_{name}_is_above_zero"),
    ]


class PriceRegionQuerySet(models.QuerySet["PriceRegion"]):
    """Ways to look at the regions whose prices are read."""

    def due(self, now: datetime) -> "PriceRegionQuerySet":
        """Those whose prices are to be read now."""
        return self.filter(next_read_at__lte=now)


class PriceRegion(Row):
    """A region whose prices are read every day, and how the last reading went."""

    name = models.CharField(max_length=40, unique=True)
    # The last success; None before the first. What failed since, in words, is empty when nothing did.
    read_at = models.DateTimeField(null=True)
    message = models.CharField(max_length=600, blank=True, default="")
    failing_since = models.DateTimeField(null=True)
    failures = models.PositiveSmallIntegerField(default=0)
    next_read_at = models.DateTimeField()

    objects = PriceRegionQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(message="", failing_since=None, failures=0)
                | (~Q(message="") & Q(failing_since__isnull=False, failures__gte=1)),
                name="prices_are_not_read_for_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class MachinePriceQuerySet(models.QuerySet["MachinePrice"]):
    """Ways to look at prices."""

    def with_gpus(self) -> "MachinePriceQuerySet":
        """Each with how many GPUs a machine has, as a subscription of the fleet says it, in `seen_gpus`."""
        sizes = VmSize.objects.filter(
            region=OuterRef("region"), name__iexact=OuterRef("size")
        )
        return self.select_related("doubt").annotate(
            seen_gpus=Subquery(sizes.values("gpus")[:1])
        )


class MachinePrice(Row):
    """What a size of virtual machine costs in a region with Linux, in USD an hour, by Azure's list."""

    region = models.CharField(max_length=40)
    size = models.CharField(max_length=60)
    on_demand, spot, one_year, three_years = _usd(), _usd(), _usd(), _usd()
    # From when on the price on demand holds, as Azure says it, and when the list was read last.
    since = models.DateTimeField(null=True)
    seen_at = models.DateTimeField()

    objects = MachinePriceQuerySet.as_manager()

    class Meta:
        ordering = ["region", "size"]
        constraints = [
            models.UniqueConstraint(
                fields=["region", "size"], name="a_size_has_one_price_in_a_region"
            ),
            *_has_prices("price"),
        ]

    def __str__(self) -> str:
        return f"{self.size} in {self.region}"

    @property
    def by_way(self) -> Mapping[str, Decimal | None]:
        """USD an hour by how the machine is paid."""
        return {way: getattr(self, way) for way in WAYS}

    @property
    def doubts(self) -> "DoubtedPrice | None":
        """What the list says of it that is not believed yet."""
        return getattr(self, "doubt", None)

    @property
    def gpus(self) -> int | None:
        """GPUs of a machine of `with_gpus()`; None where that is not known."""
        return getattr(self, "seen_gpus", None) or VM_GPUS.get(self.size)


class DoubtedPrice(Row):
    """What the list says of a machine since `at`, and nobody believes until a platform lead confirms it.

    A price is None where the list's is believed.
    """

    price = models.OneToOneField(MachinePrice, models.CASCADE, related_name="doubt")
    at = models.DateTimeField()
    on_demand, spot, one_year, three_years = _usd(), _usd(), _usd(), _usd()

    class Meta:
        ordering = ["-at"]
        constraints = _has_prices("doubted_price")

    def __str__(self) -> str:
        return f"{self.price_id} doubted from {self.at:%Y-%m-%d}"

    @property
    def by_way(self) -> Mapping[str, Decimal]:
        """USD an hour by how the machine is paid, where it is doubted."""
        return {way: usd for way in WAYS if (usd := getattr(self, way)) is not None}


class PastPrice(Row):
    """What a size cost from the reading at `at` on, until the next row; the newest is what it costs now."""

    price = models.ForeignKey(MachinePrice, models.CASCADE, related_name="history")
    at = models.DateTimeField()
    on_demand, spot, one_year, three_years = _usd(), _usd(), _usd(), _usd()
    since = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-at"]
        constraints = [
            models.UniqueConstraint(
                fields=["price", "at"], name="a_price_changes_once_at_a_moment"
            ),
            *_has_prices("past_price"),
        ]

    def __str__(self) -> str:
        return f"{self.price_id} from {self.at:%Y-%m-%d}"
