"""What changes about stand-ins, and whose seats somebody may sit in now."""

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction

from accounts import people
from accounts.models import Delegation, User
from accounts.roles import Role
from accounts.stand_ins.models import LONGEST
from audit.events import Kind
from audit.log import record
from web.refusals import BadInput, Conflict, NoRight

FURTHEST = timedelta(days=365)
# A form writes minutes, and "from now on" is a moment old when it arrives.
JUST_NOW = timedelta(minutes=5)
LONGEST_WHY = 200


def givers_for(user: User, now: datetime) -> list[User]:
    """Whose seats this person may sit in now: one step, so nobody lends on what was lent to them.

    Who lends has to be active still; whether the seat is theirs is to be asked of their own rights. Of who a session
    found to be a stand-in it is read once for a page.
    """
    if user.stands_in is False:
        return []
    if user.lenders is None or not user.stands_in:
        given = Delegation.objects.in_force(now).filter(to=user).values("giver")
        rows = (
            people.present()
            .filter(pk__in=given)
            .prefetch_related("roles_held", "groups_held")
        )
        user.lenders = list(rows.order_by("name", "pk"))
    return user.lenders


@transaction.atomic
def delegate(
    *,
    giver: User,
    to: User,
    starts_at: datetime,
    until: datetime,
    why: str,
    now: datetime,
    groups: Collection[str] = (),
) -> Delegation:
    """Ask somebody to decide in the giver's place from one moment until another, at most 90 days.

    It counts for nothing until they accept.

    `groups` are the object ids of those whose people decide. Raises NoRight when the giver decides nothing, BadInput
    for dates and people that cannot be, Conflict when the giver has a stand-in for a part of this time.
    """
    if not people.decides(giver, groups=groups):
        raise NoRight(
            "You decide nothing, so there is no seat to lend.", code="nothing_to_lend"
        )
    starts_at = now if now - JUST_NOW <= starts_at < now else starts_at
    _check_dates(starts_at, until, now)
    # One lock for all that this giver does: two of their calls at once are taken one after the other.
    User.objects.select_for_update(no_key=True).get(pk=giver.pk)
    if to.pk == giver.pk:
        raise BadInput("Name somebody else.", code="not_oneself", field="to")
    if not people.present().filter(pk=to.pk).exists():
        raise BadInput(
            "This person has no account here, or it is disabled.",
            code="no_such_person",
            field="to",
        )
    if _only_audits(to):
        raise BadInput(
            "Auditors see everything and change nothing. Name somebody else.",
            code="audits_only",
            field="to",
        )
    if giver.delegations_given.filter(
        ended_at=None, starts_at__lt=until, until__gt=starts_at
    ).exists():
        raise Conflict(
            "You have a stand-in for a part of this time. End that first, or choose other dates.",
            code="stand_in_already",
            field="starts_at",
        )
    made = Delegation.objects.create(
        giver=giver,
        to=to,
        starts_at=starts_at,
        until=until,
        why=why.strip()[:LONGEST_WHY],
    )
    record(
        Kind.DELEGATED,
        actor=giver.as_actor(),
        subject=("delegation", made.pk),
        to=to.name,
        to_oid=to.oid,
        starts_at=starts_at,
        until=until,
        why=made.why,
    )
    return made


@transaction.atomic
def accept(delegation: Delegation, *, by: User, now: datetime) -> bool:
    """Stand in from its first moment on, or from now where that is past; False when it was accepted before.

    Raises NoRight for everybody who was not asked, Conflict for what was taken back, declined or is over.
    """
    row = _asked(delegation, by=by)
    if _only_audits(by):
        raise NoRight("Auditors see everything and change nothing.", code="audits_only")
    if row.state == Delegation.State.ACCEPTED and row.until > now:
        return False
    _check_open(row, now=now)
    Delegation.objects.filter(pk=row.pk).update(accepted_at=now)
    _record_answer(Kind.DELEGATION_ACCEPTED, row, by=by)
    return True


@transaction.atomic
def decline(delegation: Delegation, *, by: User, now: datetime) -> bool:
    """Refuse to stand in, which ends it; False when it was declined before.

    Raises NoRight for everybody who was not asked, Conflict for what was accepted or taken back, or is over.
    """
    row = _asked(delegation, by=by)
    if row.state == Delegation.State.DECLINED:
        return False
    if row.state == Delegation.State.ACCEPTED and row.until > now:
        raise Conflict(
            "You have accepted it. Give the seat back instead.", code="accepted_already"
        )
    _check_open(row, now=now)
    Delegation.objects.filter(pk=row.pk).update(declined_at=now, ended_at=now)
    _record_answer(Kind.DELEGATION_DECLINED, row, by=by)
    return True


def _asked(delegation: Delegation, *, by: User) -> Delegation:
    """The locked row of an invitation to this person."""
    if by.pk != delegation.to_id:
        raise NoRight("Who was asked answers this.", code="not_asked")
    rows = Delegation.objects.select_for_update(
        of=("self",), no_key=True
    ).select_related("giver", "to")
    return rows.get(pk=delegation.pk)


def _check_open(row: Delegation, *, now: datetime) -> None:
    if row.ended_at is not None:
        raise Conflict(
            f"{row.giver.name} has taken this back, or it has ended.", code="not_open"
        )
    if row.until <= now:
        raise Conflict("Its time is over.", code="not_open")


def _record_answer(kind: Kind, row: Delegation, *, by: User) -> None:
    record(
        kind,
        actor=by.as_actor(),
        subject=("delegation", row.pk),
        giver=row.giver.name,
        to=row.to.name,
        starts_at=row.starts_at,
        until=row.until,
    )


def _only_audits(user: User) -> bool:
    return set(user.roles_held.values_list("role", flat=True)) == {Role.AUDITOR.value}


@transaction.atomic
def end_delegation(delegation: Delegation, *, by: User, now: datetime) -> bool:
    """Give the seat back at once, or take back what was not answered; either of the two may. False when it had ended.

    Raises NoRight for everybody else.
    """
    if by.pk not in (delegation.giver_id, delegation.to_id):
        raise NoRight("Only the two people concerned end this.", code="not_yours")
    if not Delegation.objects.open(now).filter(pk=delegation.pk).update(ended_at=now):
        return False
    record(
        Kind.DELEGATION_ENDED,
        actor=by.as_actor(),
        subject=("delegation", delegation.pk),
        giver=delegation.giver.name,
        to=delegation.to.name,
    )
    return True


def _check_dates(starts_at: datetime, until: datetime, now: datetime) -> None:
    if starts_at < now:
        raise BadInput(
            "This lies in the past. Begin now or later.",
            code="in_the_past",
            field="starts_at",
        )
    if until <= starts_at:
        raise BadInput(
            "The end has to come after the start.",
            code="ends_before_it_starts",
            field="until",
        )
    if until - starts_at > LONGEST:
        raise BadInput(
            f"A stand-in lasts {LONGEST.days} days at most.",
            code="too_long",
            field="until",
        )
    if starts_at - now > FURTHEST:
        raise BadInput(
            "This lies more than a year ahead.", code="too_far_ahead", field="starts_at"
        )
