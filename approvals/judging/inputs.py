"""Gathering what the policy may look at; the only place where its inputs come from."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple, TypedDict

from django.db.models import Exists, F, OuterRef, Q, Sum, Value
from django.db.models.expressions import CombinedExpression
from pydantic import TypeAdapter

from accounts.cost_centres.models import is_confirmed, unconfirmed
from accounts.models import Team, User
from allocations.bookings.levels import Level, lowest
from allocations.bookings.promised import booked_beside, levels_of
from allocations.bookings.quotas import rooms_of
from allocations.budgets import balances as budgets
from allocations.budgets import money
from allocations.budgets.totals import total
from allocations.models import Allocation
from allocations.use import measuring as use
from approvals.judging import earlier_requests as earlier_asks
from approvals.models import Decision
from approvals.renewals.renewing import standing_of
from approvals.requests.wanted import Wanted
from catalogue.reservation import ReservationSpec
from fleet.models import Flavor
from policy.document import Policy, Thresholds, policy_from
from policy.evaluation import Ask, Coming, Evaluation, Standing, evaluate
from policy.models import PolicyVersion
from policy.remedies import Remedy

ASK: TypeAdapter[Ask] = TypeAdapter(Ask)
STANDING: TypeAdapter[Standing] = TypeAdapter(Standing)
# What is known to come is looked at this far ahead; the money of those months is gathered with the rest.
HORIZON = timedelta(days=60)
MOMENT = timedelta(seconds=1)


def _gpus_given(request: str, *, verdict: str = "") -> CombinedExpression:
    """GPUs that a verdict gives: people may have left over a part of the ask before the policy approved it."""
    return F(f"{verdict}count") * F(f"{request}__gpus") / F(f"{request}__count")


GPUS_GIVEN = _gpus_given("request")
RENEWED = "request__renewals"
# Of the verdicts on renewals those by which the policy alone granted one.
RENEWED_BY_POLICY = Q(
    (f"{RENEWED}__decisions__by", None),
    (f"{RENEWED}__decisions__verdict", Decision.Verdict.APPROVE),
)
GPUS_RENEWED = Sum(
    _gpus_given(RENEWED, verdict=f"{RENEWED}__decisions__"), filter=RENEWED_BY_POLICY
)


def policy_in_force(now: datetime) -> tuple[PolicyVersion, Policy]:
    """The newest policy whose time has come, and what it says."""
    version = (
        PolicyVersion.objects.standing()
        .filter(active_from__lte=now)
        .order_by("-number")
        .first()
    )
    if version is None:
        raise PolicyVersion.DoesNotExist("No policy is in force: run the migrations.")
    return version, policy_of(version)


def policy_of(version: PolicyVersion) -> Policy:
    """What a version says; read once per process, as versions never change."""
    return _read(json.dumps(version.document, sort_keys=True))


@lru_cache(maxsize=32)
def _read(document: str) -> Policy:
    return policy_from(json.loads(document))


def gather(
    wanted: Wanted,
    *,
    person: User,
    policy: Policy,
    now: datetime,
    own: int = 0,
    is_routed: bool = True,
) -> Standing:
    """What the team holds and may spend, what is free and what was asked lately; writes nothing.

    `own` is the hold of the request being judged: what it has set aside already counts as left. Unless `is_routed`,
    nobody wants to know which people decide, and the earlier asks, which count for that alone, are not read.
    """
    since = now - timedelta(days=_limits(wanted, policy).window_days)
    months = sorted(
        money.by_month(
            gpus=1,
            usd_per_hour=wanted.size.usd_per_hour_each,
            start=now,
            end=max(wanted.until, now) + HORIZON,
        )
    )
    held = _held_beside(wanted)
    grants = _grants_beside(wanted, person, since=since)
    of_team, of_person = Given.of(grants.of_team), Given.of(grants.of_person)
    seen = _use_of(wanted, held=held.here, elsewhere=held.elsewhere, now=now)
    own_gpus, freed, own_until = standing_of(wanted, now=now)
    left = budgets.left_by_month(wanted.team, months, own=own, locked=wanted.budgets)
    return Standing(
        now=now,
        held_gpus=held.here,
        held_elsewhere_gpus=held.elsewhere,
        recent_team_gpus=of_team.gpus,
        recent_person_gpus=of_person.gpus,
        recent_team_usd=of_team.usd,
        recent_person_usd=of_person.usd,
        **_pool_in_its_time(wanted, has_bookings=held.has_bookings, now=now),
        **_quota_of(wanted, now=now),
        team_booked_gpus=_booked_alone(wanted, now=now),
        use_percent=seen.percent,
        held_since=seen.since,
        use_samples=seen.samples,
        own_gpus=own_gpus,
        own_until=own_until,
        unconfirmed_cost_centre=""
        if held.has_confirmed_cost_centre
        else wanted.team.cost_centre,
        earlier=earlier_asks.gather(
            wanted, person=person, since=since, now=now, own=own
        )
        if is_routed
        else (),
        budget={
            month: part.and_freed(freed.get(month, money.NOTHING))
            for month, part in left.items()
        },
    )


def _use_of(
    wanted: Wanted, *, held: int, elsewhere: int, now: datetime
) -> use.Measured:
    """How much of the ask's kind of GPU a team uses, in all of its namespaces of the cluster.

    Only where it holds some in others, too, one query more says how many in which.
    """
    flavor, tenancy = wanted.flavor, wanted.tenancy
    if flavor is None or tenancy is None or not held + elsewhere:
        return use.Measured(None, 0, None, Decimal(0))
    if not elsewhere:
        return use.of_held(tenancy.pk, flavor.pk, held=held, now=now)
    live = Allocation.objects.live().of_gpus().filter(team=wanted.team, flavor=flavor)
    rows = live.order_by().values_list("tenancy_id").annotate(gpus=Sum("gpus"))
    places = {(place, flavor.pk): gpus for place, gpus in rows if place is not None}
    return use.together(use.of_all_held(places, now=now).values())


class PoolStanding(TypedDict):
    """What a standing says of the pool, by field."""

    free_gpus: int | None
    total_gpus: int | None
    ready_gpus: int | None
    cordoned_gpus: int
    growing_minutes: int
    held_back_gpus: int
    held_back_by: str


def pool_of(flavor: Flavor | None, *, is_later: bool = False) -> PoolStanding:
    """What can be had of a kind of GPU: free, ready of them, cordoned, and how long growing takes.

    Which nodes will stand when something begins later nobody knows: then none counts as ready, or as cordoned.
    """
    if flavor is None:
        return PoolStanding(
            free_gpus=None,
            total_gpus=None,
            ready_gpus=None,
            cordoned_gpus=0,
            growing_minutes=0,
            held_back_gpus=0,
            held_back_by="",
        )
    return {
        "free_gpus": flavor.free,
        "total_gpus": flavor.gpus_at_most,
        "ready_gpus": flavor.free_and_ready
        if flavor.can_grow_to and not is_later
        else None,
        "cordoned_gpus": 0 if is_later else flavor.gpus_cordoned,
        "growing_minutes": flavor.growing_minutes,
        "held_back_gpus": flavor.gpus_at_most
        - flavor.gpus_total
        - flavor.gpus_cordoned,
        "held_back_by": flavor.azure_limit if flavor.is_kept_small else "",
    }


class PoolInTime(PoolStanding):
    """The same for all of an ask's time, with what is booked meanwhile."""

    booked_gpus: int
    booked_from: datetime | None
    levels: tuple[Level, ...]


def _pool_in_its_time(
    wanted: Wanted, *, has_bookings: bool, now: datetime
) -> PoolInTime:
    """What can be had of a kind of GPU as long as an ask lasts; one query more only where something is booked."""
    begins = now if wanted.starts is None else max(now, wanted.starts)
    is_later = begins > now
    flavor, pool = wanted.flavor, pool_of(wanted.flavor, is_later=is_later)
    if flavor is None or not (is_later or has_bookings):
        return {**pool, "booked_gpus": 0, "booked_from": None, "levels": ()}
    known = levels_of(flavor, now=now, but=wanted.renewed_hold)
    ends = wanted.setting.terms.kept_until(wanted.until)
    free, at_first = (
        lowest(known, start=begins, end=ends),
        lowest(known, start=begins, end=begins),
    )
    # Nodes that went away do not end what goes on.
    missing = (
        max(0, flavor.allocated - flavor.gpus_total) if wanted.renews is not None else 0
    )
    first_taken = next(
        (one.at for one in known if begins < one.at < ends and one.free < at_first),
        None,
    )
    return {
        **pool,
        "free_gpus": free + missing,
        "booked_gpus": max(0, at_first - free),
        "booked_from": first_taken,
        "levels": known,
    }


def _booked_alone(wanted: Wanted, *, now: datetime) -> int:
    """GPUs of any kind that the policy alone has booked for a team in the time of an ask that begins later."""
    if wanted.starts is None or wanted.starts <= now or not wanted.gpus:
        return 0
    same_time = Allocation.objects.booked().filter(
        starts_at__lt=wanted.until, until__gt=wanted.starts
    )
    alone = Decision.objects.granted_by_policy().filter(
        request__team_id=wanted.team.pk or 0, request__allocation__in=same_time
    )
    return int(alone.aggregate(gpus=Sum("request__allocation__gpus"))["gpus"] or 0)


class QuotaStanding(TypedDict):
    """What a standing says of the quota in Azure, by field."""

    quota_left: int | None
    quota_name: str


def _quota_of(wanted: Wanted, *, now: datetime) -> QuotaStanding:
    """How many machines more the quotas in Azure have room for as long as an ask lasts, of what is reserved there."""
    if not isinstance(wanted.spec, ReservationSpec):
        return QuotaStanding(quota_left=None, quota_name="")
    begins = now if wanted.starts is None else max(now, wanted.starts)
    ends = wanted.setting.terms.kept_until(wanted.until)
    rooms = rooms_of(wanted.spec.place(), now=now)
    found = ((lowest(one.levels, start=begins, end=ends), one) for one in rooms)
    left, room = min(found, key=lambda one: one[0], default=(None, None))
    if left is None or room is None:
        return QuotaStanding(quota_left=None, quota_name="")
    is_of_now = begins == now and left == room.levels[0].free
    words = room.quota if is_of_now else f"{room.quota} in all of its time"
    return QuotaStanding(quota_left=max(0, left), quota_name=words)


def coming(
    wanted: Wanted, *, person: User, policy: Policy, now: datetime
) -> tuple[Coming, ...]:
    """What changes by itself within sixty days: GPUs of the flavor that come back, asks that leave the windows."""
    window = timedelta(days=_limits(wanted, policy).window_days)
    events: list[Coming] = []
    if wanted.flavor is not None:
        ends = Allocation.objects.granted().filter(
            flavor=wanted.flavor, kept_until__gt=now, kept_until__lte=now + HORIZON
        )
        # Where anything is booked, levels say how many are free; the end of a booking says only when that changes.
        for at, begun, gpus in ends.values_list("kept_until", "begun_at", "gpus"):
            events.append(Coming(at, free=gpus if begun is not None else 0))
    for seen, grants in zip(
        ("team", "person"),
        _grants_beside(wanted, person, since=now - window),
        strict=True,
    ):
        for one in grants:
            left: dict[str, Any] = {seen: one.gpus, f"{seen}_usd": one.usd}
            events.append(Coming(one.at + window + MOMENT, **left))
    events.sort(key=lambda event: event.at)
    return tuple(
        Coming(at, *map(sum, zip(*(event[1:] for event in together), strict=True)))  # type: ignore[arg-type]
        for at, together in groupby(events, key=lambda event: event.at)
    )


class Given(NamedTuple):
    """What the policy alone gave: GPUs, and USD for the whole time of each ask."""

    gpus: int
    usd: Decimal

    def plus(self, other: "Given") -> "Given":
        """Both together."""
        return Given(self.gpus + other.gpus, self.usd + other.usd)

    def minus(self, other: "Given") -> "Given":
        """What is left without the other."""
        return Given(self.gpus - other.gpus, self.usd - other.usd)

    @classmethod
    def of(cls, grants: "Sequence[Grant]") -> "Given":
        """All of these together."""
        usd = sum((one.usd for one in grants), Decimal(0))
        return cls(sum(one.gpus for one in grants), usd)


def _limits(wanted: Wanted, policy: Policy) -> Thresholds:
    ask = wanted.ask()
    return policy.thresholds_for(ask.offering, ask.environment, ask.flavor, ask.tier)


class Grant(NamedTuple):
    """What the policy alone granted: to which request, of whose, when, GPUs that count, and USD for the whole time."""

    request: int
    team: int
    requester: int
    at: datetime
    gpus: int
    usd: Decimal


def grants(
    whose: Q, *, since: datetime, renews: int | None = None, gpus: int = 0
) -> list[Grant]:
    """What the policy alone granted since a moment.

    GPUs that are kept longer count once: those that a renewal goes on with count in the renewal alone, and so do the
    `gpus` of the ask being judged in place of those of the request that it `renews`.
    """
    rows = (
        Decision.objects.granted_by_policy()
        .filter(whose, at__gte=since)
        .order_by()
        .values_list(
            "request_id",
            "request__team_id",
            "request__requester_id",
            "at",
            "usd",
            GPUS_GIVEN,
        )
        .annotate(renewed=GPUS_RENEWED)
    )
    found = []
    for request, team, requester, at, usd, given, renewed in rows:
        # Less than nothing would make room for more than the limits allow.
        left = max(given - int(renewed or 0), 0)
        if request == renews:
            left = max(left - gpus, 0)
        found.append(Grant(request, team, requester, at, left, usd))
    return found


class GrantsBeside(NamedTuple):
    """What the policy alone granted to the team of an ask, and to its person in any team."""

    of_team: list[Grant]
    of_person: list[Grant]


def _grants_beside(wanted: Wanted, person: User, *, since: datetime) -> GrantsBeside:
    """What counts beside an ask: on any cluster and of any kind, for ten small asks are one large one."""
    # A team that is being brought on board has no number yet, and was granted nothing.
    team = wanted.team.pk or 0
    found = grants(
        Q(request__team=team) | Q(request__requester=person),
        since=since,
        renews=wanted.renews,
        gpus=wanted.gpus,
    )
    return GrantsBeside(
        [one for one in found if one.team == team],
        [one for one in found if one.requester == person.pk],
    )


class Held(NamedTuple):
    """GPUs that a team holds of a flavor, here and in its other namespaces, and what is known of team and flavor."""

    here: int
    elsewhere: int
    has_confirmed_cost_centre: bool
    has_bookings: bool


def _held_by_newcomers(wanted: Wanted) -> Held:
    """The same of a team that is being brought on board: it is in no database yet, and holds nothing."""
    flavor = wanted.flavor
    has_bookings = flavor is not None and booked_beside(flavor).exists()
    return Held(0, 0, not unconfirmed(wanted.team.cost_centre), has_bookings)


def _held_beside(wanted: Wanted) -> Held:
    """What the team of an ask holds of its kind; one statement for all that no window has a part in."""
    if not wanted.team.pk:
        return _held_by_newcomers(wanted)
    live = Allocation.objects.live().of_gpus().filter(team=OuterRef("pk"))
    of_kind = live.filter(flavor=wanted.flavor)
    row = (
        Team.objects.order_by()
        .filter(pk=wanted.team.pk)
        .values_list(
            total(of_kind.filter(tenancy=wanted.tenancy), Sum("gpus"), by="team"),
            total(of_kind, Sum("gpus"), by="team"),
            is_confirmed("cost_centre"),
            Value(False)
            if wanted.flavor is None
            else Exists(booked_beside(wanted.flavor)),
        )
        .get()
    )
    here = int(row[0] or 0)
    return Held(here, int(row[1] or 0) - here, bool(row[2]), bool(row[3]))


def inputs_of(
    ask: Ask, standing: Standing, version: PolicyVersion
) -> tuple[dict[str, Any], str]:
    """What an evaluation looked at, as JSON, and its SHA-256."""
    plain = {
        "policy": version.number,
        "ask": ASK.dump_python(ask, mode="json"),
        "standing": STANDING.dump_python(standing, mode="json"),
    }
    return plain, hash_of(plain)


def hash_of(inputs: Mapping[str, Any]) -> str:
    """The SHA-256 of stored inputs."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def derive(inputs: Mapping[str, Any], policy: Policy) -> Evaluation:
    """The answer that a policy gives to stored inputs: the same as was stored, for the policy that gave it."""
    return evaluate(*stored_in(inputs), policy)


def stored_in(inputs: Mapping[str, Any]) -> tuple[Ask, Standing]:
    """The ask and everything that was gathered for it, as an evaluation stored them."""
    return ASK.validate_python(inputs["ask"]), STANDING.validate_python(
        inputs["standing"]
    )


def _size_of(evaluation: Evaluation) -> dict[str, Any] | None:
    """What the route was chosen by: the ask, or the sum that it belongs to with the words that say so."""
    size = evaluation.size
    return (
        None
        if size is None
        else {"gpus": size.gpus, "usd": str(size.usd), "words": size.words}
    )


def remedies_shown(remedies: Iterable[Remedy]) -> list[dict[str, Any]]:
    """Remedies as JSON, the same for page, API and store."""
    return [
        {
            "code": remedy.code,
            "sentence": remedy.sentence,
            "at": remedy.at.isoformat() if remedy.at else None,
            "count": remedy.count,
        }
        for remedy in remedies
    ]


def answer_of(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation as JSON, the same for page, API and store."""
    return {
        "outcome": evaluation.outcome.value,
        "sentence": evaluation.sentence,
        "route": [step.by for step in evaluation.route],
        "route_size": _size_of(evaluation),
        "steps": [
            {
                "seat": step.by,
                "words": step.words,
                "quorum": step.quorum,
                "target_hours": step.target_hours,
            }
            for step in evaluation.route
        ],
        "rules": [
            {
                "code": rule.code,
                "holds": rule.holds,
                "within": rule.within,
                "text": rule.text,
                "limit": rule.limit,
                "blocks": rule.blocks,
            }
            for rule in evaluation.rules
        ],
        "usd": str(evaluation.usd),
        "usd_per_day": str(evaluation.usd_per_day),
        "gpu_hours": str(evaluation.gpu_hours),
    }
