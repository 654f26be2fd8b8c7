"""The pages and the API of list prices, what the forms say of them, and that every estimate names its price and day."""

import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from allocations.models import Allocation
from approvals.models import Request
from approvals.requests.actions import submit
from audit import clock
from capacity.models import MachinePrice, NodePool, PastPrice, PriceRegion
from capacity.prices import actions, syncing
from catalogue import actions as offering_actions
from connectors.azure.retail_prices import Price
from fleet.flavors.actions import change_flavor
from fleet.models import Flavor
from insights.prices.charting import Point, chart
from tests import factories
from tests.approvals import shop
from tests.calling import Caller
from tests.capacity.connected import A100, T4, Site, connected, site
from tests.pages import parsed
from tests.sandbox.azure.running import Running
from tests.scene import DAY, NOW, Scene
from ui.amounts import dated

pytestmark = pytest.mark.django_db
FOUR_T4 = "Standard_NC64as_T4_v3"
PAGE = "/capacity/prices"


@pytest.fixture
def here(azure: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site whose prices were read just now; its kind of GPU is on machines of four T4."""
    with connected(azure, monkeypatch):
        made = site(azure)
        made.time.at = timezone.now()
        kind = {"node_pool": "t4", "gpus_per_node": 4, "product": "T4", "memory_gb": 16}
        Flavor.objects.filter(pk=made.flavor.pk).update(**kind)
        read(made)
        made.flavor.refresh_from_db()
        yield made


def read(here: Site) -> None:
    syncing.keep_known(now=here.time())
    for region_id in PriceRegion.objects.due(here.time()).values_list("pk", flat=True):
        syncing.read(region_id, now=here.time)
    syncing.follow()


def words(client: Client, path: str = PAGE) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return parsed(answer.content.decode()).words


@pytest.fixture
def ada(here: Site, client: Client) -> Client:
    client.force_login(here.scene.ada)
    return client


@pytest.fixture
def priya(here: Site, client: Client) -> Client:
    client.force_login(here.scene.priya)
    return client


def price(size: str = FOUR_T4) -> MachinePrice:
    return MachinePrice.objects.get(size=size)


# The page


def test_each_machine_has_all_its_prices_side_by_side_and_of_each_gpu(
    ada: Client,
) -> None:
    row = next(
        each
        for each in parsed(ada.get(PAGE).content.decode()).walk()
        if each.tag == "tr" and each.words.startswith(FOUR_T4)
    )
    assert "4 GPUs" in row.words
    for found in (
        "$4.352 $1.088 per GPU",
        "$1.3056 $0.3264 per GPU",
        "$2.8288 $0.7072 per GPU",
        "$1.9584 $0.4896 per GPU",
    ):
        assert found in row.words
    assert "$0.53 51 % below the list" in row.words


def test_it_says_when_each_region_was_read(ada: Client) -> None:
    assert re.search(r"Read eastus last read (just now|\d+ s ago)", words(ada))


def test_a_region_that_cannot_be_read_is_said_with_the_day_of_what_counts(
    here: Site, ada: Client
) -> None:
    now = timezone.now()
    actions.note_failure(
        "eastus", message="Azure's prices answered 503.", now=now, again_at=now
    )
    shown = words(ada)
    assert (
        f"Prices of eastus could not be read since {dated(now)}: until they are, those of {dated(now)} count."
        in shown
    )
    assert "Azure's prices answered 503." in shown
    assert "could not be read since" in words(ada, f"{PAGE}/{price().pk}")


def test_a_region_that_was_never_read_is_said_too(here: Site, ada: Client) -> None:
    now = timezone.now()
    actions.keep_regions(["eastus", "westeurope"], now=now)
    assert "Not read yet westeurope" in words(ada)
    actions.note_failure("westeurope", message="It is away.", now=now, again_at=now)
    assert (
        f"Prices of westeurope could not be read since {dated(now)}: until they are, those that came"
        in words(ada)
    )


def test_without_azure_the_shipped_list_is_shown_with_its_month(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    shown = words(client)
    assert "not connected to Azure" in shown
    assert "of November 2026" in shown
    assert "Standard_NC96ads_A100_v4 4 $14.692 $3.673" in shown


def test_a_machine_has_a_page_with_its_history_as_a_drawing_and_as_a_table(
    here: Site, ada: Client
) -> None:
    later = timezone.now() - timedelta(days=1)
    row = price()
    PastPrice.objects.filter(price=row).update(at=later - timedelta(days=9))
    PriceRegion.objects.update(read_at=later - timedelta(days=9))
    found = Price(FOUR_T4, "eastus", Decimal(5), Decimal(2), since=row.since)
    actions.keep("eastus", [found], now=later, again_at=later + DAY)
    answer = ada.get(f"{PAGE}/{row.pk}").content.decode()
    assert answer.count("<polyline") == 3
    shown = parsed(answer).words
    assert "$5.00" in shown
    assert "$4.352 $1.3056 $2.8288 $1.9584" in shown
    assert "T4 16 GB" in shown
    assert "58 % below the list" in shown


def test_nobody_who_is_signed_out_sees_it_and_what_is_not_there_is_missing(
    here: Site, client: Client
) -> None:
    assert client.get(PAGE).status_code == 302
    client.force_login(here.scene.ada)
    assert client.get(f"{PAGE}/999999").status_code == 404
    assert client.post(PAGE).status_code == 405


def test_capacity_leads_to_it(ada: Client) -> None:
    assert f'href="{PAGE}"' in ada.get("/capacity/").content.decode()


@pytest.mark.parametrize("path", ["", "/first"])
def test_more_machines_cost_no_more_queries(
    here: Site, ada: Client, path: str, django_assert_max_num_queries: Any
) -> None:
    now = timezone.now()
    MachinePrice.objects.bulk_create(
        MachinePrice(
            region="eastus",
            size=f"Standard_{number}",
            on_demand=Decimal(1),
            seen_at=now,
        )
        for number in range(50)
    )
    for number in range(5):
        factories.flavor(here.flavor.cluster, f"more-{number}", node_pool="t4")
    with django_assert_max_num_queries(12):
        assert ada.get(PAGE + path.replace("first", str(price().pk))).status_code == 200


# Doubtful prices


def jump(size: str = FOUR_T4) -> MachinePrice:
    """Have the list say ten times as much."""
    now = timezone.now()
    found = Price(size, "eastus", 10 * (price(size).on_demand or Decimal(1)))
    actions.keep("eastus", [found], now=now, again_at=now + DAY)
    return price(size)


@pytest.mark.slow
def test_a_doubtful_price_is_said_and_confirmed_on_its_page(
    here: Site, priya: Client
) -> None:
    row = jump()
    assert "4 GPUs · doubtful since the last reading" in words(priya)
    shown = words(priya, f"{PAGE}/{row.pk}")
    assert "the list says on demand $43.52 instead of $4.352." in shown
    assert row.doubts is not None
    path, seen = f"{PAGE}/{row.pk}/confirm", row.doubts.at.isoformat()
    for wrong in ("", "yesterday", NOW.isoformat()):
        assert priya.post(path, {"doubted_at": wrong}).status_code == 302
    assert price().doubts is not None
    assert priya.post(path, {"doubted_at": seen}, follow=True).status_code == 200
    assert (price().doubts, price().on_demand) == (None, Decimal("43.52"))


def test_only_platform_leads_confirm_it(here: Site, ada: Client) -> None:
    row = jump()
    assert "Use these prices" not in words(ada, f"{PAGE}/{row.pk}")
    assert row.doubts is not None
    assert (
        ada.post(
            f"{PAGE}/{row.pk}/confirm", {"doubted_at": row.doubts.at.isoformat()}
        ).status_code
        == 403
    )
    body = {"doubted_at": row.doubts.at.isoformat()}
    assert (
        Caller(here.scene.ada).post(f"prices/{row.pk}/confirm/", body).status_code
        == 403
    )
    assert price().doubts is not None


def test_it_is_confirmed_over_the_api(here: Site) -> None:
    row, lead = jump(), Caller(here.scene.priya)
    doubt = lead.get(f"prices/{row.pk}/").json()["doubt"]
    assert (doubt["on_demand"], doubt["spot"]) == ("43.520000", None)
    refused = lead.post(
        f"prices/{row.pk}/confirm/", {"doubted_at": "2026-01-01T00:00:00Z"}
    )
    assert refused.json()["code"] == "stale"
    done = lead.post(f"prices/{row.pk}/confirm/", {"doubted_at": doubt["at"]}).json()
    assert (done["doubt"], done["on_demand"], len(done["history"])) == (
        None,
        "43.520000",
        3,
    )


# The chart


def test_a_price_is_drawn_in_steps_and_not_where_there_was_none() -> None:
    def point(days: int, usd: str | None) -> Point:
        return Point(
            at=NOW + days * DAY,
            on_demand=Decimal(2),
            spot=None if usd is None else Decimal(usd),
            one_year=None,
        )

    drawn = chart([point(0, "1"), point(5, None), point(6, "0.5")], now=NOW + 10 * DAY)
    assert drawn is not None
    assert [line.split()[0].split(",")[0] for line in drawn.spot] == ["0.0", "600.0"]
    assert [line.split()[-1].split(",")[0] for line in drawn.spot] == [
        "500.0",
        "1000.0",
    ]
    assert (len(drawn.on_demand), drawn.one_year, drawn.top) == (1, [], Decimal(2))
    assert chart([], now=NOW) is None
    assert chart([point(0, "1")], now=NOW) is None


# The API


def test_the_api_tells_prices_with_their_history(
    here: Site, django_assert_max_num_queries: Any
) -> None:
    ada = Caller(here.scene.ada)
    with django_assert_max_num_queries(6):
        rows = ada.get("prices/").json()["results"]
    found = next(row for row in rows if row["size"] == FOUR_T4)
    assert (found["region"], found["on_demand"], found["spot"]) == (
        "eastus",
        "4.352000",
        "1.305600",
    )
    with django_assert_max_num_queries(7):
        one = ada.get(f"prices/{found['id']}/").json()
    assert (one["gpus"], len(one["history"]), one["history"][0]["one_year"]) == (
        4,
        1,
        "2.828800",
    )
    assert one["kinds"] == [
        {
            "flavor": "dev-eastus/t4",
            "price_per_gpu_hour": "0.5300",
            "follows_list": False,
            "list_price_per_gpu_hour": "1.0880",
            "percent": -51,
        }
    ]


def test_what_teams_were_charged_before_is_told_with_who_set_it(
    here: Site, ada: Client, priya: Client
) -> None:
    row = MachinePrice.objects.get(size=FOUR_T4, region="eastus")
    lead = here.scene.priya
    for usd in ("0.61", "0.70"):
        change_flavor(
            here.flavor.pk, values={"price_per_gpu_hour": Decimal(usd)}, by=lead
        )
    change_flavor(
        here.flavor.pk, values={"node_pool": "t4", "follows_list": True}, by=lead
    )
    syncing.follow()
    listed = Flavor.objects.get(pk=here.flavor.pk).price_per_gpu_hour
    told = Caller(here.scene.ada).get(f"prices/{row.pk}/").json()["our_history"]
    assert [
        (Decimal(one["price_per_gpu_hour"]), one["is_list_price"]) for one in told
    ] == [
        (listed, True),
        (Decimal("0.70"), False),
        (Decimal("0.61"), False),
    ]
    said = words(ada, f"{PAGE}/{row.pk}")
    assert "What they were charged before" in said
    assert "the platform team" in said


def test_the_api_lists_one_region_in_pages(here: Site) -> None:
    ada = Caller(here.scene.ada)
    assert ada.get("prices/?region=nowhere").json()["results"] == []
    first = ada.get("prices/?limit=1&region=eastus").json()
    assert len(first["results"]) == 1
    assert first["next"]
    assert ada.get("prices/?size=x").status_code == 400
    assert ada.get("prices/999999/").status_code == 404
    assert Caller().get("prices/").status_code == 401


def test_a_kind_of_gpu_is_had_to_follow_the_list_over_the_api(here: Site) -> None:
    lead, path = Caller(here.scene.priya), f"flavors/{here.flavor.pk}/"
    answer = lead.patch(path, {"follows_list": True}).json()
    assert (
        answer["follows_list"],
        answer["is_list_price"],
        answer["price_per_gpu_hour"],
    ) == (
        True,
        False,
        "0.5300",
    )
    syncing.follow()
    answer = lead.get(path).json()
    assert (answer["is_list_price"], answer["price_per_gpu_hour"]) == (True, "1.0880")
    refused = lead.patch(path, {"price_per_gpu_hour": "2"})
    assert (refused.status_code, refused.json()["code"]) == (422, "follows_list")
    assert (
        Caller(here.scene.ada).patch(path, {"follows_list": False}).status_code == 403
    )


def test_the_catalogue_tells_prices_by_region(here: Site) -> None:
    found = Caller(here.scene.ada).get("offerings/reservation/").json()
    assert found["prices_by_region"]["eastus"][A100] == "3.6730"
    assert found["prices"][A100] == "3.6730"
    assert (
        Caller(here.scene.ada).get("offerings/volume/").json()["prices_by_region"] == {}
    )


# The form of a kind of GPU


def test_the_form_shows_what_the_list_says_of_its_machine(priya: Client) -> None:
    shown = words(priya, "/clusters/dev-eastus/flavors/t4")
    today = dated(timezone.now())
    prices = "$1.088 on demand, $0.3264 spot, $0.7072 reserved for a year"
    assert f"Azure's list price of {today} per GPU-hour: {prices}." in shown


def test_the_form_has_it_follow_the_list_whatever_price_it_was_opened_with(
    here: Site, priya: Client
) -> None:
    path = "/clusters/dev-eastus/flavors/t4"
    sent = {
        "product": "T4",
        "memory_gb": "16",
        "gpus_per_node": "4",
        "capacity_type": "on-demand",
        "price_per_gpu_hour": "0.53",
        "follows_list": "on",
        "node_pool": "t4",
        "node_labels": '{"qm.example/t4": "yes"}',
        "cpu_per_gpu": "8",
        "memory_gib_per_gpu": "64",
        "is_offered": "on",
    }
    assert priya.post(path, sent).status_code == 302
    syncing.follow()
    here.flavor.refresh_from_db()
    assert here.flavor.price_per_gpu_hour == Decimal("1.088")
    # What was opened before the list was read is sent again: the list's price stays.
    assert priya.post(path, sent).status_code == 302
    here.flavor.refresh_from_db()
    assert (here.flavor.price_per_gpu_hour, here.flavor.is_list_price) == (
        Decimal("1.088"),
        True,
    )
    del sent["follows_list"]
    assert priya.post(path, sent).status_code == 302
    here.flavor.refresh_from_db()
    assert (str(here.flavor.price_per_gpu_hour), here.flavor.is_list_price) == (
        "0.5300",
        False,
    )


def test_a_cluster_outside_azure_is_not_asked(here: Site, priya: Client) -> None:
    assert "Follow Azure" not in words(priya, "/clusters/training/flavors/a100")


# Every estimate names its price and its day


def preview(here: Site, offering: str, spec: dict[str, Any]) -> str:
    until = (timezone.now() + 2 * DAY).isoformat()
    ask = {
        "team": "vision",
        "offering": offering,
        "spec": spec,
        "until": until,
        "reason": "It is needed.",
    }
    answer = Caller(here.scene.ada).post("requests/preview/", ask)
    assert answer.status_code == 200, answer.content
    return str(answer.json()["formula"])


def test_an_estimate_names_the_list_price_and_its_day(here: Site) -> None:
    spec = {**shop.SPECS["reservation"], "vm_size": A100, "instances": 2}
    found = preview(here, "reservation", spec)
    today = dated(timezone.now())
    assert (
        found
        == f"2 × {A100} × $3.673 an hour, used or not (Azure's list price of {today})"
    )


def test_an_estimate_names_who_set_the_price_and_when(here: Site) -> None:
    spec = {**shop.SPECS["reservation"], "vm_size": A100}
    prices = {A100: Decimal("3.10")}
    offering_actions.change("reservation", by=here.scene.priya, prices=prices)
    today = dated(clock.now())
    found = preview(here, "reservation", spec)
    assert (
        found
        == f"1 × {A100} × $3.10 an hour, used or not (set by the platform team on {today})"
    )
    other = preview(here, "reservation", {**spec, "vm_size": T4})
    assert "Azure's list price of" in other


def test_an_own_price_keeps_its_day_until_it_is_another(here: Site) -> None:
    lead = here.scene.priya
    row = offering_actions.change(
        "reservation", by=lead, prices={A100: Decimal("3.10")}
    )
    row.priced_on = {A100: "2026-11-03"}
    row.save()
    offering_actions.change(
        "reservation", by=lead, prices={A100: Decimal("3.10"), T4: Decimal("0.4")}
    )
    found = preview(here, "reservation", {**shop.SPECS["reservation"], "vm_size": A100})
    assert "(set by the platform team on 3 Nov 2026)" in found
    row = offering_actions.change("reservation", by=lead, prices={A100: Decimal("3.2")})
    assert row.priced_on[A100] == clock.now().date().isoformat()


def test_gpus_name_it_and_so_does_what_only_the_catalogue_prices(here: Site) -> None:
    change_flavor(
        here.scene.flavor.pk,
        values={"price_per_gpu_hour": Decimal(2)},
        by=here.scene.priya,
    )
    today = dated(clock.now())
    assert preview(here, "gpus", dict(shop.SPECS["gpus"])) == (
        f"1 × $2.00 per GPU-hour (set by the platform team on {today})"
    )
    found = preview(here, "volume", dict(shop.SPECS["volume"]))
    assert found.endswith("(the catalogue's price of November 2026)")


def test_a_request_keeps_the_price_and_the_day_it_was_asked_at(
    here: Site, ada: Client
) -> None:
    now = timezone.now()
    asked = submit(
        shop.wanted(here.scene, "reservation", vm_size=A100, until=now + 3 * DAY),
        by=here.scene.ada,
        now=now,
    )
    kept = (
        f"1 × {A100} × $3.673 an hour, used or not (Azure's list price of {dated(now)})"
    )
    assert Request.objects.get(pk=asked.pk).formula == kept
    MachinePrice.objects.update(on_demand=Decimal(9))
    assert kept in words(ada, f"/requests/{asked.pk}/")
    assert Caller(here.scene.ada).get(f"requests/{asked.pk}/").json()["formula"] == kept


@pytest.mark.slow
def test_the_answer_beside_the_form_names_it(here: Site, ada: Client) -> None:
    until = (timezone.now() + 7 * DAY).strftime("%Y-%m-%dT%H:%M")
    said = f"team=vision&region=eastus&vm_size={A100}&instances=2&zone=&nodes_for=&until={until}"
    shown = words(ada, f"/requests/new/reservation?{said}")
    assert f"(Azure's list price of {dated(timezone.now())})" in shown


def test_the_lines_of_the_form_say_from_which_price_on_where_regions_differ(
    here: Site,
) -> None:
    now = timezone.now()
    actions.keep_regions(["eastus", "westeurope"], now=now)
    actions.keep(
        "westeurope",
        [Price(A100, "westeurope", Decimal("4.4"))],
        now=now,
        again_at=now + DAY,
    )
    options = (
        Caller(here.scene.ada)
        .get("offerings/reservation/options/?team=vision")
        .json()["choices"]
    )
    labels = {line["value"]: line["label"] for line in options["vm_size"]}
    assert labels[A100] == f"{A100} · 1 GPU · from $3.673 per instance and hour"
    assert labels[T4] == f"{T4} · 1 GPU · $0.526 per instance and hour"
    assert NodePool.objects.exists()


def test_what_was_granted_keeps_its_price_when_the_kind_follows_the_list(
    here: Site,
) -> None:
    flavor = here.scene.flavor
    asked: Scene = here.scene
    asked.ask(1)
    before = Allocation.objects.get().price_per_gpu_hour
    change_flavor(
        flavor.pk, values={"price_per_gpu_hour": before + 1}, by=here.scene.priya
    )
    assert Allocation.objects.get().price_per_gpu_hour == before
