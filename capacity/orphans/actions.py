"""What changes about orphans: each reading replaces what the last one found, and platform leads have them released."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from accounts.models import User
from accounts.roles import Permission
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record
from capacity.orphans.comparing import Difference, OrphanKind
from capacity.orphans.enqueue import enqueue_on_commit
from capacity.orphans.models import Orphan
from capacity.orphans.notices import tell_found
from capacity.reservations.states import machines_using
from capacity.subscriptions.models import Subscription
from web.refusals import Conflict, NoRight


def require_lead(user: User) -> None:
    """Raises NoRight for who does not manage clusters."""
    if not user.may(Permission.MANAGE_CLUSTERS):
        raise NoRight(
            "Platform leads look after orphaned reservations.",
            code="not_a_platform_lead",
        )


@transaction.atomic
def keep(
    subscription: Subscription, found: Sequence[Difference], *, now: datetime
) -> None:
    """Replace what the last reading of a subscription found; platform leads are told of what is newly orphaned.

    What a worker releases stays as it is.
    """
    rows = Orphan.objects.filter(subscription=subscription).select_for_update(
        no_key=True
    )
    there = {one.key: one for one in rows}
    releasing = {one.key for one in there.values() if one.is_releasing}
    # Between its reservation and itself, a group that is released is one without reservations.
    groups = {
        (one.resource_group, one.group) for one in there.values() if one.is_releasing
    }
    new: list[Orphan] = []
    for each in found:
        if each.key in releasing or (
            not each.name and (each.resource_group, each.group) in groups
        ):
            continue
        row = there.get(each.key)
        is_new = each.kind is OrphanKind.ORPHANED and (
            row is None or row.kind != each.kind
        )
        row = row or Orphan(
            subscription=subscription, key=each.key, first_seen_at=now, requeue_at=now
        )
        if is_new:
            row.first_seen_at = now
        _write(row, each, now)
        new += [row] if is_new else []
    seen = {one.key for one in found}
    Orphan.objects.filter(
        pk__in=[one.pk for key, one in there.items() if key not in seen | releasing]
    ).delete()
    for row in new:
        _append(Kind.RESERVATION_ORPHANED, row, actor=PORTAL)
    if new:
        tell_found(new, now=now)


@transaction.atomic
def ask_release(orphan_id: int, *, by: User, now: datetime) -> Orphan:
    """Have a worker release a reservation that is the portal's and orphaned; harmless to repeat, also when parked.

    Raises NoRight, Conflict where it is gone, another's or has a record, or where machines use it.
    """
    require_lead(by)
    row = (
        Orphan.objects.select_for_update(of=("self",), no_key=True)
        .filter(pk=orphan_id)
        .first()
    )
    if row is None:
        raise Conflict(
            "It is not there any more: look at the list again.", code="orphan_is_gone"
        )
    if row.kind != OrphanKind.ORPHANED:
        raise Conflict(
            "Only what carries the portal’s mark and has no record here is released here.",
            code="not_an_orphan",
        )
    if row.associated and not row.is_releasing:
        raise Conflict(in_use(row.associated), code="machines_use_it")
    fields = row.retry(now=now)
    if not row.is_releasing:
        row.release_asked_at, row.release_asked_by, row.message = now, by.name, ""
        _append(Kind.ORPHAN_RELEASE_ASKED, row, actor=by.as_actor())
    row.save(update_fields=[*fields, "release_asked_at", "release_asked_by", "message"])
    enqueue_on_commit(row.pk)
    return row


@transaction.atomic
def stop_release(orphan_id: int, *, why: str) -> None:
    """Release it no more, because that must not be; the next reading says what it is."""
    row = (
        Orphan.objects.releasing()
        .select_for_update(of=("self",), no_key=True)
        .filter(pk=orphan_id)
        .first()
    )
    if row is None:
        return
    row.release_asked_at, row.release_asked_by, row.operation, row.message = (
        None,
        "",
        None,
        why[:600],
    )
    row.save(
        update_fields=["release_asked_at", "release_asked_by", "operation", "message"]
    )
    _append(Kind.ORPHAN_KEPT, row, actor=PORTAL, reason=row.message)


@transaction.atomic
def released(orphan_id: int) -> None:
    """Write down that nothing of it is left in Azure."""
    row = (
        Orphan.objects.releasing()
        .select_for_update(of=("self",), no_key=True)
        .filter(pk=orphan_id)
        .first()
    )
    if row is not None:
        _append(Kind.ORPHAN_RELEASED, row, actor=PORTAL)
        row.delete()


def note_parked(row: Orphan, why: str) -> list[str]:
    """Write down that a worker tries it no more; returns the changed fields."""
    row.message = why
    _append(Kind.ORPHAN_PARKED, row, actor=PORTAL)
    return ["message"]


def in_use(machines: int) -> str:
    """Why a reservation that machines use is not released, and what to do about it."""
    uses = machines_using(machines)
    return f"{uses}. Delete what uses it or take it out of the reservation first; deallocated machines count, too."


def _write(row: Orphan, found: Difference, now: datetime) -> None:
    recorded = found.recorded
    values: dict[str, Any] = {
        "kind": found.kind.value,
        "resource_group": found.resource_group[:90],
        "group": found.group[:90],
        "name": found.name[:90],
        "region": found.region[:40],
        "zone": found.zone[:3],
        "vm_size": found.vm_size[:60],
        "machines": found.machines,
        "used": found.used,
        "associated": found.associated,
        "tagged_team": found.team[:60],
        "reservation_id": recorded.number if recorded else None,
        "expected": recorded.machines if recorded else None,
        "seen_at": now,
    }
    for name, value in values.items():
        setattr(row, name, value)
    row.save()


def _append(kind: Kind, row: Orphan, *, actor: Actor, **details: Any) -> None:
    record(
        kind,
        actor=actor,
        subject=("orphan", row.pk),
        what=f"{row.title} in {row.region}",
        group=row.group,
        name=row.name,
        **details,
    )
