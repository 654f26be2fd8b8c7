"""How a tenancy ends: its protection, its stages with their dates, and its return while everything is kept.

Each action locks its tenancy, changes nothing the second time, and is audited. Deleting is done by `removing`.
"""

from datetime import datetime

from django.db import transaction

from accounts.models import User
from accounts.roles import Permission
from audit.actors import Actor
from audit.events import Kind
from audit.log import record
from provisioning import parking
from provisioning.actions import publish
from provisioning.enqueue import enqueue_on_commit
from provisioning.models import Tenancy
from provisioning.removing import why_lost
from provisioning.stages import NEXT, Stage, Stop
from web.refusals import Conflict, NoRight


@transaction.atomic
def protect(tenancy_id: int, *, on: bool, by: User) -> Tenancy:
    """Put the protection from deletion on or take it off; setting what is set changes nothing.

    Raises NoRight for others than platform leads, Conflict for what is leaving already.
    """
    if not by.may(Permission.REMOVE_TEAMS):
        raise NoRight(
            "Platform leads put the protection on and take it off.",
            code="not_a_platform_lead",
        )
    tenancy = locked(tenancy_id)
    if tenancy.stage != Stage.HERE:
        raise Conflict("The team is leaving: restore it first.", code="is_leaving")
    if tenancy.is_protected is on:
        return tenancy
    tenancy.is_protected = on
    tenancy.save(update_fields=["is_protected"])
    kind = Kind.TENANCY_PROTECTED if on else Kind.TENANCY_UNPROTECTED
    record(
        kind,
        actor=by.as_actor(),
        subject=("tenancy", tenancy.pk),
        team_id=tenancy.team_id,
        namespace=tenancy.namespace,
        cluster=tenancy.cluster.name,
    )
    return tenancy


@transaction.atomic
def announce(
    tenancy_id: int, *, leaves_at: datetime, hold: bool, actor: Actor, now: datetime
) -> Tenancy:
    """Date a team's leaving: nothing new is granted from now on; with `hold` the queue admits nothing new either.

    Raises Conflict for what is protected or leaves already.
    """
    tenancy = locked(tenancy_id)
    if tenancy.is_protected:
        raise Conflict(
            f"{tenancy.cluster.title} is protected. Take the protection off first.",
            code="protected",
        )
    return _move(
        tenancy,
        Stage.LEAVING,
        actor=actor,
        now=now,
        leaves_at=leaves_at,
        stop=Stop.HOLD if hold else Stop.NONE,
    )


@transaction.atomic
def drain(
    tenancy_id: int, *, retained_until: datetime, actor: Actor, now: datetime
) -> bool:
    """Stop what runs and take access away on the date; namespace and claims are kept. False when it is not due."""
    tenancy = locked(tenancy_id)
    if (
        tenancy.stage != Stage.LEAVING
        or tenancy.leaves_at is None
        or tenancy.leaves_at > now
    ):
        return False
    _move(
        tenancy,
        Stage.RETAINED,
        actor=actor,
        now=now,
        retained_until=retained_until,
        drained_at=None,
        stop=Stop.DRAIN,
    )
    return True


@transaction.atomic
def restore(tenancy_id: int, *, actor: Actor, now: datetime) -> Tenancy:
    """Put everything back but the GPUs, and the protection on; raises Conflict once deleting has begun."""
    tenancy = locked(tenancy_id)
    if tenancy.stage == Stage.HERE:
        return tenancy
    return _move(
        tenancy,
        Stage.HERE,
        actor=actor,
        now=now,
        leaves_at=None,
        retained_until=None,
        drained_at=None,
        stop=Stop.NONE,
        is_protected=True,
    )


@transaction.atomic
def remove(tenancy_id: int, *, actor: Actor, now: datetime) -> bool:
    """Have a worker delete what was kept until its date; False, and nothing changed, before it.

    Nothing is deleted where work has not stopped, nor before it was kept as long as was said after that.
    """
    tenancy = locked(tenancy_id)
    kept_until = tenancy.kept_until
    if tenancy.stage != Stage.RETAINED or kept_until is None or kept_until > now:
        return False
    _begin_removing(tenancy, actor=actor, now=now)
    return True


@transaction.atomic
def let_go_of_written_off(tenancy_id: int, *, actor: Actor, now: datetime) -> bool:
    """Have a worker let go of what stood on a cluster that is written off; False, and nothing changed, elsewhere.

    All steps of its leaving at once, protected or not and whatever its dates were: there is nothing left to keep. One
    whose deleting was tried in vain is let go of as well.
    """
    tenancy = locked(tenancy_id)
    if tenancy.cluster.written_off_at is None or tenancy.stage == Stage.GONE:
        return False
    if tenancy.stage == Stage.REMOVING:
        tenancy.save(update_fields=parking.retry(tenancy, now=now))
        enqueue_on_commit(tenancy.pk)
        return True
    if tenancy.stage == Stage.HERE:
        _move(
            tenancy,
            Stage.LEAVING,
            actor=actor,
            now=now,
            leaves_at=now,
            is_protected=False,
        )
    if tenancy.stage == Stage.LEAVING:
        _move(
            tenancy,
            Stage.RETAINED,
            actor=actor,
            now=now,
            leaves_at=min(tenancy.leaves_at or now, now),
            retained_until=now,
            stop=Stop.DRAIN,
        )
    _begin_removing(tenancy, actor=actor, now=now)
    return True


def _begin_removing(tenancy: Tenancy, *, actor: Actor, now: datetime) -> None:
    tenancy.generation += 1
    tenancy.changed_at, tenancy.stage, tenancy.is_true = now, Stage.REMOVING, False
    afresh = parking.retry(tenancy, now=now)
    tenancy.save(
        update_fields=["generation", "changed_at", "stage", "is_true", *afresh]
    )
    _tell(tenancy, actor)
    enqueue_on_commit(tenancy.pk)


def locked(tenancy_id: int) -> Tenancy:
    """The tenancy, locked, with its team and cluster."""
    rows = Tenancy.objects.locked()
    return rows.select_related("team", "cluster").get(pk=tenancy_id)


def _move(
    tenancy: Tenancy, stage: Stage, *, actor: Actor, now: datetime, **fields: object
) -> Tenancy:
    """Take the next stage and publish what it wants; raises Conflict for a step that does not exist."""
    if stage not in NEXT[Stage(tenancy.stage)]:
        raise Conflict(
            f"{tenancy.team.name} on {tenancy.cluster.title}: {Stage(tenancy.stage).words.lower()}.",
            code="no_such_step",
        )
    for name, value in {**fields, "stage": stage}.items():
        setattr(tenancy, name, value)
    tenancy.save(update_fields=[*fields, "stage"])
    _tell(tenancy, actor)
    publish(tenancy, spec=tenancy.desired, actor=actor, now=now)
    return tenancy


def _tell(tenancy: Tenancy, actor: Actor) -> None:
    kinds = {
        Stage.HERE: Kind.TENANCY_RESTORED,
        Stage.LEAVING: Kind.TENANCY_LEAVING,
        Stage.RETAINED: Kind.TENANCY_DRAINED,
        Stage.REMOVING: Kind.TENANCY_REMOVING,
    }
    record(
        kinds[Stage(tenancy.stage)],
        actor=actor,
        subject=("tenancy", tenancy.pk),
        team_id=tenancy.team_id,
        namespace=tenancy.namespace,
        cluster=tenancy.cluster.name,
        leaves_at=tenancy.leaves_at,
        retained_until=tenancy.retained_until,
        **why_lost(tenancy),
    )
