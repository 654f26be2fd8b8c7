"""What a pass does about drift: stores it, decides what is put right and what waits, and says so.

Drift is what differs from manifests that were true before; what a new generation or a new version of the portal wants
otherwise is no drift. Nothing here calls a cluster, and a pass that finds nothing differing asks the database nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count
from django.urls import reverse

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from fleet.models import Cluster
from notices.kinds import NoticeKind
from notices.leads import tell_leads
from notices.message import Message
from notices.models import Notice
from provisioning.desired.manifests import Manifest, tenancy_objects
from provisioning.desired.plan import Key, Step, Verb, update
from provisioning.drift import brake
from provisioning.drift.comparing import (
    MOST_FIELDS,
    Field,
    Finding,
    What,
    digest,
    finding,
    kept,
    spared,
)
from provisioning.drift.models import DRIFTED, Drift
from provisioning.models import Tenancy
from reconciling.conditions import Condition, without
from reconciling.lease import Lease, LeaseLost
from ui.amounts import dated

WRITES = frozenset({Verb.CREATE, Verb.UPDATE, Verb.DELETE})
THE_PORTAL = "the portal"
SOMEBODY = "somebody on the cluster"
A_NEW_STATE = "a new desired state"
# Who changes the same object back this often within this time is asked about, not fought.
FIGHTS, FIGHTING = 3, timedelta(hours=1)
TOLD_AGAIN = timedelta(hours=1)

Place = tuple[str, str, str]


@dataclass
class Drifts:
    """What a pass found: the digest of its manifests, what it puts right, and what it leaves alone and why."""

    rendered: str
    repairing: list[Drift] = field(default_factory=list)
    left: dict[Place, tuple[Drift, str]] = field(default_factory=dict)

    def note(self, key: Key) -> str:
        """What the checklist says of an object that is left alone; empty for every other."""
        row, why = self.left.get(place_of(key), (None, ""))
        return "" if row is None else f"{row.sentence}. {why}"


def place_of(key: Key) -> Place:
    """Which object of a tenancy a key names."""
    return key.kind, key.namespace, key.name


def settle(
    tenancy: Tenancy,
    lease: Lease[Tenancy],
    *,
    desired: Sequence[Manifest],
    steps: Sequence[Step],
    live: Mapping[Key, Manifest],
    now: datetime,
) -> tuple[list[Step], Drifts]:
    """The steps that may be done now, and what was found. Raises LeaseLost."""
    drifts = Drifts(digest(desired))
    differing = {place_of(step.key): step for step in steps if step.verb in WRITES}
    was_true = (
        tenancy.observed_generation == tenancy.generation
        and tenancy.rendered == drifts.rendered
    )
    if not tenancy.is_drifting and not (was_true and differing):
        return list(steps), drifts
    findings = {
        place: finding(step, live.get(step.key)) for place, step in differing.items()
    }
    rows = _stored(tenancy, lease, findings, was_true=was_true, now=now)
    if rows:
        _decide(tenancy.cluster, rows, drifts, now=now)
    return [
        made
        for step in steps
        for made in _spared(step, live.get(step.key), rows, drifts, findings)
    ], drifts


def left_alone(
    tenancy: Tenancy,
    steps: Sequence[Step],
    live: Mapping[Key, Manifest],
    *,
    now: datetime,
) -> tuple[list[Step], list[Drift]]:
    """The steps without what is known to differ and waits or is left alone, and those rows; writes nothing."""
    rows = list(Drift.objects.standing(now).filter(tenancy=tenancy).order_by("id"))
    findings = {
        place_of(one.key): finding(one, live.get(one.key))
        for one in steps
        if one.verb in WRITES
    }
    known = Drifts("")
    return [
        made
        for one in steps
        for made in _spared(one, live.get(one.key), rows, known, findings)
    ], rows


def brake_at(cluster: Cluster, differing: Sequence[int], *, now: datetime) -> None:
    """Stop repairs before the first of them, when one look at a cluster finds more drifted than may be."""
    if (
        cluster.on_drift != Cluster.OnDrift.REPAIR
        or len(differing) <= brake.LEAST
        or brake.is_on(cluster)
    ):
        return
    known = Drift.objects.open().filter(tenancy__in=differing)
    looked_at = known.exclude(
        counts=True, contested=False, repair_asked_at=None
    ).values("tenancy")
    rows = (
        Tenancy.objects.converged().filter(pk__in=differing).exclude(pk__in=looked_at)
    )
    # What a new version of the portal wants otherwise differs everywhere, and is no drift.
    drifted = [
        row
        for row in rows.order_by()
        if row.rendered == digest(tenancy_objects(row.desired))
    ]
    brake.too_many(cluster, len(drifted), now=now)


@transaction.atomic
def _stored(
    tenancy: Tenancy,
    lease: Lease[Tenancy],
    findings: Mapping[Place, Finding],
    *,
    was_true: bool,
    now: datetime,
) -> list[Drift]:
    """The open and ignored rows of the tenancy after this look, under the lease's number."""
    if lease.mine.select_for_update(of=("self",), no_key=True).first() is None:
        raise LeaseLost
    standing = (
        Drift.objects.standing(now)
        .filter(tenancy=tenancy)
        .select_related("repair_asked_by")
    )
    rows: list[Drift] = []
    over: list[Drift] = []
    for row in standing.order_by("id"):
        (rows if _still(row, findings.get(row.place)) else over).append(row)
    for row in over:
        if row.is_open:
            _gone(tenancy, row, by=SOMEBODY if was_true else A_NEW_STATE, now=now)
    if not was_true:
        return rows
    new = [
        made
        for found in findings.values()
        if (made := _seen(tenancy, found, rows, now=now)) is not None
    ]
    if new:
        _contest(tenancy, new, now=now)
        Drift.objects.bulk_create(new)
        # So that a worker that is ended before its status is written leaves a mark to look for the rows by.
        lease.write(conditions=drifted(tenancy.conditions, [*rows, *new], {}))
        _tell(tenancy, new, now=now)
    return rows + new


def _still(row: Drift, found: Finding | None) -> bool:
    """Whether the object still differs in what the row says, and what is wanted there is the same."""
    return found is not None and any(
        _same(row, each) for each in found.fields or (None,)
    )


def _same(row: Drift, one: Field | None) -> bool:
    """Whether a field is one of the row's, wanted as it was then; None stands for an object that is too much."""
    if one is None:
        return row.what == What.LEFT_OVER
    path, wanted = one.path, kept(one.wanted)
    return any(each["path"] == path and each["wanted"] == wanted for each in row.fields)


def _seen(
    tenancy: Tenancy, found: Finding, rows: Sequence[Drift], *, now: datetime
) -> Drift | None:
    """A new row for what no row tells of yet; an open row of the object is brought up to date instead."""
    place = place_of(found.key)
    ignored = [row for row in rows if row.place == place and not row.is_open]
    rest = [one for one in found.fields if not any(_same(row, one) for row in ignored)]
    if not rest and (found.fields or any(_same(row, None) for row in ignored)):
        return None
    told: dict[str, Any] = {
        "what": found.what.value,
        "fields": [one.to_json() for one in rest[:MOST_FIELDS]],
        "who": found.who[:200],
        "operation": found.operation[:10],
    }
    row = next((row for row in rows if row.place == place and row.is_open), None)
    if row is None:
        kind, namespace, name = place
        return Drift(
            tenancy=tenancy,
            kind=kind,
            namespace=namespace,
            name=name,
            first_seen_at=now,
            since=found.since or now,
            **told,
        )
    if any(getattr(row, name) != value for name, value in told.items()):
        told["since"] = found.since or row.since
        for name, value in told.items():
            setattr(row, name, value)
        row.save(update_fields=[*told])
    return None


def _gone(tenancy: Tenancy, row: Drift, *, by: str, now: datetime) -> None:
    """End a row whose object is as wanted again: by our own hand, if a pass had begun to put it right."""
    if row.begun_at is not None:
        by = row.repair_asked_by.name if row.repair_asked_by else THE_PORTAL
    row.state, row.ended_at, row.ended_by = Drift.State.REPAIRED, now, by
    row.save(update_fields=["state", "ended_at", "ended_by"])
    record(
        Kind.DRIFT_GONE,
        actor=PORTAL,
        subject=("tenancy", tenancy.pk),
        team_id=tenancy.team_id,
        cluster=tenancy.cluster_id,
        by=by,
        objects=[_told(row)],
    )


def _contest(tenancy: Tenancy, new: Sequence[Drift], *, now: datetime) -> None:
    """Mark what the same manager has changed back again and again: it waits for a lead from now on."""
    repaired = Drift.objects.filter(
        tenancy=tenancy,
        state=Drift.State.REPAIRED,
        ended_by=THE_PORTAL,
        ended_at__gt=now - FIGHTING,
    )
    fights = {
        (kind, namespace, name, who): times
        for kind, namespace, name, who, times in repaired.order_by()
        .values_list("kind", "namespace", "name", "who")
        .annotate(times=Count("id"))
    }
    for row in new:
        times = fights.get((*row.place, row.who), 0)
        if times >= FIGHTS:
            row.contested = True
            row.reason = (
                f"{row.who or 'Somebody'} changed it back {times} times within an hour: it is not repaired any more "
                "until a platform lead says so."
            )


def _decide(
    cluster: Cluster, rows: Sequence[Drift], drifts: Drifts, *, now: datetime
) -> None:
    """Sort the rows into what is put right now and what is left alone."""
    unasked = [row for row in rows if row.is_open and _may(cluster, row)]
    stopped = brake.check(cluster, now=now) if unasked else brake.is_on(cluster)
    for row in rows:
        if not stopped and row.is_open and (row in unasked or row.repair_asked_at):
            drifts.repairing.append(row)
        elif row.is_open or row.place not in drifts.left:
            drifts.left[row.place] = row, _why(row, stopped=stopped)
    begun = [row.pk for row in drifts.repairing if row.begun_at is None]
    if begun:
        Drift.objects.filter(pk__in=begun).update(begun_at=now)


def _may(cluster: Cluster, row: Drift) -> bool:
    """Whether a row may be put right without anybody's asking."""
    return (
        cluster.on_drift == Cluster.OnDrift.REPAIR
        and not row.contested
        and row.repair_asked_at is None
    )


def _why(row: Drift, *, stopped: bool) -> str:
    if row.ignored_until is not None:
        return f"It is left alone until {dated(row.ignored_until)}: {row.reason}"
    if stopped:
        return "Repairs on this cluster have stopped until a platform lead lets them go on."
    return (
        row.reason if row.contested else "A platform lead decides what becomes of it."
    )


def _spared(
    step: Step,
    live: Manifest | None,
    rows: Sequence[Drift],
    drifts: Drifts,
    findings: Mapping[Place, Finding],
) -> list[Step]:
    """The step without what is left alone; none at all for a deletion that is."""
    place = place_of(step.key)
    found = findings.get(place)
    repairing = {row.pk for row in drifts.repairing}
    holding = [row for row in rows if row.place == place and row.pk not in repairing]
    if found is None or not holding:
        return [step]
    if step.manifest is None:
        return []
    spare = [one for one in found.fields if any(_same(row, one) for row in holding)]
    if live is None:
        return (
            [Step(Verb.KEEP, step.key, step.manifest)]
            if len(spare) == len(found.fields)
            else [step]
        )
    return [
        update(step.key, spared(step.manifest, live, [one.at for one in spare]), live)
    ]


def drifted(
    conditions: Sequence[Condition],
    rows: Sequence[Drift],
    why: Mapping[Place, tuple[Drift, str]],
) -> list[Condition]:
    """The conditions of a tenancy with `Drifted` for these rows, and without it when there are none."""
    others = without(conditions, DRIFTED)
    if not rows:
        return others
    said = [
        f"{row.sentence}. {why.get(row.place, (row, ''))[1]}".strip()
        for row in rows[:3]
    ]
    said += [f"And {len(rows) - 3} more."] if len(rows) > 3 else []
    condition = {
        "type": DRIFTED,
        "status": "True",
        "reason": _reason(rows),
        "message": " ".join(said)[:1000],
        # As the cluster says it, not since the portal knows.
        "since": min(row.since for row in rows).isoformat(),
    }
    return [*others, condition]


def _reason(rows: Sequence[Drift]) -> str:
    if any(row.contested for row in rows):
        return "Contested"
    return "ChangedElsewhere" if any(row.is_open for row in rows) else "LeftAlone"


def close(tenancy: Tenancy, drifts: Drifts, *, writes: int, now: datetime) -> None:
    """End what a pass has put right; call it inside the transaction of its status, after the tenancy was locked."""
    for row in drifts.repairing:
        by = row.repair_asked_by.name if row.repair_asked_by else THE_PORTAL
        Drift.objects.filter(pk=row.pk, state=Drift.State.OPEN).update(
            state=Drift.State.REPAIRED, ended_at=now, ended_by=by
        )
    record(
        Kind.DRIFT_REPAIRED,
        actor=PORTAL,
        subject=("tenancy", tenancy.pk),
        team_id=tenancy.team_id,
        cluster=tenancy.cluster_id,
        generation=tenancy.generation,
        writes=writes,
        objects=[_told(row) for row in drifts.repairing],
    )


def _told(row: Drift) -> dict[str, object]:
    return {
        "drift": row.pk,
        "kind": row.kind,
        "name": row.name,
        "what": row.what,
        "who": row.who,
        "said": row.sentence,
    }


def _tell(tenancy: Tenancy, new: Sequence[Drift], *, now: datetime) -> None:
    """Tell the leads of what waits for them, at most once an hour of a cluster, and the audit log of everything."""
    cluster = tenancy.cluster
    waiting = [row for row in new if not _may(cluster, row)]
    about = ("cluster", cluster.pk)
    kind = NoticeKind.DRIFT_WAITING
    told = Notice.objects.filter(
        kind=kind, subject_type=about[0], subject_id=about[1], at__gt=now - TOLD_AGAIN
    )
    if waiting and not told.exists():
        message = Message(
            f"A change on {cluster.title} waits for you",
            f"{waiting[0].sentence} in {tenancy.namespace}. "
            f"{waiting[0].reason or 'Repair it, take it over, or leave it alone until a date.'}",
            facts=(("Team", tenancy.team.name), ("Objects", str(len(waiting)))),
            action="Look at the cluster",
        )
        link = reverse("cluster", args=[cluster.name])
        tell_leads(kind, subject=about, link=link, message=message, now=now)
    record(
        Kind.DRIFT_FOUND,
        actor=PORTAL,
        subject=("tenancy", tenancy.pk),
        team_id=tenancy.team_id,
        cluster=cluster.pk,
        objects=[_told(row) for row in new],
    )
    for row in new:
        if row.contested:
            record(
                Kind.DRIFT_CONTESTED,
                actor=PORTAL,
                subject=("drift", row.pk),
                team_id=tenancy.team_id,
                cluster=cluster.pk,
                reason=row.reason,
                who=row.who,
            )
