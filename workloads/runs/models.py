"""Runs as the portal keeps them: what was submitted, by whom, and what became of it."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q

from accounts.models import Team
from accounts.teams import TeamScopedQuerySet
from fleet.models import Cluster, Flavor
from fleet.prices import cost_while, time_in_use
from notebooks.profiles.idle import MEASURED_FOR
from provisioning.models import Tenancy
from reconciling.models import Leased, LeasedQuerySet
from web.rows import Row
from workloads.failures.causes import Code
from workloads.gpu_use.busy import Busy, busy_of
from workloads.gpu_use.overall import Overall, Sums, overall_of
from workloads.reading.pods import label_of
from workloads.reasons.limits import AT_LIMIT
from workloads.runs.planning.words import FOLLOWS_GIT
from workloads.runs.states import ENDS, OVER, State
from workloads.templates.pods import checkpoints_in
from workloads.templates.run import MINUTE
from workloads.templates.time_limits import timed_job

LATELY = timedelta(days=1)
# Without a limit both are null, which is neither.
OTHER_LIMIT = Q(limit_on_cluster__lt=F("limit_seconds")) | Q(
    limit_on_cluster__gt=F("limit_seconds")
)


# Each of the two has a type of manager of its own; the one that is made here has the methods of both.
class RunQuerySet(LeasedQuerySet["Run"], TeamScopedQuerySet["Run"]):  # type: ignore[override]
    """Ways to look at runs."""

    def live(self) -> "RunQuerySet":
        """Those that have not ended."""
        return self.filter(ended_at=None)

    def finishing(self) -> "RunQuerySet":
        """Those that others can begin after: they go on, and finish by themselves (`Run.may_finish`)."""
        return self.live().filter(stop_asked_at=None, limit_seconds__isnull=False)

    def recent(self, now: datetime) -> "RunQuerySet":
        """Those that have not ended, or did within a day, the newest first."""
        return self.filter(Q(ended_at=None) | Q(ended_at__gt=now - LATELY)).order_by(
            "-id"
        )

    def to_do(self) -> "RunQuerySet":
        """Those that a worker has to do something for: to send, to stop, or to give another time limit.

        For what waits for another run nobody has to, until that ends.
        """
        return self.filter(
            Q(sent_at=None) | Q(stop_asked_at__isnull=False) | OTHER_LIMIT,
            ended_at=None,
        ).exclude(state=State.BLOCKED)

    def due(self, now: datetime) -> "RunQuerySet":
        """Those for which a worker has to do something now, and nobody is at it."""
        return super().due(now).to_do()

    def described(self) -> "RunQuerySet":
        """With everything that a line about them needs."""
        return self.select_related(
            "team",
            "tenancy__cluster",
            "tenancy__team",
            "flavor__cluster",
            "requester",
            "stop_asked_by",
            "limit_changed_by",
            "gpu_use",
            "after",
        ).defer("after__submission", "after__manifests")

    def with_past(self) -> "RunQuerySet":
        """With `has_past`: whether it ran before and was interrupted, so that a page need not ask for its attempts."""
        over = Attempt.objects.filter(run=OuterRef("pk")).exclude(why="")
        return self.annotate(has_past=Exists(over))

    def with_next(self) -> "RunQuerySet":
        """With `has_next`: whether others begin after it, so that a page need not ask for them."""
        return self.annotate(has_next=Exists(Run.objects.filter(after=OuterRef("pk"))))

    def listed(self) -> "RunQuerySet":
        """Described, without what only a run's own page shows: a pasted script stands in both of these."""
        return self.described().defer("submission", "manifests")


class Run(Row, Leased):
    """One submission of a template. `manifests` are what is created, in this order, under names that are its own.

    `state` is what was last seen of it; nothing but its end is decided by it. A worker holds the lease while it talks
    to the cluster about the run, so that it is never sent and stopped at the same time.
    """

    team = models.ForeignKey(Team, models.PROTECT, related_name="runs")
    tenancy = models.ForeignKey(Tenancy, models.PROTECT, related_name="runs")
    flavor = models.ForeignKey(Flavor, models.PROTECT, null=True, related_name="+")
    requester = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="runs"
    )
    template = models.CharField(max_length=40)
    # Which version of the platform team's own template it was; 0 for one as it came with the product.
    template_version = models.PositiveIntegerField(default=0, db_default=0)
    title = models.CharField(max_length=60)
    name = models.CharField(max_length=63)
    # What was asked, as a form or a call says it: submitting it again is the same run under another name.
    submission = models.JSONField()
    manifests = models.JSONField()
    gpus = models.PositiveIntegerField()
    usd_per_hour = models.DecimalField(max_digits=18, decimal_places=8)
    limit_seconds = models.PositiveIntegerField(null=True)
    # The limit that the cluster had when it was last looked at or told; a worker makes it that of the run.
    limit_on_cluster = models.PositiveIntegerField(null=True)
    limit_changed_at = models.DateTimeField(null=True)
    limit_changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    # Of which end by its time limit its requester was told; another attempt, or another limit, has another one.
    limit_told_at = models.DateTimeField(null=True)
    state = models.CharField(
        max_length=10,
        choices=[(each.value, each.words) for each in State],
        default=State.SUBMITTED,
    )
    # The sentence of the cluster that a page shows: why it was refused, how it failed, why it is not sent yet.
    message = models.CharField(max_length=600, blank=True, default="", db_default="")
    # Why its program failed; its message is a sentence about it then.
    cause = models.CharField(max_length=20, blank=True, default="", db_default="")
    # Why its pods, which had been let in, did not begin when that was last looked at; empty as soon as one of them did.
    held_up = models.CharField(max_length=600, blank=True, default="", db_default="")
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    # Since when its attempt that is not over runs, and how many seconds those ran that are (workloads.runs.attempts).
    running_since = models.DateTimeField(null=True)
    # From when Kubernetes counts the time limit of that attempt, or of one that starts; null where from when it runs.
    limit_since = models.DateTimeField(null=True)
    ran_seconds = models.PositiveIntegerField(default=0)
    ended_at = models.DateTimeField(null=True)
    stop_asked_at = models.DateTimeField(null=True)
    stop_asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    again_of = models.ForeignKey(
        "self", models.PROTECT, null=True, related_name="repetitions"
    )
    # The run of the same team that has to finish first; where that is over already, it was sent at once.
    after = models.ForeignKey(
        "self", models.PROTECT, null=True, related_name="next_runs"
    )
    # When its requester was told that it waits for that one for long.
    blocked_told_at = models.DateTimeField(null=True)
    # When the last lines of its pods were kept, after its end; null while they are not, and where nothing ever ran.
    logs_kept_at = models.DateTimeField(null=True)
    # By when its end is told at the latest, which waits for its log; null when it was told, and before it ended.
    end_told_by = models.DateTimeField(null=True)

    objects = RunQuerySet.as_manager()

    class Meta(Leased.Meta):
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["team", "-id"], name="run_of_team"),
            # Of a state that is rare, a page of the list would else be looked for among all runs.
            models.Index(fields=["state", "-id"], name="run_of_state"),
            models.Index(fields=["name"], name="run_of_name"),
            models.Index(
                fields=["requeue_at"], condition=Q(ended_at=None), name="run_is_due"
            ),
            models.Index(
                fields=["ended_at"],
                condition=Q(logs_kept_at=None, started_at__isnull=False),
                name="run_has_logs_to_keep",
            ),
            # Why runs failed lately is told of those that ended lately.
            models.Index(
                fields=["ended_at"],
                condition=Q(ended_at__isnull=False),
                name="run_that_ended",
            ),
            models.Index(
                fields=["end_told_by"],
                condition=Q(end_told_by__isnull=False),
                name="run_has_an_end_to_tell",
            ),
        ]
        constraints = [
            *Leased.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenancy", "name"], name="a_run_has_a_name_of_its_own"
            ),
            models.CheckConstraint(
                condition=Q(state__in=[each.value for each in State]),
                name="a_run_is_in_a_known_state",
            ),
            models.CheckConstraint(
                condition=Q(
                    ended_at=None,
                    state__in=[each.value for each in State if each not in OVER],
                )
                | Q(ended_at__isnull=False, state__in=sorted(OVER)),
                name="a_run_is_over_once_it_ended",
            ),
            models.CheckConstraint(
                condition=Q(stop_asked_at=None, stop_asked_by=None)
                | Q(stop_asked_at__isnull=False, stop_asked_by__isnull=False),
                name="a_run_is_stopped_by_somebody",
            ),
            models.CheckConstraint(
                condition=Q(limit_changed_at=None, limit_changed_by=None)
                | Q(
                    limit_changed_at__isnull=False,
                    limit_changed_by__isnull=False,
                    limit_seconds__isnull=False,
                ),
                name="a_time_limit_is_changed_by_somebody",
            ),
            models.CheckConstraint(
                condition=~Q(state=State.STOPPED) | Q(stop_asked_at__isnull=False),
                name="a_stopped_run_was_asked_to_stop",
            ),
            # None ever waits for itself, or for one that waits for it.
            models.CheckConstraint(
                condition=Q(after=None) | Q(after__lt=F("id")),
                name="a_run_begins_after_an_earlier_one",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=[State.BLOCKED, State.SKIPPED])
                | Q(after__isnull=False, sent_at=None, started_at=None),
                name="a_run_that_waits_for_another_is_not_sent",
            ),
            models.CheckConstraint(
                condition=Q(cause="") | Q(state=State.FAILED),
                name="a_cause_is_that_of_a_failed_run",
            ),
            models.CheckConstraint(
                condition=Q(usd_per_hour__gte=0), name="a_run_never_earns_money"
            ),
            models.CheckConstraint(
                condition=Q(running_since=None)
                | Q(started_at__isnull=False, ended_at=None),
                name="a_run_that_runs_has_started",
            ),
            models.CheckConstraint(
                condition=Q(started_at=None) | Q(started_at__gte=F("created_at")),
                name="a_run_starts_after_it_was_submitted",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def same_desired(self) -> Q:
        """What tells that nobody asked for its end, or for another time limit, since it was read."""
        return Q(stop_asked_at=self.stop_asked_at, limit_seconds=self.limit_seconds)

    @property
    def has_other_limit(self) -> bool:
        """Whether the cluster does not have its time limit yet."""
        return self.limit_on_cluster != self.limit_seconds

    @property
    def cluster(self) -> Cluster:
        """Where it runs."""
        return self.tenancy.cluster

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.ended_at is not None

    @property
    def was_never_sent(self) -> bool:
        """Whether it ended before all of it was created on the cluster: nothing of it stands there."""
        return self.is_over and self.sent_at is None and self.started_at is None

    @property
    def is_being_stopped(self) -> bool:
        """Whether somebody asked for its end, and the cluster has not come to it yet."""
        return self.stop_asked_at is not None and not self.is_over

    @property
    def waits_for(self) -> "Run | None":
        """The run that has to finish before this one is sent, while it waits for that."""
        return self.after if self.state == State.BLOCKED else None

    @property
    def may_finish(self) -> bool:
        """Whether it goes on and may finish by itself: nobody stops it, and it has a time limit, unlike a server."""
        return (
            not self.is_over
            and self.stop_asked_at is None
            and self.limit_seconds is not None
        )

    @property
    def word(self) -> str:
        """Its state as people read it."""
        if self.was_kept_by_git:
            return "Not sent"
        return "Being stopped" if self.is_being_stopped else State(self.state).words

    @property
    def main(self) -> dict[str, Any]:
        """The object that is the run; the others only go along with it."""
        return next(
            one for one in self.manifests if one["kind"] not in ("ConfigMap", "Service")
        )

    @property
    def can_change_limit(self) -> bool:
        """Whether it can have another time limit: it goes on, has one, and is of a kind that takes another."""
        is_bounded = self.limit_seconds is not None and bool(timed_job(self.main))
        return is_bounded and not self.is_over and self.stop_asked_at is None

    @property
    def current_submission(self) -> dict[str, Any]:
        """What it was submitted with, with the time limit that it has by now."""
        kept: dict[str, Any] = self.submission
        if self.limit_changed_at is None or self.limit_seconds is None:
            return kept
        minutes = self.limit_seconds // MINUTE
        return {**kept, "values": {**kept["values"], "minutes": minutes}}

    @property
    def checkpoints(self) -> str:
        """The folder that its program was told to keep checkpoints in; empty where it was told none."""
        return checkpoints_in(self.manifests)

    @property
    def is_resumed(self) -> bool:
        """Whether it goes on from the last checkpoint of the run that it repeats."""
        return bool(self.submission.get("resume_from"))

    @property
    def was_stopped_at_limit(self) -> bool:
        """Whether Kubernetes ended it at its time limit, which is no error of its program."""
        return self.state == State.FAILED and AT_LIMIT in self.message

    @property
    def was_kept_by_git(self) -> bool:
        """Whether the portal did not send it, whose cluster had come to follow Git: nobody asked the cluster."""
        return self.state == State.REFUSED and FOLLOWS_GIT in self.message

    @property
    def says_how_it_ended(self) -> bool:
        """Whether its message is all that there is to say of its end: at a time limit, by Git, or on the cluster."""
        is_all = (
            self.state == State.GONE
            or self.was_stopped_at_limit
            or self.was_kept_by_git
        )
        return bool(self.message) and is_all

    @property
    def last_attempt(self) -> "Attempt | None":
        """The one that goes on, or that it ended with; None of what was let in again and never ran."""
        return self.run_attempts.filter(why="").last()

    @property
    def advice(self) -> str:
        """What to do about the cause for which it failed; empty where none is known."""
        return Code(self.cause).advice if self.cause else ""

    @property
    def end_words(self) -> str:
        """How it ended, in a sentence or two; take it from one that is over."""
        return self.message if self.says_how_it_ended else ENDS[State(self.state)]

    def busy(self, now: datetime) -> Busy | None:
        """How busy its GPUs are; None while it holds none. Take it from `described` rows: it reads their measure."""
        is_running = self.running_since is not None and self.gpus > 0
        use: GpuUse | None = getattr(self, "gpu_use", None) if is_running else None
        return busy_of(
            is_running=is_running,
            has_prometheus=bool(self.cluster.prometheus),
            share=use.share if use else None,
            idle_since=use.idle_since if use else None,
            is_fresh=use is not None and use.measured_at > now - MEASURED_FOR,
            measured=use.pods_measured if use else 0,
            pods=use.pods if use else 0,
        )

    def overall_use(self, now: datetime) -> Overall:
        """How well its GPUs were used on the whole, also once it has ended. Take it from `described` rows."""
        use: GpuUse | None = getattr(self, "gpu_use", None)
        return overall_of(
            use.sums if use is not None else Sums(),
            ran=self.ran(now),
            gpus=self.gpus,
            memory_gb=self.flavor.memory_gb if self.flavor is not None else None,
        )

    @property
    def kept_pods(self) -> "models.QuerySet[KeptLog]":
        """Of which pods the last lines are kept, without the lines; those of the last attempt come first."""
        return self.kept_logs.select_related("attempt").defer("lines")

    def ran(self, now: datetime) -> timedelta:
        """How long it ran in all; time in the line is not counted."""
        return time_in_use(self.ran_seconds, since=self.running_since, now=now)

    def cost(self, now: datetime) -> Decimal:
        """USD that its GPUs cost while it ran, at the price of its submission."""
        return cost_while(self.ran(now), usd_per_hour=self.usd_per_hour)

    @property
    def limit_at(self) -> datetime | None:
        """When its time limit ends it if it goes on; None while Kubernetes does not count it, and without a limit.

        It counts from where its pods begin to be started.
        """
        since = self.limit_since or self.running_since
        if since is None or self.limit_seconds is None:
            return None
        return since + timedelta(seconds=self.limit_seconds)

    @property
    def usd_at_limit(self) -> Decimal | None:
        """The most USD that it can cost: what it ran for in earlier attempts, and what is left of its time limit.

        None without a limit, and once it has ended: nothing more comes. Whenever its queue lets it in the limit begins
        anew.
        """
        if self.limit_seconds is None or self.is_over:
            return None
        left = timedelta(seconds=self.limit_seconds)
        if self.limit_at is not None and self.running_since is not None:
            left = max(self.limit_at - self.running_since, timedelta(0))
        longest = timedelta(seconds=self.ran_seconds) + left
        return cost_while(longest, usd_per_hour=self.usd_per_hour)


class Attempt(Row):
    """One time that a run ran: until the run ended, or went back to the line, or began anew in its place.

    `why` says why in the words of the run's page. It is empty while the attempt runs, and where the run ended with it:
    that is told by the run itself.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="run_attempts")
    number = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    # When the cluster says that it let the run in for it: another time is another attempt, whatever was missed between.
    admitted_at = models.DateTimeField(null=True)
    why = models.CharField(max_length=600, blank=True, default="", db_default="")
    # Whether its queue stopped it and put the run back into the line; else it began anew in its place, or somebody did.
    is_sent_back = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "number"], name="an_attempt_is_counted_once"
            ),
            models.UniqueConstraint(
                fields=["run"],
                condition=Q(ended_at=None),
                name="a_run_has_one_attempt_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(number__gte=1), name="attempts_are_counted_from_one"
            ),
            models.CheckConstraint(
                condition=Q(ended_at=None) | Q(ended_at__gte=F("started_at")),
                name="an_attempt_ends_after_it_starts",
            ),
            models.CheckConstraint(
                condition=Q(why="", is_sent_back=False) | Q(ended_at__isnull=False),
                name="an_attempt_that_runs_has_not_ended_for_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of run {self.run_id}"


class KeptLog(Row):
    """The last lines of a pod's log, for when the pod is gone; each is its place, a space and its text."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="kept_logs")
    pod = models.CharField(max_length=253)
    # Which pod of a kind it was; null where it was the only one.
    number = models.PositiveIntegerField(null=True)
    # Pods of several attempts may have one name. Of what never ran there is none.
    attempt = models.ForeignKey(
        Attempt, models.CASCADE, null=True, related_name="kept_logs"
    )
    lines = models.TextField()
    kept_at = models.DateTimeField()

    class Meta:
        # The last attempt comes first.
        ordering = [F("attempt").desc(nulls_last=True), "number", "pod"]
        indexes = [models.Index(fields=["kept_at"], name="kept_log_by_age")]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "pod"],
                condition=Q(attempt=None),
                name="a_log_is_kept_once",
            ),
            models.UniqueConstraint(
                fields=["attempt", "pod"], name="a_log_of_an_attempt_is_kept_once"
            ),
        ]

    def __str__(self) -> str:
        return self.pod

    @property
    def placed(self) -> list[tuple[str, str]]:
        """Its lines, each as its place and its text."""
        parts = (line.partition(" ") for line in self.lines.split("\n"))
        return [(place, text) for place, _, text in parts]

    @property
    def name(self) -> str:
        """The pod's name, as that of a pod that is there."""
        return self.pod

    @property
    def label(self) -> str:
        """What people call the pod."""
        return label_of(self.pod, self.number)

    @property
    def attempt_number(self) -> int | None:
        """Of which attempt it is; None where none had begun."""
        return None if self.attempt is None else self.attempt.number


class GpuUse(Row):
    """How busy the GPUs of a run were when they were last measured, from 0 to 1, and since when they are idle.

    Of its pods that held GPUs then, so many were measured. The sums are over all its attempts and stay after its end:
    seconds that all of its pods were measured in and, weighted by share, computed in; `peak_mib` is the most that one
    GPU used of its memory, null while nobody measures that.
    """

    run = models.OneToOneField(
        Run, models.CASCADE, primary_key=True, related_name="gpu_use"
    )
    share = models.FloatField()
    idle_since = models.DateTimeField(null=True)
    measured_at = models.DateTimeField()
    pods = models.PositiveIntegerField(default=1, db_default=1)
    pods_measured = models.PositiveIntegerField(default=1, db_default=1)
    busy_seconds = models.FloatField(default=0, db_default=0)
    measured_seconds = models.FloatField(default=0, db_default=0)
    peak_mib = models.IntegerField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(share__gte=0, share__lte=1), name="gpu_use_is_a_share"
            ),
            models.CheckConstraint(
                condition=Q(pods_measured__gte=1, pods_measured__lte=F("pods")),
                name="gpu_use_is_of_some_of_the_pods",
            ),
            models.CheckConstraint(
                condition=Q(idle_since=None) | Q(idle_since__lte=F("measured_at")),
                name="gpus_are_idle_since_before_they_were_measured",
            ),
            models.CheckConstraint(
                condition=Q(
                    busy_seconds__gte=0, busy_seconds__lte=F("measured_seconds")
                ),
                name="gpus_are_busy_only_while_they_are_measured",
            ),
            models.CheckConstraint(
                condition=Q(peak_mib=None) | Q(peak_mib__gte=0),
                name="a_gpu_uses_no_less_than_no_memory",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.share:.0%} of run {self.run_id}"

    @property
    def sums(self) -> Sums:
        """What was measured so far."""
        return Sums(
            busy_seconds=self.busy_seconds,
            measured_seconds=self.measured_seconds,
            peak_mib=self.peak_mib,
        )


class ClusterAbility(models.Model):
    """What a cluster was last seen to serve: kinds of jobs, and those that Kueue looks after (null: not known).

    `topologies` has the levels of each flavor's Topology, as node labels from the widest to the node. `schemas` has of
    kinds of which a template needs a field that not every release has: which of those fields are there, and the
    `address` of the schema that said so, which changes with it.
    """

    cluster = models.OneToOneField(
        Cluster, models.CASCADE, primary_key=True, related_name="ability"
    )
    kinds = models.JSONField(default=list)
    integrations = models.JSONField(null=True)
    topologies = models.JSONField(default=dict, db_default={})
    schemas = models.JSONField(default=dict, db_default={})
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"abilities of {self.cluster_id}"
