"""What a worker does for a run: create its objects, once, give it another time limit, or take them away.

One worker at a time holds a run's lease, and loses it within seconds of its death. Names are the run's own, so what was
created before an answer was lost is found again and not created twice. A worker that slept until another one had the
lease begins nothing more, and takes away again what it created for a run that was stopped meanwhile.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from random import SystemRandom
from typing import Any

from django.db import transaction

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.kubernetes import Cluster, Manifest, ref_of
from provisioning.delivery import client_for
from reconciling import failpoints
from reconciling.backoff import Backoff
from reconciling.controller import MAX_UNFINISHED, Controller
from reconciling.lease import Lease, LeaseLost
from workloads.runs.ending import end
from workloads.runs.enqueue import queue
from workloads.runs.logs.keeping import keep_before_it_goes
from workloads.runs.models import Run, RunQuerySet
from workloads.runs.planning.words import follows_git_words
from workloads.runs.states import State
from workloads.templates.pods import RUN_LABEL
from workloads.templates.time_limits import JOB, timed_job

POD = ("v1", "Pod")
# While pods have their grace, and after a call that failed.
SOON = timedelta(seconds=1)
RETRIES = Backoff(timedelta(seconds=2), timedelta(seconds=30))
# What the API server will say again, however often it is asked.
# A right, a quota and a namespace may still come.
FINAL = frozenset({"invalid", "denied", "bad_request", "unknown_kind", "follows_git"})
PARKED = (
    f"{MAX_UNFINISHED} tries in a row ended the portal's worker. Platform leads were told and find the reason in the "
    "workers' logs. Stop the run, and submit it again when they have seen to it."
)
PARKED_LIMIT = (
    f"{MAX_UNFINISHED} tries in a row ended the portal's worker. Platform leads were told. The run goes on with its "
    "earlier limit: set it again when they have seen to it."
)
_random = SystemRandom()
Clock = Callable[[], datetime]


def _rows() -> RunQuerySet:
    # A worker reads where the run goes, and nothing of what a page says of it: every join is time until it is sent.
    return Run.objects.select_related("tenancy__cluster").to_do()


def _park(run: Run, now: datetime) -> list[str]:
    """Say on the run, to the platform leads and to the audit log that it is tried no more; the fields to be saved."""
    from workloads.runs.notices import tell_parked

    goes_on = run.sent_at is not None and run.stop_asked_at is None
    run.message = PARKED_LIMIT if goes_on else PARKED
    tell_parked(run, now=now)
    record(
        Kind.RUN_PARKED,
        actor=PORTAL,
        subject=("run", run.pk),
        team_id=run.team_id,
        name=run.name,
    )
    return ["message"]


CONTROLLER: Controller[Run] = Controller(rows=_rows, queue=queue, park=_park)


def look_after(run_id: int, *, now: Clock) -> bool:
    """Do what is due for a run; False when nothing is, or another worker is at it."""
    lease = CONTROLLER.acquire(run_id, now=now(), only_due=True)
    if lease is None:
        return False
    with CONTROLLER.work(
        lease, now=now, fail=lambda error: _failed(lease, error, now=now())
    ):
        is_to_be_sent = lease.row.sent_at is None and lease.row.stop_asked_at is None
        if is_to_be_sent:
            _refuse_following_git(lease.row)
        client = client_for(lease.row.cluster)
        if lease.row.stop_asked_at is not None:
            _take_away(lease, client, now)
        elif is_to_be_sent:
            _send(lease, client, now)
        else:
            _set_limit(lease, client, now)
    return True


def _refuse_following_git(run: Run) -> None:
    """Raise PermanentError where the cluster has come to follow Git since the run was submitted, as by a long wait."""
    if not run.cluster.is_written_to:
        raise PermanentError(follows_git_words(run.cluster.title), code="follows_git")


def _send(lease: Lease[Run], client: Cluster, now: Clock) -> None:
    """Create the run's objects. What goes along with it is owned by it, so that Kubernetes deletes it with it."""
    run = lease.row
    failpoints.reach("run.write")
    main = _created(lease, client, run.main, now)
    failpoints.reach("run.write")
    owner = {
        "apiVersion": run.main["apiVersion"],
        "kind": run.main["kind"],
        "name": run.name,
        "uid": main["metadata"]["uid"],
    }
    try:
        for manifest in run.manifests:
            if manifest != run.main:
                head = {**manifest["metadata"], "ownerReferences": [owner]}
                _created(lease, client, {**manifest, "metadata": head}, now)
                failpoints.reach("run.write")
    except PermanentError as error:
        if error.code in FINAL:
            # The run ends by it, and nobody would look after what is there of it already.
            _delete(run, client)
        raise
    failpoints.reach("run.sent")
    if lease.finish(requeue_at=now(), now=now(), sent_at=now(), attempts=0, message=""):
        Run.objects.filter(pk=run.pk, state=State.SUBMITTED).update(state=State.WAITING)


def _set_limit(lease: Lease[Run], client: Cluster, now: Clock) -> None:
    """Have Kubernetes end the run at the time limit that it is to have; it counts from the same moment as before."""
    run = lease.row
    where, name = run.main["metadata"]["namespace"], timed_job(run.main)
    if name is None:
        raise PermanentError(
            f"A {run.main['kind']} keeps its time limit.", code="invalid"
        )
    lease.check(now=now())
    client.merge(
        JOB, name, where, {"spec": {"activeDeadlineSeconds": run.limit_seconds}}
    )
    failpoints.reach("run.limited")
    lease.finish(
        requeue_at=now(),
        now=now(),
        limit_on_cluster=run.limit_seconds,
        attempts=0,
        message="",
    )


def _created(
    lease: Lease[Run], client: Cluster, manifest: Manifest, now: Clock
) -> dict[str, Any]:
    """An object of the run as it stands on the cluster, created if it was not there; raises LeaseLost."""
    lease.check(now=now())
    try:
        made = client.create(manifest)
    except PermanentError as error:
        if error.code != "already_exists":
            raise
    else:
        if not lease.renew(now=now()):
            _came_too_late(lease.row, client)
        return made
    found = client.get(
        ref_of(manifest),
        manifest["metadata"]["name"],
        manifest["metadata"]["namespace"],
    )
    if (
        found is None
        or found["metadata"].get("labels", {}).get(RUN_LABEL) != lease.row.name
    ):
        name = manifest["metadata"]["name"]
        raise PermanentError(
            f"{manifest['kind']} {name} is there already and not of this run.",
            code="invalid",
        )
    return found


def _came_too_late(run: Run, client: Cluster) -> None:
    """Take away what was created after the run's stop, whose worker could not see it; raises LeaseLost."""
    if Run.objects.filter(pk=run.pk, stop_asked_at__isnull=False).exists():
        _delete(run, client)
    raise LeaseLost


def _delete(run: Run, client: Cluster) -> None:
    """Delete what a run is on its cluster, and what belongs to that with it."""
    client.delete(ref_of(run.main), run.name, run.main["metadata"]["namespace"])


def _take_away(lease: Lease[Run], client: Cluster, now: Clock) -> None:
    """Delete the run's objects and see its pods go; those that still have their grace are looked at again soon."""
    run = lease.row
    where = run.main["metadata"]["namespace"]
    keep_before_it_goes(run, now=now())
    lease.check(now=now())
    _delete(run, client)
    failpoints.reach("run.deleted")
    is_gone = client.get(ref_of(run.main), run.name, where) is None
    if is_gone and not client.list(
        POD, where, label_selector=f"{RUN_LABEL}={run.name}"
    ):
        _end(lease, State.STOPPED, now=now())
        return
    lease.finish(requeue_at=now() + SOON, now=now(), attempts=0, message="")


def _failed(lease: Lease[Run], error: ConnectorError, *, now: datetime) -> None:
    """Book the next try; what the API server refuses for good ends the run, but none that is there already."""
    run = lease.row
    if (
        isinstance(error, PermanentError)
        and error.code in FINAL
        and run.stop_asked_at is None
        and run.sent_at is None
    ):
        _end(lease, State.REFUSED, now=now, message=error.message)
        return
    if Run.objects.filter(pk=run.pk, ended_at__isnull=False).exists():
        # It ended with its cluster meanwhile, for a reason that stays.
        lease.release()
        return
    retry_after = error.retry_after if isinstance(error, TemporaryError) else None
    wait = RETRIES.wait(run.attempts, chance=_random.random(), retry_after=retry_after)
    lease.finish(requeue_at=now + wait, now=now, message=error.message[:600])


@transaction.atomic
def _end(lease: Lease[Run], state: State, *, now: datetime, message: str = "") -> None:
    """End the run, unless another worker has taken it over."""
    if lease.release():
        end(lease.row.pk, state, now=now, message=message)
