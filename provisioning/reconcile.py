"""Making a tenancy true: lease, list, plan, apply, read back, one status write.

No database transaction is open while a cluster is called, and nothing is written to a cluster that is already so.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from secrets import SystemRandom

import structlog

from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.kubernetes import Cluster as Client
from provisioning import breaker, failpoints, lease
from provisioning.delivery import client_for
from provisioning.manifests import TENANCY_LABEL, Manifest, tenancy_objects
from provisioning.models import Tenancy
from provisioning.plan import Key, Step, Verb, first_difference, plan
from provisioning.status import Seen, write_status
from provisioning.usage import gpus_used

logger = logging.getLogger(__name__)

AGAIN_WHEN_TRUE = timedelta(seconds=60)
AGAIN_WHEN_REFUSED = timedelta(minutes=5)


class LeaseLost(Exception):
    """Another worker has taken over; everything else is its business now."""


@dataclass
class Pass:
    """One pass over one tenancy: what was seen of each object, and how the pass ended."""

    tenancy: Tenancy
    held: lease.Lease
    now: Callable[[], datetime]
    wanted: list[Key] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    writes: int = 0

    def step(self, client: Client, step: Step) -> None:
        """Do one step; raises LeaseLost before a write that would be a stale worker's."""
        if step.verb is Verb.KEEP and step.why:
            raise TemporaryError(f"{step.key.kind} {step.key.name} {step.why}.", retry_after=1)
        if step.verb is Verb.FOREIGN:
            raise PermanentError(step.why, code="foreign")
        if step.verb is not Verb.KEEP:
            if not self.held.renew(now=self.now()):
                raise LeaseLost
            self._write(client, step)
        if step.verb is not Verb.DELETE:
            self.seen.append(Seen.true(step.key, now=self.now()))

    def _write(self, client: Client, step: Step) -> None:
        if step.manifest is None:
            client.delete(step.key.ref, step.key.name, step.key.namespace or None)
        else:
            answer = client.apply(step.manifest)
            # A field may vanish without an error (a pruned field of another version): only what is there counts.
            vanished = first_difference(step.manifest, answer)
            if vanished:
                raise PermanentError(
                    f"{step.key.kind} {step.key.name}: {vanished} after writing.", code="vanished"
                )
        self.writes += 1
        failpoints.reach("provision.write")


def reconcile(tenancy_id: int, *, now: Callable[[], datetime]) -> int | None:
    """Make one tenancy true and return the number of writes it took; None when another worker is at it."""
    held = lease.take(tenancy_id, now=now())
    if held is None:
        return None
    tenancy = Tenancy.objects.select_related("cluster", "team").get(pk=tenancy_id)
    structlog.contextvars.bind_contextvars(tenancy=tenancy_id, lease=held.number)
    run = Pass(tenancy, held, now)
    started = time.monotonic()
    try:
        _run(run)
    except LeaseLost:
        logger.warning("lease lost")
    except ConnectorError as error:
        _failed(run, _said(run, error, seconds=time.monotonic() - started))
    except Exception as error:
        # A bug of ours must be seen on the page too, not only in a log, and must not end the worker.
        logger.exception("reconcile broke")
        _failed(run, PermanentError(f"The portal failed ({type(error).__name__}). Its operators were told."))
    finally:
        structlog.contextvars.unbind_contextvars("tenancy", "lease")
    return run.writes


def _run(run: Pass) -> None:
    if not run.tenancy.generation:
        run.held.write(lease_until=None, next_look_at=run.now() + AGAIN_WHEN_TRUE, attempts=0)
        return
    failpoints.reach("provision.write")
    desired = tenancy_objects(run.tenancy.desired)
    run.wanted = [Key.of(manifest) for manifest in desired]
    pause = breaker.seconds_left(run.tenancy.cluster_id)
    if pause:
        raise _no_answer(run, retry_after=pause)
    client = client_for(run.tenancy.cluster)
    live = observe(client, desired, run.tenancy.pk)
    for step in plan(desired, live):
        run.step(client, step)
    breaker.has_answered(run.tenancy.cluster_id)
    write_status(run.tenancy, run.held, seen=run.seen, error=None, writes=run.writes, now=run.now(),
                 next_look_at=run.now() + AGAIN_WHEN_TRUE, used=_used(live))  # fmt: skip


def _used(live: Mapping[Key, Manifest]) -> dict[str, int] | None:
    """What the tenancy's queue says is in use; None before there is one."""
    queue = next((found for key, found in live.items() if key.kind == "ClusterQueue"), None)
    return None if queue is None else gpus_used(queue)


def _said(run: Pass, error: ConnectorError, *, seconds: float) -> ConnectorError:
    """The failure as people read it: a cluster that hangs is named, not the call that happened to find out."""
    if not breaker.kept_waiting(run.tenancy.cluster_id, error, seconds=seconds):
        return error
    logger.warning("cluster does not answer", extra={"error": error.message})
    return _no_answer(run, retry_after=breaker.seconds_left(run.tenancy.cluster_id))


def _no_answer(run: Pass, *, retry_after: float) -> TemporaryError:
    return TemporaryError(f"{run.tenancy.cluster.name} does not answer.", retry_after=retry_after)


def _failed(run: Pass, error: ConnectorError) -> None:
    """End a pass that an outside system refused or left unanswered: say so, and book the next try."""
    if isinstance(error, TemporaryError):
        wait = timedelta(
            seconds=min(2 ** min(run.tenancy.attempts, 6), 60) * SystemRandom().uniform(0.7, 1.3)
        )
        wait = max(wait, timedelta(seconds=error.retry_after or 0))
    else:
        wait = AGAIN_WHEN_REFUSED
    unseen = run.wanted[len(run.seen) :]
    rest = [Seen.failed(key, str(error), now=run.now()) for key in unseen[:1]]
    rest += [Seen.waiting(key, now=run.now()) for key in unseen[1:]]
    logger.warning("tenancy not true", extra={"error": error.message, "writes": run.writes})
    write_status(run.tenancy, run.held, seen=[*run.seen, *rest], error=error, writes=run.writes, now=run.now(),
                 next_look_at=run.now() + wait)  # fmt: skip


def observe(client: Client, desired: Sequence[Manifest], tenancy_id: int) -> dict[Key, Manifest]:
    """What stands on the cluster: all that carries the tenancy's label, and whatever else sits in a wanted place."""
    live: dict[Key, Manifest] = {}
    mine = f"{TENANCY_LABEL}={tenancy_id}"
    for api_version, kind, namespace in dict.fromkeys(
        (m["apiVersion"], m["kind"], m["metadata"].get("namespace")) for m in desired
    ):
        for found in client.list((api_version, kind), namespace, label_selector=mine):
            found.setdefault("apiVersion", api_version)
            found.setdefault("kind", kind)
            live[Key.of(found)] = found
    for manifest in desired:
        key = Key.of(manifest)
        if key not in live:
            other = client.get(key.ref, key.name, key.namespace or None)
            if other is not None:
                live[key] = other
    return live
