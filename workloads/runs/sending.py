"""What a worker does for a run: create its objects, once, or take them away.

One worker at a time holds a run's lease, and loses it within seconds of its death. Names are the run's own, so what was
created before an answer was lost is found again and not created twice. A worker that slept through the end of its lease
begins nothing more, and takes away again what it created for a run that was stopped meanwhile.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from random import SystemRandom
from typing import Any

import structlog
from django.db import transaction

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import ConnectorError, PermanentError
from connectors.kubernetes import Cluster, Manifest, ref_of
from provisioning.delivery import client_for
from reconciling import failpoints
from workloads.runs import lease
from workloads.runs.models import Run
from workloads.runs.states import State
from workloads.templates.pods import RUN_LABEL

logger = structlog.get_logger(__name__)
POD = ("v1", "Pod")
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=30)
# What the API server will say again, however often it is asked.
# A right, a quota and a namespace may still come.
FINAL = frozenset({"invalid", "denied", "bad_request", "unknown_kind"})
_random = SystemRandom()
Clock = Callable[[], datetime]


def look_after(run_id: int, *, now: Clock) -> bool:
    """Do what is due for a run; False when nothing is, or another worker is at it."""
    held = lease.take(run_id, now=now)
    if held is None:
        return False
    with lease.kept(held):
        run = Run.objects.described().get(pk=run_id)
        try:
            client = client_for(run.cluster)
            if run.stop_asked_at is not None:
                _take_away(run, client, now)
            else:
                _send(run, client, held)
        except lease.LeaseLost:
            logger.warning("lease of a run lost", run=run_id)
        except ConnectorError as error:
            _failed(run, error, now=now())
    return True


def _send(run: Run, client: Cluster, held: lease.Lease) -> None:
    """Create the run's objects. What goes along with it is owned by it, so that Kubernetes deletes it with it."""
    failpoints.reach("run.write")
    main = _created(run, client, run.main, held)
    failpoints.reach("run.write")
    owner = {
        "apiVersion": run.main["apiVersion"],
        "kind": run.main["kind"],
        "name": run.name,
        "uid": main["metadata"]["uid"],
    }
    for manifest in run.manifests:
        if manifest != run.main:
            head = {**manifest["metadata"], "ownerReferences": [owner]}
            _created(run, client, {**manifest, "metadata": head}, held)
            failpoints.reach("run.write")
    failpoints.reach("run.sent")
    sent = Run.objects.filter(pk=run.pk, sent_at=None)
    sent.update(sent_at=held.now(), attempts=0, message="")
    Run.objects.filter(pk=run.pk, state=State.SUBMITTED).update(state=State.WAITING)


def _created(run: Run, client: Cluster, manifest: Manifest, held: lease.Lease) -> dict[str, Any]:
    """An object of the run as it stands on the cluster, created if it was not there; raises LeaseLost."""
    held.hold()
    try:
        made = client.create(manifest)
    except PermanentError as error:
        if error.code != "already_exists":
            raise
    else:
        if not held.renew():
            _came_too_late(run, client)
        return made
    found = client.get(ref_of(manifest), manifest["metadata"]["name"], manifest["metadata"]["namespace"])
    if found is None or found["metadata"].get("labels", {}).get(RUN_LABEL) != run.name:
        name = manifest["metadata"]["name"]
        raise PermanentError(
            f"{manifest['kind']} {name} is there already and not of this run.", code="invalid"
        )
    return found


def _came_too_late(run: Run, client: Cluster) -> None:
    """Take away what was created after the run's stop, whose worker could not see it; raises LeaseLost."""
    if Run.objects.filter(pk=run.pk, stop_asked_at__isnull=False).exists():
        client.delete(ref_of(run.main), run.name, run.main["metadata"]["namespace"])
    raise lease.LeaseLost


def _take_away(run: Run, client: Cluster, now: Clock) -> None:
    """Delete the run's objects and see its pods go; those that still have their grace are looked at again soon."""
    main = run.main
    where = main["metadata"]["namespace"]
    client.delete(ref_of(main), run.name, where)
    failpoints.reach("run.deleted")
    is_gone = client.get(ref_of(main), run.name, where) is None
    if is_gone and not client.list(POD, where, label_selector=f"{RUN_LABEL}={run.name}"):
        end(run.pk, State.STOPPED, now=now())
        return
    Run.objects.filter(pk=run.pk).update(next_try_at=now() + FIRST_PAUSE, attempts=0, message="")


def _failed(run: Run, error: ConnectorError, *, now: datetime) -> None:
    """Try again later, or end what the cluster will never take; a run that is being stopped is tried for ever."""
    final = isinstance(error, PermanentError) and error.code in FINAL
    if final and run.stop_asked_at is None and run.sent_at is None:
        end(run.pk, State.REFUSED, now=now, message=error.message)
        return
    pause = min(FIRST_PAUSE * 2 ** min(run.attempts, 6), LONGEST_PAUSE) * (1 - _random.random() / 2)
    Run.objects.filter(pk=run.pk).update(message=error.message[:600], next_try_at=now + pause)


@transaction.atomic
def end(run_id: int, state: State, *, now: datetime, message: str = "", at: datetime | None = None) -> bool:
    """Write down how a run ended, once; False when it had ended. Who started it is told when it was no short one."""
    from workloads.runs.notices import tell_ended

    run = Run.objects.locked().get(pk=run_id)
    if run.is_over:
        return False
    run.state, run.message = state, message[:600]
    run.ended_at = max(at or now, run.running_since or run.started_at or run.created_at)
    run.ran_seconds, run.running_since = round(run.ran(run.ended_at).total_seconds()), None
    run.save(update_fields=["state", "message", "ended_at", "ran_seconds", "running_since"])
    tell_ended(run, now=now)
    record(
        Kind.RUN_ENDED,
        actor=PORTAL,
        subject=("run", run.pk),
        team_id=run.team_id,
        name=run.name,
        state=str(state),
        message=run.message or None,
    )
    return True
