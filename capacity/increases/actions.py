"""What changes about requests for more quota: platform leads ask, workers send, Azure answers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from accounts.models import User
from accounts.roles import Permission
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record
from capacity.connection import is_connected
from capacity.increases.enqueue import enqueue_on_commit
from capacity.increases.models import QuotaIncrease
from capacity.increases.notices import tell_answered
from capacity.increases.quotas import quota_of
from capacity.increases.sizing import max_limit
from capacity.increases.states import State
from capacity.metering.models import Meter
from capacity.subscriptions.models import FamilyQuota, Subscription
from web.fields import LONGEST_TEXT
from web.refusals import BadInput, Conflict, NoRight

LONGEST_REASON = LONGEST_TEXT // 2
EVENTS = {
    State.GRANTED: Kind.QUOTA_INCREASE_GRANTED,
    State.REFUSED: Kind.QUOTA_INCREASE_REFUSED,
    State.FAILED: Kind.QUOTA_INCREASE_FAILED,
}


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What a platform lead asks for: another limit in vCPUs, and why."""

    limit: int
    reason: str


def require_lead(user: User) -> None:
    """Raises NoRight for who does not manage clusters."""
    if not user.may(Permission.MANAGE_CLUSTERS):
        raise NoRight(
            "Platform leads ask Azure for more quota.", code="not_a_platform_lead"
        )


@transaction.atomic
def ask(meter_id: int, asked: Ask, *, by: User, now: datetime) -> QuotaIncrease:
    """Keep a request for a higher limit, which a worker sends at once; the same once more is the same request.

    Raises NoRight, BadInput naming the field, and Conflict where Azure is not connected, the limit is no quota of
    Azure's, or a request for another limit of it is open.
    """
    require_lead(by)
    # Of two leads who ask at once, the second sees what the first asked for.
    meter = Meter.objects.select_for_update(no_key=True).get(pk=meter_id)
    quota = quota_of(meter)
    if quota is None:
        raise Conflict(
            "This limit is no quota of Azure's: nobody there can raise it.",
            code="not_a_quota",
        )
    if not is_connected():
        raise Conflict("The portal is not connected to Azure.", code="not_connected")
    rows = QuotaIncrease.objects.of_quota(
        quota.subscription_id, quota.region, quota.name
    )
    open_one = rows.in_progress().first()
    if open_one is not None:
        return _same(open_one, asked)
    _check(asked, quota)
    made = QuotaIncrease.objects.create(
        subscription=quota.subscription_id,
        region=quota.region,
        family=quota.name,
        title=meter.title,
        limit=asked.limit,
        limit_before=quota.limit,
        reason=asked.reason.strip(),
        asked_by=by,
        asked_at=now,
        requeue_at=now,
    )
    _append(Kind.QUOTA_INCREASE_ASKED, made, actor=by.as_actor(), reason=made.reason)
    enqueue_on_commit(made.pk)
    return made


@transaction.atomic
def withdraw(increase_id: int, *, by: User, now: datetime) -> QuotaIncrease:
    """Withdraw a request of which Azure has nothing yet; harmless to repeat.

    Raises NoRight, and Conflict once Azure has it, may have it, or has answered it.
    """
    require_lead(by)
    row = _locked(increase_id)
    if row.state == State.WITHDRAWN:
        return row
    if not row.is_open:
        raise Conflict(
            "Azure has answered this request already.", code="increase_answered"
        )
    if not row.may_be_withdrawn:
        raise Conflict(
            "Azure has this request, or may have it: it cannot be withdrawn from here any more.",
            code="increase_sent",
        )
    row.state, row.answered_at = State.WITHDRAWN, now
    row.save(update_fields=["state", "answered_at"])
    _append(Kind.QUOTA_INCREASE_WITHDRAWN, row, actor=by.as_actor())
    return row


@transaction.atomic
def sent(increase_id: int, *, azure_id: str, message: str, now: datetime) -> None:
    """Write down that Azure has the request, under which number."""
    row = _locked(increase_id)
    if row.state != State.NEW:
        return
    row.state, row.azure_id, row.sent_at = State.SENT, azure_id, now
    row.message, row.sending_since = message[:600], None
    row.save(update_fields=["state", "azure_id", "sent_at", "message", "sending_since"])
    _append(Kind.QUOTA_INCREASE_SENT, row, actor=PORTAL, azure_id=azure_id)


@transaction.atomic
def answered(increase_id: int, state: State, *, message: str, now: datetime) -> None:
    """Write down what became of an open request, and tell who asked and the platform leads, once.

    What was granted has the subscription read again, for the chain and what is free to follow it.
    """
    row = _locked(increase_id)
    if row.is_open:
        row.save(update_fields=_answer(row, state, message, now))
        if state is State.GRANTED:
            Subscription.objects.filter(pk=row.subscription).update(next_look_at=now)


def fail_parked(row: QuotaIncrease, now: datetime) -> list[str]:
    """Give up a locked request that ended every worker which tried it; the fields that its caller saves."""
    return _answer(
        row, State.FAILED, "Each try ended the portal's worker: its logs tell why.", now
    )


def _answer(row: QuotaIncrease, state: State, message: str, now: datetime) -> list[str]:
    row.state, row.answered_at, row.sending_since = state, now, None
    row.message = message[:600]
    _append(EVENTS[state], row, actor=PORTAL, message=row.message)
    tell_answered(row, now=now)
    return ["state", "answered_at", "sending_since", "message"]


def _same(row: QuotaIncrease, asked: Ask) -> QuotaIncrease:
    if row.limit == asked.limit:
        return row
    raise Conflict(
        f"{row.limit:,} vCPUs were asked for already, and Azure decides on one request at a time.",
        code="increase_open",
        field="limit",
    )


def _check(asked: Ask, quota: FamilyQuota) -> None:
    most = max_limit(quota.limit)
    if asked.limit <= quota.limit:
        raise BadInput(
            f"The limit is {quota.limit:,} vCPUs now: ask for more than that.",
            code="not_more_than_now",
            field="limit",
        )
    if asked.limit > most:
        raise BadInput(
            f"Ask for {most:,} vCPUs at most.", code="increase_too_large", field="limit"
        )
    if not asked.reason.strip():
        raise BadInput(
            "Say why: whoever reads this later wants to know.",
            code="required",
            field="reason",
        )
    if len(asked.reason.strip()) > LONGEST_REASON:
        raise BadInput(
            f"Say it in at most {LONGEST_REASON:,} characters.",
            code="too_many_characters",
            field="reason",
        )


def _locked(increase_id: int) -> QuotaIncrease:
    rows = QuotaIncrease.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("asked_by").get(pk=increase_id)


def _append(kind: Kind, row: QuotaIncrease, *, actor: Actor, **details: Any) -> None:
    record(
        kind,
        actor=actor,
        subject=("quota_increase", row.pk),
        what=row.title,
        limit=row.limit,
        limit_before=row.limit_before,
        **details,
    )
