"""Delivery by Git: the manifests are committed where Flux or Argo CD follows, and the cluster is only looked at.

The repository's head is data, never the truth: what is wanted is rendered anew onto whatever it is, our files alone
are changed, and a push that was overtaken starts again. Nothing here writes to a cluster, and no transaction is open
while a repository is called.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import PermanentError
from connectors.git import Signed, Snapshot
from connectors.kubernetes import Cluster as Client
from fleet.models import Cluster
from provisioning.delivery import client_for
from provisioning.desired.manifests import Manifest, fleet_objects, tenancy_objects
from provisioning.desired.plan import Key, Step, Verb, plan
from provisioning.desired.spec import TenancySpec
from provisioning.git.commits import ClusterCommit, TenancyCommit
from provisioning.git.pushing import Pushed, push
from provisioning.git.remotes import author, repository_for
from provisioning.git.repository import (
    Changes,
    PathRefused,
    shared_changes,
    tenancy_changes,
    tenancy_removal,
)
from provisioning.git.words import shared_message, tenancy_message
from provisioning.models import Tenancy
from provisioning.removing import note_gone
from provisioning.status import Said, Seen, write_status
from reconciling.lease import Lease

logger = logging.getLogger(__name__)

AGAIN_WHEN_TRUE = timedelta(seconds=60)
AGAIN_WHEN_WAITING = timedelta(seconds=15)
# Each look at a pull request calls GitHub, which answers 5,000 calls an hour of a token for all clusters: one that has
# waited for long is looked at again after a fifth of that time.
SHARE_OF_AGE, LONGEST_WAIT = 5, timedelta(minutes=5)
GONE_UNSEEN = (
    "It is out of the repository; the rest is not observed. Flux and Argo CD keep the namespace and its disks until an "
    "administrator of the cluster deletes them."
)
Observe = Callable[[Client, Sequence[Manifest], TenancySpec], Mapping[Key, Manifest]]


@dataclass(frozen=True)
class Turn:
    """One pass over one tenancy under its lease; `observe` reads what stands on a cluster."""

    tenancy: Tenancy
    lease: Lease[Tenancy]
    now: Callable[[], datetime]
    observe: Observe

    def renew(self) -> bool:
        """Hold on to the lease; False when another worker took over, which ends the pass without a push."""
        return self.lease.renew(now=self.now())


def make_true(turn: Turn, desired: Sequence[Manifest]) -> int:
    """Commit what a tenancy should be if the repository does not hold it, look at its cluster, and return the commits.

    Raises TemporaryError or PermanentError.
    """
    tenancy = turn.tenancy
    if not tenancy.stands:
        return _take_out(turn)
    wanted = partial(_wanted, tenancy, desired)
    pushed = _push(turn, wanted, branch=f"{tenancy.cluster.name}/{tenancy.namespace}")
    if pushed is None:
        logger.warning("lease lost")
        return 0
    since = _remember(tenancy, pushed, now=turn.now())
    if pushed.waits_for:
        _await_merge(turn, desired, pushed, since=since)
    elif tenancy.cluster.kubeconfig:
        _observe(turn, desired, pushed)
    else:
        words = f"Committed {pushed.short}, not observed: the portal has no access to this cluster."
        _end(turn, desired, Said("Unknown", "Committed", words, is_true=True), pushed)
    return int(pushed.wrote)


def differing(
    cluster: Cluster, rows: Sequence[tuple[int, int, dict[str, object]]]
) -> list[int]:
    """The tenancies, as (id, generation, spec), that the newest commit does not hold as wanted; one look for all.

    Raises TemporaryError or PermanentError.
    """
    seen = repository_for(cluster).look(cluster.git_branch)
    differing = []
    for pk, _, stored in rows:
        spec = TenancySpec.from_json(stored)
        if _differs(seen, cluster, spec, tenancy_objects(spec)):
            differing.append(pk)
    return differing


def deliver_shared(cluster: Cluster, *, now: Callable[[], datetime]) -> None:
    """Commit what the teams of a cluster share, if the repository does not hold it. Raises as `make_true`."""
    manifests = fleet_objects(
        queueing=cluster.queueing,
        cohort=cluster.cohort,
        flavors=[
            (f.name, f.node_labels, f.node_taints)
            for f in cluster.flavors.order_by("name")
        ],
    )
    signed = Signed(shared_message(cluster), author(), now())
    pushed = push(
        repository_for(cluster),
        cluster,
        partial(_shared, cluster, manifests),
        signed,
        renew=lambda: True,
        branch=f"{cluster.name}/cluster",
    )
    known = ClusterCommit.objects.filter(cluster=cluster).first()
    if pushed is not None and (
        pushed.wrote or known is None or known.pull != pushed.pull
    ):
        fields = {"sha": pushed.sha, "at": now(), "pull": pushed.pull}
        ClusterCommit.objects.update_or_create(cluster=cluster, defaults=fields)


def _wanted(tenancy: Tenancy, desired: Sequence[Manifest], seen: Snapshot) -> Changes:
    return tenancy_changes(
        seen,
        cluster=tenancy.cluster.name,
        namespace=tenancy.namespace,
        owner=tenancy.pk,
        manifests=desired,
    )


def _shared(cluster: Cluster, manifests: Sequence[Manifest], seen: Snapshot) -> Changes:
    return shared_changes(seen, cluster=cluster.name, manifests=manifests)


def _differs(
    seen: Snapshot, cluster: Cluster, spec: TenancySpec, manifests: Sequence[Manifest]
) -> bool:
    try:
        return bool(
            tenancy_changes(
                seen,
                cluster=cluster.name,
                namespace=spec.namespace,
                owner=spec.tenancy,
                manifests=manifests,
            )
        )
    except PathRefused:
        return True


def _push(
    turn: Turn, wanted: Callable[[Snapshot], Changes], *, branch: str
) -> Pushed | None:
    cluster = turn.tenancy.cluster
    signed = Signed(tenancy_message(turn.tenancy), author(), turn.now())
    return push(
        repository_for(cluster),
        cluster,
        wanted,
        signed,
        renew=turn.renew,
        branch=branch,
    )


def _remember(tenancy: Tenancy, pushed: Pushed, *, now: datetime) -> datetime:
    """Note the commit, and tell the audit log of one that was made; returns since when it holds what is wanted."""
    known = TenancyCommit.objects.filter(tenancy=tenancy).first()
    fields = {
        "sha": pushed.sha,
        "at": now,
        "pull": pushed.pull,
        "generation": tenancy.generation,
    }
    if (
        known is not None
        and not pushed.wrote
        and known.generation == tenancy.generation
    ):
        if known.pull == pushed.pull:
            return known.at
        fields |= {"at": known.at}
    with transaction.atomic():
        noted, _ = TenancyCommit.objects.update_or_create(
            tenancy=tenancy, defaults=fields
        )
        if pushed.wrote:
            record(
                Kind.TENANCY_COMMITTED,
                actor=PORTAL,
                subject=("tenancy", tenancy.pk),
                team_id=tenancy.team_id,
                generation=tenancy.generation,
                commit=pushed.sha,
                pull_request=pushed.pull,
            )
    return noted.at


def _observe(turn: Turn, desired: Sequence[Manifest], pushed: Pushed) -> None:
    """Look at what Flux or Argo CD has made of the commit, and change nothing."""
    live = turn.observe(client_for(turn.tenancy.cluster), desired, turn.tenancy.desired)
    steps = [step for step in plan(desired, live) if step.verb is not Verb.DELETE]
    behind = next(
        (step for step in steps if step.verb is not Verb.KEEP or step.why), None
    )
    seen = [_line(step, now=turn.now()) for step in steps]
    if behind is None:
        write_status(
            turn.tenancy,
            turn.lease,
            seen=seen,
            error=None,
            writes=0,
            now=turn.now(),
            requeue_at=turn.now() + AGAIN_WHEN_TRUE,
        )
        return
    if behind.verb is Verb.FOREIGN:
        raise PermanentError(behind.why, code="foreign")
    words = (
        f"Committed {pushed.short}; Flux or Argo CD has not made it true yet: "
        f"{behind.key.kind} {behind.key.name} {behind.why}."
    )
    said = Said("False", "WaitingForSync", words, is_true=False)
    write_status(
        turn.tenancy,
        turn.lease,
        seen=seen,
        error=None,
        writes=0,
        now=turn.now(),
        said=said,
        requeue_at=turn.now() + AGAIN_WHEN_WAITING,
    )


def _line(step: Step, *, now: datetime) -> Seen:
    true = step.verb is Verb.KEEP and not step.why
    return Seen.true(step.key, now=now) if true else Seen.waiting(step.key, now=now)


def _await_merge(
    turn: Turn, desired: Sequence[Manifest], pushed: Pushed, *, since: datetime
) -> None:
    """End a pass whose commit waits to be merged; the longer it has waited, the later it is looked at again."""
    said = Said("False", "WaitingForMerge", pushed.waits_for, is_true=False)
    share = (turn.now() - since) / SHARE_OF_AGE
    wait = min(max(share, AGAIN_WHEN_WAITING), LONGEST_WAIT)
    _end(turn, desired, said, pushed, wait=wait)


def _end(
    turn: Turn,
    desired: Sequence[Manifest],
    said: Said,
    pushed: Pushed,
    *,
    wait: timedelta = AGAIN_WHEN_TRUE,
) -> None:
    """End a pass whose cluster is not looked at."""
    state = "waiting" if pushed.waits_for else "committed"
    seen = [Seen.of(Key.of(manifest), state, now=turn.now()) for manifest in desired]
    write_status(
        turn.tenancy,
        turn.lease,
        seen=seen,
        error=None,
        writes=int(pushed.wrote),
        now=turn.now(),
        said=said,
        requeue_at=turn.now() + wait,
    )


def _take_out(turn: Turn) -> int:
    """Take the files of a team that has left out of the repository; its namespace is never deleted from here."""
    tenancy = turn.tenancy

    def gone(seen: Snapshot) -> Changes:
        return tenancy_removal(
            seen,
            cluster=tenancy.cluster.name,
            namespace=tenancy.namespace,
            owner=tenancy.pk,
        )

    pushed = _push(turn, gone, branch=f"{tenancy.cluster.name}/{tenancy.namespace}")
    if pushed is None:
        return 0
    since = _remember(tenancy, pushed, now=turn.now())
    if pushed.waits_for:
        _await_merge(turn, [], pushed, since=since)
        return int(pushed.wrote)
    if tenancy.cluster.kubeconfig and client_for(tenancy.cluster).get(
        ("v1", "Namespace"), tenancy.namespace
    ):
        raise PermanentError(
            f"It is out of the repository ({pushed.short}). Flux and Argo CD keep the namespace {tenancy.namespace} "
            "and its disks: an administrator of the cluster deletes it.",
            code="namespace_kept",
        )
    gone_now = note_gone(tenancy, turn.lease, writes=int(pushed.wrote), now=turn.now())
    if gone_now and not tenancy.cluster.kubeconfig:
        ready = Tenancy.objects.get(pk=tenancy.pk).ready | {
            "status": "Unknown",
            "message": GONE_UNSEEN,
        }
        turn.lease.write(conditions=[ready])
    return int(pushed.wrote)
