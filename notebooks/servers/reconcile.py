"""What a worker does for a notebook server: have its hub start or stop it, and see it come up or go.

One worker at a time holds a server's lease. Names are the server's own, so what was started before an answer was lost
is found again and not started twice.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from random import SystemRandom
from typing import Any

from django.db import transaction

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.jupyterhub import HubServer, JupyterHub
from notebooks.hubs.clients import NO_HUB, client_at
from notebooks.servers.enqueue import queue
from notebooks.servers.missing_secrets import (
    GIVEN_UP,
    given_up_at,
    missing_secret,
)
from notebooks.servers.models import NotebookServer, NotebookServerQuerySet
from notebooks.servers.notices import tell_failed, tell_stopped
from notebooks.servers.room import is_for_room, lacking, too_large
from notebooks.servers.savings import note_start, note_stop
from notebooks.servers.states import LEGAL, State, StopReason
from reconciling import failpoints
from reconciling.backoff import Backoff
from reconciling.controller import MAX_UNFINISHED, Controller, RequeueAfter
from reconciling.lease import Lease

RETRIES = Backoff(timedelta(seconds=2), timedelta(seconds=30))
# What ends a start, however often it is tried. A token and a user may still come, and a hub that is away come back.
FINAL = frozenset({"invalid", NO_HUB})
# How soon a server that comes up or goes is seen again: one that waits in a queue may take hours.
SOON, PATIENT, LONG = timedelta(seconds=1), timedelta(seconds=5), timedelta(minutes=2)
# Not none, or each message would have it tried at once (`ReconciledQuerySet.wanted`).
WAITS = 1
# How long a start waits until what was just granted stands on the cluster.
WAITS_FOR_QUOTA = timedelta(minutes=2)
NO_REASON = "The hub did not start it and says no reason. Its log has it; platform leads can read that."
PARKED = (
    f"{MAX_UNFINISHED} tries in a row ended the portal's worker. Platform leads find the reason in the workers' logs. "
    "Stop the notebook, and start it again when they have seen to it."
)
_random = SystemRandom()
Clock = Callable[[], datetime]


def _rows() -> NotebookServerQuerySet:
    return NotebookServer.objects.select_related("tenancy", "profile").to_do()


def _park(server: NotebookServer, now: datetime) -> list[str]:
    server.message = PARKED
    record(
        Kind.NOTEBOOK_PARKED,
        actor=PORTAL,
        subject=("notebook", server.pk),
        team_id=server.team_id,
        name=server.title,
    )
    return ["message"]


CONTROLLER: Controller[NotebookServer] = Controller(rows=_rows, queue=queue, park=_park)


def reconcile(server_id: int, *, now: Clock) -> bool:
    """Do what is due for a server; False when nothing is, or another worker is at it."""
    lease = CONTROLLER.acquire(server_id, now=now(), only_due=True)
    if lease is None:
        return False
    with CONTROLLER.work(
        lease, now=now, fail=lambda error: _failed(lease, error, now=now())
    ):
        client = client_at(lease.row.tenancy.cluster_id)
        if lease.row.state == State.STOPPING:
            _stop(lease, client, now)
        elif lease.row.observed_generation < lease.row.generation:
            _start(lease, client, now)
        else:
            _watch(lease, client, now)
    return True


def _start(lease: Lease[NotebookServer], client: JupyterHub, now: Clock) -> None:
    server = lease.row
    is_new = now() - server.launched_at < WAITS_FOR_QUOTA
    if not server.tenancy.observed_generation or (
        is_new and not server.tenancy.is_settled
    ):
        # A pod that comes before its quota is refused for good.
        raise RequeueAfter(SOON)
    if _is_lacking(lease, client, now):
        return
    lease.check(now=now())
    client.ensure_user(server.username)
    failpoints.reach("notebook.user")
    lease.check(now=now())
    is_ready = client.start(
        server.username, server.name, title=server.title, options=server.user_options
    )
    failpoints.reach("notebook.started")
    lease.finish(
        requeue_at=now() + (timedelta(0) if is_ready else SOON),
        now=now(),
        observed_generation=server.generation,
        attempts=0,
        message="",
    )


def _is_lacking(lease: Lease[NotebookServer], client: JupyterHub, now: Clock) -> bool:
    """Whether a start waits for GPUs of its namespace, or can never have them; then the lease is finished."""
    server = lease.row
    found = client.server(server.username, server.name)
    if found is not None and (found.is_ready or found.pending):
        # Its pod counts in the quota already.
        return False
    if never := too_large(server):
        _end(
            lease,
            State.FAILED,
            now=now(),
            message=never,
            observed_generation=server.generation,
            secret_missed_at=None,
        )
        return True
    missing = lacking(server, now=now())
    if missing:
        lease.finish(
            requeue_at=now() + PATIENT, now=now(), attempts=WAITS, message=missing
        )
    return bool(missing)


def _watch(lease: Lease[NotebookServer], client: JupyterHub, now: Clock) -> None:
    """See whether a server that was started is ready, comes up still, or failed, and why."""
    server = lease.row
    found = client.server(server.username, server.name)
    if found is not None and found.is_ready:
        _end(lease, State.READY, now=now(), **ready(server, found, now=now()))
    elif found is not None and found.pending:
        if _is_without_secret(lease, client, now):
            return
        has_waited = now() - server.launched_at > LONG
        lease.finish(
            requeue_at=now() + (PATIENT if has_waited else SOON),
            now=now(),
            attempts=0,
            message="",
            secret_missed_at=None,
        )
    else:
        why = client.failure(server.username, server.name)
        if is_for_room(server, why):
            # Another pod was faster: it is started anew.
            lease.finish(
                requeue_at=now() + PATIENT,
                now=now(),
                attempts=WAITS,
                observed_generation=server.generation - 1,
                message=why[:600],
                secret_missed_at=None,
            )
            return
        told = {"message": (why or NO_REASON)[:600], "secret_missed_at": None}
        _end(lease, State.FAILED, now=now(), **told)


def _is_without_secret(
    lease: Lease[NotebookServer], client: JupyterHub, now: Clock
) -> bool:
    """Whether a start waits for a Secret, which its owner is told; after a time it is given up, and its pod goes."""
    server = lease.row
    missing = missing_secret(server, now=now())
    if missing is None and server.secret_missed_at is not None:
        # An answer that does not come takes nothing back, and ends nothing.
        lease.finish(requeue_at=now() + PATIENT, now=now(), attempts=0)
        return True
    if not missing:
        return False
    ends = given_up_at(server)
    if ends is not None and ends <= now():
        lease.check(now=now())
        client.stop(server.username, server.name)
        _end(lease, State.FAILED, now=now(), message=f"{missing} {GIVEN_UP}"[:600])
        return True
    since = server.secret_missed_at or now()
    waits = {"message": missing[:600], "secret_missed_at": since}
    lease.finish(requeue_at=now() + PATIENT, now=now(), attempts=0, **waits)
    return True


def _stop(lease: Lease[NotebookServer], client: JupyterHub, now: Clock) -> None:
    server = lease.row
    lease.check(now=now())
    is_gone = client.stop(server.username, server.name)
    failpoints.reach("notebook.stopped")
    if is_gone:
        _end(
            lease,
            State.STOPPED,
            now=now(),
            observed_generation=server.generation,
            message="",
        )
    else:
        lease.finish(requeue_at=now() + SOON, now=now(), attempts=0, message="")


def _failed(
    lease: Lease[NotebookServer], error: ConnectorError, *, now: datetime
) -> None:
    """Book the next try; what cannot succeed ends the start, and a stop only where no hub is there to do it."""
    server = lease.row
    code = error.code if isinstance(error, PermanentError) else ""
    taken = {"observed_generation": server.generation, "secret_missed_at": None}
    if server.state == State.STARTING and code in FINAL:
        _end(lease, State.FAILED, now=now, message=error.message, **taken)
        return
    if server.state == State.STOPPING and code == NO_HUB:
        _end(lease, State.STOPPED, now=now, message="", **taken)
        return
    retry_after = error.retry_after if isinstance(error, TemporaryError) else None
    wait = RETRIES.wait(
        server.attempts, chance=_random.random(), retry_after=retry_after
    )
    # What a start waits for its owner can change, unlike this.
    is_waiting = server.secret_missed_at is not None
    message = server.message if is_waiting else error.message[:600]
    lease.finish(requeue_at=now + wait, now=now, message=message)


@transaction.atomic
def _end(
    lease: Lease[NotebookServer], state: State, *, now: datetime, **fields: Any
) -> None:
    """Move the server on, unless another worker has taken it over or something else is wanted of it by now."""
    if lease.finish(requeue_at=now, now=now, attempts=0):
        move(lease.row.pk, state, seen=State(lease.row.state), now=now, **fields)


def ready(
    server: NotebookServer, found: HubServer, *, now: datetime
) -> Mapping[str, Any]:
    """What is kept of a server that its hub says is ready."""
    return {
        "ready_at": server.ready_at or now,
        "path": found.path[:400],
        "active_at": found.active_at or now,
        "message": "",
    }


@transaction.atomic
def move(
    server_id: int, state: State, *, seen: State, now: datetime, **fields: Any
) -> bool:
    """Write down how a server stands now; False, and nothing changed, where it is not as it was `seen`.

    One that is ready can become ready anew, when it was started again in between.
    A stop that nobody asked for in the portal is one from elsewhere, unless `stop_reason` says otherwise. Whoever
    launched it is told of a failure.
    """
    server = NotebookServer.objects.locked().filter(pk=server_id, state=seen).first()
    if server is None or state not in LEGAL[seen] | {seen}:
        return False
    if state not in (State.READY, State.STARTING):
        fields |= {
            "ready_at": None,
            "warned_at": None,
            **server.ran_until(now),
        }
    if state is State.STOPPED:
        why = server.stop_reason or fields.get("stop_reason", StopReason.ELSEWHERE)
        fields |= {"stopped_at": now, "stop_reason": why}
    if state is State.FAILED:
        fields |= {"stopped_at": now}
    for name, value in fields.items():
        setattr(server, name, value)
    server.state = state
    server.save(update_fields=["state", *fields])
    if state is State.STOPPED and server.stop_reason == StopReason.IDLE:
        note_stop(server, now=now)
    if state is State.READY:
        note_start(server, now=now)
    _report(server, now=now)
    return True


def _report(server: NotebookServer, *, now: datetime) -> None:
    kind = {
        State.READY: Kind.NOTEBOOK_READY,
        State.STOPPED: Kind.NOTEBOOK_ENDED,
        State.FAILED: Kind.NOTEBOOK_FAILED,
    }.get(State(server.state))
    if kind is None:
        return
    if server.state == State.FAILED:
        tell_failed(server, now=now)
    if server.state == State.STOPPED:
        tell_stopped(server, now=now)
    record(
        kind,
        actor=PORTAL,
        subject=("notebook", server.pk),
        team_id=server.team_id,
        name=server.title,
        reason=server.stop_reason or server.message or None,
    )
