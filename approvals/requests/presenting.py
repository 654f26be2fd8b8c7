"""Requests as pages show them: the state people see, the policy's answer, what would change."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from statistics import median
from typing import Any

from django.db.models import OuterRef, Q, Sum

from accounts.models import User
from accounts.roles import Permission
from allocations import provisioners
from allocations.budgets import money
from allocations.budgets.totals import total
from allocations.models import Allocation
from approvals.decisions.routing import took
from approvals.decisions.seats import PERSON, pace_seat
from approvals.models import Request, Step
from approvals.requests.prices import is_beyond_budget, price_words
from approvals.requests.wanted import Wanted
from approvals.states import OF_ALLOCATION, State
from catalogue.offering import in_sentence
from fleet.models import Flavor
from policy.document import MANAGERS
from policy.evaluation import Outcome
from policy.remedies import Remedy
from policy.rules import Arrival, Standing
from provisioning.models import Tenancy, TenancyQuerySet
from ui.amounts import capitalized, gpus, moment, share, span, usd
from ui.parts import BeforeAfter, Hint, Person, Rule, Verdict

FEWEST_SAMPLES = 5
MOST_SAMPLES = 50
SOON = {
    Arrival.WRITTEN: "Usually a few seconds.",
    Arrival.WHEN_IT_ANSWERS: "The cluster does not answer now: it is made once it does, and costs nothing before.",
    Arrival.COMMITTED: "It is committed to Git, and the cluster follows.",
    Arrival.IN_AZURE: "Azure makes it within minutes, or says why not.",
    Arrival.PROPOSED: "It is in a pull request, and the cluster follows once that is merged.",
}
TONES = {
    Outcome.AUTOMATIC: "good",
    Outcome.PEOPLE: "waiting",
    Outcome.IMPOSSIBLE: "bad",
}


def state_of(request: Request, *, now: datetime) -> State:
    """The state people see, of a request that came from `with_allocation()`: once approved, its allocation's."""
    stored = State(request.state)
    if stored is not State.APPROVED or request.allocation is None:
        return stored
    return OF_ALLOCATION[provisioners.state_of(request.allocation, now=now)]


def state_word(request: Request, state: State) -> str:
    """The state as pages say it: GPUs are held, what takes none of its own is in place."""
    return (
        "In place"
        if state is State.ACTIVE and request.flavor_id is None
        else state.words
    )


def person(user: User, role: str = "") -> Person:
    """A person chip."""
    return {"name": user.name, "role": role, "initials": user.initials}


def asks(request: Request, *, now: datetime) -> str:
    """What a waiting request asks for in one sentence, the same on its page and in what people are told."""
    where = f" in {request.where}" if request.where else ""
    until = moment(request.until_now, now)
    price = price_words(request, now=now).removesuffix(" in all")
    what = in_sentence(request.name(request.count_now, of=request.count))
    what = wish(request, what)
    if request.starts_at is not None and request.starts_at > now:
        where += f" from {moment(request.starts_at, now)}"
    return f"{request.team.name} asks {what}{where} until {until}, for {price}."


def free_in_its_time(flavor: Flavor, standing: Standing | None) -> tuple[int, str]:
    """GPUs that are free now, or where anything is booked as long as the ask lasts, with the words for it."""
    if standing is None or not standing.levels or standing.free_gpus is None:
        return flavor.free, ""
    return standing.free_gpus, " in its time"


def instead_words(request: Request, *, now: datetime) -> str:
    """That people left a shorter time of it: "until Tue 12 Jan, 12:00 UTC instead of Fri 12 Feb, 12:00 UTC"; or ""."""
    if not request.is_shorter:
        return ""
    return f"until {moment(request.until_now, now)} instead of {moment(request.until, now)}"


def wish(request: Request, what: str) -> str:
    """Behind "asks": "for 2 × A100", of a renewal "to keep 2 × A100"."""
    return f"for {what}" if request.renews_id is None else f"to keep {what}"


def past_wish(request: Request, what: str) -> str:
    """As one of its events: "Asked for 2 × A100", of a renewal "Asked to keep 2 × A100 longer"."""
    return f"Asked {wish(request, what)}" + (
        " longer" if request.renews_id is not None else ""
    )


def lapse_words(request: Request) -> str:
    """Why a request lapsed, the same on its page and in what its requester is told."""
    if request.turn == Request.Turn.REQUESTER:
        return "The question about it was not answered in time. Ask again, with the answer in it."
    return "Nobody decided in time. Ask again, and say why it matters."


def verdict(
    answer: Mapping[str, Any], *, detail: str = "", hint: Hint | None = None
) -> Verdict:
    """The verdict strip of an answer as it is stored and as the API gives it."""
    rules: list[Rule] = [
        {
            "mark": _mark(rule),
            "text": capitalized(rule["text"]),
            "number": rule["limit"],
            "deciding": not rule["holds"],
        }
        for rule in answer["rules"]
    ]
    return {
        "tone": TONES[Outcome(answer["outcome"])],
        "sentence": answer["sentence"],
        "detail": detail,
        "rules": rules,
        "hint": hint,
    }


def hint_of(remedies: Iterable[Remedy | Mapping[str, Any]]) -> Hint | None:
    """What would make an ask automatic, in sentences; None where nothing has to."""
    said = [
        remedy.sentence if isinstance(remedy, Remedy) else remedy["sentence"]
        for remedy in remedies
    ]
    return {"text": " ".join(said)} if said else None


def _mark(rule: Mapping[str, Any]) -> str:
    """A tick is for what is within its number; what only the policy allows beyond it has a mark of its own."""
    if rule["holds"]:
        return "ok" if rule.get("within", True) else "allowed"
    return "no" if rule["blocks"] else "note"


def usual_wait(seats: Sequence[str]) -> timedelta | None:
    """How long these seats usually take one after the other: the sum of medians; None below five samples of any.

    One query for each seat; every manager counts as one.
    """
    counted = [pace_seat(seat) for seat in seats]
    usual = {seat: _median(seat) for seat in dict.fromkeys(counted)}
    waits = [wait for seat in counted if (wait := usual[seat]) is not None]
    return sum(waits, timedelta(0)) if len(waits) == len(counted) else None


def _median(seat: str) -> timedelta | None:
    """Half of the newest samples of a seat took less."""
    of_seat = Q(seat__startswith=PERSON) if seat == MANAGERS else Q(seat=seat)
    newest = Step.objects.filter(of_seat, done_at__isnull=False).order_by("-done_at")
    samples = newest.only("opened_at", "done_at", "due_at", "paused_at", "plan")[
        :MOST_SAMPLES
    ]
    seconds = [
        length.total_seconds() for step in samples if (length := took(step)) is not None
    ]
    return (
        timedelta(seconds=median(seconds)) if len(seconds) >= FEWEST_SAMPLES else None
    )


def titled(request: Request, count: int | None = None) -> str:
    """What is asked for now, in a title: "2 × A100", and of a renewal "Keep 2 × A100"."""
    name = request.name(count or request.count_now)
    return f"Keep {name}" if request.renews_id is not None else name


def shown_name(request: Request) -> str:
    """What was granted; before that what is asked for, of a renewal "Keep 2 × A100"."""
    return titled(request) if request.allocation_id is None else request.given_name


def over_budget(answer: Mapping[str, Any], *, viewer: User | None = None) -> str:
    """That people cannot approve all of it either, where no budget has the money; empty where one has.

    `viewer` reads what to do, which is another thing for who sets budgets than for who asks.
    """
    if not any(
        rule["code"] in ("budget", "budget_hours") and not rule["holds"]
        for rule in answer["rules"]
    ):
        return ""
    sets_budgets = viewer is not None and viewer.may(Permission.MANAGE_BUDGETS)
    do = (
        "approve less, or raise the team’s budget"
        if sets_budgets
        else "ask for less, or ask platform leads for more"
    )
    return f"Nobody can approve all of it before the budget is raised: {do}."


def over_budget_now(
    request: Request, answer: Mapping[str, Any], *, viewer: User, now: datetime
) -> str:
    """The same of a request that waits, unless time went by, or a vote left less of it, so that the money is there."""
    words = over_budget(answer, viewer=viewer)
    if words and request.flavor is not None:
        return words if is_beyond_budget(request, now=now) else ""
    return words


def usual_words(wait: timedelta | None) -> str:
    """ "Usually 3 h.", or nothing where too little is known to say so."""
    return "" if wait is None else f"Usually {span(wait)}."


def changes(
    *,
    flavor: Flavor | None,
    more: int,
    usd_per_hour: Decimal,
    held: int,
    per_day: Decimal,
) -> list[BeforeAfter]:
    """Before → after of a grant: quota, share of the pool and the team's cost a day (`per_day` is what it is now)."""
    added = money.per_day(gpus=1, price=usd_per_hour)
    cost: BeforeAfter = {
        "label": "Cost a day",
        "before": usd(per_day),
        "after": usd(per_day + added),
    }
    if flavor is None:
        return [cost]
    total = flavor.gpus_at_most
    return [
        {
            "label": f"Quota, {flavor.kind}",
            "before": gpus(held),
            "after": gpus(held + more),
        },
        {
            "label": "Pool share",
            "before": share(held, total),
            "after": share(held + more, total),
        },
        cost,
    ]


def held_at(wanted: Wanted, at: datetime) -> tuple[int, Decimal]:
    """GPUs that its namespace will hold of its flavor at a moment, and USD a day of all that its team will hold then.

    Of what is granted by now: nobody knows what else will be.
    """
    then = Allocation.objects.granted().filter(
        team=wanted.team.pk, starts_at__lte=at, until__gt=at
    )
    there = Q(tenancy=wanted.tenancy, flavor=wanted.flavor)
    found = then.aggregate(gpus=Sum("gpus", filter=there), hourly=Sum("usd_per_hour"))
    per_day = money.per_day(gpus=1, price=found["hourly"] or Decimal(0))
    return found["gpus"] or 0, per_day


def with_cost(tenancies: TenancyQuerySet) -> TenancyQuerySet:
    """With `usd_per_hour`, what everything that the team of each holds now costs an hour."""
    live = Allocation.objects.live().charged().filter(team=OuterRef("team"))
    return tenancies.annotate(usd_per_hour=total(live, Sum("usd_per_hour"), by="team"))


def cost_per_day(team_id: int) -> Decimal:
    """USD a day of everything a team holds now."""
    return Allocation.objects.filter(team_id=team_id).usd_per_day()


def cost_per_day_at(tenancy: Tenancy) -> Decimal:
    """The same of a tenancy from `with_cost()`, without asking again."""
    hourly: Decimal | None = getattr(tenancy, "usd_per_hour", None)
    return money.per_day(gpus=1, price=hourly or Decimal(0))
