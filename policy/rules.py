"""The rules a policy knows: each compares one number with one limit, and says both in words. Pure.

A rule keeps its numbers; its words are made when somebody reads them, so that judging thousands of asks stays cheap.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from allocations.bookings.levels import Level
from allocations.budgets.money import Amount, Left
from fleet import growth
from policy.route_size import Earlier
from ui.amounts import duration, hours, moment, usd

if TYPE_CHECKING:
    from policy.document import Thresholds

NO_BUDGET = Left(Decimal(0), Decimal(0), None, None, 100)


class Arrival(StrEnum):
    """How what is granted gets to where it is used.

    It is written to its cluster, at once or when that answers again, committed to Git, proposed as a pull request to
    merge, or made in Azure.
    """

    WRITTEN = "written"
    WHEN_IT_ANSWERS = "when_it_answers"
    COMMITTED = "committed"
    PROPOSED = "proposed"
    IN_AZURE = "in_azure"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """What is asked for until a moment: `count` units of an offering, each with GPUs and USD an hour.

    It begins at once, or at `starts`. `environment` and `flavor` are "" for what has none; `reversible_minutes` is None
    for what cannot be undone; fewer than `least` cannot be asked for. What waits since `asked_at` stays as long and as
    dear as it was then, so that nobody's silence makes it small enough; None is what is asked for now.
    """

    count: int
    until: datetime
    usd_per_hour_each: Decimal
    gpus_each: int = 1
    offering: str = "gpus"
    name: str = "GPUs"
    environment: str = ""
    flavor: str = ""
    tier: str = "standard"
    reversible_minutes: int | None = 1
    decided_by_people: bool = False
    by_person: bool = False
    arrival: Arrival = Arrival.WRITTEN
    least: int = 1
    starts: datetime | None = None
    asked_at: datetime | None = None

    def begins(self, now: datetime) -> datetime:
        """When it begins: now, or later where it was asked for from then on."""
        return now if self.starts is None else max(now, self.starts)

    def began_as_asked(self, now: datetime) -> datetime:
        """When it would have begun if it had been granted as it was asked for."""
        return self.begins(now if self.asked_at is None else min(now, self.asked_at))

    @property
    def gpus(self) -> int:
        """GPUs in all."""
        return self.count * self.gpus_each

    @property
    def usd_per_hour(self) -> Decimal:
        """USD an hour of all of it."""
        return self.count * self.usd_per_hour_each


class Coming(NamedTuple):
    """What changes by itself at a moment: GPUs that come back, and GPUs and USD that fall out of the windows."""

    at: datetime
    free: int = 0
    team: int = 0
    person: int = 0
    team_usd: Decimal = Decimal(0)
    person_usd: Decimal = Decimal(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """Everything the policy may look at, gathered beforehand.

    `free_gpus` and `total_gpus` are None for what takes no GPUs of a pool, `use_percent` where nothing was measured.
    `held_gpus` of the ask's kind are held in its namespace, `held_elsewhere_gpus` in the team's others of the cluster.
    `held_since` and `use_samples` say how long and how often use was measured; None in what was gathered before they
    were counted, where use counts as measured.
    `free_gpus` can be had: `ready_gpus` of them now, the others once the pool has grown, which takes `growing_minutes`
    (0 where nobody said so); `ready_gpus` is None for a pool that does not grow. `total_gpus` are all that there can
    be, with the `cordoned_gpus` that cannot be had now.
    `own_gpus` are held already, until `own_until`, and go on with the ask, so that it takes only the others from the
    pool. The USD that the policy granted lately are None in what was gathered before they were counted: then they say
    nothing. `earlier` are the other asks of the team and of the person that a route's size counts with this one.
    """

    now: datetime
    held_gpus: int = 0
    held_elsewhere_gpus: int = 0
    recent_team_gpus: int = 0
    recent_person_gpus: int = 0
    recent_team_usd: Decimal | None = None
    recent_person_usd: Decimal | None = None
    free_gpus: int | None = None
    total_gpus: int | None = None
    use_percent: Decimal | None = None
    held_since: datetime | None = None
    use_samples: int | None = None
    budget: Mapping[date, Left]
    coming: tuple[Coming, ...] = ()
    own_gpus: int = 0
    own_until: datetime | None = None
    earlier: tuple[Earlier, ...] = ()
    unconfirmed_cost_centre: str = ""
    ready_gpus: int | None = None
    cordoned_gpus: int = 0
    growing_minutes: int = 0
    # GPUs that the pool could have by its autoscaler, and that a link further up lets it have not; which link that is.
    held_back_gpus: int = 0
    held_back_by: str = ""
    # `free_gpus` are those that are free in all of its time; so many more are free when it begins, and are booked by
    # others from then on. `levels` is what is free from when on, where anything is booked.
    booked_gpus: int = 0
    booked_from: datetime | None = None
    levels: tuple[Level, ...] = ()
    # Of an ask that begins later: GPUs that the policy alone has booked for the team in the same time.
    team_booked_gpus: int = 0
    # Of what is made in Azure: how many units more fit the quota that has the least left, and which that is.
    quota_left: int | None = None
    quota_name: str = ""

    @property
    def team_held_gpus(self) -> int:
        """GPUs of the ask's kind that the team holds in whatever namespace of the cluster."""
        return self.held_gpus + self.held_elsewhere_gpus

    @property
    def grows_to(self) -> int:
        """GPUs that the pool can grow to now, without its cordoned nodes and what is held back."""
        return (self.total_gpus or 0) - self.cordoned_gpus - self.held_back_gpus

    def has_to_grow(self, gpus: int) -> bool:
        """Whether so many GPUs are more than stand ready in a pool that grows."""
        return self.ready_gpus is not None and gpus - self.own_gpus > self.ready_gpus


class Room(NamedTuple):
    """What the rule about free GPUs holds them against, and what it says of the pool."""

    needed: int
    ready: int
    cordoned: int
    grows_to: int
    minutes: int
    held_back_by: str = ""
    booked: int = 0
    booked_from: datetime | None = None
    begins: datetime | None = None
    now: datetime | None = None


class Rule(NamedTuple):
    """One rule's result: what was held against what; `blocks` when nobody may approve it."""

    code: str
    holds: bool
    value: Any
    bound: Any
    blocks: bool = False

    @property
    def within(self) -> bool:
        """Whether its number is known and within the limit; a rule may hold without, because the policy allows that."""
        if self.code == "budget_soft":
            return bool(self.value[0] <= self.bound[0])
        return self.holds and not (self.code == "use" and self.value[0] is None)

    @property
    def text(self) -> str:
        """The number, in words."""
        return WORDS[self.code][0](self.value, self.bound)

    @property
    def limit(self) -> str:
        """What it was held against, in words."""
        return WORDS[self.code][1](self.value, self.bound)


def applied(
    ask: Ask,
    standing: Standing,
    limits: "Thresholds",
    parts: Mapping[date, Amount],
    total: Amount,
) -> Iterator[Rule]:
    """Every rule that says something about an ask.

    `parts` is its cost by month from now on, and `total` in all as it was asked for.
    """
    gpus = ask.gpus
    if gpus:
        yield from _pool(ask, standing, limits)
    if standing.quota_left is not None:
        yield Rule(
            "quota",
            ask.count <= standing.quota_left,
            standing.quota_left,
            standing.quota_name,
        )
    yield from _budget(standing, limits, parts)
    begins = ask.begins(standing.now)
    # What nobody can grant as it was asked for can be granted once less of it is left.
    too_long = ask.until - begins > timedelta(days=limits.longest_days)
    length = ask.until - (begins if too_long else ask.began_as_asked(standing.now))
    yield Rule(
        "days",
        length <= timedelta(days=limits.automatic_days),
        length,
        (limits.automatic_days, limits.longest_days, too_long),
        too_long,
    )
    if gpus:
        is_booking = begins > standing.now
        yield from _gpus(gpus, standing, limits, total, is_booking=is_booking)
    yield Rule(
        "money", total.usd <= limits.automatic_usd, total.usd, limits.automatic_usd
    )
    if total.usd:
        yield from _cost_centre(total.usd, standing, limits)
        yield from _window_usd(total.usd, standing, limits)
    if ask.environment:
        allowed = limits.automatic_environments
        yield Rule("environment", ask.environment in allowed, ask.environment, allowed)
    undone, most = ask.reversible_minutes, limits.reversible_minutes
    yield Rule("reversible", undone is not None and undone <= most, undone, most)
    if ask.decided_by_people:
        yield Rule("gate", False, ask.name, None)


def _pool(ask: Ask, standing: Standing, limits: "Thresholds") -> Iterator[Rule]:
    gpus, total, free = ask.gpus, standing.total_gpus, standing.free_gpus
    if total is None or free is None:
        return
    # What is held already exists, even where nodes have gone since.
    more, fits = max(0, gpus - standing.own_gpus), gpus <= max(total, standing.own_gpus)
    yield Rule("exists", fits, gpus, total, not fits)
    ready = max(
        0, free if standing.ready_gpus is None else min(standing.ready_gpus, free)
    )
    room = Room(
        needed=more,
        ready=ready,
        cordoned=standing.cordoned_gpus,
        grows_to=standing.grows_to,
        minutes=standing.growing_minutes,
        held_back_by=standing.held_back_by,
        booked=standing.booked_gpus,
        booked_from=standing.booked_from,
        begins=ask.starts if ask.begins(standing.now) > standing.now else None,
        now=standing.now,
    )
    yield Rule("free", more <= free, free, room)
    if limits.keep_free_gpus:
        stays = free - more >= limits.keep_free_gpus or not more
        yield Rule("after", stays, free - more, limits.keep_free_gpus)


def _budget(
    standing: Standing, limits: "Thresholds", parts: Mapping[date, Amount]
) -> Iterator[Rule]:
    # What is set aside for what goes on counts as left, so there is more of it than the budget's page says.
    frees = standing.own_gpus > 0
    for month, part in parts.items():
        left = standing.budget.get(month, NO_BUDGET)
        yield Rule(
            "budget",
            part.usd <= left.usd,
            (part.usd, left.usd, frees, month),
            left.usd_limit,
        )
        if part.gpu_hours and left.gpu_hours is not None:
            enough = part.gpu_hours <= left.gpu_hours
            yield Rule(
                "budget_hours",
                enough,
                (part.gpu_hours, left.gpu_hours, frees, month),
                left.gpu_hours_limit,
            )
        if part.usd and left.usd_limit:
            used = 100 * (left.usd_limit - left.usd + part.usd) / left.usd_limit
            allowed = limits.automatic_beyond_soft_budget
            holds = used <= left.soft_percent or allowed
            yield Rule(
                "budget_soft", holds, (used, month), (left.soft_percent, allowed)
            )


def _gpus(
    gpus: int,
    standing: Standing,
    limits: "Thresholds",
    total: Amount,
    *,
    is_booking: bool,
) -> Iterator[Rule]:
    yield Rule("gpus", gpus <= limits.automatic_gpus, gpus, limits.automatic_gpus)
    if (most_hours := limits.automatic_gpu_hours) is not None:
        yield Rule(
            "gpu_hours", total.gpu_hours <= most_hours, total.gpu_hours, most_hours
        )
    team = standing.recent_team_gpus + gpus
    yield Rule(
        "window",
        team <= limits.window_gpus_team,
        (team, limits.window_days),
        limits.window_gpus_team,
    )
    if is_booking:
        # Asked week by week for the same days, each would be small, and out of the window before the next one.
        same_time = standing.team_booked_gpus + gpus
        most_booked = limits.window_gpus_team
        yield Rule("booked", same_time <= most_booked, same_time, most_booked)
    if (most := limits.window_gpus_person) is not None:
        person = standing.recent_person_gpus + gpus
        yield Rule("window_person", person <= most, (person, limits.window_days), most)
    if standing.team_held_gpus and limits.least_use_percent:
        use, least = measured_use(standing, limits), limits.least_use_percent
        holds = limits.automatic_when_unmeasured if use is None else use >= least
        bound = (least, limits.automatic_when_unmeasured, limits.use_after_hours)
        yield Rule("use", holds, (use, standing.team_held_gpus), bound)


def measured_use(standing: Standing, limits: "Thresholds") -> Decimal | None:
    """Percent of what is held that is in use; None until it was held for long enough and looked at often enough."""
    too_young = standing.held_since is not None and standing.now < measured_from(
        standing.held_since, limits
    )
    too_few = (
        standing.use_samples is not None
        and standing.use_samples < limits.use_after_samples
    )
    return None if too_young or too_few else standing.use_percent


def measured_from(held_since: datetime, limits: "Thresholds") -> datetime:
    """From when on the use of what is held since a moment counts."""
    return held_since + timedelta(hours=limits.use_after_hours)


def _cost_centre(
    usd: Decimal, standing: Standing, limits: "Thresholds"
) -> Iterator[Rule]:
    code, spent = (
        standing.unconfirmed_cost_centre,
        usd + (standing.recent_team_usd or Decimal(0)),
    )
    if code:
        yield Rule(
            "cost_centre",
            spent <= limits.unconfirmed_usd,
            (code, spent),
            limits.unconfirmed_usd,
        )


def _window_usd(
    usd: Decimal, standing: Standing, limits: "Thresholds"
) -> Iterator[Rule]:
    for code, granted, most in (
        ("window_usd", standing.recent_team_usd, limits.window_usd_team),
        ("window_usd_person", standing.recent_person_usd, limits.window_usd_person),
    ):
        if granted is not None and most is not None:
            yield Rule(
                code, granted + usd <= most, (granted + usd, limits.window_days), most
            )


def count_of(number: int) -> str:
    """ "1 GPU", "4 GPUs"."""
    return f"{number:,} GPU{'s' if number != 1 else ''}"


def _days_limit(_: Any, bound: Any) -> str:
    automatic, longest, too_long = bound
    return (
        f"at most {longest} days, whoever approves"
        if too_long
        else f"people decide beyond {automatic} days"
    )


def _use_text(value: Any, _: Any) -> str:
    use, held = value
    return (
        f"use of the {count_of(held)} held does not count yet"
        if use is None
        else f"{use:.0f} % of the {count_of(held)} held in use"
    )


def _use_limit(value: Any, bound: Any) -> str:
    least, counts, hours = bound
    if value[0] is None:
        until_then = (
            "counts as used until then" if counts else "people decide until then"
        )
        return f"it counts once held for {hours} hours; {until_then}"
    return f"people decide below {least} %"


def _soft_limit(value: Any, bound: Any) -> str:
    soft, allowed = bound
    return (
        f"over {soft} %, allowed by the policy"
        if allowed and value[0] > soft
        else f"people decide beyond {soft} %"
    )


def _exists_text(value: Any, bound: Any) -> str:
    has = f"has {bound}" if bound else "has none of this kind now"
    return f"the cluster {has}; this asks for {value}"


def _free_text(value: Any, bound: Room) -> str:
    number = max(0, value)
    if bound.begins is not None and bound.now is not None:
        return f"{number} free from {moment(bound.begins, bound.now)} until its end"
    if bound.booked and bound.booked_from is not None and bound.now is not None:
        others = f"{bound.booked} more are booked from {moment(bound.booked_from, bound.now)}"
        return f"{number} free for this time; {others}"
    words = growth.free(number, ready=bound.ready, cordoned=bound.cordoned)
    if bound.ready < number:
        return f"{words}: the pool {growth.grows(bound.grows_to, bound.minutes, bound.held_back_by)}"
    if bound.held_back_by and bound.needed > number:
        return f"{words}: {bound.held_back_by} stops it there"
    return words


def _reversible_text(value: Any, _: Any) -> str:
    return (
        "cannot be undone"
        if value is None
        else f"undoing it takes {_minutes(value)} at most"
    )


def _minutes(number: int) -> str:
    return f"{number} minute{'s' if number != 1 else ''}"


Words = Callable[[Any, Any], str]


def _freed(is_freed: bool) -> str:
    return ", with what is set aside for the GPUs that it keeps" if is_freed else ""


WORDS: Mapping[str, tuple[Words, Words]] = {
    "exists": (_exists_text, lambda v, b: "no more than the cluster has"),
    "free": (_free_text, lambda v, b: f"{b.needed} needed"),
    "after": (
        lambda v, b: f"{max(v, 0)} stay free",
        lambda v, b: f"people decide where fewer than {b} stay free",
    ),
    "quota": (
        lambda v, b: f"{v:,} more fit {b}",
        lambda v, b: "people decide beyond; an increase takes days",
    ),
    "budget": (
        lambda v, b: f"{usd(v[0])} of the {usd(v[1])} left in {v[3]:%B}{_freed(v[2])}",
        lambda v, b: f"budget {usd(b)}",
    ),
    "budget_hours": (
        lambda v, b: (
            f"{hours(v[0]).split()[0]} of the {hours(v[1])} left in {v[3]:%B}{_freed(v[2])}"
        ),
        lambda v, b: f"budget {hours(b)}",
    ),
    "budget_soft": (
        lambda v, b: f"{v[0]:.0f} % of the budget of {v[1]:%B} set aside with this",
        _soft_limit,
    ),
    "days": (lambda v, b: duration(v), _days_limit),
    "gpus": (lambda v, b: count_of(v), lambda v, b: f"people decide above {b}"),
    "gpu_hours": (lambda v, b: hours(v), lambda v, b: f"people decide above {b:,}"),
    "money": (
        lambda v, b: f"{usd(v)} in all",
        lambda v, b: f"people decide above {usd(b)}",
    ),
    "cost_centre": (
        lambda v, b: f"{usd(v[1])} on cost centre {v[0]}, which is not confirmed",
        lambda v, b: (
            f"people decide above {usd(b)} until its owner or a platform lead confirms it"
        ),
    ),
    "window": (
        lambda v, b: f"{count_of(v[0])} within {v[1]} days",
        lambda v, b: f"the team’s limit without people is {b}",
    ),
    "booked": (
        lambda v, b: f"{count_of(v)} booked for the same time",
        lambda v, b: f"the team’s limit without people is {b}",
    ),
    "window_person": (
        lambda v, b: f"{count_of(v[0])} of one person within {v[1]} days",
        lambda v, b: f"a person’s limit without people is {b}",
    ),
    "window_usd": (
        lambda v, b: f"{usd(v[0])} within {v[1]} days",
        lambda v, b: f"the team’s limit without people is {usd(b)}",
    ),
    "window_usd_person": (
        lambda v, b: f"{usd(v[0])} of one person within {v[1]} days",
        lambda v, b: f"a person’s limit without people is {usd(b)}",
    ),
    "use": (_use_text, _use_limit),
    "environment": (
        lambda v, b: f"{v} environment",
        lambda v, b: (
            f"people decide outside {' and '.join(b)}" if b else "people always decide"
        ),
    ),
    "reversible": (
        _reversible_text,
        lambda v, b: f"people decide beyond {_minutes(b)}",
    ),
    "gate": (lambda v, b: v, lambda v, b: "people always decide this"),
}
