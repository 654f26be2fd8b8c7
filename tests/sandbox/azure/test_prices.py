"""The list of retail prices, with the rows that are not what one looks for."""

from collections import Counter
from typing import Any

import httpx
import pytest

from sandbox.azure.prices import PATH, PREVIEW
from sandbox.azure.sizes import SIZES
from tests.sandbox.azure.running import Running

A100 = "Standard_NC24ads_A100_v4"
ASKED = f"serviceName eq 'Virtual Machines' and armRegionName eq 'eastus' and armSkuName eq '{A100}'"


@pytest.fixture
def http(azure: Running) -> Any:
    with azure.http() as client:
        yield client


def rows(http: httpx.Client, asked: str, **query: str) -> list[dict[str, Any]]:
    answer = http.get(PATH, params={"$filter": asked, **query})
    assert answer.status_code == 200
    found: list[dict[str, Any]] = answer.json()["Items"]
    return found


def test_a_size_has_rows_of_every_kind(http: httpx.Client) -> None:
    found = rows(http, ASKED)
    assert Counter(row["type"] for row in found) == {
        "Consumption": 5,
        "Reservation": 2,
        "DevTestConsumption": 1,
    }
    assert sum("Windows" in row["productName"] for row in found) == 3
    assert {row["meterName"].rpartition("v4")[2].strip() for row in found} == {
        "",
        "Spot",
        "Low Priority",
    }
    year = next(row for row in found if row.get("reservationTerm") == "1 Year")
    assert (year["unitOfMeasure"], year["retailPrice"] > 10_000) == ("1 Hour", True)
    assert {row["currencyCode"] for row in found} == {"USD"}


def test_the_cheapest_row_comes_first(http: httpx.Client) -> None:
    found = rows(http, ASKED)
    assert found[0]["retailPrice"] == min(row["retailPrice"] for row in found)
    assert "Low Priority" in found[0]["meterName"]


@pytest.mark.parametrize(
    ("clause", "count"),
    [
        (" and priceType eq 'Consumption'", 5),
        (" and priceType eq 'consumption'", 5),
        (" and priceType ne 'Reservation'", 6),
        (" and contains(meterName, 'Spot')", 2),
        (" and armSkuName eq 'It''s not'", 0),
    ],
)
def test_it_is_filtered(http: httpx.Client, clause: str, count: int) -> None:
    assert len(rows(http, ASKED + clause)) == count


def test_the_preview_heeds_capitals_and_knows_savings_plans(http: httpx.Client) -> None:
    assert (
        rows(http, ASKED.replace("eastus", "EastUS"), **{"api-version": PREVIEW}) == []
    )
    found = rows(http, ASKED, **{"api-version": PREVIEW})
    assert [plan["term"] for row in found for plan in row.get("savingsPlan", [])] == [
        "1 Year"
    ]
    assert not any("savingsPlan" in row for row in rows(http, ASKED))


@pytest.mark.parametrize(
    "asked", ["not armRegionName eq 'eastus'", "armRegionName gt 'a'", "nonsense"]
)
def test_what_it_does_not_understand_is_refused(http: httpx.Client, asked: str) -> None:
    answer = http.get(PATH, params={"$filter": asked})
    assert (answer.status_code, answer.json()["Error"]["Code"]) == (
        400,
        "InvalidParameter",
    )


def test_all_of_it_comes_in_pages(http: httpx.Client) -> None:
    found, url, params = (
        list[Any](),
        PATH,
        {"$filter": "serviceName eq 'Virtual Machines'"},
    )
    pages = 0
    while url:
        page = http.get(url, params=params or None).json()
        found += page["Items"]
        assert page["Count"] == len(page["Items"]) <= 100
        url, params, pages = page["NextPageLink"] or "", {}, pages + 1
    assert pages > 1
    assert len(found) == 8 * sum(len(size.zones) for size in SIZES)
    assert len({row["meterId"] for row in found}) == len(found)


def test_an_unknown_currency_changes_nothing(http: httpx.Client) -> None:
    assert rows(http, ASKED, currencyCode="USD") == rows(http, ASKED)
