"""What people are told about a request: the words of its page, put into one message for each event.

Everything here is called inside the transaction of what it tells of, before its audit event.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.urls import reverse

from accounts import people
from accounts.models import User
from accounts.roles import Permission
from approvals.decisions import deciders, route_words
from approvals.judging.inputs import stored_in
from approvals.models import Comment, Decision, Request, Rerouting, Step
from approvals.requests import prices
from approvals.requests.presenting import (
    asks,
    free_in_its_time,
    instead_words,
    lapse_words,
    usual_wait,
    usual_words,
    verdict,
    wish,
)
from approvals.requests.vacancies import of_steps
from approvals.states import State
from notices.actions import take_back, tell, tell_channels
from notices.kinds import NoticeKind
from notices.message import Message
from notices.models import Notice
from policy.document import MANAGERS, seat_words
from policy.rules import Standing
from ui.amounts import moment, usd

# Marks of rules that do not let the policy decide alone.
DECIDING = ("no", "note")
# What asks somebody to decide.
ASKS = (
    NoticeKind.REQUEST_WAITING,
    NoticeKind.REQUEST_REMINDER,
    NoticeKind.REQUEST_ESCALATED,
)


def waits(
    request: Request,
    step: Step,
    *,
    now: datetime,
    to: Iterable[User] | None = None,
    lead: str = "",
    kind: NoticeKind = NoticeKind.REQUEST_WAITING,
) -> None:
    """Tell who may decide an open step that it waits for them; who is out of office only where nobody else is there.

    `to` is for fewer of them, `lead` a sentence in front, such as that something changed.
    """
    if to is None:
        everybody = deciders.candidates(step, request, now=now)
        to = people.at_work(everybody, now=now)
    answer, standing, hint = _answer(request)
    title = f"{request.team.name} asks {wish(request, request.name(request.count_now))}"
    sentence = (
        f"{lead} {asks(request, now=now)} {_who_decides(request, answer)}".strip()
    )
    rules = [
        (rule["mark"], rule["text"], rule["number"])
        for rule in verdict(answer)["rules"]
    ]
    said = _message(
        request,
        title,
        sentence,
        facts=[
            *_consequences(request, rules, standing),
            *_facts_of(step, request, now=now),
            *hint,
        ],
        rules=rules,
        action="Decide",
        now=now,
    )
    _tell(
        kind, request, said, to=to, link=reverse("approval", args=[request.pk]), now=now
    )


def waits_no_more(request: Request) -> None:
    """Ask nobody any more who has not been asked yet: the step is over, or what was asked for is another thing."""
    take_back(ASKS, subject=("request", request.pk))


def _consequences(
    request: Request, rules: Iterable[tuple[str, str, str]], standing: Standing
) -> list[tuple[str, str]]:
    """The rule for which people decide, what stays free when it is granted, and how many others wait for the same."""
    broken = next(
        (
            f"{text} ({limit})" if limit else text
            for mark, text, limit in rules
            if mark in DECIDING
        ),
        "",
    )
    facts = [("Why people decide", broken)] if broken else []
    flavor = request.flavor
    if flavor is None or not request.gpus:
        return facts
    waiting = (
        Request.objects.filter(flavor=flavor, state=State.WAITING, renews=None)
        .exclude(pk=request.pk)
        .count()
    )
    free, in_its_time = free_in_its_time(flavor, standing)
    # What goes on takes nothing from the pool.
    left = max(free - max(request.gpus_now - standing.own_gpus, 0), 0)
    return [
        *facts,
        ("Stays free", f"{left} of {flavor.gpus_at_most}{in_its_time}"),
        ("Others who wait for these", f"{waiting}"),
    ]


def seats_empty(request: Request, *, now: datetime) -> None:
    """Tell the requester and platform leads of seats in which nobody is known, when it is asked and not in two days."""
    steps = Step.objects.undecided().filter(
        request=request, version=request.content_version
    )
    vacant = of_steps(steps.order_by("position"), request.requester)
    # Whose seat was never read is told by its first reading.
    if not vacant.empty:
        return
    said = _message(
        request, f"Nobody can decide yet: {_what(request)}", vacant.words, now=now
    )
    to = [request.requester, *people.holding(Permission.DECIDE_AS_PLATFORM)]
    _tell(NoticeKind.SEAT_EMPTY, request, said, to=to, now=now)


def decided(
    request: Request,
    decision: str,
    *,
    by: User | None,
    reason: str,
    now: datetime,
    cost: Decimal = Decimal(0),
    seat_of: User | None = None,
) -> None:
    """Tell the requester what people decided; what the policy decided they have seen, so only channels are told.

    A `cost` above what was announced is said with it, where the difference matters.
    """
    name = request.name(request.approved_count, of=request.count)
    what = f"{decision.capitalize()}: {name} for {request.team.name}"
    who = by.name if by else "The policy"
    if by is not None and seat_of is not None and seat_of.pk != by.pk:
        who = f"{by.name} for {seat_of.name}"
    sentence = f"{who} {decision} it: {reason}" if reason else f"{who} {decision} it."
    sentence += _granted_shorter(request, now=now)
    if cost > request.usd and prices.matters(cost, asked=request.usd):
        sentence += f" The price has risen since it was asked for: {usd(cost)} in all, not {usd(request.usd)}."
    said = _message(
        request, what, sentence, now=now, facts=_next_step(request, decision)
    )
    _tell(
        NoticeKind.REQUEST_DECIDED,
        request,
        said,
        to=[request.requester] if by else [],
        now=now,
    )


def _next_step(request: Request, decision: str) -> list[tuple[str, str]]:
    """Where the requester reads how to use what was approved."""
    if decision != "approved" or request.tenancy_id is None:
        return []
    return [
        (
            "Use it",
            f"{settings.PUBLIC_URL}{reverse('use-it', args=[request.tenancy_id])}",
        )
    ]


def freed(request: Request, why: str, *, now: datetime) -> None:
    """Tell the requester that the policy approved what waited, and who was asked that nothing is left to decide."""
    name = request.name(request.approved_count, of=request.count)
    said = _message(
        request,
        f"Approved: {name} for {request.team.name}",
        f"The policy approved it. {why}{_granted_shorter(request, now=now)}",
        facts=_next_step(request, "approved"),
        now=now,
    )
    _tell(NoticeKind.REQUEST_DECIDED, request, said, to=[request.requester], now=now)
    nothing_left(
        request,
        f"Approved: {_what(request)}",
        f"The policy approved it. {why}",
        now=now,
    )


def asked(request_id: int) -> set[int]:
    """Whom a notice has asked to decide a request."""
    notices = Notice.objects.filter(
        kind__in=ASKS, subject_type="request", subject_id=request_id
    )
    return set(notices.filter(person__isnull=False).values_list("person", flat=True))


def rerouting_words(changed: Rerouting) -> str:
    """What a policy that came into force changed about who decides, in sentences."""
    version = str(changed.policy)
    if changed.refused:
        lapses = moment(changed.request.lapses, changed.at)
        return (
            f"{version} is in force now, and lets nobody approve it as it stands ({changed.refused}). "
            f"Change it or withdraw it; else it lapses on {lapses}."
        )
    said = [f"{version} is in force now"]
    said[0] += (
        f": {', then '.join(changed.now_decide)} decide." if changed.now_decide else "."
    )
    if changed.dropped:
        said.append(f"No longer needed: {', '.join(changed.dropped)}.")
    if not changed.now_decide:
        said.append("Everybody whom it names has approved it.")
    elif changed.votes_stay:
        said.append("Votes that were given stay.")
    return " ".join(said)


def rerouted(request: Request, changed: Rerouting, *, now: datetime) -> None:
    """Tell the requester that a new policy has other people decide, or lets nobody approve it as it stands."""
    words = "Not possible any more" if changed.refused else "Other people decide"
    action = "Change it" if changed.refused else "Open the request"
    said = _message(
        request,
        f"{words}: {_what(request)}",
        rerouting_words(changed),
        action=action,
        now=now,
    )
    _tell(NoticeKind.REQUEST_REROUTED, request, said, to=[request.requester], now=now)


def not_needed(
    request: Request, changed: Rerouting, *, to: Iterable[User], now: datetime
) -> None:
    """Tell people who were asked to decide that a new policy does not need them; channels know it already."""
    persons = list(to)
    if not persons:
        return
    sentence = f"{rerouting_words(changed)} You need not decide it any more."
    said = _message(
        request, f"No longer yours to decide: {_what(request)}", sentence, now=now
    )
    about, link = ("request", request.pk), reverse("request", args=[request.pk])
    tell(
        NoticeKind.REQUEST_REROUTED,
        to=persons,
        subject=about,
        link=link,
        message=said,
        now=now,
    )


def asked_back(request: Request, question: str, *, by: User, now: datetime) -> None:
    """Tell the requester that it waits for their answer."""
    lapses = f"Unanswered, it lapses on {moment(request.lapses, now)}."
    sentence = (
        f"{by.name} asks: {question} The clock stands still until you answer. {lapses}"
    )
    said = _message(
        request,
        f"A question about {_what(request)}",
        sentence,
        action="Answer",
        now=now,
    )
    _tell(NoticeKind.REQUEST_ASKED_BACK, request, said, to=[request.requester], now=now)


def answered(request: Request, text: str, *, now: datetime) -> None:
    """Tell who asked what the requester answered."""
    questions = Decision.objects.filter(
        request=request, verdict=Decision.Verdict.ASK
    ).select_related("by")
    asker = questions.order_by("-at", "-id").first()
    sentence = f"{request.requester.name} answers: {text}"
    said = _message(
        request, f"An answer about {_what(request)}", sentence, action="Decide", now=now
    )
    link = reverse("approval", args=[request.pk])
    to = [asker.by] if asker and asker.by else []
    _tell(NoticeKind.REQUEST_ANSWERED, request, said, to=to, link=link, now=now)


def commented(request: Request, text: str, *, by: User, now: datetime) -> None:
    """Tell those who take part in a request what somebody else said about it."""
    said = _message(
        request, f"{by.name} about {_what(request)}", f"{by.name}: {text}", now=now
    )
    _tell(
        NoticeKind.REQUEST_COMMENTED,
        request,
        said,
        to=taking_part(request, but=by),
        now=now,
    )


def changed(request: Request, said: str, *, to: Iterable[User], now: datetime) -> None:
    """Tell those who took part and are not asked again that it was changed."""
    message = _message(request, f"Changed: {_what(request)}", said, now=now)
    _tell(NoticeKind.REQUEST_COMMENTED, request, message, to=to, now=now)


def lapsed(request: Request, *, now: datetime) -> None:
    """Tell the requester that nobody decided in time, or that their answer did not come."""
    said = _message(
        request,
        f"Lapsed: {_what(request)}",
        lapse_words(request),
        action="Ask again",
        now=now,
    )
    _tell(NoticeKind.REQUEST_LAPSED, request, said, to=[request.requester], now=now)


def withdrawn(request: Request, why: str, *, now: datetime) -> None:
    """Tell those who were asked to decide that the requester took it back."""
    nothing_left(request, f"Taken back: {_what(request)}", why, now=now)


def withdrawn_for(request: Request, *, now: datetime) -> None:
    """Tell the requester that it was withdrawn without them, and why."""
    said = _message(
        request, f"Withdrawn: {_what(request)}", request.withdrawn_because, now=now
    )
    _tell(NoticeKind.REQUEST_DECIDED, request, said, to=[request.requester], now=now)


def nothing_left(request: Request, title: str, why: str, *, now: datetime) -> None:
    """Tell those who were asked to decide that nothing is left to decide, once each."""
    said = _message(request, title, f"{why} There is nothing left to decide.", now=now)
    to = asked_to_decide(request)
    _tell(NoticeKind.REQUEST_WITHDRAWN, request, said, to=to, now=now)


def asked_to_decide(request: Request) -> QuerySet[User]:
    """Everybody who was told that it waits for them."""
    asked = Notice.objects.filter(
        kind__in=ASKS,
        subject_type="request",
        subject_id=request.pk,
        person__isnull=False,
    )
    return User.objects.filter(
        pk__in=asked.exclude(person=request.requester_id).order_by().values("person")
    )


def offered_again(request: Request, *, now: datetime) -> None:
    """Tell the requester that what was rejected because too few were free has become free."""
    said = _message(
        request,
        f"Free now: {_what(request)}",
        "When you asked for it, too few were free. Now there are enough, and the budget suffices: ask again. "
        "Nothing is kept for you until then.",
        action="Ask again",
        now=now,
    )
    _tell(
        NoticeKind.REQUEST_OFFERED_AGAIN, request, said, to=[request.requester], now=now
    )


def taking_part(request: Request, *, but: User) -> list[User]:
    """Who asked, decided, asked back or commented, without one of them; in one query."""
    # Unordered: SQLite has no order within a union.
    said = Decision.objects.filter(request=request).order_by().values("by")
    commented = Comment.objects.filter(request=request).order_by().values("by")
    ids = said.union(commented)
    pks = {row["by"] for row in ids} | {request.requester_id}
    return list(User.objects.filter(pk__in=pks - {but.pk, None}))


def _what(request: Request) -> str:
    return f"{request.name(request.count_now)} for {request.team.name}"


def _answer(
    request: Request,
) -> tuple[dict[str, Any], Standing, list[tuple[str, str]]]:
    """The policy's newest answer, as it is stored, what it knew, and what would make it automatic, as a fact."""
    answer, remedies, inputs = request.evaluations.order_by("-id").values_list(
        "answer", "remedies", "inputs"
    )[0]
    hint = [("Without people", remedies[0]["sentence"])] if remedies else []
    return answer, stored_in(inputs)[1], hint


def _who_decides(request: Request, answer: Mapping[str, Any]) -> str:
    """Who decides, for those who do: the answer itself is for the requester, to whom a manager is "your manager"."""
    if MANAGERS not in answer["route"]:
        return str(answer["sentence"])
    rows = Step.objects.filter(
        request=request, version=request.content_version, dropped_at=None
    )
    steps = list(rows.select_related("stand_in"))
    words = (answer.get("route_size") or {}).get("words", "")
    because = f": {words}" if words else ""
    return f"{route_words.decide(steps)}{because}."


def _message(
    request: Request,
    title: str,
    sentence: str,
    *,
    now: datetime,
    facts: Iterable[tuple[str, str]] = (),
    rules: Iterable[tuple[str, str, str]] = (),
    action: str = "Open the request",
) -> Message:
    known = [
        ("Asked by", request.requester.name),
        ("Until", _until(request, now=now)),
        ("Cost", usd(prices.usd_of(request))),
    ]
    known += [*facts, *([("Why", request.reason)] if request.reason else [])]
    return Message(
        title=title,
        sentence=sentence,
        facts=tuple(known),
        rules=tuple(rules),
        action=action,
    )


def _until(request: Request, *, now: datetime) -> str:
    """When it ends; of what people have left a shorter time, also which end was asked for."""
    shorter = instead_words(request, now=now).removeprefix("until ")
    return shorter or moment(request.until, now)


def _granted_shorter(request: Request, *, now: datetime) -> str:
    """ " Granted until Tue 12 Jan, 12:00 UTC instead of Fri 12 Feb, 12:00 UTC."; empty where nothing is shorter."""
    shorter = instead_words(request, now=now) if request.approved_until else ""
    return f" Granted {shorter}." if shorter else ""


def _facts_of(step: Step, request: Request, *, now: datetime) -> list[tuple[str, str]]:
    decides = (
        step.words
        if not step.escalated_at
        else f"{step.words}, {seat_words(step.escalate_to)}"
    )
    usual = (
        usual_words(usual_wait([step.seat])).removeprefix("Usually ").removesuffix(".")
    )
    facts = [("Decides", decides)] + ([("Usual time", usual)] if usual else [])
    due = route_words.due(step, request)
    return [*facts, ("To be decided by", moment(due, now))] if due else facts


def _tell(
    kind: NoticeKind,
    request: Request,
    said: Message,
    *,
    to: Iterable[User],
    now: datetime,
    link: str = "",
) -> None:
    about = ("request", request.pk)
    link = link or reverse("request", args=[request.pk])
    persons = list(to)
    if persons:
        tell(kind, to=persons, subject=about, link=link, message=said, now=now)
    tell_channels(kind, subject=about, link=link, message=said, now=now)
