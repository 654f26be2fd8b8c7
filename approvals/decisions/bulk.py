"""Deciding several requests together: what they add up to, then each in a transaction of its own."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.db.models import Sum

from accounts.current_user import STATUS
from accounts.models import Team, User
from allocations.budgets import balances as budgets
from allocations.budgets import money
from allocations.budgets.money import Amount
from allocations.budgets.totals import in_cents
from allocations.models import Allocation, LedgerEntry
from approvals.decisions import actions as decisions
from approvals.decisions import route_words
from approvals.decisions.routing import open_step
from approvals.judging.asked import wanted_of
from approvals.models import Decision, Request
from approvals.requests.wanted import Wanted
from approvals.states import State
from audit.log import refuse
from fleet.models import Flavor
from ui.amounts import hours
from web import refusal_events
from web.refusals import BadInput, Missing, Refused

MOST = 50
VERDICTS = ("approve", "reject")


@dataclass(frozen=True)
class Chosen:
    """One request with the version that was seen, and the verdict on it; `count` approves fewer."""

    request: int
    version: int
    verdict: str
    reason: str = ""
    because: str = "other"
    count: int | None = None


@dataclass(frozen=True)
class Result:
    """What became of one of them: decided, or refused with a code and in words.

    `waits_for` are the seats that decide next, in words, where the vote was not the last one.
    """

    request: int
    decided: bool
    code: str = ""
    message: str = ""
    verdict: str = ""
    waits_for: str = ""


@dataclass
class Pool:
    """What all of them together take of one kind of GPU."""

    flavor: Flavor
    gpus: int = 0

    @property
    def after(self) -> int:
        """GPUs that stay free; negative when they are too few."""
        return self.flavor.free - self.gpus


@dataclass(frozen=True)
class Purse:
    """What a team's month has left in USD without any of them, and with all approved; also in GPU-hours, if limited.

    What they set aside when they were asked counts as left before.
    """

    team: Team
    month: date
    limit: Decimal
    before: Decimal
    after: Decimal
    hours_limit: Decimal | None = None
    hours_before: Decimal | None = None
    hours_after: Decimal | None = None


@dataclass
class Effect:
    """All of them approved at once: by kind of GPU, by team and month, and in all.

    `gpus` are new ones; `kept` those that the teams hold already and go on with. Of `usd` they have set `usd_set_aside`
    aside already, and so many of them `go_on` to somebody else, before whom nothing of them is granted. `hindered` says
    of those that cannot be granted as things stand why not.
    """

    requests: Sequence[Request]
    pools: list[Pool] = field(default_factory=list)
    purses: list[Purse] = field(default_factory=list)
    usd: Decimal = Decimal(0)
    gpus: int = 0
    kept: int = 0
    usd_set_aside: Decimal = Decimal(0)
    go_on: int = 0
    hindered: Sequence[str] = ()
    left_out: Sequence[int] = ()

    @property
    def too_much(self) -> list[str]:
        """What there is not enough of, and what cannot be granted at all, in words."""
        return [*self.beyond, *self.hindered]

    @property
    def beyond(self) -> list[str]:
        """What there is not enough of, in words."""
        short = [
            f"These need {pool.gpus} × {pool.flavor.kind} on {pool.flavor.cluster.title}, "
            f"and {max(pool.flavor.free, 0)} are free"
            for pool in self.pools
            if pool.after < 0
        ]
        over = [
            f"{purse.team.name} would be ${-purse.after:,.0f} over its budget of {purse.month:%B}"
            for purse in self.purses
            if purse.after < 0
        ]
        over += [
            f"{purse.team.name} would be {hours(-purse.hours_after)} over its budget of {purse.month:%B}"
            for purse in self.purses
            if purse.hours_after is not None and purse.hours_after < 0
        ]
        return short + over


def effect_of(requests: Sequence[Request], *, now: datetime) -> Effect:
    """What approving all of these would do; some queries for each team and each request. Writes nothing."""
    found = Effect(requests)
    pools: dict[int, Pool] = {}
    needed: dict[tuple[int, date], Amount] = defaultdict(Amount)
    teams = {request.team_id: request.team for request in requests}
    renewed = _renewed(requests, now=now)
    hindered = []
    for request in requests:
        wanted, why = _asked_again(request, now=now)
        if why:
            hindered.append(
                f"Request {request.pk} of {request.team.name} cannot be granted any more: {why.removesuffix('.')}"
            )
        gpus = request.gpus_now
        # A renewal goes on with what is held, which is paid until its present end.
        kept = renewed.get(request.renews_id or 0)
        more, start = (
            (max(0, gpus - kept.gpus), max(kept.until, now))
            if kept is not None
            else (gpus, now)
        )
        begins = max(now, request.starts_at or now)
        start = max(start, begins)
        # What begins later takes nothing of what is free now.
        if request.flavor is not None and begins == now:
            pools.setdefault(request.flavor.pk, Pool(request.flavor)).gpus += more
        found.gpus += more
        found.kept += gpus - more
        parts = money.by_month(
            gpus=gpus,
            # What has no price any more cannot be granted and costs nothing.
            usd_per_hour=wanted.ask().usd_per_hour if wanted else Decimal(0),
            start=start,
            end=request.until_now,
        )
        for month, part in parts.items():
            needed[request.team_id, month] = needed[request.team_id, month].plus(part)
            found.usd += part.usd
    found.go_on = _going_on(requests)
    found.hindered = hindered
    held = _held(requests)
    found.pools = list(pools.values())
    found.purses = list(_purses(teams, needed, held))
    found.usd_set_aside = sum((part.usd for part in held.values()), Decimal(0))
    return found


def _asked_again(request: Request, *, now: datetime) -> tuple[Wanted | None, str]:
    """What is left of a request as an ask at today's price, if it has one, and why no vote grants it; empty else."""
    try:
        asked = wanted_of(request, request.count_now, request.until_now)
    except Refused as refusal:
        return None, refusal.message
    return asked, decisions.hindrance(asked, by=request.requester, now=now)


def _going_on(requests: Sequence[Request]) -> int:
    """How many of them others decide, too, once one person has approved them; one query where a step wants several."""
    left = [
        [step for step in request.current_steps if step.done_at is None]
        for request in requests
    ]
    several = [steps[0].pk for steps in left if steps and steps[0].quorum > 1]
    votes = Decision.objects.filter(step__in=several, verdict=Decision.Verdict.APPROVE)
    counted = Counter(votes.values_list("step", flat=True)) if several else Counter()
    return sum(
        len(steps) > 1 or (counted[steps[0].pk] + 1 < steps[0].quorum)
        for steps in left
        if steps
    )


def _renewed(requests: Sequence[Request], *, now: datetime) -> dict[int, Allocation]:
    """What is held under the requests that these renew, by request."""
    numbers = [each.renews_id for each in requests if each.renews_id]
    if not numbers:
        return {}
    rows = (
        Allocation.objects.held(now)
        .filter(hold__request__in=numbers)
        .select_related("hold__request")
    )
    return {number: row for row in rows if (number := row.hold.request_id) is not None}


def _held(requests: Sequence[Request]) -> dict[tuple[int, date], Amount]:
    """What these requests have set aside already, by team and month."""
    entries = LedgerEntry.objects.filter(
        hold__in=[request.hold_id for request in requests]
    ).order_by()
    rows = entries.values_list("budget__team_id", "budget__month").annotate(
        usd=in_cents(Sum("usd")), gpu_hours=in_cents(Sum("gpu_hours"))
    )
    return {
        (team, month): Amount(usd, gpu_hours) for team, month, usd, gpu_hours in rows
    }


def _purses(
    teams: dict[int, Team],
    needed: dict[tuple[int, date], Amount],
    held: dict[tuple[int, date], Amount],
) -> Iterable[Purse]:
    for pk, team in teams.items():
        months = sorted(month for of, month in needed if of == pk)
        for month, left in budgets.left_by_month(team, months).items():
            before, more = (
                left.and_freed(held.get((pk, month), money.NOTHING)),
                needed[pk, month],
            )
            hours_after = (
                None if before.gpu_hours is None else before.gpu_hours - more.gpu_hours
            )
            yield Purse(
                team,
                month,
                left.usd_limit,
                before.usd,
                before.usd - more.usd,
                left.gpu_hours_limit,
                before.gpu_hours,
                hours_after,
            )


def decide_many(chosen: Sequence[Chosen], *, by: User, now: datetime) -> list[Result]:
    """Decide each of at most fifty, in a transaction of its own and in their order; one refused stops no other.

    Not within a transaction: the locks of one request must be gone before the next one's are taken. Repeating it
    decides nothing twice, as each names the version that was seen. Raises BadInput for none, too many or a double.
    """
    if not 1 <= len(chosen) <= MOST:
        raise BadInput(
            f"Choose 1 to {MOST} requests.", code="out_of_range", field="decisions"
        )
    if len({each.request for each in chosen}) != len(chosen):
        raise BadInput(
            "Each request can be named once.", code="named_twice", field="decisions"
        )
    return [_decide(each, by=by, now=now) for each in chosen]


def _decide(each: Chosen, *, by: User, now: datetime) -> Result:
    seen = Request.objects.open_to(by, now).filter(pk=each.request).exists()
    if not seen:
        missing = Missing("There is no such request.", code="not_found")
        return _refused(each, missing, by=by)
    try:
        if each.verdict == "approve":
            decisions.approve(
                each.request,
                by=by,
                expected_version=each.version,
                count=each.count,
                reason=each.reason,
                now=now,
            )
        else:
            decisions.reject(
                each.request,
                by=by,
                expected_version=each.version,
                reason=each.reason,
                because=each.because,
                now=now,
            )
    except Refused as refusal:
        return _refused(each, refusal, by=by)
    found = Request.objects.get(pk=each.request)
    step = open_step(found) if found.state == State.WAITING else None
    return Result(
        each.request,
        decided=True,
        verdict=each.verdict,
        waits_for=route_words.who(step) if step else "",
    )


def _refused(each: Chosen, refusal: Refused, *, by: User) -> Result:
    """Each refusal is remembered like a call of its own, as the call as a whole is answered like any other."""
    actor = by.as_actor()
    said: dict[str, Any] = {
        "where": "decisions",
        "code": refusal.code,
        "request": each.request,
        "verdict": each.verdict,
    }
    if refusal_events.may_become_event(actor):
        teams = Request.objects.filter(pk=each.request).values_list("team", flat=True)
        team = teams.first()
        refuse(
            actor=actor,
            reason=refusal.message,
            about=("request", each.request) if team is not None else None,
            team_id=team,
            **said,
        )
    else:
        refusal_events.log_and_count(actor, status=STATUS[refusal.sort], **said)
    return Result(
        each.request, decided=False, code=refusal.code, message=refusal.message
    )
