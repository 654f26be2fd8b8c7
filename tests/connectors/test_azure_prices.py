"""Retail prices: the one row that one looks for, among all those that one does not."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from connectors import graph
from connectors.azure import retail_prices
from connectors.azure.retail_prices import Price, RetailPrices, read
from connectors.errors import AnswerLost, PermanentError, TemporaryError
from sandbox.azure import prices as sandbox_prices
from tests.sandbox.azure.running import Running

A100, T4 = "Standard_NC24ads_A100_v4", "Standard_NC4as_T4_v3"
ROW = {
    "armSkuName": A100,
    "armRegionName": "eastus",
    "currencyCode": "USD",
    "unitOfMeasure": "1 Hour",
    "tierMinimumUnits": 0.0,
    "type": "Consumption",
    "productName": "Virtual Machines NCads A100 v4 Series",
    "meterName": "NC24ads A100 v4",
    "skuName": "NC24ads A100 v4",
    "retailPrice": Decimal("3.673"),
    "effectiveStartDate": "2026-06-01T00:00:00Z",
    "meterId": "the-meter",
}


def row(**changes: Any) -> dict[str, Any]:
    return ROW | changes


@pytest.fixture
def prices(azure: Running) -> Any:
    made = RetailPrices(azure.azure.base, str(azure.ca))
    yield made
    made.close()


def test_a_size_costs_what_linux_costs(prices: RetailPrices) -> None:
    found = prices.prices("eastus", [A100, T4, "Standard_Imaginary"])
    assert [price.size for price in found] == [A100, T4]
    a100 = found[0]
    assert (a100.location, a100.on_demand, a100.spot) == (
        "eastus",
        Decimal("3.673"),
        Decimal("1.1019"),
    )
    # The list has the price of the whole term.
    assert (a100.one_year, a100.three_years) == (
        Decimal("2.387450"),
        Decimal("1.652850"),
    )
    assert a100.since == datetime(2026, 6, 1, tzinfo=UTC)
    assert a100.meter


def test_a_region_has_prices_of_its_own(prices: RetailPrices) -> None:
    here, there = (
        prices.prices("eastus", [A100])[0],
        prices.prices("westeurope", [A100])[0],
    )
    assert there.on_demand is not None
    assert here.on_demand is not None
    assert there.on_demand > here.on_demand
    assert prices.prices("westus", [A100]) == []


def test_every_page_is_read(
    azure: Running, prices: RetailPrices, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = prices.prices("eastus", [A100])
    monkeypatch.setattr(sandbox_prices, "PAGE", 1)
    assert prices.prices("eastus", [A100]) == whole


def test_a_list_without_an_end_is_given_up(
    azure: Running, prices: RetailPrices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_prices, "PAGE", 1)
    monkeypatch.setattr(retail_prices, "MAX_PAGES", 3)
    with pytest.raises(PermanentError):
        prices.prices("eastus", [A100])


def test_a_name_with_quotes_is_one_that_nobody_has(prices: RetailPrices) -> None:
    assert prices.prices("eastus", ["it's", "' or armRegionName ne '"]) == []


@pytest.mark.parametrize(
    "change",
    [
        {"productName": "Virtual Machines NCads A100 v4 Series Windows"},
        {"productName": "NCads A100 v4 Series Cloud Services"},
        {"meterName": "NC24ads A100 v4 Low Priority"},
        {"skuName": "NC24ads A100 v4 Low Priority"},
        {"type": "DevTestConsumption"},
        {"unitOfMeasure": "1/Month"},
        {"currencyCode": "EUR"},
        {"tierMinimumUnits": 100.0},
        {"armRegionName": "westus"},
        {"armSkuName": "Standard_NC48ads_A100_v4"},
        {"retailPrice": Decimal(0)},
        {"type": "Reservation", "reservationTerm": "5 Years"},
    ],
)
def test_other_rows_are_passed_over(change: dict[str, Any]) -> None:
    cheaper = {"retailPrice": Decimal("0.01"), **change}
    assert read([row(**cheaper)], "eastus", A100) is None
    price = read([row(**cheaper), row(), row(**cheaper)], "eastus", A100)
    assert price is not None
    assert (price.on_demand, price.spot, price.one_year) == (
        Decimal("3.673"),
        None,
        None,
    )


def test_spot_is_a_price_of_its_own() -> None:
    spot = row(meterName="NC24ads A100 v4 Spot", retailPrice=Decimal("1.1"))
    price = read([row(), spot], "EastUS", A100.lower())
    assert price is not None
    assert (price.on_demand, price.spot) == (Decimal("3.673"), Decimal("1.1"))


@pytest.mark.parametrize("is_newest_first", [True, False])
def test_the_price_that_holds_since_later_counts(is_newest_first: bool) -> None:
    older = row(
        retailPrice=Decimal(9),
        effectiveStartDate="2025-01-01T00:00:00Z",
        meterId="older",
    )
    rows = [row(), older] if is_newest_first else [older, row()]
    price = read(rows, "eastus", A100)
    assert price == Price(
        A100,
        "eastus",
        Decimal("3.673"),
        since=datetime(2026, 6, 1, tzinfo=UTC),
        meter="the-meter",
    )


# What goes wrong


@pytest.mark.parametrize(
    ("fault", "wait"),
    [
        ({"status": 503}, None),
        ({"status": 429, "retry_after": 30}, 30.0),
        ({"drop": True}, None),
        ({"cut": 30}, None),
        ({"truncate": 30}, None),
        ({"status": 200, "body": "[]"}, None),
        ({"status": 200, "body": "{}"}, None),
        ({"status": 200, "body": '{"Items": {}}'}, None),
        ({"status": 200, "body": '{"Items": [7]}'}, None),
    ],
)
def test_it_is_to_be_tried_again(
    azure: Running, prices: RetailPrices, fault: dict[str, Any], wait: float | None
) -> None:
    azure.fault("GET", "/api/retail/prices", **fault)
    with pytest.raises(TemporaryError) as failed:
        prices.prices("eastus", [A100])
    assert failed.value.retry_after == wait
    assert prices.prices("eastus", [A100])


@pytest.mark.parametrize(
    "change",
    [{"retailPrice": "cheap"}, {"retailPrice": None}, {"effectiveStartDate": "today"}],
)
def test_a_row_that_nobody_can_read_is_no_price(
    azure: Running, prices: RetailPrices, change: dict[str, Any]
) -> None:
    body = json.dumps(
        {"Items": [{**ROW, "retailPrice": 3.6, **change}], "NextPageLink": None}
    )
    azure.fault("GET", "/api/retail/prices", status=200, body=body)
    with pytest.raises(TemporaryError, match="unknown shape"):
        prices.prices("eastus", [A100])


@pytest.mark.parametrize(
    ("status", "code"), [(400, "invalid"), (404, "failed"), (302, "failed")]
)
def test_it_stays_refused(
    azure: Running, prices: RetailPrices, status: int, code: str
) -> None:
    azure.fault("GET", "/api/retail/prices", status=status)
    with pytest.raises(PermanentError) as refused:
        prices.prices("eastus", [A100])
    assert refused.value.code == code


@pytest.mark.parametrize(
    "link", ["https://example.com/api/retail/prices", "http://localhost/x", "/relative"]
)
def test_it_goes_on_at_no_other_server(
    azure: Running, prices: RetailPrices, link: str
) -> None:
    azure.fault(
        "GET",
        "/api/retail/prices",
        status=200,
        body=json.dumps({"Items": [], "NextPageLink": link}),
    )
    with pytest.raises(PermanentError) as refused:
        prices.prices("eastus", [A100])
    assert refused.value.code == "foreign_link"


def test_silence_ends(
    azure: Running, prices: RetailPrices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "TIMEOUT", (1.0, 0.2))
    azure.fault("GET", "/api/retail/prices", hang=20)
    with pytest.raises(TemporaryError, match="ReadTimeout"):
        prices.prices("eastus", [A100])


def test_a_half_page_is_lost(azure: Running, prices: RetailPrices) -> None:
    azure.fault("GET", "/api/retail/prices", truncate=100)
    with pytest.raises(AnswerLost):
        prices.prices("eastus", [A100])


def test_nobody_there_is_said(azure: Running) -> None:
    prices = RetailPrices("https://localhost:1", str(azure.ca))
    with pytest.raises(TemporaryError):
        prices.prices("eastus", [A100])
    prices.close()
