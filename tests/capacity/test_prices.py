"""Azure's list prices: read every day from the sandbox's list, kept with a history, and followed by kinds of GPU."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F

from approvals.requests.wanted import Wanted
from audit.models import Event
from capacity.models import DoubtedPrice, MachinePrice, NodePool, PastPrice, PriceRegion
from capacity.prices import actions, syncing
from capacity.prices.doubts import doubted
from capacity.prices.listed import list_prices
from capacity.tasks import read_prices, read_prices_of
from fleet.flavors.actions import change_flavor, take_list_price
from fleet.models import Flavor
from notices.models import Notice
from sandbox.azure import prices as sandbox_prices
from sandbox.azure import sizes
from tests import factories
from tests.approvals import shop
from tests.capacity.connected import A100, EASTUS, T4, Site, Time, connected, site
from tests.sandbox.azure.running import Running
from tests.scene import NOW
from web.refusals import BadInput, Conflict, NoRight, Stale

pytestmark = pytest.mark.django_db
FOUR_T4 = "Standard_NC64as_T4_v3"
LIST = "/api/retail/prices"
WESTEUROPE = EASTUS.replace("dev-eastus", "far")


@dataclass
class Reader:
    """Workers that read prices at the time of a site."""

    site: Site

    @property
    def time(self) -> Time:
        return self.site.time

    def read(self) -> None:
        """Do all that is due now."""
        syncing.keep_known(now=self.time())
        for region_id in PriceRegion.objects.due(self.time()).values_list(
            "pk", flat=True
        ):
            syncing.read(region_id, now=self.time)
        syncing.follow()

    def next_day(self) -> None:
        """The same a day later."""
        self.time.pass_(days=1)
        self.read()


@pytest.fixture
def reader(azure: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    with connected(azure, monkeypatch):
        yield Reader(site(azure))


def price(size: str = A100, region: str = "eastus") -> MachinePrice:
    return MachinePrice.objects.get(size=size, region=region)


def changes() -> int:
    return Event.objects.filter(kind="prices.changed").count()


def costlier(
    monkeypatch: pytest.MonkeyPatch, factor: str, region: str = "eastus"
) -> None:
    monkeypatch.setitem(sandbox_prices.FACTORS, region, Decimal(factor))


# Reading


def test_the_fleets_sizes_and_regions_are_read(reader: Reader) -> None:
    reader.read()
    found = price()
    assert (found.on_demand, found.spot) == (Decimal("3.673"), Decimal("1.1019"))
    assert (found.one_year, found.three_years) == (
        Decimal("2.387450"),
        Decimal("1.652850"),
    )
    assert (found.since, found.seen_at) == (
        datetime(2026, 6, 1, tzinfo=UTC),
        reader.time(),
    )
    pools = {*NodePool.objects.values_list("vm_size", flat=True)}
    assert pools <= {*MachinePrice.objects.values_list("size", flat=True)}
    assert {*MachinePrice.objects.values_list("region", flat=True)} == {"eastus"}


def test_a_first_reading_is_one_event_and_the_beginning_of_each_history(
    reader: Reader,
) -> None:
    reader.read()
    assert changes() == 1
    event = Event.objects.get(kind="prices.changed")
    assert (
        event.details["changed"]
        == MachinePrice.objects.count()
        == PastPrice.objects.count()
    )


def test_a_reading_that_finds_the_same_leaves_no_trace_but_its_day(
    reader: Reader,
) -> None:
    reader.read()
    reader.next_day()
    assert (changes(), PastPrice.objects.count()) == (1, MachinePrice.objects.count())
    assert price().seen_at == PriceRegion.objects.get().read_at == reader.time()


def test_a_change_is_history_and_one_event_for_all_of_them(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.read()
    costlier(monkeypatch, "1.1")
    reader.next_day()
    assert price().on_demand == Decimal("4.0403")
    assert [(one.at, one.on_demand) for one in price().history.all()] == [
        (reader.time(), Decimal("4.0403")),
        (NOW, Decimal("3.673")),
    ]
    assert changes() == 2
    words = Event.objects.filter(kind="prices.changed").latest("seq").details["prices"]
    assert any(
        line.startswith(
            f"{A100}: on demand from $3.673 to $4.0403, spot from $1.1019 to"
        )
        for line in words
    )


def test_it_is_read_once_a_day_and_not_twice_at_once(reader: Reader) -> None:
    reader.read()
    asked = len(PastPrice.objects.all())
    reader.time.pass_(hours=23)
    assert not PriceRegion.objects.due(reader.time()).exists()
    syncing.read(PriceRegion.objects.get().pk, now=reader.time)
    assert price().seen_at == NOW
    assert PastPrice.objects.count() == asked


def test_a_worker_that_comes_late_changes_nothing(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.read()
    PriceRegion.objects.update(next_read_at=NOW)
    costlier(monkeypatch, "1.1")
    syncing.read(PriceRegion.objects.get().pk, now=lambda: NOW)
    assert (price().on_demand, changes()) == (Decimal("3.673"), 1)


def test_what_the_list_has_no_more_keeps_the_price_and_the_day_of_its_last_reading(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.read()
    kept = tuple(one for one in sizes.SIZES if one.name != A100)
    monkeypatch.setattr(sandbox_prices, "SIZES", kept)
    reader.next_day()
    assert (price().on_demand, price().seen_at) == (Decimal("3.673"), NOW)
    assert price(T4).seen_at == reader.time()


def test_a_region_that_fails_delays_no_other_and_is_tried_again_soon(
    reader: Reader, azure: Running
) -> None:
    factories.cluster("far", region="westeurope", azure_id=WESTEUROPE)
    azure.fault("GET", LIST, status=503)
    reader.read()
    failed, read = (
        PriceRegion.objects.get(name="eastus"),
        PriceRegion.objects.get(name="westeurope"),
    )
    assert (failed.read_at, failed.failing_since, failed.failures) == (None, NOW, 1)
    assert "503" in failed.message
    assert (read.read_at, read.message) == (NOW, "")
    assert price(A100, "westeurope").on_demand == Decimal("4.4076")
    assert not MachinePrice.objects.filter(region="eastus").exists()
    reader.time.pass_(minutes=1)
    reader.read()
    failed.refresh_from_db()
    assert (failed.read_at, failed.message, failed.failing_since) == (
        reader.time(),
        "",
        None,
    )


def test_each_failure_doubles_the_wait_and_keeps_what_was_read(
    reader: Reader, azure: Running
) -> None:
    reader.read()
    reader.time.pass_(days=1)
    azure.fault("GET", LIST, status=503, times=3)
    row, waits = PriceRegion.objects.get(), []
    for _ in range(3):
        syncing.read(row.pk, now=reader.time)
        row.refresh_from_db()
        waits.append((row.next_read_at - reader.time()).total_seconds() / 60)
        reader.time.at = row.next_read_at
    assert waits == [1, 2, 4]
    assert (row.read_at, row.failing_since) == (NOW, NOW.replace(day=NOW.day + 1))
    assert price().on_demand == Decimal("3.673")
    syncing.read(PriceRegion.objects.get().pk, now=reader.time)
    assert PriceRegion.objects.get().failures == 0


def test_a_server_that_asks_for_time_gets_it(reader: Reader, azure: Running) -> None:
    azure.fault("GET", LIST, status=429, retry_after=600)
    reader.read()
    assert PriceRegion.objects.get().next_read_at == NOW.replace(minute=NOW.minute + 10)


def test_half_a_reading_is_none(
    reader: Reader, azure: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.read()
    reader.time.pass_(days=1)
    costlier(monkeypatch, "1.1")
    azure.fault("GET", LIST, truncate=400)
    reader.read()
    assert (price().on_demand, changes()) == (Decimal("3.673"), 1)


def test_a_region_that_the_fleet_leaves_is_read_no_more_and_keeps_its_history(
    reader: Reader,
) -> None:
    reader.read()
    reader.site.flavor.cluster.enabled = False
    reader.site.flavor.cluster.save()
    reader.next_day()
    assert not PriceRegion.objects.exists()
    assert price().seen_at == NOW


def test_without_azure_nothing_is_read(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings.ENV, "azure_subscription_id", "")
    reader.read()
    assert not PriceRegion.objects.exists()
    assert not MachinePrice.objects.exists()


def test_the_tasks_may_run_twice(reader: Reader) -> None:
    for _ in range(2):
        read_prices()
        for region_id in (PriceRegion.objects.get().pk, 999_999):
            read_prices_of(region_id)
    assert (changes(), PastPrice.objects.count()) == (1, MachinePrice.objects.count())


# Prices that nobody believes


def test_a_price_that_moved_too_far_is_told_and_does_not_count(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    flavor = follower(reader)
    reader.read()
    costlier(monkeypatch, "10")
    reader.next_day()
    reader.next_day()
    found = price(FOUR_T4)
    assert (found.on_demand, found.seen_at) == (Decimal("4.352"), NOW)
    assert found.doubts is not None
    assert found.doubts.by_way["on_demand"] == Decimal("43.52")
    flavor.refresh_from_db()
    assert (flavor.price_per_gpu_hour, flavor.priced_at) == (Decimal("1.088"), NOW)
    # Each lead is told once, of all of them together.
    told = Notice.objects.filter(kind="price_doubted").values_list(
        "person__name", flat=True
    )
    assert sorted(told) == ["Marcus Weber", "Priya Raman"]
    assert Event.objects.filter(kind="prices.doubted").count() == 1
    assert found.history.count() == 1


def test_a_doubtful_price_counts_once_a_platform_lead_confirms_it(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    flavor, people = follower(reader), reader.site.scene
    reader.read()
    costlier(monkeypatch, "10")
    reader.next_day()
    row = price(FOUR_T4)
    assert row.doubts is not None
    seen, now = row.doubts.at, reader.time()
    with pytest.raises(NoRight):
        actions.confirm(row.pk, doubted_at=seen, by=people.ada, now=now)
    with pytest.raises(Stale):
        actions.confirm(row.pk, doubted_at=NOW, by=people.priya, now=now)
    assert price(FOUR_T4).on_demand == Decimal("4.352")
    actions.confirm(row.pk, doubted_at=seen, by=people.priya, now=now)
    with pytest.raises(Conflict):
        actions.confirm(row.pk, doubted_at=seen, by=people.priya, now=now)
    row = price(FOUR_T4)
    assert (row.on_demand, row.doubts, row.history.count()) == (
        Decimal("43.52"),
        None,
        2,
    )
    syncing.follow()
    flavor.refresh_from_db()
    assert flavor.price_per_gpu_hour == Decimal("10.88")
    assert (
        Event.objects.filter(kind="prices.confirmed", actor_name="Priya Raman").count()
        == 1
    )
    # The next reading finds what was confirmed.
    reader.next_day()
    assert price(FOUR_T4).doubts is None


def test_a_mistake_that_is_mended_is_doubted_no_more(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.read()
    costlier(monkeypatch, "0.1")
    reader.next_day()
    assert DoubtedPrice.objects.count() == MachinePrice.objects.count()
    costlier(monkeypatch, "1.2")
    reader.next_day()
    assert not DoubtedPrice.objects.exists()
    assert (price().on_demand, price().seen_at) == (Decimal("4.4076"), reader.time())


@pytest.mark.parametrize(
    ("before", "found", "is_doubted"),
    [
        ("3", "9", False),
        ("3", "9.01", True),
        ("3", "1", False),
        ("3", "0.99", True),
        (None, "900", False),
        ("3", None, False),
    ],
)
def test_up_or_down_by_three_is_still_believed(
    before: str | None, found: str | None, is_doubted: bool
) -> None:
    def spot(usd: str | None) -> dict[str, Decimal | None]:
        return {"spot": None if usd is None else Decimal(usd)}

    assert bool(doubted(spot(before), spot(found))) is is_doubted


# Kinds of GPU that follow the list


def follower(reader: Reader, **fields: object) -> Flavor:
    """A kind of GPU on machines of four T4 that goes with the list."""
    flavor, usual = (
        reader.site.flavor,
        {"follows_list": True, "node_pool": "t4", "gpus_per_node": 4},
    )
    Flavor.objects.filter(pk=flavor.pk).update(**usual | fields)
    return Flavor.objects.select_related("cluster").get(pk=flavor.pk)


def test_a_kind_that_follows_the_list_costs_what_its_machine_costs(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    flavor = follower(reader)
    reader.read()
    flavor.refresh_from_db()
    assert (flavor.price_per_gpu_hour, flavor.is_list_price, flavor.priced_at) == (
        Decimal("1.088"),
        True,
        NOW,
    )
    assert flavor.price_words == f"Azure's list price of {NOW.day} {NOW:%b %Y}"
    costlier(monkeypatch, "1.1")
    reader.next_day()
    flavor.refresh_from_db()
    assert (flavor.price_per_gpu_hour, flavor.priced_at) == (
        Decimal("1.1968"),
        reader.time(),
    )
    event = Event.objects.filter(kind="flavor.changed").latest("seq")
    assert (event.details["price_per_gpu_hour"], event.actor_name) == (
        "1.1968",
        "Quartermaster",
    )


def test_a_reading_that_finds_the_same_moves_the_day_of_the_price_and_is_no_event(
    reader: Reader,
) -> None:
    flavor = follower(reader)
    reader.read()
    told = Event.objects.count()
    reader.next_day()
    flavor.refresh_from_db()
    assert flavor.priced_at == reader.time()
    assert Event.objects.count() == told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("capacity_type", "gpus_per_node", "usd"),
    [
        ("on-demand", 4, "1.088"),
        # A machine that is cut into 28 costs a 28th for each.
        ("on-demand", 28, "0.1554"),
        ("reserved", 4, "0.7072"),
    ],
)
def test_the_price_is_of_how_it_is_paid_and_of_one_gpu(
    reader: Reader, capacity_type: str, gpus_per_node: int, usd: str
) -> None:
    flavor = follower(reader, capacity_type=capacity_type, gpus_per_node=gpus_per_node)
    reader.read()
    flavor.refresh_from_db()
    assert flavor.price_per_gpu_hour == Decimal(usd)


def test_spot_nodes_cost_the_spot_price(reader: Reader) -> None:
    NodePool.objects.update(is_spot=True)
    flavor = follower(reader, capacity_type="spot")
    reader.read()
    flavor.refresh_from_db()
    assert flavor.price_per_gpu_hour == Decimal("0.3264")


def test_a_price_that_people_set_wins_over_the_list(reader: Reader) -> None:
    flavor = follower(reader, follows_list=False)
    change_flavor(
        flavor.pk,
        values={"price_per_gpu_hour": Decimal("0.40")},
        by=reader.site.scene.priya,
    )
    reader.read()
    flavor.refresh_from_db()
    assert (flavor.price_per_gpu_hour, flavor.is_list_price) == (Decimal("0.40"), False)
    assert flavor.price_words.startswith("set by the platform team on ")
    # The list's is known beside it.
    listed = list_prices([flavor])[flavor]
    assert (listed.on_demand, listed.spot, listed.one_year) == (
        Decimal("1.088"),
        Decimal("0.3264"),
        Decimal("0.7072"),
    )


def test_nobody_sets_a_price_while_the_list_is_followed(reader: Reader) -> None:
    flavor, lead = follower(reader), reader.site.scene.priya
    reader.read()
    with pytest.raises(BadInput) as refused:
        change_flavor(flavor.pk, values={"price_per_gpu_hour": Decimal(9)}, by=lead)
    assert (refused.value.code, refused.value.field) == (
        "follows_list",
        "price_per_gpu_hour",
    )
    change_flavor(
        flavor.pk,
        values={"price_per_gpu_hour": Decimal(9), "follows_list": False},
        by=lead,
    )
    flavor.refresh_from_db()
    assert (flavor.price_per_gpu_hour, flavor.is_list_price) == (Decimal(9), False)
    reader.next_day()
    flavor.refresh_from_db()
    assert flavor.price_per_gpu_hour == 9


def test_a_cluster_outside_azure_follows_no_list(reader: Reader) -> None:
    flavor = reader.site.scene.flavor
    with pytest.raises(BadInput) as refused:
        change_flavor(
            flavor.pk, values={"follows_list": True}, by=reader.site.scene.priya
        )
    assert (refused.value.code, refused.value.field) == ("not_in_azure", "follows_list")
    assert list_prices([flavor]) == {}


@pytest.mark.parametrize("usd", [Decimal(0), Decimal(-1), Decimal(10_001)])
def test_what_is_no_price_is_not_taken(reader: Reader, usd: Decimal) -> None:
    flavor = follower(reader)
    assert take_list_price(flavor.pk, usd=usd, of=NOW) is False
    flavor.refresh_from_db()
    assert flavor.price_per_gpu_hour == Decimal("0.53")


def test_an_older_reading_is_not_taken(reader: Reader) -> None:
    flavor = follower(reader)
    reader.next_day()
    assert take_list_price(flavor.pk, usd=Decimal(1), of=NOW) is False
    flavor.refresh_from_db()
    assert flavor.price_per_gpu_hour == Decimal("1.088")


# What is asked for


def reservation(reader: Reader, **changes: Any) -> Wanted:
    return shop.wanted(reader.site.scene, "reservation", vm_size=A100, **changes)


def test_a_reservation_costs_the_list_price_of_its_region_and_says_of_which_day(
    reader: Reader,
) -> None:
    factories.cluster("far", region="westeurope", azure_id=WESTEUROPE)
    reader.read()
    here, there = (
        reservation(reader, instances=2),
        reservation(reader, region="westeurope"),
    )
    assert (here.size.usd_per_hour_each, there.size.usd_per_hour_each) == (
        Decimal("3.673"),
        Decimal("4.4076"),
    )
    day = f"{NOW.day} {NOW:%b %Y}"
    assert (
        here.size.told
        == f"2 × {A100} × $3.673 an hour, used or not (Azure's list price of {day})"
    )


def test_before_the_list_was_read_the_shipped_price_counts_with_its_month(
    reader: Reader,
) -> None:
    found = reservation(reader)
    assert found.size.usd_per_hour_each == Decimal("3.673")
    assert found.size.priced == "Azure's list price of November 2026"
    reader.read()
    # Of a region that the fleet is not in, nothing is read.
    assert (
        reservation(reader, region="uksouth").size.priced
        == "Azure's list price of November 2026"
    )


@pytest.mark.slow
def test_what_was_granted_keeps_the_price_of_its_day(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.read()
    allocation = reader.site.grant(1, vm_size=A100)
    costlier(monkeypatch, "1.1")
    reader.next_day()
    allocation.refresh_from_db()
    assert allocation.usd_per_hour == Decimal("3.673")
    assert reservation(reader).size.usd_per_hour_each == Decimal("4.0403")


# What the database refuses


@pytest.mark.slow
@pytest.mark.parametrize("model", [MachinePrice, PastPrice, DoubtedPrice])
@pytest.mark.parametrize(
    "change",
    [
        {"on_demand": Decimal(0)},
        {"spot": Decimal(-1)},
        {"one_year": Decimal(0)},
        {"three_years": Decimal(0)},
        dict.fromkeys(("on_demand", "spot", "one_year", "three_years")),
    ],
)
def test_a_price_of_nothing_is_refused(
    reader: Reader, model: type[MachinePrice], change: dict[str, object]
) -> None:
    reader.read()
    DoubtedPrice.objects.create(price=price(), at=NOW, spot=Decimal(9))
    with pytest.raises(IntegrityError), transaction.atomic():
        model.objects.update(**change)


def test_a_size_has_one_price_in_a_region_and_changes_once_at_a_moment(
    reader: Reader,
) -> None:
    reader.read()
    with pytest.raises(IntegrityError), transaction.atomic():
        MachinePrice.objects.filter(size=T4).update(size=A100)
    row = PastPrice.objects.first()
    assert row is not None
    with pytest.raises(IntegrityError), transaction.atomic():
        PastPrice.objects.exclude(pk=row.pk).update(price=row.price)


@pytest.mark.parametrize(
    "change", [{"message": "It is away."}, {"failures": 1}, {"failing_since": NOW}]
)
def test_prices_are_not_read_for_a_reason(
    reader: Reader, change: dict[str, object]
) -> None:
    reader.read()
    with pytest.raises(IntegrityError), transaction.atomic():
        PriceRegion.objects.update(**change)


@pytest.mark.parametrize("change", [{"follows_list": False}, {"priced_at": None}])
def test_a_list_price_is_followed_and_of_a_day(
    reader: Reader, change: dict[str, object]
) -> None:
    follower(reader)
    reader.read()
    with pytest.raises(IntegrityError), transaction.atomic():
        Flavor.objects.filter(is_list_price=True).update(**change)
    assert Flavor.objects.filter(
        is_list_price=True, price_per_gpu_hour=F("price_per_gpu_hour")
    ).exists()
