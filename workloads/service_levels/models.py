"""Services of teams with what they promise, and what was counted of them day by day."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from accounts.models import Team
from accounts.teams import TeamScopedQuerySet
from approvals.models import Request
from fleet.models import Cluster
from provisioning.models import Tenancy
from provisioning.stages import Stage
from web.rows import Row
from workloads.service_levels import meters, tiers
from workloads.service_levels.budget import Day
from workloads.service_levels.meters import Meter
from workloads.service_levels.tiers import Objective, Tier


class ServiceLevelQuerySet(TeamScopedQuerySet["ServiceLevel"]):
    """Ways to look at service levels."""

    team_path: ClassVar[str] = "tenancy__team_id"

    def measured(self) -> "ServiceLevelQuerySet":
        """Those of places that are there, on clusters with a Prometheus."""
        here = self.exclude(tenancy__stage=Stage.GONE)
        return here.exclude(tenancy__cluster__prometheus="")

    def described(self) -> "ServiceLevelQuerySet":
        """With everything that a line about them needs but their days."""
        return self.select_related("tenancy__team", "tenancy__cluster", "set_by")


class ServiceLevel(Row):
    """What a Service of a team's namespace promises; `meter` counts its requests."""

    tenancy = models.ForeignKey(Tenancy, models.PROTECT, related_name="service_levels")
    service = models.CharField(max_length=63)
    meter = models.CharField(max_length=20, choices=meters.CHOICES)
    tier = models.CharField(max_length=20, choices=tiers.CHOICES)
    # What was asked for to run it, if somebody came from there.
    request = models.ForeignKey(
        Request, models.PROTECT, null=True, related_name="service_levels"
    )
    set_at = models.DateTimeField()
    set_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+"
    )
    # Until when its requests are counted; null before the first look.
    measured_until = models.DateTimeField(null=True)
    # When Prometheus knew a metric of it last; null for one of which it never did.
    seen_at = models.DateTimeField(null=True)
    # Why it is not measured now, in words of the cluster or its Prometheus.
    problem = models.CharField(max_length=300, blank=True, default="", db_default="")
    # As what its leads were told of it last; empty while all is well.
    told = models.CharField(max_length=10, blank=True, default="", db_default="")
    # Whether they were told that it is slower than promised, and it was not in time since.
    told_slow = models.BooleanField(default=False, db_default=False)

    objects = ServiceLevelQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenancy", "service"], name="a_service_has_one_level"
            ),
            models.CheckConstraint(
                condition=Q(meter__in=[one.value for one in Meter]),
                name="a_service_is_counted_by_a_known_meter",
            ),
            models.CheckConstraint(
                condition=Q(tier__in=[one.value for one in Tier]),
                name="a_service_is_of_a_known_tier",
            ),
        ]

    def __str__(self) -> str:
        return self.service

    @property
    def team(self) -> Team:
        """Whose it is."""
        return self.tenancy.team

    @property
    def cluster(self) -> Cluster:
        """Where it is."""
        return self.tenancy.cluster

    @property
    def objective(self) -> Objective:
        """What it promises."""
        return Tier(self.tier).objective

    @property
    def meter_label(self) -> str:
        """What counts its requests, as people call it."""
        return Meter(self.meter).label


class ServiceDay(Row):
    """What was counted of a service on a day (UTC). Prometheus estimates between its samples, so these are no integers.

    `p99` is the seconds within which 99 of 100 requests were answered in its worst hour; null where none had a hundred.
    Where `is_beyond`, they took longer: the last bucket of the histogram ends there.
    """

    level = models.ForeignKey(ServiceLevel, models.CASCADE, related_name="days")
    day = models.DateField()
    requests = models.FloatField()
    failed = models.FloatField()
    p99 = models.FloatField(null=True)
    is_beyond = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ["-day"]
        constraints = [
            models.UniqueConstraint(
                fields=["level", "day"], name="a_service_has_one_row_a_day"
            ),
            models.CheckConstraint(
                condition=Q(failed__gte=0, failed__lte=F("requests")),
                name="no_more_requests_fail_than_there_are",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.requests:.0f} requests on {self.day}"

    @property
    def counted(self) -> Day:
        """The same for what is worked out of it."""
        return Day(
            day=self.day,
            requests=self.requests,
            failed=self.failed,
            p99=self.p99,
            is_beyond=self.is_beyond,
        )
