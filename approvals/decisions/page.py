"""One request as the person sees it who decides: everything on one screen."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import TypedDict

from django.db.models import Count, Max, OuterRef, Q, Sum
from django.urls import reverse

from accounts.models import Team, User
from allocations.budgets import money
from allocations.budgets.totals import total
from allocations.models import Allocation
from allocations.use.measuring import trend
from approvals import notices
from approvals.conversation import page as talk
from approvals.conversation.page import Edited, Remark
from approvals.decisions import route_words, triage
from approvals.decisions.actions import hindrance, may_decide
from approvals.decisions.less import Less, Typed, less
from approvals.decisions.triage import Primary, Rival, Rivals
from approvals.judging.asked import wanted_of
from approvals.judging.inputs import answer_of, coming
from approvals.models import Decision, Request, Step
from approvals.renewals import renewing
from approvals.renewals import words as renewal_words
from approvals.requests import presenting, prices
from approvals.requests.actions import Judged, judge
from approvals.requests.presenting import person, verdict
from approvals.requests.preview import held_and_paid_before
from approvals.states import State
from catalogue.choices import WORDS
from catalogue.offering import in_sentence
from fleet.presenting import how_away
from policy.evaluation import may_hold_by_itself
from ui.amounts import ago, gpus, hours, moment, usd
from ui.parts import BeforeAfter, Entry, Fact, Figure, Person, StepLink, Verdict

MOST_RIVALS = 3
STEP, BAR = 8, 24


class Bar(TypedDict):
    """A day of a trend: where its bar stands, and how high."""

    x: int
    y: int
    high: int


class TrendShown(TypedDict):
    """Use of the last days as bars, with what they say in words."""

    width: int
    height: int
    bars: Sequence[Bar]
    words: str


class InLine(TypedDict):
    """A request of the queue beside the screen."""

    href: str
    current: bool
    team: str
    what: str
    mark: str
    since: str


class Beside(TypedDict):
    """The queue, with where the one before and the one after are."""

    queue: Sequence[InLine]
    previous: str
    following: str


class Screen(Beside):
    """Everything that somebody sees who decides a request."""

    asked: Request
    count: int
    name: str
    sentence: str
    verdict: Verdict
    changes: Sequence[BeforeAfter]
    use: Sequence[Fact]
    trend: TrendShown | None
    rivals: Rivals
    primary: Primary
    tiles: Sequence[Figure]
    is_long: bool
    seats: Sequence[StepLink]
    talk: Sequence[Remark]
    edited: Edited | None
    next: Sequence[Entry]
    because: Sequence[tuple[str, str]]
    less: Less
    refusal: str
    silence: str
    requester: Person
    waited: str


class Holdings(TypedDict):
    """What a team holds, held and asked for before; None is none."""

    live: int | None
    here: int | None
    usd_per_hour: Decimal | None
    last_end: datetime | None
    back: int | None
    expired: int | None
    asked: int | None
    granted: int | None
    rejected: int | None


def context(
    request: Request,
    *,
    viewer: User,
    queue: Sequence[Request],
    typed: Typed | None = None,
    now: datetime,
) -> Screen:
    """Everything the screen needs, of a request from `with_all()` and the queue beside it.

    `typed` is how much somebody would approve instead of all of it.
    """
    steps = request.current_steps
    decisions = list(request.decisions.all())
    refusal = may_decide(request, viewer, now=now)
    count = request.count_now
    judged = (
        _judge(request, count, now=now)
        if request.until_now > now and request.state == State.WAITING
        else None
    )
    holdings = _holdings(request)
    held = judged.standing.held_gpus if judged else holdings["here"] or 0
    hurt = rivals(request, count, judged, viewer=viewer, now=now)
    hindered = hindrance(judged.wanted, by=request.requester, now=now) if judged else ""
    primary = triage.primary(judged, count, hurt, hindered)
    return {
        "asked": request,
        "count": count,
        "name": presenting.titled(request, count),
        "sentence": sentence(request, count, held, judged, now=now),
        "verdict": _verdict(request, judged, hindered),
        "changes": changes(request, judged, holdings, now=now) if judged else [],
        "use": use(request, held, holdings, judged),
        "trend": _trend(request, now=now) if held else None,
        "rivals": hurt,
        "primary": primary,
        "tiles": triage.tiles(request, judged, held, hurt, primary, hindered),
        "is_long": len(request.reason) > triage.LONG_REASON
        or request.reason.count("\n") > 1,
        "seats": seats(steps, decisions, request),
        "talk": talk.lines(request, decisions),
        "edited": talk.since_seen(
            request, viewer, decisions, talk.revisions_of(request), now=now
        ),
        "next": _next(request, steps, judged),
        "because": Decision.Because.choices,
        "less": less(request, None if hindered else judged, typed=typed, now=now),
        "refusal": refusal,
        "silence": _silence(request),
        "requester": person(request.requester, _about(request)),
        "waited": ago(request.created_at, now).removesuffix(" ago"),
        **beside(request, queue, now=now),
    }


def _next(
    request: Request, steps: Sequence[Step], judged: Judged | None
) -> list[Entry]:
    """What comes by itself while nobody decides; nothing once it is decided."""
    if request.state != State.WAITING:
        return []
    parts = route_words.coming(request, steps)
    is_hopeful = judged is not None and may_hold_by_itself(judged.answer)
    return [
        *(part for part in parts if part["phase"] == "future"),
        *([route_words.granted_by_itself()] if is_hopeful else []),
        route_words.lapses(request),
    ]


def _silence(request: Request) -> str:
    """That the cluster does not answer, which keeps nobody from deciding; empty while it does."""
    cluster = request.flavor.cluster if request.flavor is not None else None
    if cluster is None or not cluster.is_away:
        return ""
    return f"{cluster.title} {how_away(cluster)}. What is approved is made once it does, and costs nothing before."


def _about(request: Request) -> str:
    """Of which team, for what, and whose report: as much as the directory said."""
    asker = request.requester
    above = next(
        (
            asker.manager_names.get(str(oid).lower(), {}).get("name")
            for oid in asker.managers
        ),
        "",
    )
    purpose = str(request.spec.get("purpose", "")) or (
        request.purpose if request.flavor_id else ""
    )
    of = f"of {request.team.name}" + (
        f", for {WORDS[purpose].lower()}" if purpose else ""
    )
    return f"{of}; reports to {above}" if above else of


def _trend(request: Request, *, now: datetime) -> TrendShown | None:
    """Use of the last days as bars, 24 high, with what they say in words."""
    found = trend(request.tenancy_id or 0, request.flavor_id or 0, now=now)
    if found is None:
        return None
    heights = [
        None if percent is None else max(1, round(percent * BAR / 100))
        for percent in found.days
    ]
    return {
        "width": len(heights) * STEP,
        "height": BAR,
        "bars": [
            {"x": n * STEP, "y": BAR - high, "high": high}
            for n, high in enumerate(heights)
            if high is not None
        ],
        "words": f"Use of the last {len(heights)} days: {found.best:.0f} % on the best one, about "
        f"{hours(found.idle_gpu_hours)} held and not used.",
    }


def sentence(
    request: Request, count: int, held: int, judged: Judged | None, *, now: datetime
) -> str:
    """Who asks for what, where, until when, from what to what, and what it costs; of a renewal what comes on top."""
    own = min(judged.standing.own_gpus, judged.ask.gpus) if judged else 0
    gained = request.gpus // request.count * count - own
    # Of what is decided, what was held before it is not known any more.
    is_told = judged is not None and request.flavor_id is not None and gained
    change = f": from {held} to {held + gained}" if is_told else ""
    where = f" in {request.where}" if request.where else ""
    if request.starts_at is not None and request.starts_at > now:
        where += f" from {moment(request.starts_at, now)}"
    verb = "for" if request.renews_id is None else "to keep"
    asked = f" ({moment(request.until, now)} was asked)" if request.is_shorter else ""
    cost, then = judged.answer.usd if judged else prices.usd_of(request), ""
    if not request.is_less:
        cost = prices.told(cost, asked=request.usd)
        then = (
            f" ({usd(request.usd)} when it was asked for)"
            if cost != request.usd
            else ""
        )
    on_top = (
        renewal_words.extra_words(judged.wanted, judged, now=now)
        if judged and own
        else ""
    )
    return (
        f"{request.requester.name} ({request.team.name}) asks {verb} {in_sentence(request.name(count))}{where} until "
        f"{moment(request.until_now, now)}{asked}{change}, for {usd(cost)}{then}. {on_top}"
    ).strip()


def changes(
    request: Request, judged: Judged, holdings: Holdings, *, now: datetime
) -> list[BeforeAfter]:
    """Before → after of the grant: quota, share of the pool, cost a day, end."""
    hourly = holdings["usd_per_hour"] or Decimal(0)
    held, per_day = held_and_paid_before(
        judged, per_day=lambda: money.per_day(gpus=1, price=hourly), now=now
    )
    rows = (
        renewal_words.changes(judged.wanted, judged, now=now)
        if judged.standing.own_gpus
        else presenting.changes(
            flavor=request.flavor,
            more=judged.ask.gpus,
            usd_per_hour=judged.ask.usd_per_hour,
            held=held,
            per_day=per_day,
        )
    )
    last = holdings["last_end"]
    after = moment(max(request.until_now, last) if last else request.until_now, now)
    return [
        *rows,
        {
            "label": "Last end",
            "before": moment(last, now) if last else "",
            "after": after,
        },
    ]


def use(
    request: Request, held: int, holdings: Holdings, judged: Judged | None
) -> list[Fact]:
    """What the team does with what it has: held, and what became of what it asked for before."""
    measured = triage.measured(judged) if judged else None
    asked, granted, rejected = (
        holdings["asked"] or 0,
        holdings["granted"] or 0,
        holdings["rejected"] or 0,
    )
    return [
        {
            "label": "Holds",
            "text": _held_words(request, held, holdings["live"] or 0),
        },
        {
            "label": "Asked before",
            "text": f"{asked}: {granted} granted, {rejected} rejected",
        },
        {
            "label": "Given back",
            "text": f"{holdings['back'] or 0} early, {holdings['expired'] or 0} at the end",
        },
        *([Fact(label="Measured use", text=measured.words)] if measured else []),
    ]


def _held_words(request: Request, held: int, in_all: int) -> str:
    if not in_all:
        return "no GPUs"
    return (
        f"{gpus(held, request.flavor.kind)}, {gpus(in_all)} in all"
        if request.flavor
        else gpus(in_all)
    )


def rivals(
    request: Request, count: int, judged: Judged | None, *, viewer: User, now: datetime
) -> Rivals:
    """Who is hurt: what is free afterwards, and who else, of those the viewer may see, waits for the same GPUs.

    Where too few are free, from when there are enough, as far as ends are known.
    """
    # What was judged is what Azure lets it have beside all that others were promised.
    flavor = judged.wanted.flavor if judged is not None else request.flavor
    if flavor is None:
        return {"after": 0, "words": "", "rows": [], "more": False}
    count = request.gpus // request.count * count
    others = (
        Request.objects.visible_to(viewer)
        .filter(state=State.WAITING, flavor=flavor, renews=None)
        .exclude(pk=request.pk)
        .select_related("team")
    )
    rows: list[Rival] = [
        {
            "team": r.team.name,
            "gpus": gpus(r.gpus_now),
            "since": ago(r.created_at, now).removesuffix(" ago"),
            "href": reverse("approval", args=[r.pk]),
        }
        for r in others.order_by("created_at")[: MOST_RIVALS + 1]
    ]
    # What goes on takes nothing from the pool.
    kept = (
        renewing.held_under(request.renews, now=now)
        if request.renews is not None
        else None
    )
    free, in_its_time = presenting.free_in_its_time(
        flavor, judged.standing if judged is not None else None
    )
    after = free - max(0, count - (kept.gpus if kept is not None else 0))
    short = (
        f"{max(free, 0)} free{in_its_time}, {free - after} needed"
        if after < 0
        else f"{after} of {flavor.gpus_at_most} stay free{in_its_time}"
    )
    grows = after >= 0 and not in_its_time and free - after > flavor.free_and_ready
    if grows:
        short = f"{short} once the pool has grown"
    fits = (
        _fits_from(judged, -after, now=now) if judged is not None and after < 0 else ""
    )
    return {
        "after": after,
        "words": short,
        "grows": grows,
        "fits": fits,
        "rows": rows[:MOST_RIVALS],
        "more": len(rows) > MOST_RIVALS,
    }


def _fits_from(judged: Judged, missing: int, *, now: datetime) -> str:
    if judged.standing.levels:
        at = judged.fits_from
        return (
            f"All of it is free from {moment(at, now)} on."
            if at is not None
            else "Nobody knows when it fits."
        )
    for event in coming(
        judged.wanted, person=judged.person, policy=judged.policy, now=now
    ):
        missing -= event.free
        if missing <= 0:
            return f"It fits from {moment(event.at, now)} on, when others end."
    return "No end within 60 days makes it fit."


def seats(
    steps: Sequence[Step], decisions: Sequence[Decision], request: Request
) -> list[StepLink]:
    """Who decides, in order: filled seats with their names, the open one, and the empty ones."""
    rows: list[StepLink] = []
    for step in steps:
        vote = next(
            (
                d
                for d in decisions
                if d.step_id == step.pk and d.verdict in Decision.VOTES
            ),
            None,
        )
        label = step.words[:1].upper() + step.words[1:]
        if vote is not None and vote.by is not None:
            label = f"{label}: {vote.by_words} {Decision.Verdict(vote.verdict).label}"
        state = "done" if step.done_at else "now" if step.opened_at else "next"
        if vote is not None and vote.verdict == Decision.Verdict.REJECT:
            state = "rejected"
        rows.append(
            {
                "label": label,
                "state": state
                if request.state == State.WAITING or step.done_at
                else "next",
            }
        )
    return rows


def beside(request: Request, queue: Sequence[Request], *, now: datetime) -> Beside:
    """The queue at the left, with the next and the previous of it."""
    numbers = [other.pk for other in queue]
    at = numbers.index(request.pk) if request.pk in numbers else -1
    previous = numbers[at - 1] if at > 0 else None
    following = (
        numbers[at + 1]
        if 0 <= at < len(numbers) - 1
        else (numbers[0] if at < 0 and numbers else None)
    )
    return {
        "queue": [_in_line(other, request, now=now) for other in queue],
        "previous": reverse("approval", args=[previous]) if previous else "",
        "following": reverse("approval", args=[following]) if following else "",
    }


def _in_line(other: Request, shown: Request, *, now: datetime) -> InLine:
    return {
        "href": reverse("approval", args=[other.pk]),
        "current": other.pk == shown.pk,
        "team": other.team.name,
        "what": presenting.titled(other),
        "mark": triage.mark_of(other),
        "since": ago(other.created_at, now).removesuffix(" ago"),
    }


def changed_since(request: Request, version: int, *, now: datetime) -> list[str]:
    """What happened after the version that somebody looked at, in words, oldest first."""
    missed = max(request.version - version, 0)
    happened = [
        (
            d.at,
            f"{d.by_words} {d.get_verdict_display()} {ago(d.at, now)}"
            + (f": {d.reason}" if d.reason else ""),
        )
        for d in request.decisions.all()
    ]
    happened += talk.edited(request, now=now)
    changes = request.reroutings.select_related("policy")
    happened += [(changed.at, notices.rerouting_words(changed)) for changed in changes]
    said = [words for _, words in sorted(happened)[-missed:]] if missed else []
    if request.state in (State.WITHDRAWN, State.LAPSED):
        said.append(
            f"It was {State(request.state).words.lower()} {ago(request.updated_at, now)}."
        )
    return said


def _holdings(request: Request) -> Holdings:
    """What the team holds, held and asked for before, in one query."""
    held = Allocation.objects.filter(team=OuterRef("pk"))
    live = Q(ended_at=None, begun_at__isnull=False)
    here = live & Q(tenancy=request.tenancy_id, flavor=request.flavor_id)
    returned = Q(end_reason=Allocation.End.RETURNED)
    earlier = Request.objects.filter(
        team=OuterRef("pk"), created_at__lt=request.created_at
    )
    row = (
        Team.objects.order_by()
        .filter(pk=request.team_id)
        .values(
            live=total(
                held, Sum("gpus", filter=live & Q(flavor__isnull=False)), by="team"
            ),
            here=total(
                held, Sum("gpus", filter=here & Q(flavor__isnull=False)), by="team"
            ),
            usd_per_hour=total(
                held,
                Sum("usd_per_hour", filter=live & Q(charged_from__isnull=False)),
                by="team",
            ),
            last_end=total(held, Max("until", filter=here), by="team"),
            back=total(held, Count("pk", filter=returned), by="team"),
            expired=total(
                held,
                Count("pk", filter=Q(end_reason=Allocation.End.EXPIRED)),
                by="team",
            ),
            asked=total(earlier, Count("pk"), by="team"),
            granted=total(
                earlier, Count("pk", filter=Q(state=State.APPROVED)), by="team"
            ),
            rejected=total(
                earlier, Count("pk", filter=Q(state=State.REJECTED)), by="team"
            ),
        )
        .get()
    )
    return {**row}


def _judge(request: Request, count: int, *, now: datetime) -> Judged:
    if request.tenancy is not None:
        request.tenancy.team = (
            request.team
        )  # they are the same, and one of them is read already
    return judge(
        wanted_of(request, count, request.until_now),
        person=request.requester,
        now=now,
        own=request.hold_id,
        in_line=False,
    )


def _verdict(request: Request, judged: Judged | None, hindered: str) -> Verdict:
    """The answer as it stands now; the stored one once nothing can be decided any more.

    What is `hindered` from being granted is so in any number: no other one is proposed.
    """
    if judged is not None:
        stored = answer_of(judged.answer)
        sentence: str = (
            triage.who_decides(stored, request)
            if any(not rule["holds"] for rule in stored["rules"])
            else "Every rule holds now."
        )
        hint = None if hindered else presenting.hint_of(judged.remedies)
        words = (stored["route_size"] or {}).get("words", "")
        # The sentence says it, too, where that is why more people decide.
        detail = f"It counts as {words}." if words and words not in sentence else ""
        return verdict(stored, detail=detail, hint=hint) | {"sentence": sentence}
    evaluation = request.evaluations.last()
    assert evaluation is not None  # noqa: S101 - it is written together with the request
    told = verdict(evaluation.answer)
    return told | {"sentence": triage.in_the_past(evaluation.answer, request)}
