"""Differences between the portal's records and Azure, as the last reading of each subscription found them."""

from django.db import models
from django.db.models import F, Q

from capacity.orphans.comparing import OrphanKind
from capacity.reservations.models import Reservation
from capacity.subscriptions.models import Subscription
from reconciling.models import Leased, LeasedQuerySet
from web.rows import Row

WITH_RECORD = Q(kind__in=[OrphanKind.MISSING.value, OrphanKind.DIFFERS.value])


class OrphanQuerySet(LeasedQuerySet["Orphan"]):
    """Ways to look at differences."""

    def releasing(self) -> "OrphanQuerySet":
        """Those that a worker releases, because a platform lead asked for it."""
        return self.filter(release_asked_at__isnull=False)

    def foreign(self) -> "OrphanQuerySet":
        """Other people's reservations, which are shown and never touched."""
        return self.filter(kind=OrphanKind.FOREIGN)

    def of_ours(self) -> "OrphanQuerySet":
        """Differences about what is the portal's."""
        return self.exclude(kind=OrphanKind.FOREIGN)


class Orphan(Row, Leased):
    """A reservation that is in Azure or in the portal's records alone, or that holds another number of machines there.

    `name` is empty for a group of the portal's without reservations. `reservation` and `expected` are the row of the
    records and its machines, where there is one. Once a platform lead has asked for its release, it is a worker's, who
    works on it as on a reservation: `operation` is Azure's long operation that is under way.
    """

    subscription = models.ForeignKey(
        Subscription, models.CASCADE, related_name="orphans"
    )
    # Resource group, group and reservation in small letters, by slashes: the same in each reading.
    key = models.CharField(max_length=300)
    kind = models.CharField(
        max_length=10, choices=[(each.value, each.words) for each in OrphanKind]
    )
    resource_group = models.CharField(max_length=90)
    group = models.CharField(max_length=90)
    name = models.CharField(max_length=90, blank=True, default="")
    region = models.CharField(max_length=40)
    zone = models.CharField(max_length=3, blank=True, default="")
    vm_size = models.CharField(max_length=60, blank=True, default="")
    machines = models.PositiveIntegerField(default=0)
    used = models.PositiveIntegerField(default=0)
    associated = models.PositiveIntegerField(default=0)
    # The team that its tags name, which nobody vouches for.
    tagged_team = models.CharField(max_length=60, blank=True, default="")
    reservation = models.ForeignKey(
        Reservation, models.CASCADE, null=True, related_name="differences"
    )
    expected = models.PositiveIntegerField(null=True)
    first_seen_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    release_asked_at = models.DateTimeField(null=True)
    release_asked_by = models.CharField(max_length=200, blank=True, default="")
    operation = models.JSONField(null=True)
    message = models.CharField(max_length=600, blank=True, default="")

    objects = OrphanQuerySet.as_manager()

    class Meta(Leased.Meta):
        ordering = ["id"]
        constraints = [
            *Leased.Meta.constraints,
            models.UniqueConstraint(
                fields=["subscription", "key"], name="a_difference_is_kept_once"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=[each.value for each in OrphanKind]),
                name="a_difference_is_of_a_known_kind",
            ),
            models.CheckConstraint(
                condition=(
                    WITH_RECORD & Q(reservation__isnull=False, expected__isnull=False)
                )
                | (~WITH_RECORD & Q(reservation=None, expected=None)),
                name="a_difference_from_a_record_names_it",
            ),
            models.CheckConstraint(
                condition=Q(release_asked_at=None) | Q(kind=OrphanKind.ORPHANED.value),
                name="nothing_of_others_is_released",
            ),
            models.CheckConstraint(
                condition=Q(operation=None) | Q(release_asked_at__isnull=False),
                name="only_what_is_released_is_worked_on",
            ),
            models.CheckConstraint(
                condition=Q(used__lte=F("machines")),
                name="no_more_of_an_orphan_is_used_than_it_holds",
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def of(self) -> OrphanKind:
        """In which way the portal and Azure differ."""
        return OrphanKind(self.kind)

    @property
    def title(self) -> str:
        """ "2 × Standard_NC24ads_A100_v4", or that it is a group without reservations."""
        return (
            f"{self.machines} × {self.vm_size}"
            if self.name
            else "A group without reservations"
        )

    @property
    def is_releasing(self) -> bool:
        """Whether a worker releases it."""
        return self.release_asked_at is not None
