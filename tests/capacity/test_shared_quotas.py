"""Kinds of GPU that take from one quota of Azure: what is promised of one is not promised of another."""

from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from allocations.bookings import actions as bookings
from approvals.decisions.page import rivals
from approvals.requests.actions import judge, submit
from approvals.requests.wanted import Wanted, resolve
from approvals.states import State
from capacity import tasks
from capacity.chain.sharing import GrowingNodes, OnNodes
from capacity.models import FamilyQuota, NodePool, Reservation
from capacity.subscriptions.enqueue import sharing
from capacity.subscriptions.following import forget_azure
from fleet.models import Cluster, Flavor
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.capacity.shared import (
    SMALL,
    grant,
    kind,
    read_again,
    small_size,
    two_clusters,
)
from tests.concurrency.test_one_booking import WIDE
from tests.insights.fleet import AKS, FAMILY, SIZE, VCPUS, Site, connect, pool
from tests.scene import DAY, NOW, REASON
from web.refusals import Conflict

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def connected(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch)


def wanted(here: Site, at: Tenancy, flavor: Flavor, gpus: int) -> Wanted:
    """An ask for GPUs of a kind at once."""
    return resolve(
        "gpus",
        {"flavor": flavor.key, "gpus": gpus, "purpose": "training"},
        team=here.scene.team,
        until=NOW + 2 * DAY,
        reason=REASON,
        namespace=at.namespace,
    )


def free(here: Site, at: Tenancy, flavor: Flavor) -> int | None:
    """GPUs of a kind that an evaluation finds free."""
    return judge(
        wanted(here, at, flavor, 1), person=here.scene.ada, now=NOW
    ).standing.free_gpus


def test_a_grant_on_one_cluster_leaves_less_of_the_quota_to_another_at_once() -> None:
    here, second, there = two_clusters(machines=2)
    assert (
        free(here, here.scene.tenancy, here.flavor) == free(here, there, second) == 16
    )
    # Eight of the GPUs stand; four more need a node.
    grant(here, here.scene.tenancy, here.flavor, 12)
    assert free(here, there, second) == 12
    assert free(here, here.scene.tenancy, here.flavor) == 4
    grant(here, there, second, 12)
    assert free(here, here.scene.tenancy, here.flavor) == free(here, there, second) == 0


def test_what_standing_nodes_carry_is_not_taken_from_the_others() -> None:
    here, second, there = two_clusters(machines=2)
    grant(here, here.scene.tenancy, here.flavor, 8)
    assert free(here, there, second) == 16


def test_a_grant_beyond_what_the_others_leave_is_refused_although_a_page_showed_it() -> (
    None
):
    here, second, there = two_clusters(machines=1)
    grant(here, here.scene.tenancy, here.flavor, 12)
    # Nobody has looked since: the second kind is shown as before.
    assert Flavor.objects.get(pk=second.pk).gpus_total == 12
    with pytest.raises(Conflict) as refused, transaction.atomic():
        grant(here, there, second, 12)
    assert refused.value.code == "not_enough_free"
    grant(here, there, second, 8)
    kept = Flavor.objects.get(pk=second.pk)
    assert (kept.gpus_total, kept.azure_nodes, kept.is_kept_small) == (8, 2, True)


def test_pages_show_what_a_grant_leaves_to_the_others_soon_after_it(
    django_capture_on_commit_callbacks: Any,
) -> None:
    here, second, _ = two_clusters(machines=2)
    with django_capture_on_commit_callbacks() as committed:
        grant(here, here.scene.tenancy, here.flavor, 16)
    assert sharing._committed in [
        one.func for one in committed if isinstance(one, partial)
    ]
    assert Flavor.objects.get(pk=second.pk).free == 16
    tasks.follow_beside(here.cluster.pk)
    assert Flavor.objects.get(pk=second.pk).free == 8
    assert Flavor.objects.get(pk=here.flavor.pk).free == 0


def test_a_grant_outside_azure_tells_nobody(
    django_capture_on_commit_callbacks: Any,
) -> None:
    here, _, _ = two_clusters(machines=2)
    Cluster.objects.filter(pk=here.cluster.pk).update(azure_id="")
    forget_azure()
    with django_capture_on_commit_callbacks() as committed:
        grant(here, here.scene.tenancy, here.flavor, 4)
    assert sharing._committed not in [
        one.func for one in committed if isinstance(one, partial)
    ]


def test_what_is_given_back_is_the_others_again() -> None:
    here, second, there = two_clusters(machines=1)
    grant(here, here.scene.tenancy, here.flavor, 12)
    assert free(here, there, second) == 8
    Flavor.objects.get(pk=here.flavor.pk).put_back(4)
    assert free(here, there, second) == 12


def test_each_reading_keeps_what_the_others_leave() -> None:
    here, second, _ = two_clusters(machines=2)
    grant(here, here.scene.tenancy, here.flavor, 16)
    read_again(second.cluster)
    assert Flavor.objects.get(pk=second.pk).gpus_total == 8


def test_two_kinds_on_one_cluster_share_the_quota_of_their_family() -> None:
    here, _, _ = two_clusters(machines=2)
    other = kind(here.cluster, "zone-2", node_pool="a100b")
    pool(here.cluster, at=NOW, name="a100b")
    read_again(here.cluster)
    at = here.scene.tenancy
    assert free(here, at, other) == 16
    grant(here, at, here.flavor, 16)
    assert free(here, at, other) == 8


def test_kinds_on_the_same_nodes_take_a_node_once() -> None:
    here, second, there = two_clusters(machines=2)
    slices = kind(
        here.cluster, "slices", node_pool="a100", resource="nvidia.com/mig-1g.10gb"
    )
    read_again(here.cluster)
    at = here.scene.tenancy
    grant(here, at, here.flavor, 12)
    assert free(here, at, slices) == 16
    grant(here, at, slices, 12)
    assert free(here, there, second) == 12


def test_sizes_of_several_families_share_the_vcpus_of_the_region() -> None:
    here, second, there = two_clusters(machines=9)
    small_size()
    NodePool.objects.filter(cluster=second.cluster).update(vm_size=SMALL)
    Flavor.objects.filter(pk=second.pk).update(
        gpus_per_node=1, gpus_ready=2, gpus_total=2
    )
    # One large machine fits, or four small ones.
    FamilyQuota.objects.filter(name="cores").update(used=0, limit=VCPUS)
    read_again(here.cluster, second.cluster)
    assert free(here, there, second) == 2 + 4
    assert free(here, here.scene.tenancy, here.flavor) == 8 + 4
    grant(here, there, second, 3)
    assert free(here, here.scene.tenancy, here.flavor) == 8
    assert free(here, there, second) == 3


def test_machines_that_are_reserved_and_not_made_yet_are_taken_off() -> None:
    here, second, there = two_clusters(machines=3)
    row = factories.reservation(
        here.scene.team, machines=2, vm_size=SIZE, held=0, state="pending"
    )
    assert free(here, there, second) == 8 + 4
    assert free(here, here.scene.tenancy, here.flavor) == 8 + 4
    # Once Azure has made them it counts them itself.
    Reservation.objects.filter(pk=row.pk).update(held=2)
    FamilyQuota.objects.filter(name=FAMILY).update(used=6 * VCPUS)
    assert free(here, there, second) == 8 + 4


def test_what_is_reserved_and_not_made_yet_counts_whatever_its_capitals() -> None:
    here, second, there = two_clusters(machines=3)
    for name in (SIZE.upper(), SIZE.lower()):
        factories.reservation(
            here.scene.team, machines=1, vm_size=name, held=0, state="pending"
        )
    assert free(here, there, second) == 8 + 4


def test_other_regions_and_spot_machines_take_nothing() -> None:
    here, second, there = two_clusters(machines=2)
    far = factories.cluster("far", region="westeurope", azure_id=AKS + "far")
    spot = kind(
        here.cluster, "spot", node_pool="spot", capacity_type="spot", allocated=40
    )
    kind(far, "far-a100", node_pool="a100", allocated=40)
    pool(far, at=NOW)
    pool(here.cluster, at=NOW, name="spot", is_spot=True)
    read_again(here.cluster, far)
    assert Flavor.objects.get(pk=spot.pk).allocated == 40
    assert free(here, there, second) == 16


def test_the_chain_shows_what_others_were_promised() -> None:
    here, second, _ = two_clusters(machines=2)
    grant(here, here.scene.tenancy, here.flavor, 12)
    told = (
        Caller(here.scene.ada)
        .get("quota-chains/second/?flavor=second-a100&gpus=60")
        .json()
    )
    family = next(one for one in told["links"] if one["layer"] == "family")
    assert family["room"] == 12
    assert family["detail"].startswith(
        "384 of 576 vCPUs in eastus, 96 more promised to others"
    )
    assert second.cluster.name == "second"


def test_an_ask_beyond_what_the_others_leave_waits_for_people() -> None:
    here, second, there = two_clusters(machines=1)
    factories.policy(WIDE, now=NOW - DAY)
    grant(here, here.scene.tenancy, here.flavor, 12)
    asked = submit(wanted(here, there, second, 12), by=here.scene.ada, now=NOW)
    assert asked.state == State.WAITING
    [rule] = [
        one for one in asked.evaluations.get().answer["rules"] if one["code"] == "free"
    ]
    assert (
        rule["text"] == f"8 free now: the subscription quota of {FAMILY} stops it there"
    )


def test_approvers_see_what_the_others_leave() -> None:
    here, second, there = two_clusters(machines=1)
    asked = submit(wanted(here, there, second, 8), by=here.scene.ada, now=NOW)
    grant(here, here.scene.tenancy, here.flavor, 12)
    judged = judge(wanted(here, there, second, 8), person=here.scene.ada, now=NOW)
    shown = rivals(asked, 8, judged, viewer=here.scene.priya, now=NOW)
    assert shown["words"] == "0 of 48 stay free"


def test_judging_takes_as_many_queries_however_many_clusters_share_the_quota() -> None:
    here, _, _ = two_clusters(machines=2)
    taken = []
    for more in (1, 6):
        for _ in range(more):
            cluster = factories.cluster()
            Cluster.objects.filter(pk=cluster.pk).update(azure_id=AKS + cluster.name)
            kind(cluster, "a100", node_pool="a100")
            pool(cluster, at=NOW)
        ask = wanted(here, here.scene.tenancy, here.flavor, 1)
        with CaptureQueriesContext(connection) as captured:
            judge(ask, person=here.scene.ada, now=NOW)
        taken.append(len(captured))
    assert taken[0] == taken[1] <= 14


def test_kinds_that_are_booked_for_the_same_days_share_the_quota() -> None:
    here, second, there = two_clusters(machines=2)
    day = NOW + 7 * DAY
    first = grant(here, here.scene.tenancy, here.flavor, 12, starts=day, days=2)
    with pytest.raises(Conflict) as refused, transaction.atomic():
        grant(here, there, second, 16, starts=day + DAY, days=2)
    assert refused.value.code == "not_enough_free"
    with pytest.raises(Conflict), transaction.atomic():
        grant(here, there, second, 16, days=8)
    # On other days, and beside it, all that it leaves is there.
    grant(here, there, second, 16, days=6)
    grant(here, there, second, 12, starts=day, days=2)
    grant(here, there, second, 16, starts=day + 2 * DAY, days=2)
    assert bookings.look(first.pk, now=day - 2 * DAY) == ""
    FamilyQuota.objects.filter(name=FAMILY).update(limit=5 * VCPUS)
    assert bookings.look(first.pk, now=day - 2 * DAY).startswith(
        "4 × A100 too few can be had"
    )


@pytest.mark.parametrize(
    ("allocated", "nodes"),
    [
        pytest.param({1: 8}, 0, id="what stands is enough"),
        pytest.param({1: 9}, 1, id="a part of a node is a node"),
        pytest.param({1: 8, 2: 20}, 3, id="the kind that needs most nodes counts"),
        pytest.param({1: 99}, 8, id="no more than the pool's maximum"),
    ],
)
def test_nodes_to_come(allocated: dict[int, int], nodes: int) -> None:
    kinds = {
        1: OnNodes(gpus_per_node=4, cordoned=0),
        2: OnNodes(gpus_per_node=4, cordoned=0),
    }
    growing = GrowingNodes(
        pool=1, quotas=frozenset(), vcpus=24, standing=2, maximum=10, kinds=kinds
    )
    assert growing.vcpus_to_come(allocated) == nodes * 24


def test_a_cordoned_node_is_made_up_for() -> None:
    kinds = {1: OnNodes(gpus_per_node=4, cordoned=4)}
    growing = GrowingNodes(
        pool=1, quotas=frozenset(), vcpus=24, standing=2, maximum=10, kinds=kinds
    )
    assert growing.vcpus_to_come({1: 8}) == 24
