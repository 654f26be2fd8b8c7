"""Capacity reservations as the portal keeps them: what is wanted, what Azure said, and how much was used."""

from decimal import Decimal

from django.db import models
from django.db.models import F, Q

from accounts.models import Team
from accounts.teams import TeamScopedQuerySet
from capacity.reservations.advice import Day
from capacity.reservations.states import IN_AZURE, WANTED, State
from fleet.models import Flavor
from reconciling.models import Reconciled, ReconciledQuerySet
from web.rows import Row

# What is asked for once more is more of the same reservation.
SAME = ["team", "subscription", "region", "zone", "vm_size"]
IS_WANTED = Q(state__in=sorted(WANTED))


# Each of the two has a type of manager of its own; the one that is made here has the methods of both.
class ReservationQuerySet(  # type: ignore[override]
    ReconciledQuerySet["Reservation"], TeamScopedQuerySet["Reservation"]
):
    """Ways to look at reservations."""

    def wanted_now(self) -> "ReservationQuerySet":
        """Those that are reserved, or are to be."""
        return self.filter(state__in=sorted(WANTED))

    def to_come(self) -> "ReservationQuerySet":
        """Those of which Azure has not made all machines yet."""
        return self.wanted_now().filter(machines__gt=F("held"))

    def in_azure(self) -> "ReservationQuerySet":
        """Those of which Azure has something, or may have."""
        return self.filter(state__in=sorted(IN_AZURE))


class Reservation(Row, Reconciled):
    """So many machines of a size that a team keeps in a region, under names in Azure that follow from its number.

    `machines` is what all that was granted for it adds up to. What Azure refused for good stands in `refusal` beside
    the generation that it refused: what was granted with that generation fails. `operation` is Azure's long operation
    that is under way: {"step", "token", "since", "generation"}, with which any worker goes on.
    """

    team = models.ForeignKey(Team, models.PROTECT, related_name="reservations")
    subscription = models.CharField(max_length=36)
    resource_group = models.CharField(max_length=90)
    region = models.CharField(max_length=40)
    zone = models.CharField(max_length=3, blank=True)
    vm_size = models.CharField(max_length=60)
    gpus_each = models.PositiveSmallIntegerField()
    # The kind of GPU on a cluster for which a pool of nodes is made of it; None for capacity without nodes.
    flavor = models.ForeignKey(
        Flavor, models.PROTECT, null=True, related_name="reservations"
    )
    machines = models.PositiveIntegerField()
    usd_per_hour_each = models.DecimalField(max_digits=12, decimal_places=4)
    state = models.CharField(
        max_length=10,
        choices=[(each.value, each.words) for each in State],
        default=State.PENDING,
    )
    message = models.CharField(max_length=600, blank=True, default="")
    refusal = models.CharField(max_length=600, blank=True, default="")
    refused_generation = models.PositiveIntegerField(null=True)
    # Of which platform leads were told that the portal may not make it, or does not reach it.
    blocked_generation = models.PositiveIntegerField(null=True)
    operation = models.JSONField(null=True)
    # Its node pool was made anew because AKS had not joined it; that is done once, until a lead has it tried again.
    pool_remade = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField()
    reserved_at = models.DateTimeField(null=True)
    released_at = models.DateTimeField(null=True)
    # As Azure said last: machines held, of them in use, and those that run beyond it without a guarantee.
    held = models.PositiveIntegerField(default=0)
    used = models.PositiveIntegerField(default=0)
    over = models.PositiveIntegerField(default=0)
    seen_at = models.DateTimeField(null=True)

    objects = ReservationQuerySet.as_manager()

    class Meta(Reconciled.Meta):
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["team", "-id"], name="reservation_of_team"),
            models.Index(
                fields=["requeue_at"],
                condition=~Q(state=State.RELEASED),
                name="reservation_is_due",
            ),
        ]
        constraints = [
            *Reconciled.Meta.constraints,
            models.UniqueConstraint(
                fields=[*SAME, "flavor"],
                condition=IS_WANTED & Q(flavor__isnull=False),
                name="a_team_reserves_nodes_in_a_zone_once",
            ),
            models.UniqueConstraint(
                fields=SAME,
                condition=IS_WANTED & Q(flavor=None),
                name="a_team_reserves_a_size_in_a_zone_once",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[each.value for each in State]),
                name="a_reservation_is_in_a_known_state",
            ),
            models.CheckConstraint(
                condition=(IS_WANTED & Q(machines__gte=1))
                | (~IS_WANTED & Q(machines=0)),
                name="a_reservation_that_is_wanted_has_machines",
            ),
            models.CheckConstraint(
                condition=~Q(state=State.RESERVED) | Q(reserved_at__isnull=False),
                name="a_reservation_says_since_when",
            ),
            models.CheckConstraint(
                condition=Q(
                    state=State.RELEASED,
                    released_at__isnull=False,
                    operation=None,
                    held=0,
                    used=0,
                )
                | Q(~Q(state=State.RELEASED), released_at=None),
                name="what_is_released_holds_nothing",
            ),
            models.CheckConstraint(
                condition=Q(refused_generation=None, refusal="")
                | (
                    Q(
                        refused_generation__isnull=False,
                        refused_generation__lte=F("generation"),
                    )
                    & ~Q(refusal="")
                ),
                name="a_refusal_says_why",
            ),
            models.CheckConstraint(
                condition=Q(used__lte=F("held")),
                name="no_more_is_used_than_is_reserved",
            ),
            models.CheckConstraint(
                condition=Q(usd_per_hour_each__gte=0),
                name="a_reservation_never_earns_money",
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def title(self) -> str:
        """ "2 × Standard_NC24ads_A100_v4"."""
        return f"{self.machines} × {self.vm_size}"

    @property
    def is_true(self) -> bool:
        """Whether Azure has what is wanted of it."""
        return self.observed_generation == self.generation

    @property
    def is_refused(self) -> bool:
        """Whether Azure refused for good what is wanted of it now."""
        return self.refused_generation == self.generation

    @property
    def idle(self) -> int:
        """Machines that are reserved and paid, and stand idle."""
        return self.held - self.used

    @property
    def usd_per_hour(self) -> Decimal:
        """USD an hour, used or not."""
        return self.machines * self.usd_per_hour_each


class ReservationDay(models.Model):
    """How a reservation was used on one day (UTC), look by look: sums in machines, and the most that ran at once."""

    reservation = models.ForeignKey(Reservation, models.CASCADE, related_name="days")
    day = models.DateField()
    looks = models.PositiveIntegerField(default=1)
    held_sum = models.PositiveBigIntegerField()
    used_sum = models.PositiveBigIntegerField()
    most = models.PositiveIntegerField()
    over = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField()

    class Meta:
        ordering = ["day"]
        constraints = [
            models.UniqueConstraint(
                fields=["reservation", "day"],
                name="a_day_of_a_reservation_is_counted_once",
            ),
            models.CheckConstraint(
                condition=Q(used_sum__lte=F("held_sum")),
                name="a_day_uses_no_more_than_is_reserved",
            ),
            models.CheckConstraint(
                condition=Q(over__lte=F("looks")),
                name="a_day_is_over_at_some_of_its_looks",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reservation_id} {self.day}: {self.used_sum} of {self.held_sum}"

    @property
    def as_day(self) -> Day:
        """As the advice reads it."""
        return Day(
            day=self.day,
            looks=self.looks,
            reserved_sum=self.held_sum,
            used_sum=self.used_sum,
            most=self.most,
            over=self.over,
        )
