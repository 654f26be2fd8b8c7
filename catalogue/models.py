"""The catalogue as this installation runs it."""

from decimal import Decimal

from django.db import models
from django.db.models import Q

from allocations.schedule import (
    IN_AZURE,
    LONGEST_DRAIN,
    LONGEST_GRACE,
    Provisioner,
    Terms,
    WhenOver,
)
from capacity.connection import is_connected
from capacity.prices.shipped import VM_PRICES
from capacity.reservations.asking import reservable_sizes
from catalogue.offering import Gate, Offering
from catalogue.offerings import CHOICES, OFFERINGS
from catalogue.reservation import ReservationSpec
from fleet.models import Cluster
from policy.rules import Arrival


class OfferingSetting(models.Model):
    """How an offering is offered here: on or off, at which gate, in which place, at which prices, and how it ends.

    Of the end, what is null or empty is as in the catalogue; what is granted keeps the terms of its day.
    """

    key = models.CharField(max_length=20, unique=True, choices=CHOICES)
    enabled = models.BooleanField(default=True)
    gate = models.CharField(
        max_length=12, choices=[(gate.value, gate.words) for gate in Gate]
    )
    position = models.PositiveSmallIntegerField()
    prices = models.JSONField(default=dict)
    # The day on which people set each of these, in UTC.
    priced_on = models.JSONField(default=dict, db_default={})
    grace_hours = models.PositiveSmallIntegerField(null=True)
    when_over = models.CharField(
        max_length=8,
        choices=[(each.value, each.words) for each in WhenOver],
        blank=True,
        default="",
        db_default="",
    )
    drain_hours = models.PositiveSmallIntegerField(null=True)

    class Meta:
        ordering = ["position", "key"]
        constraints = [
            models.CheckConstraint(
                condition=Q(key__in=list(OFFERINGS)), name="an_offering_is_known"
            ),
            models.CheckConstraint(
                condition=Q(gate__in=[gate.value for gate in Gate]),
                name="an_offering_has_a_known_gate",
            ),
            models.CheckConstraint(
                condition=Q(when_over__in=["", *(each.value for each in WhenOver)]),
                name="an_offering_ends_in_a_known_way",
            ),
            models.CheckConstraint(
                condition=Q(grace_hours=None) | Q(grace_hours__lte=LONGEST_GRACE),
                name="grace_is_a_week_at_most",
            ),
            models.CheckConstraint(
                condition=Q(drain_hours=None) | Q(drain_hours__lte=LONGEST_DRAIN),
                name="a_drain_is_30_days_at_most",
            ),
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def is_self_service(self) -> bool:
        """Whether nobody has to do anything: the policy may approve it, and the portal makes it by itself."""
        return self.gate == Gate.SELF_SERVICE and not is_by_person(OFFERINGS[self.key])

    @property
    def terms(self) -> Terms:
        """How what is granted now will end."""
        usual = OFFERINGS[self.key].end
        return Terms(
            grace_hours=usual.grace_hours
            if self.grace_hours is None
            else self.grace_hours,
            when_over=WhenOver(self.when_over) if self.when_over else usual.when_over,
            drain_hours=usual.drain_hours
            if self.drain_hours is None
            else self.drain_hours,
        )


def provisioner_of(offering: Offering) -> Provisioner:
    """Who makes it in this installation: where the portal is not connected to Azure, a person does what it would."""
    if offering.provisioner in IN_AZURE and not is_connected():
        return Provisioner.MANUAL
    return offering.provisioner


def is_by_person(offering: Offering) -> bool:
    """Whether a person makes it in this installation."""
    return provisioner_of(offering) is Provisioner.MANUAL


def arrival_of(offering: Offering, cluster: Cluster | None) -> Arrival:
    """How what is granted gets to where it is used."""
    return arrival_by(provisioner_of(offering), cluster)


def arrival_by(provisioner: Provisioner, cluster: Cluster | None) -> Arrival:
    """How what a provisioner makes gets to where it is used."""
    return Arrival.IN_AZURE if provisioner in IN_AZURE else arrival_on(cluster)


def arrival_on(cluster: Cluster | None) -> Arrival:
    """How what is granted gets to a cluster; what needs none is there as soon as it is written down."""
    if cluster is None:
        return Arrival.WRITTEN
    if cluster.delivery == Cluster.Delivery.APPLY:
        return Arrival.WHEN_IT_ANSWERS if cluster.is_away else Arrival.WRITTEN
    return (
        Arrival.COMMITTED
        if cluster.git_way == Cluster.GitWay.DIRECT
        else Arrival.PROPOSED
    )


def follows(offering: Offering) -> tuple[str, ...]:
    """What follows an approval, as pages say it."""
    return (
        offering.after_by_person
        if is_by_person(offering) and offering.after_by_person
        else offering.after
    )


def switched_off() -> models.QuerySet[OfferingSetting]:
    """The setting that switches off the offering of an outer row; nothing where it is offered."""
    return OfferingSetting.objects.filter(
        key=models.OuterRef("offering"), enabled=False
    )


def setting_of(offering: Offering) -> OfferingSetting:
    """How it is offered here; as in the catalogue when nobody has changed it."""
    place = list(OFFERINGS).index(offering.key)
    return OfferingSetting.objects.filter(key=offering.key).first() or OfferingSetting(
        key=offering.key, gate=offering.gate, position=place
    )


def prices_of(offering: Offering, setting: OfferingSetting) -> dict[str, Decimal]:
    """USD by what may be chosen, this installation's before the catalogue's; what has no price is not offered.

    What is asked for costs what `catalogue.pricing` says, which knows Azure's list, too. One query for reservations
    where Azure is connected, none for the rest.
    """
    known = {**offering.prices, **_of_reservable(offering), **setting.prices}
    return {
        name: Decimal(str(price)) for name, price in known.items() if price is not None
    }


def _of_reservable(offering: Offering) -> dict[str, Decimal]:
    """What Azure says that it reserves has its shipped price, whatever its name; nothing where no sizes were read."""
    known = reservable_sizes() if offering.spec is ReservationSpec else frozenset()
    return {name: price for name, price in VM_PRICES.items() if name in known}
