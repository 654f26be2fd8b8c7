"""What is said and changed while a request waits: edits, which void what was decided so far, and comments."""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from accounts.models import User
from allocations.budgets import balances as budgets
from approvals import notices
from approvals.decisions import deciders, escalation
from approvals.decisions.routing import open_step
from approvals.events import record_event
from approvals.models import Comment, Decision, Request, Revision
from approvals.renewals import renewing
from approvals.requests.actions import (
    answer_told,
    check,
    check_answer,
    content,
    judge,
    locked,
    move,
    settle_verdict,
)
from approvals.requests.wanted import Wanted
from approvals.revisions import Said, changes, in_words
from approvals.states import State
from audit import clock
from audit.events import Kind
from audit.log import together
from web.refusals import BadInput, Conflict, NoRight, Stale

LONGEST = 2_000


@transaction.atomic
def edit(
    request_id: int, wanted: Wanted, *, by: User, expected_version: int, now: datetime
) -> Request:
    """Ask for something else of the same offering instead: judged anew, with a route of its own and no votes.

    Raises NoRight for others than its requester, Conflict once decided, Stale, and BadInput for what changes nothing
    or nobody could approve; then nothing has changed.
    """
    request = (
        Request.objects.locked()
        .select_related(
            "team", "requester", "flavor__cluster", "tenancy", "renews", "hold"
        )
        .get(pk=request_id)
    )
    _check_turn(request, by=by, expected_version=expected_version)
    _check_same(request, wanted)
    check(wanted, by=by, now=now)
    wanted = locked(wanted.going_on_from(request.renews), person=by, now=now)
    now = clock.after_waiting(now)
    renewing.check(wanted, now=now, own=request.pk)
    renewing.check_no_more(request, wanted, now=now)
    judged = judge(wanted, person=by, now=now, own=request.hold_id)
    check_answer(judged.answer, reason=wanted.reason, field=wanted.spec.counted)
    fields = content(wanted, judged, now=now)
    after = Said(
        spec=fields["spec"],
        until=wanted.until,
        reason=fields["reason"],
        usd=fields["usd"],
        starts=wanted.starts,
    )
    found = changes(said_in(request), after, offering=wanted.offering, now=now)
    if not found:
        raise BadInput(
            "Nothing is different from what you asked for already.",
            code="nothing_changed",
        )
    others = notices.taking_part(request, but=by)
    budgets.settle(request.hold, parts={}, now=now, why="changed by who asked")
    move(
        request,
        now=now,
        tenancy=wanted.tenancy,
        turn=Request.Turn.APPROVER,
        content_version=request.content_version + 1,
        cut_to=None,
        cut_until=None,
        **fields,
    )
    voted = request.decisions.filter(
        verdict__in=Decision.VOTES, content_version__lt=request.content_version
    )
    void = "; earlier votes are void" if voted.exists() else ""
    notices.waits_no_more(request)
    lead = f"{by.name} changed it ({in_words(found)}){void}."
    with together():
        # What was asked stands before what came of it.
        words = [c.words for c in found]
        record_event(
            Kind.REQUEST_EDITED,
            request,
            actor=by.as_actor(),
            changed=words,
            **answer_told(judged),
        )
        passed = settle_verdict(request, judged, by=by, now=now, lead=lead)
        notices.changed(request, lead, to=_not_asked(others, request, now=now), now=now)
        escalation.write_down(request, passed)
    return request


def _check_same(request: Request, wanted: Wanted) -> None:
    if (wanted.team.pk, wanted.offering.key) != (request.team_id, request.offering):
        raise BadInput(
            "A request stays with its team and its offering. Ask for the other thing by itself.",
            code="another_offering",
            field="offering" if wanted.team.pk == request.team_id else "team",
        )
    here, there = request.tenancy, wanted.tenancy
    if here and there and here != there and here.cluster_id == there.cluster_id:
        raise BadInput(
            "A request stays in its namespace. Ask for the other namespace by itself.",
            code="another_namespace",
            field="namespace",
        )
    kept = wanted.flavor is not None and wanted.flavor.pk == request.flavor_id
    if request.renews_id is not None and not (
        kept and wanted.tenancy == request.tenancy
    ):
        raise BadInput(
            "These GPUs are kept longer, so they stay of their kind. Ask for others by themselves.",
            code="another_flavor",
            field="flavor",
        )
    if request.renews_id is not None and wanted.starts is not None:
        raise BadInput(
            "These GPUs are kept longer, so they go on without a break. Say only until when.",
            code="begins_at_once",
            field="starts_at",
        )


@transaction.atomic
def comment(request_id: int, *, by: User, text: str, now: datetime) -> Comment:
    """Say something about a request that one sees, waiting or decided; raises NoRight or BadInput.

    Who takes part in it is told. It changes nothing about the request, so no decision becomes stale by it.
    """
    text = text.strip()
    if not text or len(text) > LONGEST:
        raise BadInput(
            f"Write something, at most {LONGEST:,} characters.",
            code="required",
            field="text",
        )
    if not Request.objects.open_to(by, now).filter(pk=request_id).exists():
        raise NoRight("Who sees a request can say something about it.", code="not_seen")
    # A grant that has begun is waited for here: once the audit chain is locked, it would wait for this, too.
    rows = Request.objects.locked().select_related(
        "team", "requester", "flavor__cluster"
    )
    request = rows.get(pk=request_id)
    made = Comment.objects.create(request=request, by=by, text=text, at=now)
    notices.commented(request, text, by=by, now=now)
    record_event(Kind.REQUEST_COMMENTED, request, actor=by.as_actor())
    return made


def said_in(row: Request | Revision) -> Said:
    """What a request says now, or said in a version."""
    return Said(
        spec=row.spec,
        until=row.until,
        reason=row.reason,
        usd=row.usd,
        starts=row.starts_at,
    )


def _check_turn(request: Request, *, by: User, expected_version: int) -> None:
    if request.requester_id != by.pk:
        raise NoRight("Who asked can change it.", code="not_the_requester")
    if request.state != State.WAITING:
        raise Conflict(
            f"The request is already {State(request.state).words.lower()}.",
            code="already_decided",
        )
    if request.version != expected_version:
        raise Stale(
            "The request has changed since you looked at it. Look again before you change it.",
            code="stale",
        )


def _not_asked(users: Iterable[User], request: Request, *, now: datetime) -> list[User]:
    """Those of these people whom the new route has not told yet."""
    step = open_step(request) if request.state == State.WAITING else None
    asked = (
        {user.pk for user in deciders.candidates(step, request, now=now)}
        if step
        else set()
    )
    return [user for user in users if user.pk not in asked]
