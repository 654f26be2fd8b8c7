"""The line of asks that wait: an older one that the policy would approve by now is not overtaken by a new one.

Where there is not room for all of them, what those before an ask need counts as not free any more, and as granted to
their team and their person.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from django.db.models import OuterRef, Q, QuerySet, Subquery

from accounts.models import User
from allocations.budgets.money import Left, month_of, months_between
from approvals.judging.asked import wanted_of
from approvals.judging.inputs import gather, pool_of, stored_in
from approvals.models import Evaluation, Request
from approvals.requests.prices import usd_of
from approvals.requests.wanted import Wanted
from approvals.states import State
from policy.document import Policy
from policy.evaluation import Ask, Standing, is_automatic
from web.refusals import Refused

# How many of those that wait are read at once, and how many of them are judged in full.
MAX_READ = 500
MAX_AHEAD = 20
PLENTY = Left(Decimal(10**9), Decimal(10**9))


def waiting(now: datetime) -> QuerySet[Request]:
    """What waits for its approvers, oldest first, with the inputs of its newest answer.

    What could not be granted a moment ago is left out: it keeps nobody waiting.
    """
    answers = Evaluation.objects.filter(
        request=OuterRef("pk"), content_version=OuterRef("content_version")
    )
    newest = answers.order_by("-id")
    return (
        Request.objects.not_tried_lately(now)
        .filter(state=State.WAITING, turn=Request.Turn.APPROVER)
        .annotate(
            inputs=Subquery(newest.values("inputs")[:1]),
            judged_by=Subquery(newest.values("policy")[:1]),
        )
        .for_judging()
        .order_by("created_at", "pk")
    )


def hopeful(
    rows: Iterable[Request], policy: Policy, *, now: datetime
) -> Iterator[Request]:
    """Those that the policy approves if the windows, the use and the money allow it; nothing is asked of the database.

    Most of what waits is too large or too long for the policy, whatever comes free.
    """
    for row in rows:
        ask, standing = _hoped_for(row, now=now)
        # Nothing is granted to who left: they keep nobody waiting.
        if (
            row.until_now > now
            and row.requester.is_active
            and is_automatic(ask, standing, policy)
        ):
            yield row


def _hoped_for(row: Request, *, now: datetime) -> tuple[Ask, Standing]:
    ask, standing = stored_in(row.inputs)  # type: ignore[attr-defined]
    months = months_between(month_of(now), month_of(row.until_now))
    is_later = ask.begins(now) > now
    pool = pool_of(row.flavor, is_later=is_later)
    if is_later:
        # What is free by then, the levels say; here it is enough that there can be as many.
        pool["free_gpus"] = pool["total_gpus"]
    hoped = replace(
        standing,
        now=now,
        held_gpus=0,
        held_elsewhere_gpus=0,
        recent_team_gpus=0,
        recent_person_gpus=0,
        recent_team_usd=None,
        recent_person_usd=None,
        budget=dict.fromkeys(months, PLENTY),
        booked_gpus=0,
        levels=(),
        **pool,
    )
    return replace(
        ask, asked_at=row.asked_at, tier=row.team.tier, decided_by_people=False
    ), hoped


def behind_others(
    standing: Standing,
    wanted: Wanted,
    *,
    person: User,
    policy: Policy,
    now: datetime,
    own: int = 0,
) -> Standing:
    """What is left for an automatic ask beside the older ones for the same GPUs that the policy would approve by now.

    Where there is room for them, too, nothing is taken off; no more of them are judged in full than that needs.
    `own` is the hold of an ask that waits itself: only those that were made before it are older.
    """
    if wanted.flavor is None or wanted.renews is not None:
        return standing
    rows = waiting(now).filter(flavor=wanted.flavor, renews=None)
    if own:
        mine = Request.objects.get(hold=own)
        rows = rows.filter(
            Q(created_at__lt=mine.created_at)
            | Q(created_at=mine.created_at, pk__lt=mine.pk)
        )
    read = list(rows[:MAX_READ])
    for row in read:
        # The locked row of the flavor is the one that is true.
        row.flavor = wanted.flavor
    may_go_first = list(hopeful(read, policy, now=now))[:MAX_AHEAD]
    ask, ahead = wanted.ask(), list[Request]()

    def beside(others: Iterable[Request]) -> Standing:
        return _beside(standing, others, team=wanted.team.pk, person=person.pk)

    for number, row in enumerate(may_go_first):
        # What is ahead only ever leaves less. Judging one takes six queries or more, while the budget is locked.
        if is_automatic(ask, beside([*ahead, *may_go_first[number:]]), policy):
            return standing
        if approves(row, row.count_now, row.until_now, policy, beside=ahead, now=now):
            ahead.append(row)
    left = beside(ahead)
    return standing if is_automatic(ask, left, policy) else left


def approves(
    row: Request,
    count: int,
    until: datetime,
    policy: Policy,
    *,
    beside: Iterable[Request] = (),
    now: datetime,
) -> bool:
    """Whether the policy would approve so many units of what waits until an end, beside others; locks nothing."""
    try:
        wanted = wanted_of(row, count, until)
        standing = gather(
            wanted,
            person=row.requester,
            policy=policy,
            now=now,
            own=row.hold_id,
            is_routed=False,
        )
    except Refused:
        return False
    standing = _beside(standing, beside, team=row.team_id, person=row.requester_id)
    return is_automatic(wanted.ask(), standing, policy)


def _beside(
    standing: Standing, ahead: Iterable[Request], *, team: int, person: int
) -> Standing:
    for row in ahead:
        of_team, of_person = row.team_id == team, row.requester_id == person
        gpus, cost = row.gpus_now, usd_of(row)
        standing = replace(
            standing,
            free_gpus=None if standing.free_gpus is None else standing.free_gpus - gpus,
            ready_gpus=None
            if standing.ready_gpus is None
            else max(0, standing.ready_gpus - gpus),
            recent_team_gpus=standing.recent_team_gpus + gpus * of_team,
            recent_person_gpus=standing.recent_person_gpus + gpus * of_person,
            recent_team_usd=_plus(standing.recent_team_usd, cost * of_team),
            recent_person_usd=_plus(standing.recent_person_usd, cost * of_person),
        )
    return standing


def _plus(known: Decimal | None, usd: Decimal) -> Decimal | None:
    return None if known is None else known + usd
