"""Making a tenancy true: lease, list, plan, apply, read back, one status write.

No database transaction is open while a cluster is called, and nothing is written to a cluster that is already so.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from secrets import SystemRandom

from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.kubernetes import Cluster as Client
from fleet.models import Cluster
from provisioning import draining, throttle, writing
from provisioning.clusters import identity, queueing
from provisioning.controller import CONTROLLER
from provisioning.delivery import client_for
from provisioning.desired import gitops as keepers
from provisioning.desired.manifests import NAMED, Manifest, sometimes, tenancy_objects
from provisioning.desired.objects import selector
from provisioning.desired.plan import Key, Step, Verb, plan
from provisioning.desired.spec import TenancySpec
from provisioning.desired.usage import QUEUES, used_of
from provisioning.drift import reconcile as drifting
from provisioning.drift.reconcile import Drifts
from provisioning.git import pull_requests as git_delivery
from provisioning.models import Tenancy
from provisioning.removing import Removal, note_gone
from provisioning.stages import Stage, Stop
from provisioning.status import Seen, write_status
from reconciling import failpoints
from reconciling.backoff import Backoff
from reconciling.breaker import PAUSES
from reconciling.controller import RequeueAfter
from reconciling.lease import Lease

logger = logging.getLogger(__name__)

WRITING = frozenset({Verb.CREATE, Verb.UPDATE, Verb.DELETE})
NAMESPACE = ("v1", "Namespace")
AGAIN_WHEN_TRUE = timedelta(seconds=60)
AGAIN_WHEN_REFUSED = timedelta(minutes=5)
RETRIES = Backoff(timedelta(seconds=2), timedelta(seconds=60))
_random = SystemRandom()


@dataclass
class Pass:
    """One pass over one tenancy: what was seen of each object, and how the pass ended."""

    lease: Lease[Tenancy]
    now: Callable[[], datetime]
    began: datetime
    wanted: list[Key] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    has_observed: bool = False
    writes: int = 0
    drifts: Drifts | None = None

    @property
    def tenancy(self) -> Tenancy:
        """The tenancy as it was read."""
        return self.lease.row

    def pay(self, steps: Sequence[Step]) -> None:
        """Take the budget for every write of the pass; raises RequeueAfter when there is not enough now."""
        writes = sum(step.verb in WRITING for step in steps)
        on_boarding = not self.tenancy.observed_generation
        wait = throttle.reserve(
            self.tenancy.cluster, writes, on_boarding=on_boarding, now=self.began
        )
        if wait is not None:
            raise RequeueAfter(wait)

    def step(self, client: Client, step: Step) -> None:
        """Do one step; raises LeaseLost before a write that would be a stale worker's."""
        if step.verb is Verb.KEEP and step.why:
            raise TemporaryError(
                f"{step.key.kind} {step.key.name} {step.why}.", retry_after=1
            )
        if step.verb is Verb.FOREIGN:
            raise PermanentError(step.why, code="foreign")
        if step.verb is not Verb.KEEP:
            self.lease.check(now=self.now())
            self._write(client, step)
        if step.verb is not Verb.DELETE:
            note = self.drifts.note(step.key) if self.drifts else ""
            seen = (
                Seen.changed(step.key, note, now=self.now())
                if note
                else Seen.true(step.key, now=self.now())
            )
            self.seen.append(seen)

    def settle(
        self,
        steps: Sequence[Step],
        desired: Sequence[Manifest],
        live: Mapping[Key, Manifest],
    ) -> list[Step]:
        """The steps without what drifted and has to wait; raises LeaseLost."""
        settled, self.drifts = drifting.settle(
            self.tenancy,
            self.lease,
            desired=desired,
            steps=steps,
            live=live,
            now=self.now(),
        )
        return settled

    def _write(self, client: Client, step: Step) -> None:
        for _ in writing.write(client, step):
            self.writes += 1
            failpoints.reach("provision.write", of=self.tenancy.pk)


def reconcile(
    tenancy_id: int, *, now: Callable[[], datetime], only_due: bool = False
) -> int | None:
    """Make one tenancy true and return the number of writes it took; None when another worker is at it.

    With `only_due` it is None, too, for a tenancy of which nothing new is wanted before its time.
    """
    began, started = now(), time.monotonic()
    lease = CONTROLLER.acquire(tenancy_id, now=began, only_due=only_due)
    if lease is None:
        return None
    run = Pass(lease, now, began)

    def fail(error: ConnectorError) -> None:
        _failed(run, _as_shown(run, error, seconds=time.monotonic() - started))

    with CONTROLLER.work(lease, now=now, fail=fail):
        _run(run)
    return run.writes


def _run(run: Pass) -> None:
    if not run.tenancy.generation or run.tenancy.stage == Stage.GONE:
        # Something may be wanted by now, and whoever was told of it found the lease taken.
        ended = run.now()
        run.lease.finish(requeue_at=ended + AGAIN_WHEN_TRUE, now=ended, attempts=0)
        return
    if run.tenancy.cluster.written_off_at is not None:
        _forget(run)
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


def _forget(run: Pass) -> None:
    """Let go of what nobody can reach any more: its cluster is written off, and is not called."""
    ended = run.now()
    if not note_gone(run.tenancy, run.lease, writes=0, now=ended):
        # What it holds is given back first.
        run.lease.finish(requeue_at=ended + AGAIN_WHEN_TRUE, now=ended, attempts=0)


def _make_true(run: Pass, desired: Sequence[Manifest]) -> None:
    """Call the cluster, or the repository that it follows."""
    cluster, spec = run.tenancy.cluster, run.tenancy.desired
    if cluster.delivery == Cluster.Delivery.GIT:
        run.writes = git_delivery.make_true(
            git_delivery.Turn(run.tenancy, run.lease, run.now, observe), desired
        )
        throttle.answered(cluster, now=run.now())
        return
    queueing.check(cluster)
    client = client_for(cluster)
    if not run.tenancy.stands:
        identity.confirm(cluster, client)
        _remove(run, client)
        return
    live = observe(client, desired, spec, is_new=not run.tenancy.observed_generation)
    run.has_observed = True
    steps = plan(desired, live)
    if any(step.verb is not Verb.KEEP for step in steps):
        identity.confirm(cluster, client)
    steps = run.settle(steps, desired, live)
    keepers.refuse_kept_by_others(steps, live)
    run.pay(steps)
    for step in steps:
        run.step(client, step)
    if spec.has_volcano and spec.stop == Stop.DRAIN:
        run.writes += draining.stop_all(
            client, spec.namespace, check=lambda: run.lease.check(now=run.now())
        )
    write_status(
        run.tenancy,
        run.lease,
        seen=run.seen,
        error=None,
        writes=run.writes,
        now=run.now(),
        requeue_at=run.now() + AGAIN_WHEN_TRUE,
        used=_used(live, spec),
        drifts=run.drifts,
    )
    throttle.answered(cluster, now=run.now())


def _remove(run: Pass, client: Client) -> None:
    """Delete what a team that left had here; nothing is made true any more."""
    run.wanted = [Key("v1", "Namespace", "", run.tenancy.namespace)]
    removal = Removal(
        run.tenancy, client, pay=run.pay, check=lambda: run.lease.check(now=run.now())
    )
    try:
        removal.run()
    finally:
        run.writes = removal.writes
    note_gone(run.tenancy, run.lease, writes=run.writes, now=run.now())
    throttle.answered(run.tenancy.cluster, now=run.now())


def _used(live: Mapping[Key, Manifest], spec: TenancySpec) -> dict[str, int] | None:
    """What the tenancy's queue says is in use; None before there is one."""
    queue = next((found for key, found in live.items() if key.kind in QUEUES), None)
    return None if queue is None else used_of(queue, spec)


def _as_shown(run: Pass, error: ConnectorError, *, seconds: float) -> ConnectorError:
    """The failure as people read it: a cluster that hangs is named, not the call that happened to find out."""
    if not throttle.failed(run.tenancy.cluster, error, seconds=seconds, now=run.now()):
        return error
    logger.warning("cluster does not answer", extra={"error": error.message})
    return _no_answer(run, retry_after=throttle.seconds_here(run.tenancy.cluster))


def _no_answer(run: Pass, *, retry_after: float) -> TemporaryError:
    return TemporaryError(
        f"{run.tenancy.cluster.title} does not answer.", retry_after=retry_after
    )


def _failed(run: Pass, error: ConnectorError) -> None:
    """End a pass that an outside system refused or left unanswered: say so, and book the next try."""
    if isinstance(error, TemporaryError):
        wait = RETRIES.wait(
            run.tenancy.attempts, chance=_random.random(), retry_after=error.retry_after
        )
    else:
        wait = AGAIN_WHEN_REFUSED
    logger.warning(
        "tenancy not true", extra={"error": error.message, "writes": run.writes}
    )
    write_status(
        run.tenancy,
        run.lease,
        seen=_seen_before(run, error),
        error=error,
        writes=run.writes,
        now=run.now(),
        requeue_at=run.now() + wait,
        drifts=run.drifts,
    )


def _seen_before(run: Pass, error: ConnectorError) -> list[Seen] | None:
    """What was seen before a pass failed, where it failed, and what it did not come to.

    None where nothing was looked at of what stood there once: no object is at fault, and none is known to be gone.
    """
    stood = run.tenancy.stands and run.tenancy.observed_generation
    if stood and not run.has_observed:
        return None
    unseen = run.wanted[len(run.seen) :]
    failed = [Seen.failed(key, str(error), now=run.now()) for key in unseen[:1]]
    waiting = [Seen.waiting(key, now=run.now()) for key in unseen[1:]]
    return [*run.seen, *failed, *waiting]


def observe(
    client: Client,
    desired: Sequence[Manifest],
    spec: TenancySpec,
    *,
    is_new: bool = False,
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
                    ref,
                    namespace or None,
                    label_selector=selector(spec),
                    name=NAMED.get(ref, ""),
                )
            }
    _read(client, keys, absent, live)
    return live


def _read(
    client: Client, keys: Iterable[Key], absent: set[str], live: dict[Key, Manifest]
) -> None:
    """Put what sits in these places into `live`, and the namespaces that are not there into `absent`."""
    for key in keys:
        if (
            key in live
            or key.namespace in absent
            or (key.ref == NAMESPACE and key.name in absent)
        ):
            continue
        found = client.get(key.ref, key.name, key.namespace or None)
        if found is not None:
            live[key] = found
        elif key.ref == NAMESPACE:
            absent.add(key.name)
