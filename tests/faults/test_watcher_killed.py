"""A watcher that dies costs ten seconds, and nothing stays wrong: the next one begins with what is there."""

import pytest

from tests.faults.running import Portal, Process
from tests.faults.tenancies import are_true, cluster_of, wanted
from tests.faults.world import World
from tests.services.process import wait_until
from workloads.models import ClusterObject, Feed
from workloads.watching.feeds import LEASE
from workloads.watching.kept import KINDS
from workloads.watching.watcher import LOOK_ROUND

pytestmark = pytest.mark.slow

JOB = ("batch/v1", "Job")
# What design and issue allow until the copy is right again.
MOST_SECONDS = 10.0


def watcher(portal: Portal) -> Process:
    """A watcher as production runs it."""
    return portal.start("watcher", ["manage", "watch_clusters"], {})


def job(name: str, namespace: str) -> dict[str, object]:
    """A Job without a GPU that nobody starts."""
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "registry.example.com/i:1"}],
    }
    return {
        "apiVersion": JOB[0],
        "kind": JOB[1],
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"suspend": True, "template": {"spec": pod}},
    }


def copied() -> set[str]:
    """The jobs of the copy."""
    return set(ClusterObject.objects.filter(kind="Job").values_list("name", flat=True))


def is_listed() -> bool:
    """Whether every kind has been listed."""
    return Feed.objects.filter(listed_at__isnull=False).count() == len(KINDS)


def test_another_one_takes_over_and_sees_what_happened_meanwhile(
    portal: Portal, world: World
) -> None:
    cluster = cluster_of(world)
    portal.worker(wait=True)
    [tenancy] = wanted(world, 1, on=cluster)
    wait_until(lambda: are_true([tenancy]), what="the namespace to stand")
    admin = world.admin()
    admin.create(job("before", tenancy.namespace))
    first = watcher(portal)
    wait_until(is_listed, what="everything to be listed")
    assert copied() == {"before"}
    second = watcher(portal)
    wait_until(lambda: " ready" in second.log, what="the second watcher")
    first.kill()
    admin.delete(JOB, "before", tenancy.namespace)
    admin.create(job("meanwhile", tenancy.namespace))
    wait_until(lambda: copied() == {"meanwhile"}, what="the copy to be right again")
    # A quiet machine needs no longer than this; how long a busy one takes says nothing of the code.
    assert LEASE.total_seconds() + LOOK_ROUND < MOST_SECONDS
    admin.create(job("after", tenancy.namespace))
    wait_until(lambda: copied() == {"meanwhile", "after"}, what="what happens next")
    admin.close()
