"""Which runs have failed lately, by the cause: how many, of how many teams, and what they cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import (
    Case,
    CharField,
    Count,
    DecimalField,
    F,
    Max,
    Q,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce

from workloads.failures.causes import ADVICE, Code
from workloads.reasons.limits import AT_LIMIT
from workloads.runs.models import Run, RunQuerySet
from workloads.runs.states import OVER, State

DAYS = 30
HOUR = Decimal(3_600)
FAILED = (State.FAILED, State.REFUSED)
TIME_LIMIT, NEVER_BEGAN, REFUSED, UNKNOWN = (
    "time_limit",
    "never_began",
    "refused",
    "unknown",
)
# What ends a run beside the failure of its program: what it is called, and what to do.
OTHERS = {
    TIME_LIMIT: (
        "time limit reached",
        "Give them more time, or have them keep checkpoints and go on from the last one.",
    ),
    NEVER_BEGAN: ("never began", "Their pages say what their pods waited for."),
    REFUSED: ("refused by the cluster", "Their pages say what the cluster refused."),
    UNKNOWN: ("cause not known", "Look at their logs."),
}
CHOICES = [
    *((code.value, code.label) for code in Code),
    *((key, label) for key, (label, _) in OTHERS.items()),
]
AMOUNT = DecimalField(max_digits=30, decimal_places=4)
# In the order in which they are asked; the first that holds counts.
KEY = Case(
    When(state=State.REFUSED, then=Value(REFUSED)),
    When(message__startswith=AT_LIMIT, then=Value(TIME_LIMIT)),
    When(~Q(cause=""), then=F("cause")),
    When(started_at=None, then=Value(NEVER_BEGAN)),
    default=Value(UNKNOWN),
    output_field=CharField(),
)


@dataclass(frozen=True, kw_only=True)
class OfCause:
    """The runs that failed for one cause; `last` is the newest of them, money is USD."""

    cause: str
    runs: int
    teams: int
    gpu_hours: Decimal
    usd: Decimal
    last: Run

    @property
    def label(self) -> str:
        """What people call the cause."""
        return dict(CHOICES)[self.cause]

    @property
    def advice(self) -> str:
        """What to do about it."""
        if self.cause in OTHERS:
            return OTHERS[self.cause][1]
        return ADVICE[Code(self.cause)].do


@dataclass(frozen=True, kw_only=True)
class FailedRuns:
    """How many runs have ended since a moment, and those of them that failed, by cause, the most expensive first."""

    since: datetime
    ended: int
    causes: Sequence[OfCause]

    @property
    def runs(self) -> int:
        """How many failed."""
        return sum(one.runs for one in self.causes)

    @property
    def gpu_hours(self) -> Decimal:
        """GPU-hours that those took."""
        return sum((one.gpu_hours for one in self.causes), Decimal(0))

    @property
    def usd(self) -> Decimal:
        """What those cost."""
        return sum((one.usd for one in self.causes), Decimal(0))

    @property
    def percent(self) -> Decimal | None:
        """The share of the runs that failed; None where none has ended."""
        return Decimal(100 * self.runs) / self.ended if self.ended else None


def failed_runs(rows: RunQuerySet, *, now: datetime) -> FailedRuns:
    """Of these runs those that ended in the last days; three queries however many there are."""
    since = now - timedelta(days=DAYS)
    # What was skipped waited for another run, and nothing of it was there to fail.
    ended = rows.filter(state__in=OVER - {State.SKIPPED}, ended_at__gt=since).order_by()
    found = list(
        ended.filter(state__in=FAILED)
        .annotate(key=KEY)
        .values("key")
        .annotate(
            runs=Count("pk"),
            teams=Count("team", distinct=True),
            gpu_seconds=Coalesce(
                Sum(Cast("gpus", AMOUNT) * F("ran_seconds"), output_field=AMOUNT),
                Decimal(0),
            ),
            usd_seconds=Coalesce(
                Sum(F("usd_per_hour") * F("ran_seconds"), output_field=AMOUNT),
                Decimal(0),
            ),
            newest=Max("pk"),
        )
    )
    last = rows.select_related("team").in_bulk([one["newest"] for one in found])
    causes = [
        OfCause(
            cause=one["key"],
            runs=one["runs"],
            teams=one["teams"],
            gpu_hours=one["gpu_seconds"] / HOUR,
            usd=one["usd_seconds"] / HOUR,
            last=last[one["newest"]],
        )
        for one in found
    ]
    causes.sort(key=lambda one: (-one.usd, -one.runs, one.cause))
    return FailedRuns(since=since, ended=ended.count(), causes=causes)
