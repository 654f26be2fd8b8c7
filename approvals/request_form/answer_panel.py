"""The answer beside a form: verdict, price, what would change, or what is still missing."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NotRequired, Protocol, TypedDict

from django.urls import reverse

from accounts.models import User
from approvals.judging.inputs import answer_of
from approvals.models import Request
from approvals.renewals import words as renewal
from approvals.requests.actions import Judged, check, check_grantable, judge
from approvals.requests.links import ask_link
from approvals.requests.places import left_of
from approvals.requests.presenting import (
    changes,
    cost_per_day,
    cost_per_day_at,
    hint_of,
    over_budget,
    usual_wait,
    usual_words,
    verdict,
)
from approvals.requests.preview import held_and_paid_before
from approvals.requests.vacancies import of_plans
from approvals.requests.wanted import Wanted
from approvals.states import State
from catalogue.models import follows
from catalogue.offering import in_sentence
from policy.evaluation import Outcome
from ui.amounts import ago, duration, moment, usd
from ui.parts import BeforeAfter, Hint, Lack, Verdict
from web.fields import INPUT
from web.refusals import Refused

# Whoever goes back to the form in this time may take what they sent for not sent yet.
JUST_NOW = timedelta(minutes=30)
# As far apart are two ends at most that were both said as "in two days".
SAME_END = timedelta(hours=1)
NO_REQUEST = "0"
CAME: Mapping[str, str] = {
    State.WAITING: "waits",
    State.APPROVED: "was granted",
}


class Answer(TypedDict):
    """The answer to an ask that makes sense: verdict, price, what would change, and what to press."""

    verdict: Verdict
    total: str
    per_day: str
    formula: str
    changes: Sequence[BeforeAfter]
    fits: Hint | None
    extra: str
    is_changing: bool
    people: bool
    seats: str
    possible: bool
    button: str
    after: Sequence[str]
    about: str
    vacancy: NotRequired[str]
    announced: NotRequired[str]
    already: NotRequired[Hint | None]
    same: NotRequired[str]


class AnswerContext(TypedDict):
    """The answer, or what the form still lacks."""

    answer: Answer | None
    lacks: Sequence[Lack]


class Answerable(Protocol):
    """A form that may be clean enough to be judged; `wanted` raises Refused for what cannot be."""

    @property
    def is_answerable(self) -> bool: ...
    @property
    def wanted(self) -> Wanted: ...
    @property
    def errors(self) -> Any: ...

    fields: dict[str, Any]


def answer_context(
    form: Answerable, *, person: User, now: datetime, own: int = 0
) -> AnswerContext:
    """The right-hand side: the answer when the form makes sense, else what it still lacks.

    `own` is the hold of the request that is being changed.
    """
    if not form.is_answerable:
        return {"answer": None, "lacks": list(_lacks(form))}
    try:
        wanted = form.wanted
        # What would be refused when it is sent is said beside the form; a renewal's page says who may ask.
        if wanted.renews is None:
            check(wanted, by=person, now=now)
        else:
            check_grantable(wanted, now=now)
        judged = judge(wanted, person=person, now=now, own=own)
    except Refused as refusal:
        return {"answer": None, "lacks": [_lack(form, refusal.field, refusal.message)]}
    said = answer(wanted, judged, now=now)
    said["vacancy"] = (
        of_plans(judged.answer.route, person).words if said["people"] else ""
    )
    if wanted.cluster is not None:
        said["announced"] = wanted.cluster.announces(now)
    if wanted.renews is None and not own:
        last = _same_just_now(wanted, person, now)
        said["already"] = None if last is None else _already(wanted, last, now)
        said["same"] = _number_of(last)
    return {"answer": said, "lacks": []}


def same_as(wanted: Wanted, person: User, now: datetime) -> str:
    """The number of the request by which the person has asked for the same a moment ago, as a form sends it."""
    return _number_of(_same_just_now(wanted, person, now))


def _number_of(request: Request | None) -> str:
    return NO_REQUEST if request is None else str(request.pk)


def _same_just_now(wanted: Wanted, person: User, now: datetime) -> Request | None:
    """The last such request, if it was not refused or taken back."""
    same = Request.objects.filter(
        requester=person,
        team=wanted.team,
        tenancy=wanted.tenancy,
        offering=wanted.offering.key,
        spec=wanted.spec.model_dump(mode="json"),
        starts_at=wanted.starts,
        renews=None,
        created_at__gte=now - JUST_NOW,
        state__in=CAME,
    )
    return same.order_by("-pk").only("state", "created_at", "until").first()


def _already(wanted: Wanted, last: Request, now: datetime) -> Hint:
    """That the person has just asked for the same, and what came of it: who went back may not know."""
    when = ago(last.created_at, now)
    is_same = abs(last.until - wanted.until) < SAME_END
    what = "the same" if is_same else f"as much until {moment(last.until, now)}"
    return {
        "text": f"You asked for {what} {when}, and it {CAME[last.state]}. This asks for it once more.",
        "href": reverse("request", args=[last.pk]),
    }


def answer(wanted: Wanted, judged: Judged, *, now: datetime) -> Answer:
    """Verdict, price and what would change, of one ask."""
    stored = answer_of(judged.answer)
    people = judged.answer.outcome is Outcome.PEOPLE
    days = f"{duration(wanted.until - judged.ask.begins(now))}"
    held, per_day = held_and_paid_before(
        judged, per_day=lambda: _per_day(wanted), now=now
    )
    return {
        "verdict": verdict(
            stored,
            detail=over_budget(stored) or usual_words(usual_wait(stored["route"]))
            if people
            else "",
            hint=_hint(wanted, judged),
        ),
        "total": usd(judged.answer.usd),
        "per_day": usd(judged.answer.usd_per_day),
        "formula": wanted.size.over(days)
        if wanted.size.usd_per_hour_each
        else "It costs nothing by itself.",
        "changes": renewal.changes(wanted, judged, now=now)
        if wanted.renews is not None
        else changes(
            flavor=wanted.flavor,
            more=wanted.gpus,
            usd_per_hour=judged.ask.usd_per_hour,
            held=held,
            per_day=per_day,
        ),
        "fits": _fits(wanted, judged),
        "extra": renewal.extra_words(wanted, judged, now=now) or left_of(wanted),
        "is_changing": wanted.gpus > 0 or wanted.size.usd_per_hour_each > 0,
        "people": people,
        "seats": ", then ".join(step.words for step in judged.answer.route)
        if people
        else "",
        "possible": judged.answer.outcome is not Outcome.IMPOSSIBLE,
        "button": f"Keep {in_sentence(wanted.name)} longer"
        if wanted.renews is not None
        else f"Ask for {in_sentence(wanted.name)}",
        "after": follows(wanted.offering),
        "about": about(wanted),
    }


def _per_day(wanted: Wanted) -> Decimal:
    if wanted.tenancy is not None and hasattr(wanted.tenancy, "usd_per_hour"):
        return cost_per_day_at(wanted.tenancy)
    return cost_per_day(wanted.team.pk)


def about(wanted: Wanted) -> str:
    """What an answer was about; a form sent with another one is shown the new answer first."""
    said = sorted(wanted.spec.model_dump(mode="json").items())
    begins = "" if wanted.starts is None else wanted.starts.strftime(INPUT)
    until = wanted.until.strftime(INPUT)
    parts = (
        wanted.team.slug,
        wanted.offering.key,
        wanted.namespace,
        said,
        begins,
        until,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _hint(wanted: Wanted, judged: Judged) -> Hint | None:
    nearest, hint = judged.nearest, hint_of(judged.remedies)
    if hint is None or nearest is None:
        return hint
    link = ask_link(
        wanted.offering.key,
        team=wanted.team.slug,
        spec=wanted.spec.fewer(nearest.count),
        until=nearest.until,
        namespace=wanted.namespace,
        starts=wanted.starts,
    )
    return {**hint, "label": "Use that", "href": link}


def _fits(wanted: Wanted, judged: Judged) -> Hint | None:
    """When all of it is free, with a link that books it from then; None where it is free, or nobody knows when."""
    at = judged.fits_from
    if at is None:
        return None
    # A form and a link say minutes: at the beginning of this one it is not free yet.
    if (whole := at.replace(second=0, microsecond=0)) < at:
        at = whole + timedelta(minutes=1)
    length = wanted.until - judged.ask.begins(judged.standing.now)
    link = ask_link(
        wanted.offering.key,
        team=wanted.team.slug,
        spec=wanted.spec.model_dump(mode="json"),
        until=at + length,
        namespace=wanted.namespace,
        starts=at,
    )
    return {
        "text": f"All of it is free from {moment(at, judged.standing.now)}.",
        "href": link,
    }


def _lacks(form: Answerable) -> Iterator[Lack]:
    for name, errors in form.errors.items():
        yield _lack(form, name, " ".join(map(str, errors)))


def _lack(form: Answerable, name: str, said: str) -> Lack:
    if name not in form.fields:
        return {"text": said, "field": ""}
    label = form.fields[name].label or name.capitalize()
    return {"text": f"{label}: {said}", "field": name}
