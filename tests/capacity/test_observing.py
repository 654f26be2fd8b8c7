"""Reading a subscription: what is kept of it, what follows for kinds of GPU, and how it fails."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import settings

from audit.models import Event
from capacity.models import (
    FamilyQuota,
    Meter,
    NodePool,
    Orphan,
    Subscription,
    VmSize,
)
from capacity.subscriptions import observing
from capacity.subscriptions.ids import aks_of
from capacity.subscriptions.observing import (
    LOOKED_EVERY,
    SIZES_EVERY,
    keep_known,
    observe,
)
from connectors.azure.compute import AzureCompute
from connectors.azure.container_service import AzureContainerService, NewPool
from fleet.models import Cluster, Flavor
from sandbox.azure_world import ROLE_ACTIONS
from tests import factories
from tests.capacity.connected import A100, EASTUS, T4, Site, connected, site
from tests.sandbox.azure.running import GROUP, HERE, SUBSCRIPTION, Running

pytestmark = pytest.mark.django_db
FAMILY, H100 = "StandardNCADSA100v4Family", "StandardNCadsH100v5Family"


@pytest.fixture
def here(azure: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with connected(azure, monkeypatch):
        yield site(azure)


def read(here: Site, *, after: timedelta = LOOKED_EVERY) -> Subscription:
    """Read the subscription again once it is due."""
    here.time.at += after
    observe(SUBSCRIPTION, now=here.time)
    return Subscription.objects.get()


def kinds() -> list[str]:
    rows = Event.objects.filter(subject_type="subscription").order_by("seq")
    return [one.kind for one in rows]


def test_sizes_quotas_and_pools_are_kept(here: Site) -> None:
    row = Subscription.objects.get()
    assert (row.reachable, row.answered_at, row.message) == (True, here.time(), "")
    size = VmSize.objects.get(name=A100, region="eastus")
    assert (size.family, size.vcpus, size.gpus, size.zones, size.is_reservable) == (
        FAMILY,
        24,
        1,
        ["1", "2"],
        True,
    )
    assert not VmSize.objects.filter(gpus=0).exists()
    quota = FamilyQuota.objects.get(name=FAMILY, region="eastus")
    assert quota.limit == 192
    # Of families without GPUs nobody asks anything, of the region's total and of spot machines they do.
    names = {one.name for one in FamilyQuota.objects.filter(region="eastus")}
    assert {"cores", "lowPriorityCores"} <= names
    assert "standardDSv5Family" not in names
    pool = NodePool.objects.get(cluster__name="dev-eastus", name="h100nvl")
    assert (pool.vm_size, pool.nodes, pool.min_nodes, pool.max_nodes) == (
        "Standard_NC40ads_H100_v5",
        0,
        0,
        4,
    )
    assert NodePool.objects.get(cluster__name="dev-eastus", name="t4").max_nodes is None


def test_each_quota_is_a_limit_with_readings(here: Site) -> None:
    meter = Meter.objects.get(key=f"quota:{SUBSCRIPTION}/eastus/{FAMILY}".lower())
    assert (meter.limit, meter.unit, meter.title) == (
        192,
        "vCPUs",
        "Standard NCADS_A100_v4 Family vCPUs in eastus",
    )
    assert meter.readings.count() == 1
    # A family of which the subscription may use nothing is no limit that comes near.
    assert not Meter.objects.filter(key__icontains="NDASv4_A100").exists()


def of_the_pool(here: Site) -> Flavor:
    """A kind of GPU of a pool of at most four machines with one GPU, of which Azure allows as many."""
    Flavor.objects.filter(name="t4").update(
        node_pool="h100nvl", gpus_per_node=1, gpus_ready=0, gpus_total=0, max_nodes=9
    )
    read(here)
    return Flavor.objects.get(name="t4")


def test_a_kind_of_gpu_follows_what_azure_says_of_its_pool(here: Site) -> None:
    flavor = of_the_pool(here)
    assert (
        flavor.min_nodes,
        flavor.max_nodes,
        flavor.azure_nodes,
        flavor.gpus_total,
    ) == (0, 4, 4, 4)
    assert not flavor.is_kept_small
    here.azure.azure.usage.raise_limit("eastus", H100, 3 * 40)
    read(here)
    flavor.refresh_from_db()
    assert (flavor.azure_nodes, flavor.azure_limit, flavor.gpus_total) == (
        3,
        f"the subscription quota of {H100}",
        3,
    )
    assert flavor.is_kept_small


def test_it_is_read_every_ten_minutes_and_by_one_worker(here: Site) -> None:
    asked = len(here.azure.azure.asked)
    observe(SUBSCRIPTION, now=here.time)
    assert len(here.azure.azure.asked) == asked
    Subscription.objects.update(next_look_at=here.time())
    claimed = Subscription.objects.due(here.time()).update(
        next_look_at=here.time() + observing.LOOKING
    )
    assert claimed == 1
    observe(SUBSCRIPTION, now=here.time)
    assert len(here.azure.azure.asked) == asked


def test_sizes_are_read_twice_a_day(here: Site) -> None:
    first = VmSize.objects.get(name=A100, region="eastus").seen_at
    read(here)
    assert VmSize.objects.get(name=A100, region="eastus").seen_at == first
    read(here, after=SIZES_EVERY)
    assert VmSize.objects.get(name=A100, region="eastus").seen_at == here.time()


def test_what_azure_has_no_more_is_forgotten(here: Site) -> None:
    at = here.time()
    sub = Subscription.objects.get()
    cluster = Cluster.objects.get(name="dev-eastus")
    NodePool.objects.create(
        cluster=cluster, name="gone", vm_size=T4, nodes=1, seen_at=at
    )
    FamilyQuota.objects.create(
        subscription=sub,
        region="eastus",
        name="gone",
        title="Gone",
        limit=1,
        used=0,
        seen_at=at,
    )
    VmSize.objects.create(
        subscription=sub,
        region="eastus",
        name="Standard_Gone",
        family="gone",
        vcpus=1,
        gpus=1,
        is_reservable=False,
        seen_at=at,
    )
    read(here, after=SIZES_EVERY)
    assert not NodePool.objects.filter(name="gone").exists()
    assert not FamilyQuota.objects.filter(name="gone").exists()
    assert not VmSize.objects.filter(name="Standard_Gone").exists()


def test_a_new_pool_is_found_with_the_reservation_that_it_takes_from(
    here: Site,
) -> None:
    compute = AzureCompute(here.azure.session())
    compute.ensure_group(GROUP, "research", location="eastus", zones=["1"])
    compute.begin_create_reservation(
        GROUP, "research", "t4", location="eastus", size=T4, capacity=3, zone="1"
    )
    group = compute.group(GROUP, "research")
    assert group is not None
    new = NewPool(
        size=T4,
        minimum=0,
        maximum=3,
        zones=("1",),
        labels={},
        taints=(),
        reservation_group=group.id,
    )
    AzureContainerService(here.azure.session()).begin_create_pool(
        GROUP, "dev-eastus", "research", new
    )
    read(here)
    pool = NodePool.objects.get(name="research")
    assert (pool.max_nodes, pool.reserved, pool.reserved_used) == (3, 3, 0)
    assert pool.reservation_group.lower() == group.id.lower()


def test_a_subscription_that_refuses_keeps_what_was_known_and_says_why(
    here: Site,
) -> None:
    before = Subscription.objects.get().answered_at
    here.azure.fault(
        "GET",
        "/usages",
        status=403,
        code="AuthorizationFailed",
        message="no usages/read",
    )
    row = read(here)
    assert (row.reachable, row.failures, row.answered_at) == (False, 1, before)
    assert "no usages/read" in row.message
    assert FamilyQuota.objects.exists()
    here.azure.fault(
        "GET",
        "/usages",
        status=403,
        code="AuthorizationFailed",
        message="no usages/read",
    )
    row = read(here)
    assert row.failures == 2
    row = read(here)
    assert (row.reachable, row.failures, row.message, row.answered_at) == (
        True,
        0,
        "",
        here.time(),
    )
    assert kinds() == [
        "subscription.reachable",
        "subscription.unreachable",
        "subscription.reachable",
    ]


def gone_in_azure(here: Site) -> Cluster:
    """A cluster of the subscription that somebody deleted in Azure, which is read before the other one."""
    azure_id = EASTUS.replace("dev-eastus", "aaa-gone")
    return factories.cluster("aaa-gone", region="eastus", azure_id=azure_id)


def test_a_cluster_that_is_deleted_in_azure_hides_no_other(here: Site) -> None:
    gone = gone_in_azure(here)
    AzureCompute(here.azure.session()).ensure_group(
        GROUP, "research", location="eastus", zones=[]
    )
    AzureCompute(here.azure.session()).begin_create_reservation(
        GROUP, "research", "t4", location="eastus", size=T4, capacity=1
    )
    row = read(here)
    assert (row.reachable, row.message) == (True, "")
    other = Cluster.objects.get(name="dev-eastus")
    assert {one.seen_at for one in other.node_pools.all()} == {here.time()}
    assert Orphan.objects.filter(group="research").exists()
    gone.refresh_from_db()
    assert "aaa-gone" in gone.azure_message
    assert other.azure_message == ""


def test_a_cluster_of_which_azure_does_not_answer_hides_no_other(here: Site) -> None:
    gone_in_azure(here)
    here.azure.fault("GET", "/aaa-gone/agentPools", status=503, times=99)
    row = read(here)
    assert (row.reachable, row.failures) == (False, 1)
    assert {
        one.seen_at for one in NodePool.objects.filter(cluster__name="dev-eastus")
    } == {here.time()}


def test_a_cluster_whose_pools_are_read_again_says_so(here: Site) -> None:
    here.azure.fault("GET", "/agentPools", status=404, code="ResourceNotFound")
    read(here)
    assert Cluster.objects.get(name="dev-eastus").azure_message != ""
    read(here)
    assert Cluster.objects.get(name="dev-eastus").azure_message == ""


def test_each_failure_doubles_the_wait(here: Site) -> None:
    waits = []
    for _ in range(3):
        here.azure.fault("GET", "/usages", status=403, code="AuthorizationFailed")
        row = read(here)
        waits.append(row.next_look_at - here.time())
    assert waits == [
        timedelta(seconds=30),
        timedelta(seconds=60),
        timedelta(seconds=120),
    ]


def test_a_throttled_reading_waits_as_long_as_azure_says(here: Site) -> None:
    here.azure.fault("GET", "/usages", status=429, retry_after=1200, times=9)
    row = read(here)
    assert (row.reachable, "429" in row.message) == (False, True)
    assert row.next_look_at >= here.time() + timedelta(minutes=20)


def test_an_answer_that_is_cut_off_changes_nothing(here: Site) -> None:
    pools = list(NodePool.objects.values_list("name", "seen_at").order_by("name"))
    here.azure.fault("GET", "/agentPools", truncate=60, times=9)
    assert read(here).reachable is False
    assert (
        list(NodePool.objects.values_list("name", "seen_at").order_by("name")) == pools
    )


def test_what_the_portal_may_not_do_is_kept_by_what_it_is_needed_for(
    here: Site,
) -> None:
    row = Subscription.objects.get()
    assert (row.missing_rights, row.rights_checked_at) == ({}, here.time())
    allowed = tuple(
        one for one in ROLE_ACTIONS if one != "Microsoft.Quota/quotas/write"
    )
    said = json.dumps({"value": [{"actions": allowed, "notActions": []}]})
    here.azure.fault("GET", "/permissions", status=200, body=said)
    row = read(here)
    assert row.missing_rights == {
        "ask for more quota": ["Microsoft.Quota/quotas/write"]
    }
    [event] = Event.objects.filter(kind="subscription.rights_changed")
    assert event.details["lacking"] == ["Microsoft.Quota/quotas/write"]
    assert read(here).missing_rights == {}
    assert Event.objects.filter(kind="subscription.rights_changed").count() == 2


@pytest.mark.slow
def test_a_check_of_rights_that_fails_fails_no_reading(here: Site) -> None:
    for fault in (
        {"status": 503},
        {"truncate": 12},
        {"status": 403, "code": "AuthorizationFailed"},
    ):
        here.azure.fault("GET", "/permissions", times=9, **fault)
        row = read(here)
        assert (row.reachable, row.answered_at, row.missing_rights) == (
            True,
            here.time(),
            {},
        )
        assert row.rights_message != ""
        here.azure.admin("DELETE", "/sandbox/faults")
    assert read(here).rights_message == ""


def test_rights_are_read_also_where_the_subscription_refuses(here: Site) -> None:
    here.azure.fault("GET", "/usages", status=403, code="AuthorizationFailed")
    row = read(here)
    assert (row.reachable, row.rights_checked_at) == (False, here.time())


def test_subscriptions_come_and_go_with_the_clusters_that_are_in_them(
    here: Site,
) -> None:
    other = "99999999-9999-4999-8999-999999999999"
    factories.cluster(
        "elsewhere",
        azure_id=EASTUS.replace(SUBSCRIPTION, other).replace("dev-", "other-"),
    )
    keep_known(now=here.time())
    assert {one.pk for one in Subscription.objects.all()} == {SUBSCRIPTION, other}
    Cluster.objects.filter(name="elsewhere").update(azure_id="")
    keep_known(now=here.time())
    assert {one.pk for one in Subscription.objects.all()} == {SUBSCRIPTION}


def test_a_cluster_that_is_azures_no_more_is_held_back_by_nothing(here: Site) -> None:
    assert of_the_pool(here).azure_nodes is not None
    Cluster.objects.filter(name="dev-eastus").update(azure_id="")
    keep_known(now=here.time())
    flavor = Flavor.objects.get(name="t4")
    assert (flavor.azure_nodes, flavor.azure_limit) == (None, "")
    assert flavor.gpus_total == flavor.gpus_obtainable


def test_without_azure_nothing_is_read_and_nothing_fails(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings.ENV, "azure_subscription_id", "")
    Subscription.objects.all().delete()
    keep_known(now=here.time())
    assert not Subscription.objects.exists()
    observe(SUBSCRIPTION, now=here.time)


@pytest.mark.parametrize(
    ("azure_id", "name"),
    [
        (EASTUS, "dev-eastus"),
        (EASTUS.lower(), "dev-eastus"),
        ("", None),
        (f"{HERE}/resourceGroups/{GROUP}/providers/Microsoft.Compute/disks/one", None),
        ("dev-eastus", None),
    ],
)
def test_an_aks_cluster_is_known_by_its_id(azure_id: str, name: str | None) -> None:
    found = aks_of(Cluster(azure_id=azure_id))
    assert (found.name if found else None) == name
