"""What waits already and counts for a run that is not sent yet: the same kind of GPU, and what can start."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from fleet.models import Flavor
from policy.document import Thresholds
from provisioning.models import Tenancy
from tests import factories
from workloads.listing import queue_seen
from workloads.models import ClusterObject
from workloads.reading.work import workload_of
from workloads.runs.planning.queue_copies import queue_demand

GPU = "nvidia.com/gpu"
BEGINS = "couldn't assign flavors to pod set main: "
OTHERS = "flavor {} doesn't match node affinity"
FULL = "insufficient unused quota for nvidia.com/gpu in flavor {}, 2 more needed"
TOO_MANY = (
    "insufficient quota for {} in flavor {}, previously considered podsets requests (0) + current podset request "
    "(80) > maximum capacity (64)"
)
FOR_A100 = f"{BEGINS}{FULL.format('a100')}, {OTHERS.format('h100')}"
FOR_H100 = f"{BEGINS}{OTHERS.format('a100')}, {FULL.format('h100')}"
FOR_EITHER = f"{BEGINS}{FULL.format('a100')}, {FULL.format('h100')}"
NEVER = f"{BEGINS}{TOO_MANY.format('cpu', 'a100')}, {OTHERS.format('h100')}"


@pytest.fixture
def tenancy(db: None) -> Tenancy:
    """A team with 8 A100 and 4 H100."""
    generous = Thresholds(
        automatic_gpus=12,
        automatic_usd=Decimal(9999),
        window_gpus_team=12,
        window_gpus_person=12,
    )
    factories.policy(generous, now=timezone.now() - timedelta(hours=1))
    cluster = factories.cluster()
    by = factories.person()
    team = factories.team(by=by)
    factories.join(team, by)
    found = factories.tenancy(team, cluster)
    for name, gpus in (("a100", 8), ("h100", 4)):
        factories.flavor(cluster, name)
        flavor = Flavor.objects.get(cluster=cluster, name=name)
        factories.allocation(by, found, flavor, gpus=gpus)
    return Tenancy.objects.select_related("team", "cluster").get(pk=found.pk)


def queue(strategy: str = "BestEffortFIFO") -> dict[str, Any]:
    """The team's queue as Kueue shows it."""
    flavors = [
        {"name": name, "resources": [{"name": GPU, "nominalQuota": str(gpus)}]}
        for name, gpus in (("a100", 8), ("h100", 4))
    ]
    return {
        "kind": "ClusterQueue",
        "metadata": {"name": "vision"},
        "spec": {
            "queueingStrategy": strategy,
            "resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}],
        },
    }


def waiting(name: str, message: str, *, gpus: int = 2) -> dict[str, Any]:
    """A Workload without quota, of which Kueue says this; nothing where that is empty."""
    said = {
        "type": "QuotaReserved",
        "status": "False",
        "reason": "Pending",
        "message": message,
        "lastTransitionTime": "2026-11-23T09:00:00Z",
    }
    return {
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "vision",
            "creationTimestamp": f"2026-11-23T08:0{len(name)}:00Z",
        },
        "spec": {
            "queueName": "default",
            "podSets": [{"name": "main", "count": 1, "gpus": gpus}],
        },
        "status": {"conditions": [said] if message else []},
    }


def copied(tenancy: Tenancy, *bodies: dict[str, Any]) -> None:
    """What was last seen of them on the cluster."""
    for body in bodies:
        is_queue = body["kind"] == "ClusterQueue"
        ClusterObject.objects.create(
            cluster=tenancy.cluster,
            kind=body["kind"],
            namespace="" if is_queue else tenancy.namespace,
            name=tenancy.namespace if is_queue else body["metadata"]["name"],
            body=body,
        )


def counted(tenancy: Tenancy) -> tuple[int, int]:
    """How many a run of A100 and one of H100 would find waiting."""
    a100, h100 = (queue_demand(tenancy, name, 1) for name in ("a100", "h100"))
    assert [len(one.priorities) for one in (a100, h100)] == [a100.waiting, h100.waiting]
    return a100.waiting, h100.waiting


@pytest.mark.slow
@pytest.mark.parametrize(
    ("message", "gpus", "found"),
    [
        pytest.param(FOR_A100, 2, (1, 0), id="for an A100"),
        pytest.param(FOR_H100, 2, (0, 1), id="for an H100"),
        pytest.param(FOR_EITHER, 2, (1, 1), id="for either"),
        pytest.param("", 2, (1, 1), id="not looked at yet"),
        pytest.param("", 0, (0, 0), id="for CPUs alone"),
        pytest.param(NEVER, 2, (0, 0), id="more CPUs than its queue has"),
        pytest.param(FOR_A100, 99, (0, 0), id="more GPUs than its queue has"),
    ],
)
def test_only_what_waits_for_the_same_kind_and_can_start_is_counted(
    tenancy: Tenancy, message: str, gpus: int, found: tuple[int, int]
) -> None:
    """A run of H100 passes what waits for A100, and everybody passes what never starts."""
    copied(tenancy, queue(), waiting("it", message, gpus=gpus))
    assert counted(tenancy) == found


def test_in_a_queue_that_goes_strictly_in_order_everything_counts(
    tenancy: Tenancy,
) -> None:
    """Nobody passes its head there, whatever kind that waits for."""
    copied(tenancy, queue("StrictFIFO"), waiting("a", FOR_A100), waiting("bb", NEVER))
    assert counted(tenancy) == (2, 2)


def test_what_is_in_no_line_has_nobody_behind_it() -> None:
    """The first that can start is number 1, and one that may come in later has a place behind it."""
    never, first, last = (
        waiting("a", NEVER),
        waiting("bb", FOR_A100),
        waiting("ccc", FOR_A100),
    )
    seen = queue_seen(queue(), [never, first, last])
    lines = [seen.line_of(workload_of(one)) for one in (never, first, last)]
    assert [(one.position, one.length) for one in lines if one] == [
        (0, 2),
        (0, 2),
        (1, 2),
    ]
    strict = queue_seen(queue("StrictFIFO"), [never, first, last])
    line = strict.line_of(workload_of(last))
    assert line is not None
    assert (line.position, line.length) == (2, 3)
