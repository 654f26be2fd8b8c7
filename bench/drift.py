"""B13: one look at a thousand tenancies that are as wanted, beside a bare list and comparison of the same objects."""

import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from bench import rig, tenancies
from bench.results import Better, Goal, Measured
from bench.tenancies import Bare, Ground
from connectors.kubernetes import Ref
from provisioning import reconcile
from provisioning.desired.manifests import Manifest
from provisioning.desired.plan import Key
from provisioning.drift import cluster_sweep
from provisioning.models import Tenancy

TENANCIES, DRIFTED, PAIRS = 1_000, 10, 5
MOST = 1.5
MINUTE = timedelta(minutes=1)


def measure(on: rig.Rig) -> Measured:
    """1,000 tenancies in five turns."""
    return measured(on, count=TENANCIES, drifted=DRIFTED, pairs=PAIRS)


def measured(on: rig.Rig, *, count: int, drifted: int, pairs: int) -> Measured:
    """Both over the same objects of one sandbox, in turns; then some are changed by hand and put right."""
    with tenancies.ground(on, standing=count) as ground:
        now, wanted = timezone.now(), ground.standing
        rig.settle(on)
        objects = by_kind(ground.same(wanted))
        fill_caches(ground.administrator, objects)
        before = ground.world.writes()
        portal, bare, fresh = [], [], []
        for _ in range(pairs):
            cluster_sweep.forget(ground.cluster.pk)
            now += MINUTE
            fresh.append(look(ground, count, now=now))
            now += MINUTE
            portal.append(look(ground, count, now=now))
            bare.append(plain(ground.administrator, objects))
        idle = ground.world.writes() - before
        repaired = repair(ground, wanted[:drifted], now=now + MINUTE)
    return Measured(
        what=f"{count:,} tenancies as wanted, one look at all; peer: bare list and comparison",
        portal=[1000 * seconds for seconds in portal],
        peer=[1000 * seconds for seconds in bare],
        unit="ms",
        better=Better.PORTAL_OVER_PEER,
        most=MOST,
        others=[
            # Every object is compared once by each process; from then on, those that somebody has written to.
            Goal(
                "first look of a process, ratio",
                statistics.median(fresh) / statistics.median(bare),
            ),
            Goal("writes", idle, most=0),
            Goal(
                f"writes for {drifted} drifted", repaired, least=drifted, most=drifted
            ),
        ],
    )


def fill_caches(bare: Bare, kinds: Iterable[Ref]) -> None:
    """Read each kind once: a server that has just started refuses the first read of each custom one (429)."""
    for ref in kinds:
        with suppress(RuntimeError):
            next(bare.every(ref))


def look(ground: Ground, count: int, *, now: datetime) -> float:
    """One look of the portal: database, list, comparison, record; seconds. RuntimeError unless all are as wanted."""
    began = time.perf_counter()
    differing = cluster_sweep.sweep(ground.cluster.pk, now=lambda: now)
    seconds = time.perf_counter() - began
    seen = Tenancy.objects.filter(last_looked_at=now).count()
    if differing or seen != count:
        raise RuntimeError(
            f"{len(differing)} differ and {seen} of {count} were looked at."
        )
    return seconds


def plain(bare: Bare, wanted: Mapping[Ref, Mapping[Key, Manifest]]) -> float:
    """List each kind, hold every object against what is wanted, keep nothing; seconds."""
    began = time.perf_counter()
    for ref, manifests in wanted.items():
        found = 0
        for live in bare.every(ref):
            metadata = live["metadata"]
            manifest = manifests[
                Key(*ref, metadata.get("namespace", ""), metadata["name"])
            ]
            found += holds(manifest, {**live, "apiVersion": ref[0], "kind": ref[1]})
        if found != len(manifests):
            raise RuntimeError(f"{found} of {len(manifests)} {ref[1]} are as wanted.")
    return time.perf_counter() - began


def holds(wanted: Any, live: Any) -> bool:
    """Whether everything that is wanted is there; what is there besides does not matter."""
    if isinstance(wanted, dict):
        if not wanted:
            return True
        return isinstance(live, dict) and all(
            holds(value, live.get(name)) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        if not wanted and live is None:
            return True
        return len(wanted) == len(live) and all(map(holds, wanted, live))
    return bool(wanted == live)


def repair(ground: Ground, drifted: Sequence[Tenancy], *, now: datetime) -> int:
    """Change one object of each by hand, look, and put right what was found; the writes that took."""
    for tenancy in drifted:
        body = {"spec": {"hard": {"pods": "1"}}}
        ground.administrator.merge(
            ("v1", "ResourceQuota"), tenancy.namespace, "team-quota", body
        )
    before = ground.world.writes()
    for pk in cluster_sweep.sweep(ground.cluster.pk, now=lambda: now):
        reconcile.reconcile(pk, now=lambda: now)
    return ground.world.writes() - before


def by_kind(objects: Sequence[Sequence[Manifest]]) -> dict[Ref, dict[Key, Manifest]]:
    """The wanted objects as the bare comparison looks them up."""
    found: dict[Ref, dict[Key, Manifest]] = {}
    for manifest in (manifest for each in objects for manifest in each):
        key = Key.of(manifest)
        found.setdefault(key.ref, {})[key] = manifest
    return found
