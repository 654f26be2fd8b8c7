"""Figures of the fleet: whether clusters answer, what of their GPUs is free, and which brakes are on."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from accounts.models import DirectoryBrake
from allocations.models import Brake
from fleet.models import Cluster, Flavor
from insights.utilisation.gathering import used_now
from portal.metrics.families import Family, Labels, seconds_since
from portal.metrics.moment import Moment
from workloads.freshness import seen_in
from workloads.models import Feed

# What is counted of each flavor: a metric, its words, and how many GPUs those are.
COUNTED: Sequence[tuple[str, str, Callable[[Flavor], int]]] = (
    (
        "quartermaster_obtainable_gpus",
        "GPUs on nodes that take pods, with those that the autoscaler can add.",
        lambda one: one.gpus_total,
    ),
    (
        "quartermaster_ready_gpus",
        "GPUs on nodes that take pods now.",
        lambda one: one.gpus_ready,
    ),
    (
        "quartermaster_cordoned_gpus",
        "GPUs on nodes that take no pods.",
        lambda one: one.gpus_cordoned,
    ),
    (
        "quartermaster_allocated_gpus",
        "GPUs that are allocated to teams.",
        lambda one: one.allocated,
    ),
    (
        "quartermaster_free_gpus",
        "GPUs that are obtainable and not allocated.",
        lambda one: one.free,
    ),
)


def clusters(moment: Moment) -> Iterator[Family]:
    """Whether each answers, works, and is followed."""
    now = moment.now
    yield moment.by_cluster(
        "quartermaster_cluster_reachable",
        "1 where the cluster answered at the last look, 0 where it did not; none before the first look.",
        lambda one: one.reachable,
    )
    yield moment.by_cluster(
        "quartermaster_cluster_last_contact_seconds",
        "Seconds since the cluster last answered; infinite where it never has.",
        lambda one: seconds_since(one.last_contact_at, now=now),
    )
    yield moment.by_cluster(
        "quartermaster_cluster_in_maintenance",
        "1 while a maintenance of the cluster is on, else 0.",
        lambda one: _is_maintained(one, moment),
    )
    yield moment.by_cluster(
        "quartermaster_cluster_broken_parts",
        "Parts of the cluster that did not work at the last look: API server, queues, webhooks, nodes.",
        lambda one: len(one.broken_parts),
    )
    yield _copies(moment)


def gpus(moment: Moment) -> Iterator[Family]:
    """What of each flavor is allocated, free and used."""
    at = {one.pk: one for one in moment.clusters}
    flavors = list(Flavor.objects.filter(cluster__in=at).order_by("pk"))
    names: dict[int, Labels] = {
        one.pk: (at[one.cluster_id].name, one.name) for one in flavors
    }
    for name, words, gpus_of in COUNTED:
        samples = {names[one.pk]: gpus_of(one) for one in flavors}
        yield _by_flavor(name, words, samples)
    used = used_now(now=moment.now)
    yield _by_flavor(
        "quartermaster_used_gpus",
        "GPUs that jobs of teams had when their queues were last read, in the last minutes.",
        {
            names[one.pk]: used.gpus[one.cluster_id, one.name]
            for one in flavors
            # Where nobody can look, or has lately, no use is no idleness.
            if at[one.cluster_id].is_observed and one.cluster_id not in used.stale
        },
    )


def brakes(moment: Moment) -> Iterator[Family]:
    """What stops many changes at once until a platform lead has looked."""
    on: dict[Labels, float] = {
        ("", "ends"): Brake.objects.open().exists(),
        ("", "directory"): DirectoryBrake.objects.open().exists(),
    }
    on |= {(one.name, "repairs"): one.braked_at is not None for one in moment.clusters}
    yield Family(
        name="quartermaster_brake_on",
        words="1 while a brake is on, else 0: on ends of allocations, on the directory, on repairs of a cluster.",
        labels=["cluster", "kind"],
        samples=on,
    )


def _by_flavor(name: str, words: str, samples: Mapping[Labels, float]) -> Family:
    return Family(name=name, words=words, labels=["cluster", "flavor"], samples=samples)


def _copies(moment: Moment) -> Family:
    """For how long the copy of what runs on a cluster has not been kept; of one that can be looked at alone."""
    seen = seen_in(
        {one.pk: one for one in moment.clusters}, Feed.objects.all(), moment.now
    )

    def silent_for(one: Cluster) -> float | None:
        if not one.is_observed:
            return None
        if seen[one.pk].is_listened_to:
            return 0
        return seconds_since(seen[one.pk].silent_since, now=moment.now)

    return moment.by_cluster(
        "quartermaster_cluster_copy_silent_seconds",
        "Seconds for which the portal's copy of what runs on the cluster has not been kept; 0 while it is.",
        silent_for,
    )


def _is_maintained(cluster: Cluster, moment: Moment) -> bool:
    return cluster.maintenance_now(moment.now) is not None
