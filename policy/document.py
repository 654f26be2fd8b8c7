"""The policy as a document: thresholds, where they differ, and who decides. Pure; read from and written to YAML.

`read` refuses what is unknown, contradictory or too large, and says where.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from web.documents import DocumentRefused, parse, problems_of, unfit

CLOSED = ConfigDict(extra="forbid")
WORDS = {
    "literal_error": "Choose dev, test or production.",
    "decimal_parsing": "Write an amount in USD.",
    "decimal_type": "Write an amount in USD.",
}
MOST = 10**9
MOST_HOURS = 9_600  # 400 days
LONGEST_NAME = 120
MAX_USE_HOURS = 14 * 24
PLATFORM_LEADS, ENGINEERING_LEADERSHIP, MANAGERS = (
    "platform_leads",
    "engineering_leadership",
    "managers",
)


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The numbers an ask is held against; every limit is inclusive, None is no limit."""

    __pydantic_config__ = CLOSED

    automatic_gpus: int = 2
    automatic_gpu_hours: int | None = 700
    automatic_usd: Decimal = Decimal(1500)
    unconfirmed_usd: Decimal = Decimal(0)
    automatic_days: int = 14
    longest_days: int = 90
    window_days: int = 7
    window_gpus_team: int = 6
    window_gpus_person: int | None = 6
    window_usd_team: Decimal | None = Decimal(4500)
    window_usd_person: Decimal | None = Decimal(4500)
    automatic_environments: tuple[Literal["dev", "test", "production"], ...] = (
        "dev",
        "test",
    )
    automatic_beyond_soft_budget: bool = False
    least_use_percent: int = 50
    automatic_when_unmeasured: bool = True
    use_after_hours: int = 24
    use_after_samples: int = 60
    keep_free_gpus: int = 0
    reversible_minutes: int = 10
    carried_out_hours: int = 24


@dataclass(frozen=True, kw_only=True)
class Where:
    """Which asks something is about; what is empty says nothing, what is said must all be so."""

    __pydantic_config__ = CLOSED

    offerings: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    flavors: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()

    def matches(self, offering: str, environment: str, flavor: str, tier: str) -> bool:
        """Whether an ask of this kind is meant."""
        return (
            (not self.offerings or offering in self.offerings)
            and (not self.environments or environment in self.environments)
            and (not self.flavors or flavor in self.flavors)
            and (not self.tiers or tier in self.tiers)
        )


@dataclass(frozen=True, kw_only=True)
class Override:
    """Thresholds that differ for some asks; later ones win."""

    __pydantic_config__ = CLOSED

    where: Where
    set: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """Who decides one step, how many of them, and what happens when they are silent; all times in hours.

    `by` is platform_leads, engineering_leadership, managers (the requester's manager), or group:<object id>.
    """

    __pydantic_config__ = CLOSED

    by: str
    name: str = ""
    level: int = 1
    quorum: int = 1
    target_hours: int = 24
    remind_hours: int = 8
    escalate_hours: int = 48
    escalate_to: str = ENGINEERING_LEADERSHIP

    @property
    def words(self) -> str:
        """Who decides, as pages say it."""
        if self.by == MANAGERS:
            return (
                "your manager"
                if self.level == 1
                else f"your manager, level {self.level}"
            )
        return self.name or seat_words(self.by)


@dataclass(frozen=True, kw_only=True)
class Route:
    """The steps of the asks it is for: all that match `where` and reach one of the sizes, if sizes are given."""

    __pydantic_config__ = CLOSED

    name: str
    where: Where = Where()
    gpus_from: int | None = None
    usd_from: Decimal | None = None
    steps: tuple[StepPlan, ...] = ()

    def takes(self, gpus: int, usd: Decimal) -> bool:
        """Whether an ask of this size goes this way, if it is of the kind that this is for."""
        if self.gpus_from is None and self.usd_from is None:
            return True
        large = self.gpus_from is not None and gpus >= self.gpus_from
        return large or (self.usd_from is not None and usd >= self.usd_from)


LEADS = StepPlan(by=PLATFORM_LEADS)
LEADERSHIP = StepPlan(
    by=ENGINEERING_LEADERSHIP, target_hours=48, remind_hours=24, escalate_hours=96
)
# What runs for a year need not be asked for anew each quarter; the ends of the rest are near enough to be looked at.
FIRST_OVERRIDES = (
    Override(
        where=Where(offerings=("endpoint", "cluster", "reservation")),
        set={"longest_days": 365},
    ),
)
FIRST_ROUTES = (
    Route(
        name="large", gpus_from=8, usd_from=Decimal(25_000), steps=(LEADS, LEADERSHIP)
    ),
    Route(name="ordinary", steps=(LEADS,)),
)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Everything that judges a request."""

    __pydantic_config__ = CLOSED

    thresholds: Thresholds = Thresholds()
    overrides: tuple[Override, ...] = FIRST_OVERRIDES
    routes: tuple[Route, ...] = FIRST_ROUTES
    lapse_days: int = 14

    @cached_property
    def _known(self) -> dict[tuple[str, str, str, str], Thresholds]:
        return {}

    def thresholds_for(
        self, offering: str, environment: str, flavor: str, tier: str
    ) -> Thresholds:
        """The thresholds that hold for asks of this kind, worked out once for each."""
        kind = (offering, environment, flavor, tier)
        found = self._known.get(kind)
        if found is None:
            found = self.thresholds
            for override in self.overrides:
                if override.where.matches(*kind):
                    found = replace(found, **override.set)
            self._known[kind] = found
        return found

    @cached_property
    def _ways(self) -> dict[tuple[str, str, str, str], tuple[Route, ...]]:
        return {}

    def routes_for(
        self, offering: str, environment: str, flavor: str, tier: str
    ) -> tuple[Route, ...]:
        """The routes of asks of this kind, whatever their size, worked out once for each."""
        kind = (offering, environment, flavor, tier)
        found = self._ways.get(kind)
        if found is None:
            found = self._ways[kind] = tuple(
                r for r in self.routes if r.where.matches(*kind)
            )
        return found


def seat_words(seat: str) -> str:
    """A seat as pages say it: "platform leads"."""
    return "a named group" if seat.startswith("group:") else seat.replace("_", " ")


_POLICY: TypeAdapter[Policy] = TypeAdapter(Policy)
_THRESHOLDS: TypeAdapter[Thresholds] = TypeAdapter(Thresholds)
NAMES = frozenset(each.name for each in fields(Thresholds))
FLAGS = frozenset(
    each.name for each in fields(Thresholds) if each.type == "bool" or each.type is bool
)


def policy_from(stored: Mapping[str, Any]) -> Policy:
    """The policy of a JSON document; raises DocumentRefused naming every place that is wrong."""
    if harmful := tuple(unfit("", stored, flags=FLAGS)):
        raise DocumentRefused(*harmful)
    try:
        policy = _POLICY.validate_python(dict(stored))
    except ValidationError as error:
        raise DocumentRefused(*problems_of(error, also=WORDS)) from error
    overrides, problems = [], []
    for at, override in enumerate(policy.overrides):
        unknown = sorted(set(override.set) - NAMES)
        if unknown:
            problems.append(
                (f"overrides.{at}.set.{unknown[0]}", "There is no such threshold.")
            )
            continue
        try:
            whole = _THRESHOLDS.validate_python(
                plain_thresholds(policy.thresholds) | dict(override.set)
            )
            overrides.append(
                replace(
                    override, set={key: getattr(whole, key) for key in override.set}
                )
            )
        except ValidationError as error:
            problems += [
                (f"overrides.{at}.set.{place}", what)
                for place, what in problems_of(error, also=WORDS)
            ]
    if problems:
        raise DocumentRefused(*problems)
    policy = replace(policy, overrides=tuple(overrides))
    if contradictions := tuple(contradictions_in(policy)):
        raise DocumentRefused(*contradictions)
    return policy


def to_json(policy: Policy) -> dict[str, Any]:
    """The document as JSON; `policy_from` gives the same policy back."""
    said: dict[str, Any] = _POLICY.dump_python(policy, mode="json")
    return said


def plain_thresholds(thresholds: Thresholds) -> dict[str, Any]:
    """Thresholds as JSON."""
    plain: dict[str, Any] = _THRESHOLDS.dump_python(thresholds, mode="json")
    return plain


def read(text: str) -> Policy:
    """The policy of a YAML text; raises DocumentRefused. Aliases are refused: they make small texts large."""
    said = parse(text)
    if not isinstance(said, dict):
        raise DocumentRefused(
            ("", "A policy is a mapping with thresholds, overrides and routes.")
        )
    return policy_from({str(key): value for key, value in said.items()})


def write(policy: Policy) -> str:
    """The policy as YAML with its keys in the order of this module; the same policy gives the same text."""
    return yaml.safe_dump(
        to_json(policy), sort_keys=False, allow_unicode=True, width=100
    )


def contradictions_in(policy: Policy) -> Iterator[tuple[str, str]]:
    """Thresholds and routes that cannot all be meant."""
    yield from _of_thresholds("thresholds", policy.thresholds)
    for at, override in enumerate(policy.overrides):
        yield from _of_thresholds(
            f"overrides.{at}.set", replace(policy.thresholds, **override.set)
        )
    if not policy.routes or not _takes_all(policy.routes[-1]):
        yield "routes", "The last route must take every ask: no sizes, no where."
    for at, route in enumerate(policy.routes):
        if not route.steps:
            yield f"routes.{at}.steps", "Somebody must decide: name at least one step."
        if len(route.name) > LONGEST_NAME:
            yield f"routes.{at}.name", f"At most {LONGEST_NAME} characters."
        yield from _of_sizes(f"routes.{at}", route)
        if at < len(policy.routes) - 1 and _takes_all(route):
            yield (
                f"routes.{at}",
                "Takes every ask, so the routes after it are never used.",
            )
        for number, step in enumerate(route.steps):
            yield from _of_step(f"routes.{at}.steps.{number}", step)
    if not 1 <= policy.lapse_days <= 400:
        yield "lapse_days", "Write 1 to 400 days."


def _takes_all(route: Route) -> bool:
    return route.where == Where() and route.gpus_from is None and route.usd_from is None


def _of_thresholds(place: str, numbers: Thresholds) -> Iterator[tuple[str, str]]:
    for each in fields(Thresholds):
        value = getattr(numbers, each.name)
        if (
            isinstance(value, int | Decimal)
            and not isinstance(value, bool)
            and not _is_bearable(value)
        ):
            yield (
                f"{place}.{each.name}",
                "Write a number from 0 to 1,000,000,000, with at most four decimal places.",
            )
    if numbers.automatic_days > numbers.longest_days:
        yield (
            f"{place}.automatic_days",
            f"Longer than what is possible at all ({numbers.longest_days} days).",
        )
    if numbers.automatic_gpus > numbers.window_gpus_team:
        yield (
            f"{place}.window_gpus_team",
            f"One ask may have {numbers.automatic_gpus} GPUs, more than all of a team's together.",
        )
    for name in ("window_days", "longest_days"):
        if getattr(numbers, name) < 1:
            yield f"{place}.{name}", "Write at least one day."
    if not 1 <= numbers.carried_out_hours <= MOST_HOURS:
        yield f"{place}.carried_out_hours", f"Write 1 to {MOST_HOURS:,} hours."
    if numbers.least_use_percent > 100:
        yield f"{place}.least_use_percent", "Write a percentage from 0 to 100."
    if numbers.use_after_hours > MAX_USE_HOURS:
        yield (
            f"{place}.use_after_hours",
            f"Write 0 to {MAX_USE_HOURS} hours: use is kept for 14 days.",
        )


def _of_sizes(place: str, route: Route) -> Iterator[tuple[str, str]]:
    for name, value in (("gpus_from", route.gpus_from), ("usd_from", route.usd_from)):
        if value is not None and not _is_bearable(value):
            yield (
                f"{place}.{name}",
                "Write a number from 0 to 1,000,000,000, with at most four decimal places.",
            )


def _is_bearable(value: int | Decimal) -> bool:
    # Looked at first: 1e999999999 is a short text, and a gigabyte once it is written out.
    digits = value.as_tuple().exponent if isinstance(value, Decimal) else 0
    return isinstance(digits, int) and -4 <= digits <= 9 and 0 <= value <= MOST


def _of_step(place: str, step: StepPlan) -> Iterator[tuple[str, str]]:
    if len(step.name) > LONGEST_NAME:
        yield f"{place}.name", f"At most {LONGEST_NAME} characters."
    known = (PLATFORM_LEADS, ENGINEERING_LEADERSHIP, MANAGERS)
    if step.by not in known and not _is_group(step.by):
        yield f"{place}.by", f"Write {', '.join(known)} or group: with an object id."
    if step.escalate_to not in known[:2] and not _is_group(step.escalate_to):
        yield (
            f"{place}.escalate_to",
            f"Write {', '.join(known[:2])} or group: with an object id.",
        )
    for name, number in (("quorum", step.quorum), ("level", step.level)):
        if not 1 <= number <= 9:
            yield f"{place}.{name}", "Write 1 to 9."
    if step.by == MANAGERS and step.quorum != 1:
        yield f"{place}.quorum", "A manager is one person."
    hours = ("target_hours", "remind_hours", "escalate_hours")
    wrong = [name for name in hours if not 0 < getattr(step, name) <= MOST_HOURS]
    for name in wrong:
        yield f"{place}.{name}", f"Write 1 to {MOST_HOURS:,} hours."
    if not wrong and step.remind_hours >= step.escalate_hours:
        yield f"{place}.remind_hours", "The reminder comes before the escalation."


def _is_group(by: str) -> bool:
    oid = by.removeprefix("group:")
    return (
        by.startswith("group:")
        and len(oid) == 36
        and all(c in "0123456789abcdef-" for c in oid)
    )
