"""What teams hold, GPUs and everything else that was granted, and the money that is set aside for it."""

from datetime import UTC, date, datetime
from decimal import Decimal

from django.conf import settings
from django.db import models
from django.db.models import F, Q, Sum

from accounts.models import Team
from accounts.teams import TeamScopedQuerySet
from allocations.budgets import money
from allocations.schedule import (
    DELETED,
    IN_AZURE,
    TAKEN_DOWN,
    WITH_DATA,
    Provisioner,
    Step,
    Terms,
    WhenOver,
    next_steps,
)
from allocations.use.models import Brake, Leftover, StoppedWork
from capacity.models import ModelEndpoint, Reservation
from fleet.models import Flavor
from manual.models import Task
from notebooks.models import NotebookServer
from provisioning.models import Tenancy
from provisioning.stages import Stage
from web.rows import Row

__all__ = [
    "Allocation",
    "Brake",
    "Budget",
    "Hold",
    "LedgerEntry",
    "Leftover",
    "StoppedWork",
    "UseDay",
]


# What a platform lead says to the team of what they take back, in characters.
LONGEST_REASON = 200
# The rows that say how far an allocation has come, one of each kind of provisioner.
MADE_BY = ("tenancy__cluster", "task", "notebook", "reservation", "endpoint__account")


class AllocationQuerySet(TeamScopedQuerySet["Allocation"]):
    """Ways to look at allocations."""

    def live(self) -> "AllocationQuerySet":
        """Held: begun, and not ended yet."""
        return self.filter(ended_at=None, begun_at__isnull=False)

    def granted(self) -> "AllocationQuerySet":
        """Held or booked: not ended yet."""
        return self.filter(ended_at=None)

    def booked(self) -> "AllocationQuerySet":
        """Granted to begin later, and not begun yet."""
        return self.filter(ended_at=None, begun_at=None)

    def held(self, now: datetime) -> "AllocationQuerySet":
        """Not ended, and neither its date nor its grace has passed."""
        return self.live().filter(kept_until__gt=now)

    def described(self) -> "AllocationQuerySet":
        """With everything that a line about them needs."""
        return self.select_related(
            "team", "requester", "flavor__cluster", "hold__request", *MADE_BY
        )

    def of_gpus(self) -> "AllocationQuerySet":
        """GPUs of a cluster's pool; what else was granted takes none of them."""
        return self.filter(flavor__isnull=False)

    def usd_per_day(self) -> Decimal:
        """USD a day of all that is live and costs: what nobody has made yet costs nothing."""
        hourly = self.live().charged().aggregate(usd=Sum("usd_per_hour"))[
            "usd"
        ] or Decimal(0)
        return money.per_day(gpus=1, price=hourly)

    def charged(self) -> "AllocationQuerySet":
        """Those that cost: whatever makes them has made them."""
        return self.filter(charged_from__isnull=False)

    def charged_within(self, start: datetime, end: datetime) -> "AllocationQuerySet":
        """Those that cost anything from start to end, or may yet: what is booked for then, too."""
        ended = Q(ended_at__lte=start) | Q(ended_at__isnull=False, charged_from=None)
        return self.filter(starts_at__lt=end, until__gt=start).exclude(ended)

    def over(self, now: datetime) -> "AllocationQuerySet":
        """Still held although the end date and its grace have passed.

        What has data stays while its team may come back to it: it ends once the place is restored, or deleted.
        """
        kept = Q(offering__in=WITH_DATA, tenancy__stage=Stage.RETAINED)
        return self.live().filter(kept_until__lte=now).exclude(kept)

    def of_month(self, now: datetime) -> "AllocationQuerySet":
        """Held now, or ended in the month (UTC) under way."""
        first = money.month_of(now)
        ended = Q(ended_at__gt=datetime(first.year, first.month, 1, tzinfo=UTC))
        return self.filter(Q(ended_at=None) | ended, begun_at__isnull=False)


class Hold(Row):
    """Money that is set aside under one request: its ledger's entries, and what was granted for it, belong to it."""

    team = models.ForeignKey(Team, models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return self.reference

    @property
    def request_id(self) -> int | None:
        """The number of the request that it is for; None before there is one."""
        request = getattr(self, "request", None)
        return None if request is None else request.pk

    @property
    def renewal_id(self) -> int | None:
        """The number of the request that would keep longer what is held, while it waits; None for none. Asks."""
        request = getattr(self, "request", None)
        if request is None:
            return None
        waiting = request.renewals.filter(state="waiting").values_list("pk", flat=True)
        found: int | None = waiting.first()
        return found

    @property
    def about(self) -> str:
        """What it is for, without how many: that changes, and what is written about it stays; empty for no request."""
        request = getattr(self, "request", None)
        if request is None:
            return ""
        return str(request.flavor.kind if request.flavor else request.name())

    @property
    def reference(self) -> str:
        """What it is for, as the API and the audit log name it: "request-17"."""
        return (
            f"hold-{self.pk}"
            if self.request_id is None
            else f"request-{self.request_id}"
        )


class Allocation(Row):
    """What was granted to a team, from one moment until another: GPUs of a flavor, or any other offering without them.

    `gpus` are the GPUs whose hours count against the budget, `usd_per_hour` is what all of it costs an hour. It costs
    from `charged_from`, which is null while its provisioner has not made it yet, and is paid until `until` and kept
    until `kept_until`. One without `begun_at` is a booking: it takes nothing before `starts_at`, when it begins by
    itself, and `hindrance` says what stands in its way. The terms of its end are those of the day it was granted. Of
    GPUs that are given back in part, or go on under a renewal in part, the part becomes an ended row of its own from
    the same start: what was held when can always be added up, and what stays keeps its number.
    """

    class End(models.TextChoices):
        EXPIRED = "expired", "reached its end date"
        RETURNED = "returned", "was given back"
        RENEWED = "renewed", "goes on under a renewal"
        FAILED = "failed", "could not be made"

    team = models.ForeignKey(Team, models.PROTECT, related_name="allocations")
    tenancy = models.ForeignKey(
        Tenancy, models.PROTECT, null=True, related_name="allocations"
    )
    flavor = models.ForeignKey(
        Flavor, models.PROTECT, null=True, related_name="allocations"
    )
    hold = models.ForeignKey(Hold, models.PROTECT, related_name="allocations")
    # What this was a part of until it was given back or went on under a renewal.
    part_of = models.ForeignKey("self", models.PROTECT, null=True, related_name="parts")
    requester = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+"
    )
    offering = models.CharField(max_length=20, default="gpus", db_default="gpus")
    spec = models.JSONField(default=dict)
    count = models.PositiveIntegerField(default=1)
    # What is carried out for it by people, the last of it, and what they are told (manual.briefs.Instructions).
    task = models.ForeignKey(
        Task, models.PROTECT, null=True, related_name="allocations"
    )
    instructions = models.JSONField(default=dict)
    # The generation of its tenancy's desired state that has it first; null before it begins, and without a tenancy.
    generation = models.PositiveIntegerField(null=True)
    # The notebook server that was launched for it; whoever launched it may start it again until its end.
    notebook = models.ForeignKey(
        NotebookServer, models.SET_NULL, null=True, related_name="allocations"
    )
    # The capacity in Azure of which this is all or a part.
    reservation = models.ForeignKey(
        Reservation, models.PROTECT, null=True, related_name="allocations"
    )
    # The deployment in Azure OpenAI of whose capacity this is all or a part.
    endpoint = models.ForeignKey(
        ModelEndpoint, models.PROTECT, null=True, related_name="allocations"
    )
    task_hours = models.PositiveSmallIntegerField(default=24)
    # What it is in a few words, and where it is where no cluster says so.
    title = models.CharField(max_length=200, blank=True, default="", db_default="")
    place = models.CharField(max_length=60, blank=True, default="", db_default="")
    provisioner = models.CharField(
        max_length=12,
        choices=[(each.value, each.words) for each in Provisioner],
        default=Provisioner.KUBERNETES,
        db_default="kubernetes",
    )
    gpus = models.PositiveIntegerField()
    price_per_gpu_hour = models.DecimalField(max_digits=9, decimal_places=4)
    usd_per_hour = models.DecimalField(max_digits=18, decimal_places=8)
    starts_at = models.DateTimeField()
    begun_at = models.DateTimeField(null=True)
    hindrance = models.CharField(max_length=400, blank=True, default="", db_default="")
    # When people were told of what stands in its way, by the keys of that, so that they are told once of each.
    hindrances_told = models.JSONField(default=dict, db_default={})
    charged_from = models.DateTimeField(null=True)
    until = models.DateTimeField()
    kept_until = models.DateTimeField()
    grace_hours = models.PositiveSmallIntegerField(default=0, db_default=0)
    when_over = models.CharField(
        max_length=8,
        choices=[(each.value, each.words) for each in WhenOver],
        default=WhenOver.FINISH,
        db_default="finish",
    )
    drain_hours = models.PositiveSmallIntegerField(default=0, db_default=0)
    # The next reminder of the end that nobody was sent yet; null when none is left.
    remind_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    end_reason = models.CharField(max_length=12, choices=End.choices, blank=True)
    ended_by = models.CharField(max_length=200, blank=True)
    # Why a platform lead took it back from its team; empty for any other end.
    taken_back_because = models.CharField(
        max_length=LONGEST_REASON, blank=True, default="", db_default=""
    )
    # Why it could not be made, where it could not.
    failure = models.CharField(max_length=600, blank=True, default="", db_default="")

    objects = AllocationQuerySet.as_manager()

    class Meta:
        ordering = ["until", "id"]
        indexes = [
            models.Index(
                fields=["until"],
                condition=Q(ended_at=None),
                name="allocation_ends_next",
            ),
            models.Index(
                fields=["kept_until"],
                condition=Q(ended_at=None),
                name="allocation_goes_next",
            ),
            models.Index(
                fields=["remind_at"],
                condition=Q(ended_at=None, remind_at__isnull=False),
                name="allocation_reminds_next",
            ),
            models.Index(
                fields=["starts_at"],
                condition=Q(ended_at=None, begun_at=None),
                name="allocation_begins_next",
            ),
            models.Index(
                fields=["tenancy"],
                condition=Q(ended_at=None, charged_from=None),
                name="allocation_not_charged_yet",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["hold"],
                condition=Q(ended_at=None),
                name="a_request_is_granted_once",
            ),
            models.CheckConstraint(
                condition=Q(flavor=None, price_per_gpu_hour=0) & ~Q(title="")
                | Q(flavor__isnull=False, tenancy__isnull=False, gpus__gte=1),
                name="an_allocation_is_of_gpus_or_says_what_it_is",
            ),
            models.CheckConstraint(
                condition=Q(part_of=None) | Q(ended_at__isnull=False),
                name="a_part_has_ended",
            ),
            models.CheckConstraint(
                condition=Q(charged_from=None) | Q(charged_from__gte=F("starts_at")),
                name="nothing_costs_before_it_starts",
            ),
            models.CheckConstraint(
                condition=Q(
                    begun_at=None,
                    charged_from=None,
                    generation=None,
                    task=None,
                    notebook=None,
                    reservation=None,
                )
                # A comparison with NULL would let everything pass.
                | Q(begun_at__isnull=False, begun_at__gte=F("starts_at"), hindrance=""),
                name="a_booking_has_nothing_yet",
            ),
            models.CheckConstraint(
                condition=Q(usd_per_hour__gte=0), name="an_allocation_never_earns_money"
            ),
            models.CheckConstraint(
                condition=Q(provisioner__in=[each.value for each in Provisioner]),
                name="an_allocation_has_a_known_provisioner",
            ),
            models.CheckConstraint(
                condition=Q(until__gt=F("starts_at")),
                name="an_allocation_ends_after_it_starts",
            ),
            models.CheckConstraint(
                condition=Q(ended_at=None, end_reason="")
                | (Q(ended_at__isnull=False) & ~Q(end_reason="")),
                name="an_end_has_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(kept_until__gte=F("until")),
                name="an_allocation_is_kept_until_its_end",
            ),
            models.CheckConstraint(
                condition=Q(when_over__in=[each.value for each in WhenOver]),
                name="an_end_is_of_a_known_kind",
            ),
            models.CheckConstraint(
                condition=Q(remind_at=None) | Q(remind_at__lt=F("until")),
                name="a_reminder_comes_before_the_end",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.gpus} × {self.flavor}" if self.flavor_id else self.title

    @property
    def terms(self) -> Terms:
        """How it ends."""
        return Terms(
            grace_hours=self.grace_hours,
            when_over=WhenOver(self.when_over),
            drain_hours=self.drain_hours,
        )

    @property
    def is_booked(self) -> bool:
        """Whether it was granted to begin later, and has neither begun nor ended."""
        return self.begun_at is None and self.ended_at is None

    @property
    def what(self) -> str:
        """What is held in a few words: "2 × A100", "500 GiB volume corpus"."""
        return (
            self.title if self.flavor is None else f"{self.gpus} × {self.flavor.kind}"
        )

    @property
    def why_not_kept(self) -> str:
        """Why its GPUs go on for nobody after their end, in a clause; empty where they can be asked for longer."""
        return "" if self.flavor is None else self.flavor.why_closed

    @property
    def where(self) -> str:
        """The title of its cluster, or its region."""
        if self.flavor is not None:
            return self.flavor.cluster.title
        return self.place if self.tenancy is None else self.tenancy.cluster.title

    @property
    def charged_until(self) -> datetime:
        """Until when it costs: its end, or before that when it ended early; grace is free."""
        return min(self.ended_at or self.until, self.until)

    def charge_start(self, otherwise: datetime) -> datetime:
        """From when it costs; `otherwise` for what nobody has made yet, its end where nobody ever did.

        A booking costs nothing before it is to begin, whatever `otherwise` is.
        """
        if self.charged_from is not None:
            return self.charged_from
        if self.is_booked:
            return max(otherwise, self.starts_at)
        return otherwise if self.ended_at is None else self.charged_until

    def freed_from(self, now: datetime) -> datetime:
        """From when it would have cost what is given back now: all of its time where nobody has made it yet."""
        return self.starts_at if self.charged_from is None else now

    def next_steps(self, now: datetime) -> list[Step]:
        """What happens to it after now, in order; nothing once it has ended."""
        if self.ended_at is not None:
            return []
        return next_steps(
            starts=self.starts_at,
            until=self.until,
            terms=self.terms,
            now=now,
            remind_at=self.remind_at,
            of_gpus=self.flavor_id is not None,
            at_end=DELETED if self.provisioner in IN_AZURE else TAKEN_DOWN,
        )

    @property
    def usd_per_day(self) -> Decimal:
        """USD per day of 24 hours at the price that was granted, once it costs."""
        return money.per_day(gpus=1, price=self.usd_per_hour)

    def usd_so_far(self, now: datetime) -> Decimal:
        """USD from the start to the end or, while held, to now; 0 while nobody has made it."""
        end = (
            min(now, self.charged_until)
            if self.ended_at is None
            else self.charged_until
        )
        return money.cost_of(
            usd_per_hour=self.usd_per_hour, start=self.charge_start(end), end=end
        )

    @property
    def usd_in_all(self) -> Decimal:
        """USD from the start to the planned or real end; as if made at once while nobody has made it."""
        return money.cost_of(
            usd_per_hour=self.usd_per_hour,
            start=self.charge_start(self.starts_at),
            end=self.charged_until,
        )

    def by_month(self, *, start: datetime, end: datetime) -> dict[date, money.Amount]:
        """USD and GPU-hours by month, from start to end, at the price that was granted."""
        return money.by_month(
            gpus=self.gpus, usd_per_hour=self.usd_per_hour, start=start, end=end
        )


class BudgetQuerySet(models.QuerySet["Budget"]):
    """Ways to look at budgets."""

    def close(self) -> "BudgetQuerySet":
        """Those that have reached the soft stage of either limit."""
        money_is = Q(
            held_usd__gt=0, held_usd__gte=F("limit_usd") * F("soft_percent") / 100
        )
        hours_are = Q(
            held_gpu_hours__gt=0,
            held_gpu_hours__gte=F("gpu_hours_limit") * F("soft_percent") / 100,
        )
        return self.filter(money_is | hours_are)

    def to_tell(self, now: datetime) -> "BudgetQuerySet":
        """Those that are close, of this month or a later one, of which nobody was told."""
        return self.close().filter(soft_told_at=None, month__gte=money.month_of(now))


class Budget(Row):
    """A team's money and GPU-hours for one calendar month; what is held never passes a limit, whoever writes.

    From `soft_percent` of either limit on a budget is close; that is told once, at `soft_told_at`. A month whose limits
    nobody set (`is_set`) follows the one before it.
    """

    team = models.ForeignKey(Team, models.PROTECT, related_name="budgets")
    month = models.DateField()
    is_set = models.BooleanField(default=False, db_default=False)
    limit_usd = models.DecimalField(max_digits=12, decimal_places=2)
    held_usd = models.DecimalField(max_digits=12, decimal_places=2, default=Decimal(0))
    gpu_hours_limit = models.DecimalField(max_digits=12, decimal_places=2, null=True)
    held_gpu_hours = models.DecimalField(
        max_digits=12, decimal_places=2, default=Decimal(0)
    )
    soft_percent = models.PositiveSmallIntegerField(default=80)
    soft_told_at = models.DateTimeField(null=True)

    objects = BudgetQuerySet.as_manager()

    class Meta:
        ordering = ["month"]
        constraints = [
            models.UniqueConstraint(
                fields=["team", "month"], name="a_team_has_one_budget_a_month"
            ),
            models.CheckConstraint(
                condition=Q(held_usd__lte=F("limit_usd")),
                name="a_budget_is_never_overspent",
            ),
            models.CheckConstraint(
                condition=Q(held_usd__gte=0), name="a_budget_holds_no_less_than_nothing"
            ),
            models.CheckConstraint(
                condition=Q(gpu_hours_limit=None)
                | Q(held_gpu_hours__lte=F("gpu_hours_limit")),
                name="gpu_hours_are_never_overspent",
            ),
            models.CheckConstraint(
                condition=Q(held_gpu_hours__gte=0), name="no_gpu_hours_below_nothing"
            ),
            models.CheckConstraint(
                condition=Q(soft_percent__gte=1, soft_percent__lte=100),
                name="a_soft_stage_is_1_to_100_percent",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.team_id} {self.month:%Y-%m}"

    @property
    def left_usd(self) -> Decimal:
        """USD of the month that nothing has a claim on."""
        return self.limit_usd - self.held_usd

    @property
    def left_gpu_hours(self) -> Decimal | None:
        """GPU-hours of the month that nothing has a claim on; None where they have no limit."""
        return (
            None
            if self.gpu_hours_limit is None
            else self.gpu_hours_limit - self.held_gpu_hours
        )

    @property
    def is_close(self) -> bool:
        """Whether the soft stage of either limit is reached; a month of which nothing is held is not close."""
        return any(
            held > 0 and held * 100 >= limit * self.soft_percent
            for held, limit in self._shares()
        )

    @property
    def percent_held(self) -> int:
        """What is set aside of that limit of which more is, rounded down; never above 100."""
        return max(
            (int(100 * held / limit) if limit else 100 * (held > 0))
            for held, limit in self._shares()
        )

    @property
    def closest(self) -> str:
        """Of which of its limits that is: "budget" for the money, or "GPU-hours"."""
        shares = [held / limit if limit else held for held, limit in self._shares()]
        return "budget" if shares[0] == max(shares) else "GPU-hours"

    @property
    def stage_words(self) -> str:
        """What follows for those who ask now that it is close.

        The policy looks at the soft stage of the money alone, and may be told not to.
        """
        if (
            self.held_usd > 0
            and self.held_usd * 100 >= self.limit_usd * self.soft_percent
        ):
            return (
                f"From {self.soft_percent} % of the money on, people decide what goes on top, unless the policy says "
                "otherwise."
            )
        return "What takes more GPU-hours than are left waits until a platform lead raises them."

    def _shares(self) -> list[tuple[Decimal, Decimal]]:
        pairs = [(self.held_usd, self.limit_usd)]
        return (
            pairs
            if self.gpu_hours_limit is None
            else [*pairs, (self.held_gpu_hours, self.gpu_hours_limit)]
        )


class LedgerEntry(Row):
    """What one request has set aside in one month. Rows are added, never changed; what is freed is negative."""

    budget = models.ForeignKey(Budget, models.PROTECT, related_name="entries")
    hold = models.ForeignKey(Hold, models.PROTECT, related_name="entries")
    usd = models.DecimalField(max_digits=12, decimal_places=2)
    gpu_hours = models.DecimalField(max_digits=12, decimal_places=2, default=Decimal(0))
    at = models.DateTimeField()
    why = models.CharField(max_length=60)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.hold_id} {self.usd}"


class UseDay(models.Model):
    """How much of what a tenancy holds of a flavor its workloads reserved on one day (UTC), look by look.

    `used_sum` of `held_sum` GPUs: each of the `samples` looks adds what was held and, of that, what was in use.

    These rows are kept for good, a small one a day: what was idle in a month that is over is told from them however
    long ago it was, and the use of the last twelve weeks as well.
    """

    tenancy = models.ForeignKey(Tenancy, models.CASCADE, related_name="use_days")
    flavor = models.ForeignKey(Flavor, models.CASCADE, related_name="+")
    day = models.DateField()
    samples = models.PositiveIntegerField(default=1)
    held_sum = models.PositiveBigIntegerField()
    used_sum = models.PositiveBigIntegerField()
    last_at = models.DateTimeField()
    # When the team was told that this is idle.
    told_idle_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["day"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenancy", "flavor", "day"], name="a_day_of_use_is_counted_once"
            ),
            models.CheckConstraint(
                condition=Q(used_sum__lte=F("held_sum")),
                name="no_more_is_used_than_is_held",
            ),
            models.CheckConstraint(
                condition=Q(samples__gte=1, held_sum__gte=F("samples")),
                name="a_sample_is_of_what_is_held",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenancy_id} {self.flavor_id} {self.day}: {self.used_sum} of {self.held_sum}"
