"""A team's presence on a cluster: what should be there, and what was seen of it."""

from datetime import datetime

from django.db import models
from django.db.models import F, Q

from accounts.models import Project, Team
from accounts.teams import TeamScopedQuerySet
from fleet.models import Cluster, Environment
from provisioning.spec import TenancySpec


class TenancyQuerySet(TeamScopedQuerySet["Tenancy"]):
    """Ways to look at tenancies."""

    def due(self, now: datetime) -> "TenancyQuerySet":
        """What a worker should look at: its time has come and nobody holds its lease."""
        free = Q(lease_until=None) | Q(lease_until__lte=now)
        return self.filter(free, next_look_at__lte=now, cluster__enabled=True)

    def converged(self) -> "TenancyQuerySet":
        """What is true on its cluster in its newest generation."""
        return self.filter(observed_generation=F("generation"), is_true=True)


class Tenancy(models.Model):
    """Namespace, quota, bindings, policies and queue of a team on a cluster.

    `generation` counts the desired states; `observed_generation` is the one that was last made true. A worker holds
    the lease by its number: a write with an older number changes nothing.
    """

    team = models.ForeignKey(Team, models.PROTECT, related_name="tenancies")
    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="tenancies")
    project = models.ForeignKey(Project, models.PROTECT, related_name="+")
    environment = models.CharField(max_length=12, choices=Environment.choices)
    namespace = models.CharField(max_length=63)
    created_at = models.DateTimeField(auto_now_add=True)

    spec = models.JSONField(default=dict)
    generation = models.PositiveIntegerField(default=0)
    changed_at = models.DateTimeField(null=True)

    observed_generation = models.PositiveIntegerField(default=0)
    is_true = models.BooleanField(default=False)
    conditions = models.JSONField(default=list)
    objects_seen = models.JSONField(default=list)
    last_looked_at = models.DateTimeField(null=True)
    true_since = models.DateTimeField(null=True)
    # GPUs by flavor that workloads reserved when the queue was last read; null until it has said anything.
    used = models.JSONField(null=True)
    used_at = models.DateTimeField(null=True)

    next_look_at = models.DateTimeField(db_index=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    lease_no = models.PositiveBigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)

    objects = TenancyQuerySet.as_manager()

    class Meta:
        ordering = ["team__name", "cluster__name"]
        constraints = [
            models.UniqueConstraint(fields=["team", "cluster"], name="a_team_is_on_a_cluster_once"),
            models.UniqueConstraint(fields=["cluster", "namespace"], name="a_namespace_has_one_tenancy"),
            models.CheckConstraint(
                condition=Q(observed_generation__lte=F("generation")), name="nothing_unwanted_was_observed"
            ),
            models.CheckConstraint(
                condition=Q(environment__in=Environment.values), name="a_tenancy_has_a_known_environment"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.namespace} on {self.cluster.name}"

    @property
    def desired(self) -> TenancySpec:
        """The desired state as a value."""
        return TenancySpec.from_json(self.spec)

    @property
    def is_settled(self) -> bool:
        """Whether the newest generation is true on the cluster."""
        return self.is_true and self.observed_generation == self.generation

    @property
    def ready(self) -> dict[str, str]:
        """The condition `Ready`: type, status, reason, message, since."""
        found = next((c for c in self.conditions if c["type"] == "Ready"), None)
        return found or {
            "type": "Ready",
            "status": "Unknown",
            "reason": "NotLookedYet",
            "message": "The worker has not looked at it yet.",
            "since": self.created_at.isoformat(),
        }
