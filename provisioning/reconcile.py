"""Making a tenancy true: lease, list, plan, apply, read back, one status write.

No database transaction is open while a cluster is called, and nothing is written to a cluster that is already so.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from secrets import SystemRandom

import structlog
from django.db import OperationalError

from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.kubernetes import Cluster as Client
from fleet.models import Cluster
from provisioning import lease, throttle, writing
from provisioning.clusters import identity, kueue
from provisioning.delivery import client_for
from provisioning.desired import gitops as keepers
from provisioning.desired.manifests import NAMED, Manifest, sometimes, tenancy_objects
from provisioning.desired.objects import selector
from provisioning.desired.plan import Key, Step, Verb, plan
from provisioning.desired.spec import TenancySpec
from provisioning.desired.usage import gpus_used
from provisioning.drift import reconcile as drifting
from provisioning.drift.reconcile import Drifts
from provisioning.git import pull_requests as git_delivery
from provisioning.models import Tenancy
from provisioning.removing import Removal, note_gone
from provisioning.stages import Stage
from provisioning.status import Seen, write_status
from reconciling import failpoints
from reconciling.breaker import PAUSES

logger = logging.getLogger(__name__)

WRITING = frozenset({Verb.CREATE, Verb.UPDATE, Verb.DELETE})
NAMESPACE = ("v1", "Namespace")
AGAIN_WHEN_TRUE = timedelta(seconds=60)
AGAIN_WHEN_REFUSED = timedelta(minutes=5)


class LeaseLost(Exception):
    """Another worker has taken over; everything else is its business now."""


class NoBudget(Exception):
    """So much was written to the cluster just now that this pass comes later; nothing is wrong with it."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(wait)
        self.wait = wait


@dataclass
class Pass:
    """One pass over one tenancy: what was seen of each object, and how the pass ended."""

    tenancy: Tenancy
    held: lease.Lease
    now: Callable[[], datetime]
    began: datetime
    wanted: list[Key] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    writes: int = 0
    drifts: Drifts | None = None

    def pay(self, steps: Sequence[Step]) -> None:
        """Take the budget for every write of the pass; raises NoBudget when there is not enough now."""
        writes = sum(step.verb in WRITING for step in steps)
        on_boarding = not self.tenancy.observed_generation
        wait = throttle.reserve(self.tenancy.cluster, writes, on_boarding=on_boarding, now=self.began)
        if wait is not None:
            raise NoBudget(wait)

    def step(self, client: Client, step: Step) -> None:
        """Do one step; raises LeaseLost before a write that would be a stale worker's."""
        if step.verb is Verb.KEEP and step.why:
            raise TemporaryError(f"{step.key.kind} {step.key.name} {step.why}.", retry_after=1)
        if step.verb is Verb.FOREIGN:
            raise PermanentError(step.why, code="foreign")
        if step.verb is not Verb.KEEP:
            if not self.held.hold(now=self.now()):
                raise LeaseLost
            self._write(client, step)
        if step.verb is not Verb.DELETE:
            note = self.drifts.note(step.key) if self.drifts else ""
            seen = (
                Seen.changed(step.key, note, now=self.now()) if note else Seen.true(step.key, now=self.now())
            )
            self.seen.append(seen)

    def settle(
        self, steps: Sequence[Step], desired: Sequence[Manifest], live: Mapping[Key, Manifest]
    ) -> list[Step]:
        """The steps without what drifted and has to wait; raises LeaseLost."""
        try:
            settled, self.drifts = drifting.settle(
                self.tenancy, self.held, desired=desired, steps=steps, live=live, now=self.now()
            )
        except drifting.Superseded as error:
            raise LeaseLost from error
        return settled

    def _write(self, client: Client, step: Step) -> None:
        for _ in writing.write(client, step):
            self.writes += 1
            failpoints.reach("provision.write", of=self.tenancy.pk)


def reconcile(tenancy_id: int, *, now: Callable[[], datetime]) -> int | None:
    """Make one tenancy true and return the number of writes it took; None when another worker is at it."""
    began = now()
    held = lease.take(tenancy_id, now=began)
    if held is None or held.read is None:
        return None
    tenancy = held.read
    structlog.contextvars.bind_contextvars(tenancy=tenancy_id, lease=held.number)
    run = Pass(tenancy, held, now, began)
    started = time.monotonic()
    try:
        with lease.kept(held, now=now):
            _run(run)
    except LeaseLost:
        logger.warning("lease lost")
        held.come_back()
    except NoBudget as turn:
        held.give_back(next_look_at=now() + turn.wait, attempts=0)
    except ConnectorError as error:
        _failed(run, _said(run, error, seconds=time.monotonic() - started))
    except OperationalError:
        # A row that was held, or a database that went away. The next try was booked when the lease was taken.
        held.come_back()
        raise
    except MemoryError:
        # As little is certain after it as after a crash, and it counts as one: the lease ends by itself.
        logger.exception("out of memory")
        raise
    except Exception as error:
        # A bug of ours must be seen on the page too, not only in a log, and must not end the worker.
        logger.exception("reconcile broke")
        _failed(run, PermanentError(f"The portal failed ({type(error).__name__}). Its operators were told."))
    finally:
        structlog.contextvars.unbind_contextvars("tenancy", "lease")
    return run.writes


def _run(run: Pass) -> None:
    if not run.tenancy.generation or run.tenancy.stage == Stage.GONE:
        run.held.give_back(next_look_at=run.now() + AGAIN_WHEN_TRUE, attempts=0)
        return
    failpoints.reach("provision.write", of=run.tenancy.pk)
    desired = tenancy_objects(run.tenancy.desired)
    run.wanted = [Key.of(manifest) for manifest in desired]
    cluster = run.tenancy.cluster
    pause = throttle.seconds_to_wait(cluster, now=run.began)
    if pause:
        raise _no_answer(run, retry_after=pause)
    with throttle.probe(cluster, now=run.now) as may_call:
        if not may_call:
            raise _no_answer(run, retry_after=PAUSES.first.total_seconds())
        _make_true(run, desired)


def _make_true(run: Pass, desired: Sequence[Manifest]) -> None:
    """Call the cluster, or the repository that it follows."""
    cluster, spec = run.tenancy.cluster, run.tenancy.desired
    if cluster.delivery == Cluster.Delivery.GIT:
        run.writes = git_delivery.make_true(
            git_delivery.Turn(run.tenancy, run.held, run.now, observe), desired
        )
        throttle.answered(cluster, now=run.now())
        return
    kueue.check(cluster.kueue_version)
    client = client_for(cluster)
    if not run.tenancy.stands:
        identity.confirm(cluster, client)
        _remove(run, client)
        return
    live = observe(client, desired, spec, is_new=not run.tenancy.observed_generation)
    steps = plan(desired, live)
    if any(step.verb is not Verb.KEEP for step in steps):
        identity.confirm(cluster, client)
    steps = run.settle(steps, desired, live)
    keepers.refuse_kept_by_others(steps, live)
    run.pay(steps)
    for step in steps:
        run.step(client, step)
    write_status(
        run.tenancy,
        run.held,
        seen=run.seen,
        error=None,
        writes=run.writes,
        now=run.now(),
        next_look_at=run.now() + AGAIN_WHEN_TRUE,
        used=_used(live),
        drifts=run.drifts,
    )
    throttle.answered(cluster, now=run.now())


def _remove(run: Pass, client: Client) -> None:
    """Delete what a team that left had here; nothing is made true any more."""
    run.wanted = [Key("v1", "Namespace", "", run.tenancy.namespace)]
    removal = Removal(
        run.tenancy, client, pay=run.pay, renew=lambda: run.held.hold(now=run.now()), lost=LeaseLost
    )
    try:
        removal.run()
    finally:
        run.writes = removal.writes
    note_gone(run.tenancy, run.held, writes=run.writes, now=run.now())
    throttle.answered(run.tenancy.cluster, now=run.now())


def _used(live: Mapping[Key, Manifest]) -> dict[str, int] | None:
    """What the tenancy's queue says is in use; None before there is one."""
    queue = next((found for key, found in live.items() if key.kind == "ClusterQueue"), None)
    return None if queue is None else gpus_used(queue)


def _said(run: Pass, error: ConnectorError, *, seconds: float) -> ConnectorError:
    """The failure as people read it: a cluster that hangs is named, not the call that happened to find out."""
    if not throttle.failed(run.tenancy.cluster, error, seconds=seconds, now=run.now()):
        return error
    logger.warning("cluster does not answer", extra={"error": error.message})
    return _no_answer(run, retry_after=throttle.seconds_here(run.tenancy.cluster))


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
    write_status(
        run.tenancy,
        run.held,
        seen=[*run.seen, *rest],
        error=error,
        writes=run.writes,
        now=run.now(),
        next_look_at=run.now() + wait,
        drifts=run.drifts,
    )


def observe(
    client: Client, desired: Sequence[Manifest], spec: TenancySpec, *, is_new: bool = False
) -> dict[Key, Manifest]:
    """What stands on the cluster: all with the tenancy's labels, and whatever else sits in a wanted place.

    Of a namespace only the wanted place is read, because none is ever pruned. The same goes for what is cluster-wide
    while the tenancy `is_new`: a list of it reads every team's, and what is too much is found once it is true.
    """
    live: dict[Key, Manifest] = {}
    absent = set[str]()
    keys = [Key.of(manifest) for manifest in desired]
    _read(client, [key for key in keys if key.ref == NAMESPACE], absent, live)
    places = dict.fromkeys((key.ref, key.namespace) for key in keys)
    spaces = dict.fromkeys(key.namespace for key in keys if key.namespace)
    more = dict.fromkeys((ref, space) for ref in sometimes(spec) for space in spaces)
    for ref, namespace in places | more:
        if ref != NAMESPACE and namespace not in absent and (namespace or not is_new):
            live |= {
                Key.of(one): one
                for one in client.list(
                    ref, namespace or None, label_selector=selector(spec), name=NAMED.get(ref, "")
                )
            }
    _read(client, keys, absent, live)
    return live


def _read(client: Client, keys: Iterable[Key], absent: set[str], live: dict[Key, Manifest]) -> None:
    """Put what sits in these places into `live`, and the namespaces that are not there into `absent`."""
    for key in keys:
        if key in live or key.namespace in absent or (key.ref == NAMESPACE and key.name in absent):
            continue
        found = client.get(key.ref, key.name, key.namespace or None)
        if found is not None:
            live[key] = found
        elif key.ref == NAMESPACE:
            absent.add(key.name)
