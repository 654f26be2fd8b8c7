"""One request as its page shows it: what it is, what it waits for, what happened, what one can do."""

import json
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, TypedDict

from django.conf import settings
from django.db.models import (
    Count,
    Exists,
    F,
    Max,
    OuterRef,
    Prefetch,
    Q,
    Subquery,
    Value,
)
from django.urls import reverse

from accounts.models import User
from accounts.roles import Permission
from allocations import renewals as renewable
from allocations.budgets import money
from allocations.ends.actions import may_give_back
from allocations.models import Allocation
from allocations.schedule import kept_by
from approvals.conversation import page as talk
from approvals.conversation.page import Remark
from approvals.decisions import route_words
from approvals.decisions.actions import may_decide
from approvals.decisions.seats import holders
from approvals.decisions.triage import in_the_past
from approvals.fulfilment import page as task_page
from approvals.fulfilment.actions import may_release
from approvals.fulfilment.page import RequestTask, lost
from approvals.models import Comment, Decision, Evaluation, Request, Rerouting, Step
from approvals.renewals import renewing
from approvals.renewals.words import gone_on
from approvals.requests import model_page, prices, timeline
from approvals.requests.actions import may_withdraw
from approvals.requests.links import again_link
from approvals.requests.listing import with_all
from approvals.requests.model_page import ModelShown
from approvals.requests.presenting import (
    asks,
    hint_of,
    instead_words,
    lapse_words,
    over_budget_now,
    person,
    shown_name,
    state_of,
    state_word,
    usual_wait,
    usual_words,
    verdict,
)
from approvals.requests.vacancies import sorted_out
from approvals.states import State
from catalogue.models import switched_off
from catalogue.offering import in_sentence
from fleet.models import Flavor
from manual.models import Task
from policy.models import PolicyVersion
from provisioning.models import Tenancy
from ui.amounts import ahead, gpus, moment, usd
from ui.parts import Badge, Entry, Fact, Figure, Verdict, Wait

PLURAL = ("gpus", "training")
HOLDING = (State.BOOKED, State.SETTING_UP, State.ACTIVE, State.ENDING_SOON)
NEVER_GRANTED = (State.REJECTED, State.WITHDRAWN, State.LAPSED)


class May(TypedDict):
    """What somebody may do with a request as it stands."""

    withdraw: bool
    answer: bool
    renew: bool
    renewal: int | None
    give_back: bool
    cancel: bool
    let_go: bool
    again: bool
    edit: bool
    decide: bool


class RequestPage(TypedDict):
    """The page of a request."""

    asked: Request
    name: str
    state: Badge
    sentence: str
    waiting: Wait | None
    figures: Sequence[Figure]
    verdict: Verdict
    judged: Evaluation
    timeline: Sequence[Entry]
    facts: Sequence[Fact]
    talk: Sequence[Remark]
    held: Allocation | None
    sees_team: bool
    model: ModelShown | None
    reservation: int | None
    renewed: int | None
    tasks: Sequence[RequestTask]
    may: May
    lost: str
    again: str
    offered: bool
    curl: str


def context(request: Request, *, viewer: User, now: datetime) -> RequestPage:
    """Everything the page needs, of a request from `with_all()`."""
    state = state_of(request, now=now)
    tasks = list(Task.objects.of_request(request.pk).described())
    first, reroutings = _answers(request)
    # What a policy answered that came into force while it waited.
    anew = [
        each for each in reroutings if each.content_version == request.content_version
    ]
    evaluation = anew[-1].evaluation if anew else first
    decisions = list(request.decisions.all())
    steps = request.current_steps
    granted = Allocation.objects.select_related("endpoint__account", "endpoint__team")
    allocations = list(granted.filter(hold=request.hold_id).order_by("starts_at", "id"))
    held = next((a for a in allocations if a.ended_at is None), None)
    waiting = _waiting(request, state, decisions, viewer=viewer, now=now)
    # What would keep longer what is held, and waits itself.
    renewal = renewing.waiting_for(request.pk) if held is not None else None
    may = _may(request, state, held, viewer, renewal=renewal, now=now)
    if waiting is not None and not waiting.get("advice"):
        waiting["advice"] = over_budget_now(
            request, evaluation.answer, viewer=viewer, now=now
        )
    if waiting is not None and may["decide"] and not waiting.get("advice"):
        waiting["advice"] = "You can decide it."
    return {
        "asked": request,
        "name": shown_name(request),
        "state": {"tone": state.tone, "word": state_word(request, state)},
        "sentence": " ".join(
            [
                sentence(
                    request,
                    state,
                    decisions,
                    now=now,
                    renewal=renewal or _renewal(request, allocations),
                ),
                *([renewing.waits_words(renewal)] if renewal else []),
                _shortened(request, state, decisions, now=now),
            ]
        ).strip(),
        "waiting": waiting,
        "figures": figures(
            request,
            state,
            allocations,
            per_day=Decimal(evaluation.answer["usd_per_day"]),
            now=now,
        ),
        "verdict": verdict(
            evaluation.answer,
            hint=hint_of(evaluation.remedies or ()) if state is State.WAITING else None,
        )
        | {"sentence": in_the_past(evaluation.answer, request)},
        "judged": evaluation,
        "timeline": timeline.entries(
            request,
            state=state,
            evaluation=first,
            decisions=decisions,
            steps=steps,
            allocations=allocations,
            now=now,
            tasks=tasks,
            edits=talk.edits(request, first, talk.revisions_of(request), decisions),
            reroutings=reroutings,
        ),
        "facts": facts(request, evaluation, viewer=viewer, now=now),
        "talk": talk.lines(request, decisions),
        "held": held,
        # Who decides about it may see nothing else of its team.
        "sees_team": viewer.sees_team(request.team_id),
        "model": model_page.of_allocations(allocations, viewer=viewer),
        "reservation": next(
            (a.reservation_id for a in reversed(allocations) if a.reservation_id), None
        ),
        "renewed": request.renews_id,
        "tasks": task_page.of_request(tasks, viewer=viewer),
        "may": may,
        "lost": lost(request, tasks) if may["let_go"] else "",
        "again": again_link(request, now=now),
        "offered": request.offered_again_at is not None
        and request.team_id in viewer.team_ids,
        "curl": curl(request),
    }


def _answers(request: Request) -> tuple[Evaluation, list[Rerouting]]:
    """The answer to what is asked now, as it was given first, and what later policies changed about who decides."""
    now_asked = Q(content_version=request.content_version)
    rows = request.evaluations.filter(now_asked | Q(rerouting__isnull=False))
    found = list(rows.select_related("policy", "rerouting"))
    reroutings = []
    for evaluation in found:
        changed = getattr(evaluation, "rerouting", None)
        if changed is not None:
            changed.request, changed.policy = request, evaluation.policy
            reroutings.append(changed)
    return next(
        row for row in found if row.content_version == request.content_version
    ), reroutings


def find(requests: Any, pk: int) -> Request | None:
    """A request with everything its page says; None when it is not among these."""
    told = Decision.objects.select_related("by", "seat_of", "step")
    found: Request | None = (
        with_all(requests)
        .annotate(
            has_comments=Exists(Comment.objects.filter(request=OuterRef("pk"))),
            is_off=Exists(switched_off()),
        )
        .prefetch_related(Prefetch("decisions", told))
        .filter(pk=pk)
        .first()
    )
    return found


def find_for(viewer: User, pk: int, *, now: datetime) -> Request | None:
    """The same of what this person sees: of their teams, or because the decision is theirs."""
    found = find(Request.objects.visible_to(viewer), pk)
    return found or find(Request.objects.open_to(viewer, now), pk)


def _renewal(request: Request, allocations: Sequence[Allocation]) -> Request | None:
    """Under which request it goes on, when it does; asks the database only then."""
    renewed = any(a.end_reason == Allocation.End.RENEWED for a in allocations)
    return renewing.renewal_of(request) if renewed else None


def sentence(
    request: Request,
    state: State,
    decisions: Sequence[Decision],
    *,
    now: datetime,
    renewal: Request | None = None,
) -> str:
    """What it is, since when, where, until when, and what comes; never a bare state."""
    if state is State.ENDED and renewal is not None:
        until = moment(renewal.until_now, now)
        return f"{gone_on(request)}, as request {renewal.pk}, until {until}."
    leaves = _leaves(request)
    name, until = request.given_name, moment(leaves or request.until_now, now)
    what = in_sentence(name)
    where = f" in {request.where}" if request.where else ""
    held = request.given_name
    if request.flavor is not None and request.offering in ("gpus", "training"):
        held = gpus(
            request.allocation.gpus if request.allocation else 0, request.flavor.kind
        )
    are, back, them = (
        ("are", "they go back by themselves", "them")
        if _is_plural(request)
        else ("is", "it goes back by itself", "it")
    )
    then = f"then {back}" if request.flavor_id else _taken_down(request)
    waits = renewal is not None and renewal.state == State.WAITING
    longer = _how_longer(request.flavor, them) if request.flavor and not waits else ""
    never_began = request.allocation is not None and request.allocation.begun_at is None
    ended = (
        f"{name}{where} went back."
        if request.flavor_id
        else f"The time of {what}{where} is over."
    )
    if (end := request.allocation) is not None and end.taken_back_because:
        what_ended = what if request.flavor_id is None else end.what
        ended = (
            f"{end.ended_by} took {what_ended}{where} back: {end.taken_back_because}"
        )
    last = next(
        (d for d in reversed(decisions) if d.verdict == Decision.Verdict.REJECT), None
    )
    who = last.by_words if last else "The policy"
    words = {
        State.WAITING: asks(request, now=now),
        State.BOOKED: _booked(request, now=now),
        State.SETTING_UP: f"{held} {are} being set up{where}. {_soon(request)}",
        State.ACTIVE: f"{held}{where} {are} {request.team.name}’s until {until}"
        f"{', when the team leaves' if leaves else ''}, {then}.",
        State.ENDING_SOON: f"{held}{where}: back on {until}. {longer}"
        if request.flavor_id
        else f"{held}{where} ends on {until}, {then}. {kept_by(request.offering)}",
        State.ENDED: f"{name}{where}: the booking was cancelled before it began, and has cost nothing."
        if never_began
        else f"{_sentence(ended)} Ask again whenever you need it.",
        State.REJECTED: f"{who} rejected it: {last.reason if last else ''}",
        State.WITHDRAWN: request.withdrawn_because
        or f"{request.requester.name} took it back before it was decided.",
        State.LAPSED: lapse_words(request),
        State.FAILED: f"{name}: granted, but could not be set up{where}. {_freed(request)}",
    }
    # Nothing goes on of a team that leaves.
    return words[State.ACTIVE if leaves and state is State.ENDING_SOON else state]


def _shortened(
    request: Request, state: State, decisions: Sequence[Decision], *, now: datetime
) -> str:
    """That people left it a shorter time than was asked for, and who; empty once it is over."""
    is_open = state in (State.WAITING, *HOLDING)
    shorter = instead_words(request, now=now) if is_open else ""
    if not shorter:
        return ""
    done = "Approved so far" if state is State.WAITING else "Granted"
    who = next(
        (
            vote.by_words
            for vote in decisions
            if vote.until == request.until_now
            and vote.content_version == request.content_version
        ),
        "",
    )
    return f"{done} {shorter}{f', as {who} decided' if who else ''}."


def _sentence(words: str) -> str:
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _orphaned_line(request: Request, why: str, viewer: User) -> Wait:
    is_member = request.team_id in viewer.team_ids
    return {
        "kind": "change" if is_member else "wait",
        "what": f"{why}, so nobody is granted it",
        "since": None,
        "advice": "Withdraw it, and ask for it yourself if the team still needs it."
        if is_member
        else "Somebody of the team withdraws it, or it is rejected.",
    }


def _how_longer(flavor: Flavor, them: str) -> str:
    return (
        f"{flavor.why_closed}, so nothing there is kept longer."
        if flavor.why_closed
        else f"Keep {them} longer with one click."
    )


def _leaves(request: Request) -> datetime | None:
    """When the team leaves the cluster and its GPUs there end, where that is before their end."""
    at = request.tenancy.leaves_at if request.tenancy is not None else None
    is_earlier = (
        at is not None and at < request.until_now and request.flavor_id is not None
    )
    return at if is_earlier else None


def _is_plural(request: Request) -> bool:
    """Whether what was granted is several: of GPUs, as many as are held."""
    held = request.allocation.gpus if request.allocation else request.gpus
    return request.offering in PLURAL and held != 1


def _taken_down(request: Request) -> str:
    """What becomes of what takes no GPUs at its end."""
    if request.is_in_azure:
        return "then the portal deletes it in Azure"
    return "then a platform lead asks and takes it down"


def _booked(request: Request, *, now: datetime) -> str:
    """That it begins by itself, when, and what stands in its way."""
    allocation = request.allocation
    if allocation is None:
        return ""
    where = f" in {request.where}" if request.where else ""
    late = allocation.starts_at <= now
    begins = (
        "begins as soon as nothing stands in its way"
        if late
        else "begins by itself on "
    )
    at = "" if late else moment(allocation.starts_at, now)
    hindrance = f" Now: {allocation.hindrance}" if allocation.hindrance else ""
    return f"{request.given_name}{where}: booked; {begins}{at}, and costs nothing before.{hindrance}"


def _soon(request: Request) -> str:
    """How long setting it up takes, and who does it."""
    if request.is_by_person:
        return "A platform lead carries it out. It costs nothing before it is there."
    return timeline.soon(request)


def _waiting(
    request: Request,
    state: State,
    decisions: Sequence[Decision],
    *,
    viewer: User,
    now: datetime,
) -> Wait | None:
    """The line of what waits; None once it was decided."""
    waits = state is State.WAITING
    return (
        waiting_line(request, request.current_steps, decisions, viewer=viewer, now=now)
        if waits
        else None
    )


def closed_line(what: str, why: str, *, mine: bool) -> Wait:
    """That what waits cannot be approved by anybody as things stand, and what can be done about it."""
    do = " Withdraw it and ask for something else, or wait until it is." if mine else ""
    return {
        "kind": "change" if mine else "wait",
        "what": what,
        "since": None,
        "advice": f"{why}.{do}",
    }


def waiting_line(
    request: Request,
    steps: Sequence[Step],
    decisions: Sequence[Decision],
    *,
    viewer: User,
    now: datetime,
) -> Wait:
    """What it waits for, since when, where in line, when probably, and what this person can do."""
    question = next(
        (d for d in reversed(decisions) if d.verdict == Decision.Verdict.ASK), None
    )
    mine = viewer.pk == request.requester_id
    if not mine and (orphaned := request.why_orphaned):
        return _orphaned_line(request, orphaned, viewer)
    if request.turn == Request.Turn.REQUESTER and question is not None:
        return {
            "kind": "change" if mine else "wait",
            "what": f"Waits for an answer from {'you' if mine else request.requester.name}",
            "since": question.at,
            "advice": "Answer below, then it goes on at once."
            if mine
            else "Nothing to do here; the question stands on their home page.",
            "action": {"label": "Answer", "href": "#answer"} if mine else None,
        }
    if because := request.why_not_granted(now):
        told = because if mine else f"{request.requester.name} is told: {because}"
        return {
            "kind": "change" if mine else "wait",
            "what": "It would be granted, but something stands in its way",
            "since": None,
            "advice": f"{told} It is tried again by itself every minute.",
        }
    if closed := request.why_closed:
        return closed_line("It waits, and nobody can approve it now", closed, mine=mine)
    step = next(step for step in steps if step.done_at is None)
    # As the queue of whoever decides has it: the oldest ask first, also where it was changed, without what waits for
    # an answer.
    ahead = Step.objects.open().filter(
        seat=step.seat,
        request__created_at__lt=request.created_at,
        request__state=State.WAITING,
        request__turn=Request.Turn.APPROVER,
        version=F("request__content_version"),
    )
    undone = [each for each in steps if each.done_at is None]
    # One query for the place in line and for whether anybody is known in each seat.
    number = (
        ahead.exclude(request=request.pk)
        .order_by()
        .values(one=Value(1))
        .annotate(number=Count("pk"))
    )
    known = [
        Exists(holders(each.seat).exclude(pk=request.requester_id)) for each in undone
    ]
    before, *filled = (
        Step.objects.filter(pk=step.pk)
        .values_list(Subquery(number.values("number")), *known)
        .get()
    )
    place = (before or 0) + 1
    vacant = sorted_out(
        (each.seat, each.words)
        for each, is_filled in zip(undone, filled, strict=True)
        if not is_filled
    )
    return {
        "kind": "wait",
        "advice": vacant.words,
        "what": f"Waits for {', then '.join(route_words.who(s) for s in steps if s.done_at is None)}",
        "since": request.created_at,
        "due": route_words.due(step, request),
        "place": "first" if place == 1 else f"{place - 1} before it",
        "expected": usual_words(
            usual_wait([s.seat for s in steps if s.done_at is None])
        ).removesuffix("."),
    }


def _cost_now(request: Request, *, now: datetime) -> Figure:
    """The price of now, with the one that was asked at."""
    found = prices.usd_now(request, now=now) or Decimal(0)
    price = request.flavor.price_per_gpu_hour if request.flavor else Decimal(0)
    per_day = money.per_day(gpus=request.gpus_now, price=price)
    note = f"if granted now, {usd(per_day)} a day; {prices.as_asked(request, now=now)}"
    return _figure("Cost", usd(found), "", note)


def figures(
    request: Request,
    state: State,
    allocations: Sequence[Allocation],
    *,
    per_day: Decimal,
    now: datetime,
) -> list[Figure]:
    """GPUs, money and time in large; `per_day` is what it costs as it was asked for, in USD."""
    held = next((a for a in allocations if a.ended_at is None), None)
    given, flavor = request.count_now, request.flavor
    place = f"in {request.where}" if request.where else ""
    note = f"of {request.count} asked" if given < request.count else place
    granted = "had it been granted" if state in NEVER_GRANTED else "if granted"
    cost = _figure(
        "Cost", usd(request.usd), "", f"{granted} as asked, {usd(per_day)} a day"
    )
    if prices.differs(request, now=now):
        cost = _cost_now(request, now=now)
    if allocations:
        cost = _cost(held, allocations, now=now)
    if flavor is None:
        first = _figure(request.of.name, f"{given:,}", request.of.units(given), note)
    else:
        count = held.gpus if held else request.gpus_now
        first = _figure("GPUs", str(count), flavor.kind, note)
    return [first, cost, _end(request, state, allocations, now)]


def _cost(
    held: Allocation | None, allocations: Sequence[Allocation], *, now: datetime
) -> Figure:
    """What it has cost, what it will have cost, and that it costs nothing while nobody has made it."""
    so_far = sum((a.usd_so_far(now) for a in allocations), Decimal(0))
    if held is None:
        return _figure("Cost", usd(so_far), "", "in all")
    if held.is_booked:
        in_all = sum((a.usd_in_all for a in allocations), Decimal(0))
        return _figure(
            "Cost",
            usd(in_all),
            "",
            f"from when it begins, {usd(held.usd_per_day)} a day",
        )
    if held.charged_from is None:
        then = f"nothing before it is there, then {usd(held.usd_per_day)} a day"
        return _figure("Cost so far", usd(so_far), "", then)
    in_all = sum((a.usd_in_all for a in allocations), Decimal(0))
    then = f"{usd(in_all)} by the end, {usd(held.usd_per_day)} a day"
    return _figure("Cost so far", usd(so_far), "", then)


def facts(
    request: Request, evaluation: Evaluation, *, viewer: User, now: datetime
) -> list[Fact]:
    """Who, where, for what, under which numbers."""
    tenancy = request.tenancy
    team = reverse("team", args=[request.team.slug])
    return [
        {"label": "Request", "copyable": str(request.pk)},
        {"label": "Asked by", "person": person(request.requester)},
        {"label": "Asked", "at": request.created_at},
        {"label": "Team", "text": request.team.name, "href": team},
        {"label": "Offering", "text": request.of.name},
        *_of_cluster(request),
        *_of_place(tenancy, team),
        *_of_spec(request),
        *([Fact(label="From", at=request.starts_at)] if request.starts_at else []),
        *_present_end(request, now=now),
        *([Fact(label="Asked until", at=request.until)] if request.is_shorter else []),
        {"label": "Until", "at": request.until_now},
        *([_price(request)] if request.formula else []),
        _judged_by(evaluation.policy, viewer),
    ]


def _judged_by(version: PolicyVersion, viewer: User) -> Fact:
    """The policy that the answer is by. The page of policies has the one in force, which may be another by now."""
    fact = Fact(label="Judged by", text=str(version))
    if viewer.may(Permission.SEE_POLICY_DRAFTS):
        fact["href"] = reverse("policy-version", args=[version.number])
    return fact


def _present_end(request: Request, *, now: datetime) -> list[Fact]:
    """When what a waiting renewal is to keep ends without it."""
    if request.state != State.WAITING or request.renews is None:
        return []
    held = renewable.held(request.renews.hold_id, now=now)
    if held is not None:
        return [{"label": "Ends without it", "at": held.until}]
    parts = Allocation.objects.filter(hold=request.renews.hold_id)
    ended = parts.aggregate(last=Max("ended_at"))["last"]
    return (
        []
        if ended is None
        else [{"label": "The GPUs it would keep ended", "at": ended}]
    )


def _price(request: Request) -> Fact:
    """How the price was reckoned: of what was asked for, which may be more than what was granted."""
    given = request.approved_count
    is_fewer = given is not None and given < request.count
    return {
        "label": "Price as asked" if is_fewer else "Price",
        "text": request.formula,
    }


def _of_cluster(request: Request) -> list[Fact]:
    if request.flavor is None:
        return [{"label": "Place", "text": request.where}] if request.where else []
    cluster = request.flavor.cluster
    href = reverse("cluster", args=[cluster.name])
    return [
        {"label": "Cluster", "text": cluster.title, "href": href},
        {"label": "For", "text": request.get_purpose_display()},
    ]


def _of_spec(request: Request) -> list[Fact]:
    """What else was said, where the title and the place do not say it all."""
    if request.offering in ("gpus", "training"):
        return []
    return [
        {
            "label": request.of.label(name),
            "text": f"{value:,}" if isinstance(value, int) else str(value),
        }
        for name, value in request.spec_lines
        # The place says its environment, where there is one.
        if name != "flavor"
        and not (name == "environment" and request.tenancy_id is not None)
    ]


def _freed(request: Request) -> str:
    return (
        "What was set aside for it is free again."
        if _never_came(request)
        else "Platform leads see it."
    )


def _never_came(request: Request) -> bool:
    """Whether whoever was to make it could not."""
    return (
        request.allocation is not None
        and request.allocation.end_reason == Allocation.End.FAILED
    )


def _of_place(tenancy: Tenancy | None, team: str) -> list[Fact]:
    if tenancy is None:
        return []
    return [
        {"label": "On the cluster", "text": "Every object, one by one", "href": team},
        {"label": "Namespace", "copyable": tenancy.namespace},
        {"label": "Environment", "text": tenancy.get_environment_display()},
    ]


def curl(request: Request) -> str:
    """The API call that asks for the same; of a renewal the call that keeps it longer."""
    until = {
        "until": request.until.isoformat().replace("+00:00", "Z"),
        "reason": request.reason,
    }
    what = {
        "team": request.team.slug,
        "offering": request.offering,
        "spec": request.spec,
    }
    path, body = ("", what | until)
    if request.renews_id is not None:
        path, body = (f"{request.renews_id}/renew/", until)
    said = json.dumps(body, indent=2, ensure_ascii=False).replace("'", "'\\''")
    return (
        f"curl -X POST {settings.PUBLIC_URL}/api/v1/requests/{path} \\\n"
        '  -H "Authorization: Bearer $QM_TOKEN" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -H \"Idempotency-Key: $(uuidgen)\" \\\n  -d '{said}'"
    )


def _may(
    request: Request,
    state: State,
    held: Allocation | None,
    viewer: User,
    *,
    renewal: Request | None,
    now: datetime,
) -> May:
    mine, member = viewer.pk == request.requester_id, request.team_id in viewer.team_ids
    waits = state is State.WAITING
    releases = may_give_back(viewer, request.team_id)
    has_gpus = held is not None and held.flavor_id is not None and not held.is_booked
    is_booked = state is State.BOOKED
    goes_on = state in (
        State.WAITING,
        State.BOOKED,
        State.SETTING_UP,
        State.ACTIVE,
        State.ENDING_SOON,
    )
    return {
        "withdraw": waits and may_withdraw(request, viewer),
        "answer": mine and waits and request.turn == Request.Turn.REQUESTER,
        "renewal": renewal.pk if renewal else None,
        "renew": has_gpus
        and renewal is None
        and not (request.flavor and request.flavor.why_closed)
        and (request.tenancy is None or request.tenancy.is_here)
        and state in (State.ACTIVE, State.ENDING_SOON)
        and (member or viewer.may(Permission.ONBOARD_ANY_GROUP)),
        "give_back": has_gpus and releases,
        "cancel": releases and is_booked,
        "let_go": releases and not is_booked and may_release(request, now=now),
        "again": member and not goes_on,
        "edit": mine and waits,
        "decide": waits and not mine and not may_decide(request, viewer, now=now),
    }


def _end(
    request: Request, state: State, allocations: Sequence[Allocation], now: datetime
) -> Figure:
    held = next((a for a in allocations if a.ended_at is None), None)
    is_over = held is None and (state is State.ENDED or _never_came(request))
    end = held.until if held else _ended(request) if is_over else request.until_now
    if held is not None:
        end = min(end, _leaves(request) or end)
    day, time = moment(end, now).rsplit(", ", 1)
    if state in NEVER_GRANTED:
        return _figure("Was asked until", day, "", time)
    coming = f", in {ahead(end, now)}" if end > now else ""
    if held is not None or not is_over:
        coming += _asked_until(request, now=now)
    return _figure("Was until" if is_over else "Ends", day, "", f"{time}{coming}")


def _asked_until(request: Request, *, now: datetime) -> str:
    """Behind the end of what people left a shorter time: "; asked until Fri 12 Feb"."""
    if not request.is_shorter:
        return ""
    return f"; asked until {moment(request.until, now).rsplit(', ', 1)[0]}"


def _ended(request: Request) -> datetime:
    """When what is over came to its end: its date, or before that."""
    ended = request.allocation.ended_at if request.allocation is not None else None
    return min(request.until_now, ended or request.until_now)


def _figure(label: str, value: str, unit: str, note: str) -> Figure:
    return {"label": label, "value": value, "unit": unit, "note": note}
