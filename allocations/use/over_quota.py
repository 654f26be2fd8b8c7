"""Work that runs on GPUs nobody holds any more: looked at on its cluster, listed, and stopped when its time has come.

A look has three parts, and no transaction is open while the cluster is called: read; write down what is there and what
has to stop; stop it. Whatever breaks off in between is taken up by the next look.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef

from accounts.models import User
from accounts.people import holding
from accounts.roles import Permission
from allocations.changes import refresh
from allocations.ends.notebooks import lock_those_of, stop_those_with_pods
from allocations.models import Leftover, StoppedWork
from allocations.notices import (
    left_message,
    refused_message,
    stopped_message,
    team_link,
)
from allocations.use.running import Running, quota_on_cluster, running, to_stop
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import ConnectorError, PermanentError
from connectors.kubernetes import Cluster as Client
from notices.actions import tell, tell_with_channels
from notices.kinds import NoticeKind
from notices.message import Message
from provisioning import draining, throttle
from provisioning.clusters.contents import work_in
from provisioning.delivery import client_for
from provisioning.desired.manifests import KUEUE
from provisioning.desired.usage import in_form
from provisioning.desired.volcano import QUEUE as VOLCANO_QUEUE
from provisioning.models import Tenancy
from reconciling.claims import claim

logger = logging.getLogger(__name__)

QUEUE, WORKLOAD = (KUEUE, "ClusterQueue"), (KUEUE, "Workload")
CLAIM = timedelta(seconds=60)
SOON, AGAIN, AWAY = timedelta(seconds=3), timedelta(seconds=30), timedelta(seconds=30)
GONE = ("not_found", "conflict")


@dataclass(frozen=True)
class Sight:
    """What a look saw: the work that holds GPUs, and by flavor what the queue on the cluster lets run."""

    work: Sequence[Running]
    quota: Mapping[str, int]


def due(now: datetime) -> list[int]:
    """Tenancies on whose cluster somebody should look, the longest overdue first."""
    rows = (
        Leftover.objects.due(now).order_by("look_at").values_list("tenancy", flat=True)
    )
    return list(dict.fromkeys(rows))


def look(tenancy_id: int, *, now: Callable[[], datetime]) -> int | None:
    """Look at one tenancy and stop what is due; returns how much was stopped, None when somebody else looks.

    A cluster that does not answer is looked at again later; nothing is forgotten meanwhile.
    """
    at = now()
    due_here = Leftover.objects.due(at).filter(tenancy=tenancy_id)
    if not claim(due_here, "look_at", until=at + CLAIM):
        return None
    tenancy = Tenancy.objects.select_related("cluster", "team").get(pk=tenancy_id)
    started = time.monotonic()
    try:
        if not tenancy.cluster.is_written_to:
            # Delivered to by Git since then: what was to be stopped may finish.
            Leftover.objects.open().filter(tenancy=tenancy_id).update(stop_at=None)
        if not tenancy.cluster.is_observed:
            settle(tenancy_id, Sight([], {}), now=now())
            return 0
        if throttle.seconds_here(tenancy.cluster):
            return _away(tenancy_id, now())
        client = client_for(tenancy.cluster)
        settle(tenancy_id, see(client, tenancy), now=now())
        return stop(client, tenancy, now=now) if tenancy.cluster.is_written_to else 0
    except ConnectorError as error:
        throttle.failed(
            tenancy.cluster, error, seconds=time.monotonic() - started, now=now()
        )
        logger.warning(
            "work not looked at", extra={"tenancy": tenancy_id, "error": error.message}
        )
        return _away(tenancy_id, now())


def _away(tenancy_id: int, now: datetime) -> int:
    Leftover.objects.open().filter(tenancy=tenancy_id).update(look_at=now + AWAY)
    return 0


def see(client: Client, tenancy: Tenancy) -> Sight:
    """Read a tenancy's queue and its work; raises ConnectorError."""
    spec = tenancy.desired
    work = work_in(client, spec)
    if not spec.has_volcano:
        return Sight(
            running(work), quota_on_cluster(client.get(QUEUE, tenancy.namespace))
        )
    # What was made last is what began last, as far as Volcano says: its own times are renewed each minute.
    born = {
        one["metadata"]["uid"]: str(one["metadata"].get("creationTimestamp", ""))
        for one in work
    }
    queue = client.get(VOLCANO_QUEUE, tenancy.namespace)
    return Sight(
        [replace(one, since=born[one.uid]) for one in running(work)],
        quota_on_cluster(in_form(queue, spec) if queue else None),
    )


@transaction.atomic
def settle(tenancy_id: int, sight: Sight, *, now: datetime) -> None:
    """Write down what a look saw: what still runs, what has to stop, and what is dealt with.

    Nothing counts as dealt with before the queue on the cluster is as low as wanted: until then more may start.
    """
    tenancy = Tenancy.objects.locked().select_related("team").get(pk=tenancy_id)
    lock_those_of(tenancy)
    rows = list(
        Leftover.objects.open()
        .filter(tenancy=tenancy)
        .select_related("flavor__cluster", "allocation")
    )
    wanted = {
        flavor.name: flavor.gpus + flavor.borrow for flavor in tenancy.desired.flavors
    }
    closed = False
    for name in dict.fromkeys(row.flavor.name for row in rows):
        left = [row for row in rows if row.flavor.name == name]
        allowed = wanted.get(name, 0)
        over = max(0, sum(one.gpus.get(name, 0) for one in sight.work) - allowed)
        if sight.quota.get(name, 0) > allowed:
            _look_again(left, at=now + SOON)
        elif _deal_with(tenancy, left, sight.work, over=over, now=now):
            closed = True
    # What is being deleted meanwhile gets no other desired state.
    if closed and tenancy.stands:
        refresh(tenancy, actor=PORTAL, now=now)


def forget(tenancy: Tenancy, *, now: datetime) -> None:
    """Deal with all that is left at a locked place that is lost with its cluster: nobody can look there any more."""
    left = Leftover.objects.open().filter(tenancy=tenancy)
    left.update(running=[], trouble="", done_at=now)
    StoppedWork.objects.filter(tenancy=tenancy, done_at=None).update(done_at=now)


def _deal_with(
    tenancy: Tenancy,
    left: Sequence[Leftover],
    work: Sequence[Running],
    *,
    over: int,
    now: datetime,
) -> bool:
    """Write down what still runs of one flavor and has to stop; whether any end is dealt with.

    What is over is first the work of ends whose time has not come: beyond that, nothing is left of the others.
    """
    flavor = left[0].flavor.name
    overdue = [row for row in left if row.stop_at is not None and row.stop_at <= now]
    too_much = over - sum(row.gpus for row in left if row not in overdue)
    done = left if not over else overdue if too_much <= 0 else ()
    rest = [row for row in left if row not in done]
    if done:
        _close(tenancy, done, now=now)
    if rest:
        _write_down(tenancy, rest, to_stop(work, flavor, over), now=now)
    if overdue and too_much > 0:
        _ask_to_stop(tenancy, overdue[0], to_stop(work, flavor, too_much), now=now)
        _look_again(left, at=now + SOON)
    return bool(done)


def _look_again(left: Iterable[Leftover], *, at: datetime) -> None:
    Leftover.objects.filter(pk__in=[row.pk for row in left]).update(look_at=at)


def _write_down(
    tenancy: Tenancy,
    left: Sequence[Leftover],
    beyond: Sequence[Running],
    *,
    now: datetime,
) -> None:
    seen = [asdict(one) for one in beyond]
    is_new = all(row.seen_at is None for row in left)
    next_stop = min(
        (row.stop_at for row in left if row.stop_at and row.stop_at > now), default=None
    )
    for row in left:
        row.running, row.seen_at = seen, row.seen_at or now
        row.look_at = min(now + AGAIN, next_stop or now + AGAIN)
        row.save(update_fields=["running", "seen_at", "look_at"])
    if is_new and (next_stop or any(row.stop_at is None for row in left)):
        _tell(tenancy, left_message(tenancy, left, now=now), now=now)
        record(
            Kind.WORK_LEFT,
            actor=PORTAL,
            subject=("tenancy", tenancy.pk),
            team_id=tenancy.team_id,
            flavor=left[0].flavor.name,
            jobs=[one.job for one in beyond],
            stop_at=next_stop.isoformat() if next_stop else "",
        )


def _ask_to_stop(
    tenancy: Tenancy, overdue: Leftover, work: Iterable[Running], *, now: datetime
) -> None:
    asked = set(
        StoppedWork.objects.filter(tenancy=tenancy, done_at=None).values_list(
            "uid", flat=True
        )
    )
    StoppedWork.objects.bulk_create(
        StoppedWork(
            leftover=overdue,
            tenancy=tenancy,
            uid=one.uid,
            name=one.name,
            job=one.job,
            gpus=one.gpus[overdue.flavor.name],
            asked_at=now,
        )
        for one in work
        if one.uid not in asked
    )
    stop_those_with_pods(
        tenancy, {one.job.removeprefix("Pod ") for one in work}, now=now
    )


def _close(tenancy: Tenancy, left: Sequence[Leftover], *, now: datetime) -> None:
    Leftover.objects.filter(pk__in=[row.pk for row in left]).update(
        running=[], done_at=now
    )
    if any(row.seen_at for row in left):
        record(
            Kind.WORK_SETTLED,
            actor=PORTAL,
            subject=("tenancy", tenancy.pk),
            team_id=tenancy.team_id,
            flavor=left[0].flavor.name,
        )


def stop(client: Client, tenancy: Tenancy, *, now: Callable[[], datetime]) -> int:
    """Stop what was written down and is not stopped yet; returns how much. Raises ConnectorError.

    Kueue's way: an inactive Workload gives its GPUs back and its job is suspended, nothing is deleted. Volcano has no
    such way: there the job is deleted. One that the cluster refuses to stop keeps no other running: the refusal is
    raised when all were tried.
    """
    rows = StoppedWork.objects.filter(tenancy=tenancy, done_at=None).select_related(
        "leftover__flavor__cluster", "leftover__allocation__hold__request"
    )
    stopped: list[StoppedWork] = []
    refusals: list[PermanentError] = []
    try:
        for row in rows:
            try:
                if _stop(client, tenancy, row):
                    stopped.append(row)
                else:
                    _note_gone(row, now=now())
            except PermanentError as error:
                _say_refused(tenancy, row, error.message, now=now())
                refusals.append(error)
    finally:
        _note_stopped(tenancy, stopped, now=now())
    _forget_refusals(tenancy)
    if refusals:
        raise refusals[0]
    return len(stopped)


def _note_gone(row: StoppedWork, *, now: datetime) -> None:
    StoppedWork.objects.filter(pk=row.pk, done_at=None).update(done_at=now)


def _forget_refusals(tenancy: Tenancy) -> None:
    """A refusal is shown until everything is stopped that had to stop for the same end."""
    to_stop = StoppedWork.objects.filter(leftover=OuterRef("pk"), done_at=None)
    refused = Leftover.objects.filter(tenancy=tenancy).exclude(trouble="")
    refused.exclude(Exists(to_stop)).update(trouble="")


@transaction.atomic
def _say_refused(
    tenancy: Tenancy, row: StoppedWork, why: str, *, now: datetime
) -> None:
    """Show it where the work is listed; platform leads are told once."""
    fresh = Leftover.objects.filter(pk=row.leftover_id, trouble="").update(
        trouble=why[:600]
    )
    if fresh:
        about, link = ("tenancy", tenancy.pk), team_link(tenancy.team.slug)
        tell(
            NoticeKind.WORK_STOPPED,
            to=holding(Permission.MANAGE_CLUSTERS),
            subject=about,
            link=link,
            message=refused_message(row, tenancy, why),
            now=now,
        )


def _stop(client: Client, tenancy: Tenancy, row: StoppedWork) -> bool:
    """Make one Workload inactive; False when it is gone, or another one has its name by now."""
    if tenancy.cluster.has_volcano:
        return draining.stop_group(client, tenancy.namespace, row.name, uid=row.uid)
    found = client.get(WORKLOAD, row.name, tenancy.namespace)
    if found is None or found["metadata"]["uid"] != row.uid:
        return False
    try:
        # The uid makes the API server refuse when the name was given to another one in between.
        inactive = {"metadata": {"uid": row.uid}, "spec": {"active": False}}
        client.merge(WORKLOAD, row.name, tenancy.namespace, inactive)
    except PermanentError as error:
        # "invalid" is what a wrong uid is called.
        if error.code not in GONE and not (
            error.code == "invalid" and "uid" in error.message
        ):
            raise
        return False
    return True


@transaction.atomic
def _note_stopped(
    tenancy: Tenancy, stopped: Sequence[StoppedWork], *, now: datetime
) -> None:
    mine = [
        row
        for row in stopped
        if StoppedWork.objects.filter(pk=row.pk, done_at=None).update(done_at=now)
    ]
    if not mine:
        return
    _tell(tenancy, stopped_message(tenancy, mine), now=now)
    for row in mine:
        record(
            Kind.WORK_STOPPED,
            actor=PORTAL,
            subject=("tenancy", tenancy.pk),
            team_id=tenancy.team_id,
            job=row.job,
            gpus=row.gpus,
            flavor=row.leftover.flavor.name,
            reference=row.leftover.allocation.hold.reference,
        )


def _tell(tenancy: Tenancy, message: Message, *, now: datetime) -> None:
    members = User.objects.filter(memberships__team=tenancy.team_id)
    kind, about = NoticeKind.WORK_STOPPED, ("tenancy", tenancy.pk)
    link = team_link(tenancy.team.slug)
    tell_with_channels(
        kind, to=members, subject=about, link=link, message=message, now=now
    )
