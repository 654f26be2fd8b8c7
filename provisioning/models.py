"""A team's presence on a cluster: what should be there, and what was seen of it."""

from datetime import datetime, timedelta

from django.db import models
from django.db.models import F, Q

from accounts.models import Project, Team
from accounts.teams import TeamScopedQuerySet
from fleet.models import Cluster, Environment
from provisioning.clusters.explaining import PARKED, WAITING, explain
from provisioning.clusters.installation import Installation, mark
from provisioning.desired.priorities import PRIORITIES, highest_by_purpose, permitted
from provisioning.desired.spec import TenancySpec
from provisioning.drift.models import DRIFTED, Drift
from provisioning.stages import STANDS, Stage, Stop
from reconciling.conditions import READY, Condition, find
from reconciling.models import Reconciled, ReconciledQuerySet, Throttle
from web.rows import Row

__all__ = [
    "ClusterThrottle",
    "Drift",
    "Installation",
    "Isolation",
    "Tenancy",
    "TenancyQuerySet",
]


# Work that stops this late on its date stops in time: what was told of what follows stands.
IN_TIME = timedelta(hours=1)


class Isolation(models.TextChoices):
    """How far apart a team is from the others: its own namespace, nodes, cluster or Azure subscription."""

    NAMESPACE = "namespace", "Own namespace"
    NODE_POOL = "node-pool", "Own nodes"
    CLUSTER = "cluster", "Own cluster"
    SUBSCRIPTION = "subscription", "Own subscription"


# Each of the two has a type of manager of its own; the one that is made here has the methods of both.
class TenancyQuerySet(ReconciledQuerySet["Tenancy"], TeamScopedQuerySet["Tenancy"]):  # type: ignore[override]
    """Ways to look at tenancies."""

    def due(self, now: datetime) -> "TenancyQuerySet":
        """What a worker should take: its time has come, nobody holds its lease, and it is neither parked nor gone."""
        return super().due(now).exclude(stage=Stage.GONE)

    def here(self) -> "TenancyQuerySet":
        """Where teams work and may ask for more: none that is leaving or has left."""
        return self.filter(stage=Stage.HERE)

    def present(self) -> "TenancyQuerySet":
        """What there is something of on a cluster: none that is gone."""
        return self.exclude(stage=Stage.GONE)

    def not_true(self) -> "TenancyQuerySet":
        """Present, and not true on its cluster in its newest generation."""
        differs = ~Q(observed_generation=F("generation"))
        return self.present().filter(Q(is_true=False) | differs)

    def converged(self) -> "TenancyQuerySet":
        """What is true on its cluster in its newest generation."""
        return self.present().filter(observed_generation=F("generation"), is_true=True)


class Tenancy(Row, Reconciled):
    """Namespace, quota, bindings, policies and queue of a team on a cluster, kept true by provisioning.reconcile."""

    team = models.ForeignKey(Team, models.PROTECT, related_name="tenancies")
    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="tenancies")
    project = models.ForeignKey(Project, models.PROTECT, related_name="+")
    environment = models.CharField(max_length=12, choices=Environment.choices)
    isolation = models.CharField(
        max_length=12,
        choices=Isolation.choices,
        default=Isolation.NAMESPACE,
        db_default="namespace",
    )
    weight = models.PositiveSmallIntegerField(default=1, db_default=1)
    # The highest priority of its pods, where a lead set one; empty: as environment and cluster are for.
    priority_limit = models.CharField(
        max_length=30,
        choices=[(name, name) for name in PRIORITIES],
        blank=True,
        default="",
        db_default="",
    )
    namespace = models.CharField(max_length=63)
    created_at = models.DateTimeField(auto_now_add=True)

    spec = models.JSONField(default=dict)
    changed_at = models.DateTimeField(null=True)

    is_true = models.BooleanField(default=False)
    objects_seen = models.JSONField(default=list)
    # What tells the manifests that were last made true from others; drift is only what differs from the same.
    rendered = models.CharField(max_length=64, blank=True, default="", db_default="")
    # Foreign changes that became what is wanted: {"ResourceQuota/team-quota": {path: value}}.
    adopted = models.JSONField(default=dict, db_default={})
    last_looked_at = models.DateTimeField(null=True)
    true_since = models.DateTimeField(null=True)
    # GPUs by flavor that workloads reserved when the queue was last read; null until it has said anything.
    used = models.JSONField(null=True)
    used_at = models.DateTimeField(null=True)

    # Which of the cluster's slots the lease's holder has; one that no live lease has is free.
    slot = models.PositiveSmallIntegerField(null=True)

    # How it ends (provisioning.leaving): while it is protected, nobody can begin to.
    is_protected = models.BooleanField(default=True, db_default=True)
    stage = models.CharField(
        max_length=10,
        choices=[(stage.value, stage.words) for stage in Stage],
        default=Stage.HERE,
        db_default="here",
    )
    stop = models.CharField(max_length=12, default=Stop.NONE, db_default="None")
    leaves_at = models.DateTimeField(null=True)
    retained_until = models.DateTimeField(null=True)
    # When work had stopped on its cluster, of what is kept: late where the cluster, or every worker, was away.
    drained_at = models.DateTimeField(null=True)
    gone_at = models.DateTimeField(null=True)

    objects = TenancyQuerySet.as_manager()

    class Meta(Reconciled.Meta):
        ordering = ["team__name", "cluster__name", "namespace"]
        indexes = [models.Index(fields=["requeue_at"], name="tenancy_is_due")]
        constraints = [
            *Reconciled.Meta.constraints,
            # What is gone stays as history; the team may come again, and the name is free again.
            models.UniqueConstraint(
                fields=["cluster", "project", "environment"],
                condition=~Q(stage="gone"),
                name="a_project_has_an_environment_on_a_cluster_once",
            ),
            models.UniqueConstraint(
                fields=["cluster", "namespace"],
                condition=~Q(stage="gone"),
                name="a_namespace_has_one_tenancy",
            ),
            models.CheckConstraint(
                condition=Q(stage="here") | Q(is_protected=False),
                name="what_is_protected_does_not_leave",
            ),
            models.CheckConstraint(
                condition=Q(stage="here", leaves_at=None)
                | (~Q(stage="here") & Q(leaves_at__isnull=False)),
                name="who_leaves_has_a_date",
            ),
            models.CheckConstraint(
                condition=Q(stage__in=["here", "leaving"], retained_until=None)
                | Q(
                    stage__in=["retained", "removing", "gone"],
                    retained_until__isnull=False,
                    retained_until__gte=F("leaves_at"),
                ),
                name="what_is_kept_is_kept_until_a_date",
            ),
            models.CheckConstraint(
                condition=Q(stage="gone", gone_at__isnull=False)
                | (~Q(stage="gone") & Q(gone_at=None)),
                name="what_is_gone_went_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(stage="here", stop="None")
                | Q(stage="leaving", stop__in=["None", "Hold"])
                | Q(stage__in=["retained", "removing", "gone"], stop="HoldAndDrain"),
                name="a_queue_stops_as_its_stage_says",
            ),
            models.CheckConstraint(
                condition=Q(parked_at=None) | Q(is_true=False),
                name="a_parked_tenancy_is_not_true",
            ),
            models.CheckConstraint(
                condition=Q(environment__in=Environment.values),
                name="a_tenancy_has_a_known_environment",
            ),
            models.CheckConstraint(
                condition=Q(isolation__in=Isolation.values),
                name="a_tenancy_has_a_known_isolation",
            ),
            models.CheckConstraint(
                condition=Q(priority_limit__in=["", *PRIORITIES]),
                name="a_priority_limit_is_a_priority",
            ),
            models.CheckConstraint(
                condition=Q(weight__gte=1, weight__lte=100), name="a_share_is_1_to_100"
            ),
            # With a condition, so that a slot is no key to PostgreSQL: letting go of one would else make every row
            # that refers to the tenancy wait at its commit, which holds the audit chain already.
            models.UniqueConstraint(
                fields=["cluster", "slot"],
                condition=Q(slot__isnull=False),
                name="a_slot_is_held_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.namespace} on {self.cluster.name}"

    @property
    def desired(self) -> TenancySpec:
        """The desired state as a value, with what was taken over from the cluster and whose it is."""
        return TenancySpec.from_json(
            {**self.spec, "adopted": self.adopted, "installation": mark()}
        )

    @property
    def highest_priority(self) -> str:
        """The highest priority that its pods may have: as a lead set it, or as environment and cluster are for."""
        return self.priority_limit or highest_by_purpose(
            environment=self.environment, purpose=self.cluster.purpose
        )

    @property
    def open_priorities(self) -> list[str]:
        """The priorities that its pods may have, the highest first."""
        return permitted(self.highest_priority)

    @property
    def is_here(self) -> bool:
        """Whether the team works here and may ask for more."""
        return self.stage == Stage.HERE

    @property
    def has_access(self) -> bool:
        """Whether the team's people may work in the namespace."""
        return self.stage in (Stage.HERE, Stage.LEAVING)

    @property
    def stands(self) -> bool:
        """Whether its objects are kept true; those of what is being deleted are not."""
        return self.stage in STANDS

    @property
    def is_settled(self) -> bool:
        """Whether the newest generation is true on the cluster."""
        return self.is_true and self.observed_generation == self.generation

    @property
    def kept_until(self) -> datetime | None:
        """Until when what it leaves is kept: as long after work stopped as was said; None while it has not stopped.

        Within an hour of its date work stops in time, and then the date stands that was told.
        """
        if (
            self.drained_at is None
            or self.leaves_at is None
            or self.retained_until is None
        ):
            return None
        late = self.drained_at - self.leaves_at
        return self.retained_until + (late if late > IN_TIME else timedelta())

    @property
    def not_true_since(self) -> datetime:
        """Of one that is not settled, since when its cluster has not been as wanted.

        What was true is not from the moment on at which something else was wanted.
        """
        ready = self.ready
        if ready["status"] == "True" and self.changed_at is not None:
            return self.changed_at
        return datetime.fromisoformat(ready["since"])

    @property
    def explanation(self) -> str:
        """What stands in the way, what it means, what to do and whether it is tried again; empty when nothing does."""
        ready = self.ready
        if ready["status"] != "False":
            return ""
        if ready["reason"] == "Parked":
            return str(PARKED)
        if ready["reason"] in WAITING:
            return WAITING[ready["reason"]]
        return str(
            explain(ready["message"], will_try_again=ready["reason"] == "WillTryAgain")
        )

    @property
    def has_failed(self) -> bool:
        """Whether it is not true, and will hardly become so before somebody does something about it.

        What a cluster that does not answer keeps from being made comes by itself when the cluster does.
        """
        reason = self.ready["reason"]
        return reason == "Parked" or (reason == "Refused" and not self.cluster.is_away)

    @property
    def is_drifting(self) -> bool:
        """Whether something was found changed from elsewhere when it was last looked at."""
        return find(self.conditions, DRIFTED) is not None

    @property
    def ready(self) -> Condition:
        """The condition `Ready`: type, status, reason, message, since."""
        return find(self.conditions, READY) or {
            "type": READY,
            "status": "Unknown",
            "reason": "NotLookedYet",
            "message": "The worker has not looked at it yet.",
            "since": self.created_at.isoformat(),
        }


class ClusterThrottle(Throttle):
    """How hard a cluster is worked on, over all workers; whoever has it claimed sweeps it as a whole or probes it."""

    cluster = models.OneToOneField(
        Cluster, models.CASCADE, primary_key=True, related_name="throttle"
    )
    swept_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"throttle of {self.cluster_id}"
