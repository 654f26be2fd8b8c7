"""How deciding goes: what is automatic, how long each seat takes, and what was taken back afterwards."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median, quantiles
from typing import NamedTuple

from django.db.models import Count, F, Q
from django.db.models.functions import TruncWeek

from allocations.models import Allocation
from approvals.decisions import routing
from approvals.decisions.seats import pace_seat
from approvals.models import Decision, Evaluation, Request, Step
from approvals.states import State
from policy.document import MANAGERS
from policy.evaluation import Outcome

FEWEST = 5
# Of how many days one may ask, and how many they are unless one does.
SPANS, USUAL_SPAN = (7, 30, 90, 365), 30
MOST_STEPS = 20_000
GRANTED_LESS = Q(approved_count__lt=F("count")) | Q(approved_until__lt=F("until"))


def span_of(chosen: str) -> int:
    """The days that somebody chose, or the usual ones for what nobody offered."""
    return int(chosen) if chosen in map(str, SPANS) else USUAL_SPAN


@dataclass(frozen=True)
class Week:
    """Requests of one week by what was said to them at first."""

    start: datetime
    asked: int
    automatic: int

    @property
    def percent(self) -> int:
        """Share that was automatic, in percent."""
        return round(100 * self.automatic / self.asked) if self.asked else 0


@dataclass(frozen=True)
class Pace:
    """How long the steps of one seat took; the spans are None below five of them. The clock stops while asked back."""

    seat: str
    label: str
    done: int
    waiting: int
    late: int
    median: timedelta | None
    nine_of_ten: timedelta | None


class Reason(NamedTuple):
    """Why requests were rejected, in words, and how many of them."""

    words: str
    requests: int


@dataclass(frozen=True)
class Statistics:
    """The decisions of some days."""

    days: int
    weeks: tuple[Week, ...]
    asked: int
    automatic: int
    approved: int
    approved_less: int
    rejected: int
    withdrawn: int
    lapsed: int
    because: tuple[Reason, ...]
    paces: tuple[Pace, ...]
    given_back_early: int
    edited: int
    asked_back: int

    @property
    def percent_automatic(self) -> int:
        """Share of all asks that was automatic, in percent."""
        return round(100 * self.automatic / self.asked) if self.asked else 0


def statistics(*, days: int, now: datetime) -> Statistics:
    """Everything about the requests made within `days` before now; eight queries however many they are."""
    since = now - timedelta(days=days)
    rows = Request.objects.filter(created_at__gte=since)
    by_state = rows.aggregate(
        asked=Count("pk"),
        approved=Count("pk", filter=Q(state=State.APPROVED)),
        less=Count("pk", filter=GRANTED_LESS),
        edited=Count("pk", filter=Q(content_version__gt=1)),
        **{
            state: Count("pk", filter=Q(state=state))
            for state in ("rejected", "withdrawn", "lapsed")
        },
    )
    weeks, words = _weeks(since), dict(Decision.Because.choices)
    said = Decision.objects.filter(request__created_at__gte=since)
    because = Counter(
        dict(
            said.filter(verdict="reject")
            .order_by()
            .values_list("because")
            .annotate(number=Count("pk"))
        )
    )
    return Statistics(
        days=days,
        weeks=weeks,
        asked=by_state["asked"],
        automatic=sum(week.automatic for week in weeks),
        approved=by_state["approved"],
        approved_less=by_state["less"],
        rejected=by_state["rejected"],
        withdrawn=by_state["withdrawn"],
        lapsed=by_state["lapsed"],
        edited=by_state["edited"],
        because=tuple(
            Reason(str(words.get(key, "No reason chosen")), n)
            for key, n in because.most_common()
        ),
        paces=_paces(since, now),
        given_back_early=Allocation.objects.filter(
            starts_at__gte=since, end_reason=Allocation.End.RETURNED
        ).count(),
        asked_back=said.filter(verdict="ask").count(),
    )


def _weeks(since: datetime) -> tuple[Week, ...]:
    """By week of asking, from the answer to the first version."""
    first = Evaluation.objects.filter(
        request__created_at__gte=since, content_version=1, at=F("request__created_at")
    )
    rows = (
        first.order_by()
        .annotate(week=TruncWeek("at"))
        .values("week")
        .annotate(
            asked=Count("pk"),
            automatic=Count("pk", filter=Q(outcome=Outcome.AUTOMATIC)),
        )
        .order_by("week")
    )
    return tuple(Week(row["week"], row["asked"], row["automatic"]) for row in rows)


def _paces(since: datetime, now: datetime) -> tuple[Pace, ...]:
    took: dict[str, list[float]] = defaultdict(list)
    waiting: Counter[str] = Counter()
    late: Counter[str] = Counter()
    labels: dict[str, str] = {}
    steps = Step.objects.filter(opened_at__gte=since).order_by("-opened_at")
    current = Q(
        request__state=State.WAITING,
        version=F("request__content_version"),
        dropped_at=None,
    )
    rows = steps.filter(Q(done_at__isnull=False) | current)
    for step in rows.only(
        "seat", "label", "opened_at", "done_at", "due_at", "paused_at", "plan"
    )[:MOST_STEPS]:
        # People's own seats are one line: nobody's speed is put on a page.
        seat = pace_seat(step.seat)
        labels.setdefault(seat, MANAGERS if seat == MANAGERS else step.label)
        end = step.done_at or now
        if step.due_at is not None and end > step.due_at:
            late[seat] += 1
        if step.done_at is None:
            waiting[seat] += 1
        elif (length := routing.took(step)) is not None:
            took[seat].append(length.total_seconds())
    return tuple(
        _pace(seat, labels[seat], took[seat], waiting[seat], late[seat])
        for seat in sorted(labels)
    )


def _pace(seat: str, label: str, seconds: list[float], waiting: int, late: int) -> Pace:
    known = len(seconds) >= FEWEST
    return Pace(
        seat=seat,
        label=label,
        done=len(seconds),
        waiting=waiting,
        late=late,
        median=timedelta(seconds=median(seconds)) if known else None,
        nine_of_ten=timedelta(seconds=quantiles(seconds, n=10)[8]) if known else None,
    )
