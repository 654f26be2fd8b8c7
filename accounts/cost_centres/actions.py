"""What changes about cost centres: named by a team, confirmed by whoever answers for them, and taken off the list."""

from datetime import datetime
from typing import Any

from django.db import transaction

from accounts.actions import check_cost_centre, name_cost_centre
from accounts.cost_centres.models import CostCentre
from accounts.models import User
from accounts.roles import Permission
from audit.events import Kind
from audit.log import record
from web.refusals import Conflict, NoRight


@transaction.atomic
def confirm(
    code: str, *, by: User, now: datetime, owner: User | None = None
) -> CostCentre:
    """Put a cost centre on the list; teams then spend on it as the policy says.

    Platform leads confirm any, and name its owner, also of one that is confirmed; an owner confirms their own. Raises
    NoRight, BadInput for what cannot be a cost centre, Conflict when it is confirmed already and gets no other owner.
    """
    found = _locked(check_cost_centre(code), by=by, now=now)
    before, was_confirmed = found.owner, found.confirmed_at is not None
    if owner is not None and by.may(Permission.MANAGE_COST_CENTRES):
        found.owner = owner
    is_another = found.owner != before
    if was_confirmed and not is_another:
        raise Conflict(
            f"{found.code} is confirmed already.",
            code="cost_centre_confirmed",
            field="code",
        )
    if not was_confirmed:
        found.confirmed_at, found.confirmed_by = now, by
    found.save()
    kind = Kind.COST_CENTRE_OWNED if was_confirmed else Kind.COST_CENTRE_CONFIRMED
    previous = before.name if before is not None else ""
    # The first owner of one that is new takes nobody's place.
    is_told = is_another and bool(previous or was_confirmed)
    _record(kind, found, by, **({"owner_before": previous} if is_told else {}))
    return found


@transaction.atomic
def withdraw(code: str, *, by: User, now: datetime) -> CostCentre:
    """Take a confirmation back: from the next request on, people decide what teams spend on it.

    Raises NoRight, Conflict when it is not confirmed.
    """
    found = _locked(check_cost_centre(code), by=by, now=now)
    if found.confirmed_at is None:
        raise Conflict(
            f"{found.code} is not confirmed.",
            code="cost_centre_not_confirmed",
            field="code",
        )
    found.confirmed_at = found.confirmed_by = None
    found.save()
    _record(Kind.COST_CENTRE_WITHDRAWN, found, by)
    return found


def _locked(code: str, *, by: User, now: datetime) -> CostCentre:
    """The cost centre; platform leads may list one that no team has named yet."""
    rows = CostCentre.objects.select_for_update(of=("self",), no_key=True)
    found = rows.filter(code__iexact=code).first()
    if not by.may(Permission.MANAGE_COST_CENTRES) and (
        found is None or found.owner_id != by.pk
    ):
        raise NoRight(
            "Its owner and platform leads confirm a cost centre.", code="not_the_owner"
        )
    if found is None:
        name_cost_centre(code, now=now)
        found = rows.get(code__iexact=code)
    return found


def _record(kind: Kind, of: CostCentre, by: User, **details: Any) -> None:
    owner = of.owner.name if of.owner is not None else ""
    record(
        kind,
        actor=by.as_actor(),
        subject=("cost_centre", of.pk),
        code=of.code,
        owner=owner,
        **details,
    )
