"""What changes about requests: asked, previewed, withdrawn, answered.

Locks are taken in one order: request, budgets, person, flavor, subscription, tenancy, audit chain.
"""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.db import transaction

from accounts.models import Membership, User
from accounts.roles import Permission
from allocations.bookings.actions import MAX_AHEAD
from allocations.bookings.levels import Level, combined, earliest
from allocations.bookings.promised import levels_of
from allocations.bookings.quotas import rooms_of
from allocations.budgets import balances as budgets
from allocations.budgets import money
from allocations.models import Hold
from approvals import notices, webhooks
from approvals.decisions import escalation
from approvals.decisions.routing import go_on, open_route
from approvals.events import record_event
from approvals.fulfilment.actions import carry_out
from approvals.judging import waiting_line as line
from approvals.judging.inputs import (
    answer_of,
    coming,
    gather,
    inputs_of,
    policy_in_force,
    remedies_shown,
)
from approvals.models import Decision, Evaluation, Request, Revision
from approvals.renewals import renewing
from approvals.requests import places
from approvals.requests.wanted import Wanted
from approvals.states import State, may_move
from audit import clock
from audit.actors import POLICY, PORTAL, Actor
from audit.events import Kind
from audit.log import together
from capacity.reservations.places import quota_place
from capacity.subscriptions.following import as_shared, lock_quotas, lock_quotas_of
from catalogue.notebook import NotebookSpec
from catalogue.reservation import ReservationSpec
from fleet.models import Flavor
from notebooks.servers.actions import lock_person
from notices.channels.events import WebhookEvent
from policy.document import Policy, Thresholds
from policy.evaluation import Ask, Outcome, Standing, evaluate, nearest_automatic
from policy.evaluation import Evaluation as Answer
from policy.models import PolicyVersion
from policy.remedies import Remedy, remedies_of
from policy.rules import measured_use
from reconciling import failpoints
from web.fields import MOST_GPUS
from web.refusals import BadInput, Conflict, NoRight, Stale

LEAST_REASON = 10
# The largest number of each counted field, as its spec says.
MOST = defaultdict(
    lambda: MOST_GPUS, {"gib": 65_536, "thousand_tokens_per_minute": 10_000}
)
MOST_UNITS = max(MOST.values())
FURTHEST = timedelta(days=400)
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """An ask with the policy's answer and what it looked at."""

    wanted: Wanted
    person: User
    ask: Ask
    standing: Standing
    answer: Answer
    version: PolicyVersion
    policy: Policy

    @property
    def nearest(self) -> Ask | None:
        """The nearest ask that would be automatic now."""
        return nearest_automatic(self.ask, self.standing, self.policy)

    @cached_property
    def remedies(self) -> tuple[Remedy, ...]:
        """What would make it automatic, as far as is known; empty when it is. Asks the database."""
        if self.answer.outcome is Outcome.AUTOMATIC:
            return ()
        events = coming(
            self.wanted, person=self.person, policy=self.policy, now=self.standing.now
        )
        return remedies_of(self.ask, replace(self.standing, coming=events), self.policy)

    @property
    def later(self) -> datetime | None:
        """From when the same ask would be automatic, as far as is known; asks the database."""
        return next(
            (remedy.at for remedy in self.remedies if remedy.code == "wait"), None
        )

    @property
    def fits_from(self) -> datetime | None:
        """From when all of it is free for as long, where it is not in its own time; None where nobody knows.

        Asks the database.
        """
        wanted, now = self.wanted, self.standing.now
        is_full = any(
            rule.code in ("free", "quota") and not rule.holds
            for rule in self.answer.rules
        )
        if not is_full or not wanted.offering.may_begin_later or wanted.renews:
            return None
        begins, known = self.ask.begins(now), self._levels()
        if not known:
            return None
        return earliest(
            known,
            gpus=wanted.count if wanted.flavor is None else wanted.gpus,
            length=wanted.setting.terms.kept_until(wanted.until) - begins,
            # On the whole minute, as forms have it.
            since=begins.replace(second=0, microsecond=0) + MINUTE,
            latest=now + MAX_AHEAD,
        )

    def _levels(self) -> Sequence[Level]:
        """How many GPUs are free from when on, or machines of what is reserved."""
        wanted, now = self.wanted, self.standing.now
        if wanted.flavor is not None:
            return levels_of(wanted.flavor, now=now)
        rooms = rooms_of(wanted.spec.model_dump(mode="json"), now=now)
        return combined([one.levels for one in rooms], by=min)

    @property
    def limits(self) -> Thresholds:
        """The numbers of the policy that hold for this ask."""
        ask = self.ask
        return self.policy.thresholds_for(
            ask.offering, ask.environment, ask.flavor, ask.tier
        )

    @property
    def use_percent(self) -> Decimal | None:
        """Percent of what the team holds of this kind that is in use; None while it is not measured."""
        return measured_use(self.standing, self.limits)


def judge(
    wanted: Wanted,
    *,
    person: User,
    now: datetime,
    own: int = 0,
    in_line: bool = True,
) -> Judged:
    """What the policy says to a person's ask now; writes nothing. Preview and stored verdict both come from here.

    `own` is the hold of the request being judged again. What is automatic stays so only beside the older asks that
    would be automatic, too, unless `in_line` is False: people decide in whatever order they like. Raises BadInput for
    an ask that makes no sense whatever the policy says.
    """
    check_sense(
        count=wanted.count,
        starts=wanted.starts,
        until=wanted.until,
        now=now,
        field=wanted.spec.counted,
    )
    version, policy = policy_in_force(now)
    if wanted.flavor is not None:
        wanted = replace(wanted, flavor=as_shared(wanted.flavor))
    standing = gather(wanted, person=person, policy=policy, now=now, own=own)
    ask = wanted.ask()
    answer = evaluate(ask, standing, policy)
    if in_line and answer.outcome is Outcome.AUTOMATIC:
        standing = line.behind_others(
            standing, wanted, person=person, policy=policy, now=now, own=own
        )
        answer = evaluate(ask, standing, policy)
    return Judged(
        wanted=wanted,
        person=person,
        ask=ask,
        standing=standing,
        answer=answer,
        version=version,
        policy=policy,
    )


def check(wanted: Wanted, *, by: User, now: datetime) -> None:
    """Refuse what no policy could make sense of; raises NoRight, BadInput or Conflict."""
    if wanted.team.pk not in by.team_ids:
        _check_may_ask_for_any_team(wanted, by=by)
    check_grantable(wanted, now=now)


def _check_may_ask_for_any_team(wanted: Wanted, *, by: User) -> None:
    """Refuse what somebody asks for a team that they are not of; raises NoRight."""
    if not by.may(Permission.ONBOARD_ANY_GROUP):
        raise NoRight(
            "Members of the team and platform leads ask for it.",
            code="not_of_the_team",
            # Whoever renews says no team.
            field="" if wanted.renews is not None else "team",
        )


def check_grantable(wanted: Wanted, *, now: datetime) -> None:
    """Refuse what nobody is granted as things stand, whoever asks for it; raises BadInput or Conflict."""
    renewing.check_not_given_back(wanted)
    places.check(wanted)
    if not wanted.setting.enabled:
        raise Conflict(
            f"{wanted.offering.name} is not offered here now.",
            code="offering_off",
            field="offering",
        )
    flavor = wanted.flavor
    if flavor is not None and (
        wanted.tenancy is None or flavor.cluster_id != wanted.tenancy.cluster_id
    ):
        raise BadInput(
            "The team is not on the cluster that has this kind of GPU.",
            code="not_there",
            field="flavor",
        )
    if flavor is not None:
        _check_offered(flavor, is_renewal=wanted.renews is not None)
    elif wanted.tenancy is not None and not wanted.tenancy.cluster.enabled:
        raise Conflict(
            f"{wanted.tenancy.cluster.why_closed}. Choose another.",
            code="cluster_off",
            field=wanted.spec.counted,
        )
    check_sense(
        count=wanted.count,
        starts=wanted.starts,
        until=wanted.until,
        now=now,
        field=wanted.spec.counted,
    )


def _check_offered(flavor: Flavor, *, is_renewal: bool) -> None:
    """Refuse GPUs that are asked for no more; what is held of them stays, and is not kept longer."""
    if not flavor.why_closed:
        return
    what_to_do = (
        "What is held there stays until its end, and is not kept longer."
        if is_renewal
        else "Choose another."
    )
    raise Conflict(
        f"{flavor.why_closed}. {what_to_do}", code="not_offered", field="flavor"
    )


def check_sense(
    *,
    count: int,
    starts: datetime | None = None,
    until: datetime,
    now: datetime,
    field: str = "gpus",
) -> None:
    """Refuse numbers that no policy should have to look at; raises BadInput."""
    if not 1 <= count <= MOST[field]:
        what = "GPUs" if field == "gpus" else "units"
        raise BadInput(
            f"Write a whole number of {what} from 1 to {MOST[field]:,}.",
            code="out_of_range",
            field=field,
        )
    if until <= now:
        raise BadInput(
            "The end must lie in the future.", code="in_the_past", field="until"
        )
    if until - now > FURTHEST:
        raise BadInput(
            f"The end lies too far ahead: at most {FURTHEST.days} days.",
            code="too_far_ahead",
            field="until",
        )
    if starts is not None and starts >= until:
        raise BadInput(
            "It has to end after it begins.", code="begins_after_its_end", field="until"
        )


def check_answer(answer_: Answer, *, reason: str, field: str = "gpus") -> None:
    """Refuse what nobody could approve as it stands, and what people decide without a reason; raises BadInput."""
    blocking = next((rule for rule in answer_.rules if rule.blocks), None)
    if blocking is not None:
        at = "until" if blocking.code == "days" else field
        raise BadInput(
            f"{blocking.text}: {blocking.limit}.",
            code=f"impossible_{blocking.code}",
            field=at,
        )
    if answer_.outcome is Outcome.PEOPLE and len(reason.strip()) < LEAST_REASON:
        length = f", in at least {LEAST_REASON} characters" if reason.strip() else ""
        raise BadInput(
            f"A person decides this. Say in a sentence what it is for{length}.",
            code="reason_needed",
            field="reason",
        )


@transaction.atomic
def submit(wanted: Wanted, *, by: User, now: datetime) -> Request:
    """Ask for something: request, evaluation, verdict or open step, money set aside and audit event in one transaction.

    Raises Refused, with nothing saved, for what nobody could approve as it stands.
    """
    return submit_within(wanted, by=by, now=now)


def submit_within(wanted: Wanted, *, by: User, now: datetime) -> Request:
    """The same in the caller's transaction, which must be rolled back with whatever this raises."""
    check(wanted, by=by, now=now)
    wanted = locked(wanted, person=by, now=now)
    now = clock.after_waiting(now)
    renewing.check(wanted, now=now)
    judged = judge(wanted, person=by, now=now)
    check_answer(judged.answer, reason=wanted.reason, field=wanted.spec.counted)
    with together():
        request = Request.objects.create(
            team=wanted.team,
            tenancy=wanted.tenancy,
            requester=by,
            created_at=now,
            hold=Hold.objects.create(team=wanted.team),
            renews_id=wanted.renews,
            **content(wanted, judged, now=now),
        )
        # What was asked stands before what came of it.
        record_event(
            Kind.REQUEST_SUBMITTED,
            request,
            actor=by.as_actor(),
            **answer_told(judged),
        )
        passed = settle_verdict(request, judged, by=by, now=now)
        escalation.write_down(request, passed)
    failpoints.reach("request.submit")
    return request


def content(wanted: Wanted, judged: Judged, *, now: datetime) -> dict[str, Any]:
    """The fields of a request that say what is asked, as its version now has them."""
    return {
        "offering": wanted.offering.key,
        "spec": wanted.spec.model_dump(mode="json"),
        "flavor": wanted.flavor,
        "count": wanted.count,
        "gpus": wanted.gpus,
        "until": wanted.until,
        "starts_at": wanted.starts,
        "purpose": wanted.purpose,
        "reason": wanted.reason.strip(),
        "usd": judged.answer.usd,
        "formula": wanted.size.told,
        "asked_at": now,
        "updated_at": now,
        "answer_by": None,
        "not_granted_at": None,
        "not_granted_because": "",
        "routed_by": judged.version,
        "lapses_at": min(wanted.until, now + timedelta(days=judged.policy.lapse_days)),
    }


def settle_verdict(
    request: Request, judged: Judged, *, by: User, now: datetime, lead: str = ""
) -> list[escalation.Done]:
    """Store what is asked in this version and the answer, then grant it or open its route and tell of it.

    Nothing is set aside for it yet, or any more. Returns what is left for `escalation.write_down`.
    """
    Revision.objects.create(
        request=request,
        number=request.content_version,
        spec=request.spec,
        count=request.count,
        until=request.until,
        starts_at=request.starts_at,
        reason=request.reason,
        usd=request.usd,
        by=by,
        at=now,
    )
    save_evaluation(request, judged, now=now)
    if judged.answer.outcome is Outcome.AUTOMATIC:
        _approve_by_policy(request, judged, now=now)
        return []
    step = open_route(request, judged.answer, now=now)[0]
    # The money is set aside while people decide, if it is there.
    if all(
        rule.holds
        for rule in judged.answer.rules
        if rule.code in ("budget", "budget_hours")
    ):
        _set_aside(request, judged, now=now)
    done = escalation.begin(request, step, lead=lead, now=now)
    notices.seats_empty(request, now=now)
    webhooks.tell_of(WebhookEvent.REQUEST_WAITING, request, now=now)
    return done


def set_less_aside(
    request: Request, judged: Judged, *, now: datetime, why: str = "approved for less"
) -> None:
    """Set aside only what a waiting request would cost as people, or what is held, have left it; the rest is free.

    Raises Conflict where the money for what is left is not there.
    """
    budgets.settle(request.hold, parts={}, now=now, why=why)
    _set_aside(request, judged, now=now)


def _set_aside(request: Request, judged: Judged, *, now: datetime) -> None:
    """Set aside what a waiting request would cost; a renewal's part until the present end is set aside already."""
    parts = parts_of(request, judged, now=renewing.hold_from(request, now=now))
    if request.renews is None:
        budgets.reserve(
            request.hold, parts=parts, now=now, locked=judged.wanted.budgets
        )
        return
    # Where the price has changed, what is let go at the grant may be what makes it fit: then nothing is set aside yet.
    with suppress(Conflict), transaction.atomic():
        budgets.reserve(
            request.hold, parts=parts, now=now, locked=judged.wanted.budgets
        )


@transaction.atomic
def withdraw(request_id: int, *, by: User, now: datetime) -> Request:
    """Take a request back while it waits; raises NoRight for others than its requester, Conflict once decided.

    Of a requester who may not ask for it any more, anybody of the team does: it is granted to nobody.
    """
    request = (
        Request.objects.locked()
        .select_related("team", "requester", "flavor__cluster")
        .get(pk=request_id)
    )
    if not may_withdraw(request, by):
        raise NoRight("Who asked can withdraw.", code="not_the_requester")
    why = ""
    if request.requester_id != by.pk:
        why = f"{by.name} withdrew it: {request.why_orphaned}."
    close(request, State.WITHDRAWN, now=now, withdrawn_because=why)
    notices.withdrawn(request, why or f"{by.name} took it back.", now=now)
    record_event(Kind.REQUEST_WITHDRAWN, request, actor=by.as_actor())
    return request


def may_withdraw(request: Request, by: User) -> bool:
    """Whether this person may take a waiting request back: who asked, or in place of who left anybody of the team."""
    if request.requester_id == by.pk:
        return True
    return request.team_id in by.team_ids and bool(request.why_orphaned)


@transaction.atomic
def lapse(request_id: int, *, now: datetime) -> bool:
    """End what nobody decided, or whose question nobody answered, in time; its money goes. False for no such one."""
    locked = Request.objects.locked()
    request = locked.select_related("team", "requester", "flavor__cluster").get(
        pk=request_id
    )
    if request.state != State.WAITING or request.lapses > now:
        return False
    close(request, State.LAPSED, now=now)
    notices.lapsed(request, now=now)
    record_event(Kind.REQUEST_LAPSED, request, actor=PORTAL)
    return True


@transaction.atomic
def answer(request_id: int, *, by: User, text: str, now: datetime) -> Request:
    """Answer an approver's question, which hands the turn back; raises NoRight, Conflict or BadInput."""
    request = (
        Request.objects.locked()
        .select_related("team", "requester", "flavor__cluster")
        .get(pk=request_id)
    )
    if request.requester_id != by.pk:
        raise NoRight("Who asked can answer.", code="not_the_requester")
    if request.state != State.WAITING or request.turn != Request.Turn.REQUESTER:
        raise Conflict("There is no open question.", code="nothing_asked")
    if not text.strip():
        raise BadInput("Write an answer.", code="required", field="text")
    Decision.objects.create(
        request=request,
        requester_id=request.requester_id,
        by=by,
        content_version=request.content_version,
        verdict=Decision.Verdict.ANSWER,
        reason=text.strip(),
        at=now,
    )
    go_on(request, now=now)
    move(request, now=now, turn=Request.Turn.APPROVER, answer_by=None)
    notices.answered(request, text.strip(), now=now)
    record_event(Kind.REQUEST_ANSWERED, request, actor=by.as_actor())
    return request


def close(
    request: Request, state: State, *, now: datetime, withdrawn_because: str = ""
) -> None:
    """End a locked, waiting request without granting it, and let its money go; raises Conflict once decided."""
    if request.state != State.WAITING:
        raise Conflict(
            f"The request is already {State(request.state).words.lower()}.",
            code="already_decided",
        )
    move(
        request,
        now=now,
        state=state,
        decided_at=now,
        withdrawn_because=withdrawn_because,
    )
    notices.waits_no_more(request)
    webhooks.tell_of(webhooks.CLOSED[state], request, now=now)
    budgets.settle(request.hold, parts={}, now=now, why=state.words.lower())


def move(request: Request, *, now: datetime, **fields: object) -> None:
    """Save changed fields of a locked request and count its version up, from the state and version it was read in.

    Raises Conflict for a move that the table of states does not have, Stale when the row is another one by now.
    """
    before, after = State(request.state), State(str(fields.get("state", request.state)))
    if not may_move(before, after):
        raise Conflict(
            f"The request is already {before.words.lower()}.", code="already_decided"
        )
    changed = {**fields, "version": request.version + 1, "updated_at": now}
    rows = Request.objects.filter(pk=request.pk, state=before, version=request.version)
    if not rows.update(**changed):
        raise Stale(
            "The request has changed since you looked at it. Look again.", code="stale"
        )
    for name, value in changed.items():
        setattr(request, name, value)


def save_evaluation(request: Request, judged: Judged, *, now: datetime) -> Evaluation:
    """Store an answer with its inputs for ever."""
    inputs, digest = inputs_of(judged.ask, judged.standing, judged.version)
    return Evaluation.objects.create(
        request=request,
        policy=judged.version,
        content_version=request.content_version,
        at=now,
        outcome=judged.answer.outcome,
        answer=answer_of(judged.answer),
        remedies=remedies_shown(judged.remedies),
        inputs=inputs,
        input_hash=digest,
    )


def grant(
    request: Request, judged: Judged, *, count: int, actor: Actor, now: datetime
) -> None:
    """Set the money aside and begin what was asked for, as the last step of a locked request; raises Conflict."""
    notices.waits_no_more(request)
    budgets.settle(request.hold, parts={}, now=now, why="judged again")
    _begin(request, judged, count=count, actor=actor, now=now)


def _begin(
    request: Request, judged: Judged, *, count: int, actor: Actor, now: datetime
) -> None:
    """The same for a request that has nothing set aside."""
    gpus = count * judged.ask.gpus_each
    # Issued at the price that was judged: the one under the lock.
    request.flavor = judged.wanted.flavor
    handed_over = renewing.hand_over(request, gpus=gpus, actor=actor, now=now)
    parts = parts_of(request, judged, now=now)
    budgets.reserve(request.hold, parts=parts, now=now, locked=judged.wanted.budgets)
    move(
        request,
        now=now,
        state=State.APPROVED,
        approved_count=count,
        approved_until=judged.wanted.until,
        decided_at=now,
    )
    webhooks.tell_of(WebhookEvent.REQUEST_APPROVED, request, now=now)
    carry_out(
        request,
        gpus=gpus,
        usd_per_hour=judged.ask.usd_per_hour,
        terms=judged.wanted.setting.terms,
        task_hours=judged.limits.carried_out_hours,
        actor=actor,
        now=now,
        handed_over=handed_over,
    )


def parts_of(
    request: Request, judged: Judged, *, now: datetime
) -> dict[date, money.Amount]:
    """What the judged ask costs by month from now on, or from when it begins."""
    ask = judged.ask
    return money.by_month(
        gpus=ask.gpus,
        usd_per_hour=ask.usd_per_hour,
        start=ask.begins(now),
        end=ask.until,
    )


def locked(
    wanted: Wanted,
    *,
    now: datetime,
    person: User | None = None,
    owner: User | None = None,
) -> Wanted:
    """Lock the team's budgets, the flavor and its quotas; the same ask with the flavor as it is under the lock.

    With `person`, whose window an automatic answer counts in, they are locked in between: they may ask for two teams.
    So is the `owner` of a notebook that people grant: how many of theirs run is counted.
    Raises NoRight for who was taken out of the team while this waited, Conflict for what is not offered any more.
    """
    months = money.by_month(
        gpus=1, usd_per_hour=Decimal(1), start=now, end=wanted.until
    )
    wanted = replace(wanted, budgets=budgets.lock_all(wanted.team, sorted(months)))
    if person is not None:
        lock_person(person.pk)
        if not Membership.objects.filter(team=wanted.team, user=person).exists():
            _check_may_ask_for_any_team(wanted, by=person)
    elif owner is not None and isinstance(wanted.spec, NotebookSpec):
        lock_person(owner.pk)
    if isinstance(wanted.spec, ReservationSpec):
        lock_quotas_of(quota_place(wanted.spec.place())[0])
    if wanted.flavor is None:
        return wanted
    flavors = Flavor.objects.select_for_update(
        of=("self",), no_key=True
    ).select_related("cluster")
    flavor = flavors.filter(pk=wanted.flavor.pk).first()
    if flavor is None:
        raise Conflict(
            "This kind of GPU was removed a moment ago. Choose another.",
            code="not_offered",
            field="flavor",
        )
    _check_offered(flavor, is_renewal=wanted.renews is not None)
    if flavor.azure_nodes is not None:
        lock_quotas(flavor.cluster)
    return wanted.on(flavor)


def _approve_by_policy(request: Request, judged: Judged, *, now: datetime) -> None:
    reason = f"{judged.version}: every rule holds."
    Decision.objects.create(
        request=request,
        requester_id=request.requester_id,
        content_version=request.content_version,
        verdict=Decision.Verdict.APPROVE,
        count=request.count,
        until=judged.wanted.until,
        usd=judged.answer.usd,
        at=now,
        reason=reason,
    )
    with together():
        record_policy_approved(request, judged, count=request.count, reason=reason)
        _begin(request, judged, count=request.count, actor=POLICY, now=now)
    notices.decided(
        request, "approved", by=None, reason=judged.answer.sentence, now=now
    )


def answer_told(judged: Judged) -> dict[str, Any]:
    """What an event says of an answer: by which version of the policy, the rules that do not hold, and the price."""
    return {
        "answer": judged.answer.outcome.value,
        "policy": judged.version.number,
        "rules_not_met": [rule.code for rule in judged.answer.rules if not rule.holds],
        "usd": str(judged.answer.usd),
    }


def record_policy_approved(
    request: Request, judged: Judged, *, count: int, reason: str
) -> None:
    """Append that the policy has approved so many of a request's units, and why, before what comes of it.

    Call it in the block of `together` in which that comes, as the audit chain is locked after everything else.
    """
    record_event(
        Kind.REQUEST_APPROVED,
        request,
        actor=POLICY,
        what=request.name(count),
        count=count,
        asked=request.count,
        until=judged.wanted.until.isoformat(),
        asked_until=request.until.isoformat(),
        policy=judged.version.number,
        usd=str(judged.answer.usd),
        reason=reason,
    )
