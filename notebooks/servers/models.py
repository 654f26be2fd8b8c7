"""Notebook servers as the portal keeps them: whose, of which profile, where, and how they stand."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from accounts.models import Team
from accounts.teams import TeamScopedQuerySet
from fleet.models import Cluster, Flavor
from fleet.prices import cost_while, time_in_use
from notebooks.profiles.idle import MEASURED_FOR
from notebooks.profiles.spawning import spawned_as
from notebooks.servers.states import LIVE, State, StopReason
from provisioning.desired.variables import SecretVariable
from provisioning.models import Tenancy
from reconciling.models import Reconciled, ReconciledQuerySet
from web.rows import Row

# A worker does something for these; the others change by themselves, and are followed.
IN_MOTION = (State.STARTING, State.STOPPING)
# How the names begin that the portal gives to servers.
NAME_PREFIX = "nb-"


# Each of the two has a type of manager of its own; the one that is made here has the methods of both.
class NotebookServerQuerySet(  # type: ignore[override]
    ReconciledQuerySet["NotebookServer"], TeamScopedQuerySet["NotebookServer"]
):
    """Ways to look at notebook servers."""

    def live(self) -> "NotebookServerQuerySet":
        """Those that have a pod, or get or lose one."""
        return self.filter(state__in=sorted(LIVE))

    def to_do(self) -> "NotebookServerQuerySet":
        """Those that a worker has to start, to stop, or to see come up."""
        return self.filter(state__in=IN_MOTION)

    def due(self, now: datetime) -> "NotebookServerQuerySet":
        """Those for which a worker has to do something now, and nobody is at it."""
        return super().due(now).to_do()

    def unmeasured(self, now: datetime) -> "NotebookServerQuerySet":
        """Ready ones of which the cluster's Prometheus has not said for minutes whether their GPUs compute."""
        long_ago = now - MEASURED_FOR
        rows = self.filter(state=State.READY, gpus__gt=0, ready_at__lt=long_ago)
        silent = Q(gpu_measured_at=None) | Q(gpu_measured_at__lt=long_ago)
        return rows.exclude(tenancy__cluster__prometheus="").filter(silent)

    def exempt(self, now: datetime) -> "NotebookServerQuerySet":
        """Those that are not stopped for being idle because a platform lead exempted them."""
        return self.filter(exempt_until__gt=now)

    def described(self) -> "NotebookServerQuerySet":
        """With everything that a line about them needs."""
        return self.select_related(
            "team",
            "owner",
            "profile__successor",
            "flavor__cluster",
            "tenancy__cluster",
            "tenancy__team",
            "stopped_by",
            "exempt_by",
        )


class NotebookServer(Row, Reconciled):
    """A named server of one person at one cluster's hub, under a name that it keeps; stopped, it can start again.

    `generation` counts what was asked of it, `observed_generation` is what the hub took. While `state` is starting or
    ready it is wanted. GPUs and price are those of the choices that it was last started with.
    """

    team = models.ForeignKey(Team, models.PROTECT, related_name="notebooks")
    tenancy = models.ForeignKey(Tenancy, models.PROTECT, related_name="notebooks")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="notebooks"
    )
    profile = models.ForeignKey(
        "notebooks.Profile", models.PROTECT, related_name="servers"
    )
    profile_version = models.PositiveIntegerField()
    flavor = models.ForeignKey(Flavor, models.PROTECT, null=True, related_name="+")
    # Who it is at the hub: the account's name there, and the server's, empty for the account's unnamed one.
    username = models.CharField(max_length=255)
    name = models.CharField(max_length=63, blank=True)
    title = models.CharField(max_length=60)
    # What was chosen in the profile, in KubeSpawner's words.
    options = models.JSONField(default=dict)
    # Variables whose values stand in Secrets of the namespace, by name: {"variable": …, "secret": …, "key": …}.
    secrets = models.JSONField(default=list)
    gpus = models.PositiveIntegerField()
    usd_per_hour = models.DecimalField(max_digits=18, decimal_places=8)
    state = models.CharField(
        max_length=10,
        choices=[(each.value, each.words) for each in State],
        default=State.STARTING,
    )
    # Why it failed or does not come up, in a sentence of the hub's or the portal's.
    message = models.CharField(max_length=600, blank=True, default="", db_default="")
    # Since when its pod waits for a Secret that is not there, or lacks a key; None while it does not.
    secret_missed_at = models.DateTimeField(null=True)
    # Below the address of the hub; empty before it was ready for the first time.
    path = models.CharField(max_length=400, blank=True, default="", db_default="")
    created_at = models.DateTimeField()
    # When it was last asked to start, since when it can be used now, and how many seconds it could before.
    launched_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True)
    ran_seconds = models.PositiveIntegerField(default=0, db_default=0)
    # What its GPUs cost before, each start at its own price.
    spent_usd = models.DecimalField(
        max_digits=18, decimal_places=8, default=Decimal(0), db_default=Decimal(0)
    )
    stopped_at = models.DateTimeField(null=True)
    stopped_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    stop_reason = models.CharField(
        max_length=12,
        choices=[(each.value, each.words) for each in StopReason],
        blank=True,
        default="",
        db_default="",
    )
    # When the hub last saw it used, when its GPUs were last seen to compute (None before they did, and where nobody
    # measures them), and when people were told that it is idle.
    active_at = models.DateTimeField(null=True)
    gpu_busy_at = models.DateTimeField(null=True)
    # Since when and until when its GPUs were measured without a gap, busy or not; None before they were.
    gpu_measured_since = models.DateTimeField(null=True)
    gpu_measured_at = models.DateTimeField(null=True)
    warned_at = models.DateTimeField(null=True)
    # Until when it is not stopped for being idle, how often that was asked, and why.
    keep_until = models.DateTimeField(null=True)
    kept_times = models.PositiveSmallIntegerField(default=0, db_default=0)
    keep_reason = models.CharField(
        max_length=200, blank=True, default="", db_default=""
    )
    # When its owner was told that its profile's limit ends it, and the moment of which they were told that it is
    # stopped then, because the GPUs end that carry it.
    limit_told_at = models.DateTimeField(null=True)
    told_end = models.DateTimeField(null=True)
    # Until when platform leads exempt it from idle stops, who did, and why; it is the notebook's over all its starts.
    exempt_until = models.DateTimeField(null=True)
    exempt_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    exempt_reason = models.CharField(
        max_length=200, blank=True, default="", db_default=""
    )

    objects = NotebookServerQuerySet.as_manager()

    class Meta(Reconciled.Meta):
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["team", "-id"], name="notebook_of_team"),
            models.Index(
                fields=["requeue_at"],
                condition=Q(state__in=IN_MOTION),
                name="notebook_is_due",
            ),
        ]
        constraints = [
            *Reconciled.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenancy", "username", "name"],
                name="one_notebook_per_name_at_a_hub",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[each.value for each in State]),
                name="a_notebook_is_in_a_known_state",
            ),
            models.CheckConstraint(
                condition=Q(state__in=sorted(LIVE)) | Q(ready_at=None),
                name="only_a_live_notebook_is_ready",
            ),
            models.CheckConstraint(
                condition=~Q(state=State.READY) | Q(ready_at__isnull=False),
                name="a_ready_notebook_says_since_when",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=[State.STOPPING, State.STOPPED])
                | ~Q(stop_reason=""),
                name="a_stopped_notebook_says_why",
            ),
            models.CheckConstraint(
                condition=Q(stop_reason=StopReason.PERSON, stopped_by__isnull=False)
                | (~Q(stop_reason=StopReason.PERSON) & Q(stopped_by=None)),
                name="a_person_who_stops_a_notebook_is_known",
            ),
            models.CheckConstraint(
                condition=Q(gpu_measured_since=None, gpu_measured_at=None)
                # What cannot be said of NULL counts as held.
                | Q(
                    gpu_measured_since__isnull=False,
                    gpu_measured_at__isnull=False,
                    gpu_measured_at__gte=F("gpu_measured_since"),
                ),
                name="a_measured_notebook_says_since_when",
            ),
            models.CheckConstraint(
                condition=Q(exempt_until=None, exempt_by=None, exempt_reason="")
                | (
                    Q(exempt_until__isnull=False, exempt_by__isnull=False)
                    & ~Q(exempt_reason="")
                ),
                name="an_exemption_says_who_gave_it_and_why",
            ),
            models.CheckConstraint(
                condition=Q(usd_per_hour__gte=0, spent_usd__gte=0),
                name="a_notebook_never_earns_money",
            ),
            models.CheckConstraint(
                condition=Q(launched_at__gte=F("created_at")),
                name="a_notebook_starts_after_it_was_made",
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def cluster(self) -> Cluster:
        """Where it runs."""
        return self.tenancy.cluster

    @property
    def is_live(self) -> bool:
        """Whether it has a pod, or gets or loses one."""
        return self.state in LIVE

    @property
    def user_options(self) -> dict[str, str]:
        """What the hub is told of the choices."""
        return {
            "profile": spawned_as(self.profile.slug, self.tenancy.namespace),
            **self.options,
        }

    @property
    def secret_variables(self) -> list[SecretVariable]:
        """The variables whose values the cluster takes from Secrets."""
        return [SecretVariable.of(one) for one in self.secrets]

    def is_pod(self, name: str) -> bool:
        """Whether a pod of this name in its namespace is its own."""
        own = f"--{self.name}---"
        if not self.has_name_of_the_portal:
            own = f"-{self.username}{own}"
        # KubeSpawner writes both names into that of the pod.
        return own in f"{name}---"

    @property
    def has_name_of_the_portal(self) -> bool:
        """Whether its name is nobody else's; one that was given in the hub is its account's alone."""
        return self.name.startswith(NAME_PREFIX)

    @property
    def kept_until(self) -> datetime | None:
        """Until when it is not stopped for being idle, as its owner kept it or a platform lead exempted it."""
        return max(filter(None, (self.keep_until, self.exempt_until)), default=None)

    def is_exempt(self, now: datetime) -> bool:
        """Whether a platform lead has exempted it from idle stops now."""
        return self.exempt_until is not None and now < self.exempt_until

    def ran(self, now: datetime) -> timedelta:
        """How long it could be used in all, over all its starts."""
        return time_in_use(self.ran_seconds, since=self.ready_at, now=now)

    def cost(self, now: datetime) -> Decimal:
        """USD that its GPUs cost while it could be used, over all its starts, each at the price of that start."""
        current = time_in_use(0, since=self.ready_at, now=now)
        return self.spent_usd + cost_while(current, usd_per_hour=self.usd_per_hour)

    def ran_until(self, now: datetime) -> dict[str, Any]:
        """What is kept of how long it ran and what that cost, as one of its starts ends now."""
        return {
            "ran_seconds": round(self.ran(now).total_seconds()),
            "spent_usd": round(self.cost(now), 8),
        }


class IdleStop(Row):
    """One time that the portal stopped a notebook because nobody used it; `until` is how long that counts.

    `server` is None once it was removed.
    """

    server = models.ForeignKey(
        NotebookServer, models.SET_NULL, null=True, related_name="idle_stops"
    )
    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="+")
    gpus = models.PositiveIntegerField()
    # Of all its GPUs together.
    usd_per_hour = models.DecimalField(max_digits=18, decimal_places=8)
    stopped_at = models.DateTimeField()
    until = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["cluster", "stopped_at"], name="idle_stops_of_cluster")
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(gpus__gte=1), name="an_idle_stop_frees_gpus"
            ),
            models.CheckConstraint(
                condition=Q(usd_per_hour__gte=0), name="an_idle_stop_costs_nothing"
            ),
            models.CheckConstraint(
                condition=Q(until__gte=F("stopped_at")),
                name="an_idle_stop_counts_from_its_moment",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.stopped_at}"
