"""What a platform lead does about drift: put right, taken over, left alone until a date."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from accounts.models import User
from accounts.roles import Permission
from audit.events import Kind
from audit.log import record
from provisioning import parking
from provisioning.drift import adopting, brake
from provisioning.drift.comparing import What
from provisioning.drift.models import Drift
from provisioning.enqueue import enqueue_on_commit
from provisioning.models import Tenancy
from web.refusals import BadInput, Conflict, NoRight, Stale

LONGEST_ALONE = timedelta(days=365)
LONGEST_REASON = 300


@transaction.atomic
def repair(drift_id: int, *, by: User, now: datetime) -> Drift:
    """Have the object put right by the next pass, at once; harmless to repeat. Raises NoRight or Conflict."""
    tenancy, row = _open(drift_id, by=by)
    if brake.is_on(tenancy.cluster):
        raise Conflict(
            f"Repairs on {tenancy.cluster.title} have stopped: look at the cluster and let them go on first.",
            code="braked",
        )
    if row.repair_asked_at is None:
        row.repair_asked_at, row.repair_asked_by = now, by
        row.save(update_fields=["repair_asked_at", "repair_asked_by"])
        _record(Kind.DRIFT_REPAIR_ASKED, row, tenancy, by)
    _look(tenancy, now=now)
    return row


@transaction.atomic
def ignore(
    drift_id: int, *, by: User, reason: str, until: datetime, now: datetime
) -> Drift:
    """Leave the object's differing fields alone until a time, a year at most. Raises NoRight, BadInput or Conflict."""
    tenancy, row = _open(drift_id, by=by)
    if refused := why_not_left_alone(row):
        raise Conflict(refused, code="not_left_alone")
    reason = reason.strip()
    if not reason:
        raise BadInput(
            "Say why: others will wonder.", code="reason_needed", field="reason"
        )
    if len(reason) > LONGEST_REASON:
        raise BadInput(
            f"Say it in {LONGEST_REASON} characters.",
            code="too_many_characters",
            field="reason",
        )
    if until <= now:
        raise BadInput("The date has passed.", code="in_the_past", field="until")
    if until - now > LONGEST_ALONE:
        raise BadInput(
            "Leave it alone for a year at most.", code="too_far_ahead", field="until"
        )
    _end(row, Drift.State.IGNORED, by=by, now=now, reason=reason, ignored_until=until)
    _record(
        Kind.DRIFT_IGNORED, row, tenancy, by, reason=reason, until=until.isoformat()
    )
    _look(tenancy, now=now)
    return row


def why_not_left_alone(row: Drift) -> str:
    """Why a difference cannot be left alone, in a sentence; empty where it can.

    What stands in a namespace cannot be made while that is gone, so every pass over the place would fail.
    """
    if row.kind == "Namespace" and row.what == What.MISSING:
        return "Nothing of the team can stand without its namespace: repair it, or have the team leave the cluster."
    return ""


@transaction.atomic
def take_up(drift_id: int, *, by: User, now: datetime) -> Drift:
    """Stop leaving it alone: the next pass treats it as the cluster's rule says. Raises NoRight or Conflict."""
    tenancy, row = _locked(drift_id, by=by)
    if row.ignored_until is None or row.ignored_until <= now:
        raise Conflict("It is not left alone now.", code="drift_over")
    # It was left alone for a moment at least: its time of rest ends after it began.
    row.ignored_until = max(now, (row.ended_at or now) + timedelta(microseconds=1))
    row.save(update_fields=["ignored_until"])
    _record(
        Kind.DRIFT_IGNORED,
        row,
        tenancy,
        by,
        reason="Taken up again.",
        until=now.isoformat(),
    )
    _look(tenancy, now=now)
    return row


@transaction.atomic
def adopt(drift_id: int, *, by: User, now: datetime, seen: str) -> Drift:
    """Make what stands on the cluster what is wanted, from now on and in every later generation.

    `seen` is the `content` that was looked at. Raises NoRight, Stale when it has changed since, or Conflict for what is
    never taken over (see provisioning.drift.adopting).
    """
    tenancy, row = _open(drift_id, by=by)
    if row.content != seen:
        raise Stale(
            "It was changed once more since you looked. Look again before you take it over.",
            code="stale",
        )
    said = (
        "" if row.what == What.CHANGED else "Only what was changed can be taken over."
    )
    said = said or adopting.refusal(row.kind, row.fields, name=row.name)
    if said:
        raise Conflict(said, code="not_adoptable")
    values = {field["path"]: field["live"] for field in row.fields}
    thing = adopting.thing_of(row.kind, row.name)
    tenancy.adopted = {
        **tenancy.adopted,
        thing: tenancy.adopted.get(thing, {}) | values,
    }
    _new_generation(tenancy, now=now)
    _end(row, Drift.State.ADOPTED, by=by, now=now)
    _record(
        Kind.DRIFT_ADOPTED,
        row,
        tenancy,
        by,
        values=values,
        generation=tenancy.generation,
    )
    enqueue_on_commit(tenancy.pk)
    return row


@transaction.atomic
def give_up(drift_id: int, *, by: User, now: datetime) -> Drift:
    """Want again what the portal would want without what was taken over. Raises NoRight or Conflict."""
    tenancy, row = _locked(drift_id, by=by)
    held = held_by(tenancy, row)
    if not held:
        raise Conflict("Nothing of it is taken over now.", code="nothing_adopted")
    thing = adopting.thing_of(row.kind, row.name)
    left = {
        path: value
        for path, value in tenancy.adopted[thing].items()
        if path not in held
    }
    tenancy.adopted = {
        key: value for key, value in {**tenancy.adopted, thing: left}.items() if value
    }
    _new_generation(tenancy, now=now)
    _record(
        Kind.DRIFT_GIVEN_UP,
        row,
        tenancy,
        by,
        values=held,
        generation=tenancy.generation,
    )
    enqueue_on_commit(tenancy.pk)
    return row


def held_by(tenancy: Tenancy, row: Drift) -> dict[str, str]:
    """The values that were taken over from this row and are wanted now."""
    if row.state != Drift.State.ADOPTED:
        return {}
    now_wanted = tenancy.adopted.get(adopting.thing_of(row.kind, row.name), {})
    return {
        field["path"]: field["live"]
        for field in row.fields
        if now_wanted.get(field["path"]) == field["live"]
    }


def _open(drift_id: int, *, by: User) -> tuple[Tenancy, Drift]:
    tenancy, row = _locked(drift_id, by=by)
    if not row.is_open:
        raise Conflict(
            f"It was dealt with already, by {row.ended_by}.", code="drift_over"
        )
    return tenancy, row


def _locked(drift_id: int, *, by: User) -> tuple[Tenancy, Drift]:
    """The row and its tenancy, both locked: a pass writes rows only while it holds the tenancy."""
    if not by.may(Permission.MANAGE_CLUSTERS):
        raise NoRight("Platform leads deal with drift.", code="not_a_platform_lead")
    tenancies = Tenancy.objects.locked().select_related("cluster")
    tenancy = tenancies.get(
        pk=Drift.objects.values_list("tenancy_id").get(pk=drift_id)[0]
    )
    return tenancy, Drift.objects.select_for_update(no_key=True).get(pk=drift_id)


def _end(row: Drift, state: str, *, by: User, now: datetime, **fields: object) -> None:
    row.state, row.ended_at, row.ended_by = state, now, by.name[:200]
    for name, value in fields.items():
        setattr(row, name, value)
    row.save(update_fields=["state", "ended_at", "ended_by", *fields])


def _new_generation(tenancy: Tenancy, *, now: datetime) -> None:
    tenancy.generation += 1
    tenancy.changed_at = now
    tenancy.save(
        update_fields=[
            "adopted",
            "generation",
            "changed_at",
            *parking.retry(tenancy, now=now),
        ]
    )


def _look(tenancy: Tenancy, *, now: datetime) -> None:
    tenancy.save(update_fields=parking.retry(tenancy, now=now))
    enqueue_on_commit(tenancy.pk)


def _record(kind: Kind, row: Drift, tenancy: Tenancy, by: User, **details: Any) -> None:
    record(
        kind,
        actor=by.as_actor(),
        subject=("drift", row.pk),
        team_id=tenancy.team_id,
        cluster=tenancy.cluster_id,
        object=f"{row.kind} {row.name}",
        said=row.sentence,
        **details,
    )
