"""The retail prices API, which everybody may read, with all its rows that are not what one looks for."""

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from sandbox.azure.routing import Answer
from sandbox.azure.sizes import SIZES, Size

PATH = "/api/retail/prices"
PREVIEW = "2023-01-01-preview"
PAGE = 100
CLAUSE = re.compile(r"\s*(\w+)\s+(eq|ne)\s+'((?:[^']|'')*)'\s*")
CONTAINS = re.compile(r"\s*contains\(\s*(\w+)\s*,\s*'((?:[^']|'')*)'\s*\)\s*")
ALIASES = {"priceType": "type"}
FACTORS = {"eastus": Decimal(1), "westus": Decimal("1.1"), "westeurope": Decimal("1.2")}
PLACES = {"eastus": "US East", "westus": "US West", "westeurope": "EU West"}
HOURS_OF_A_YEAR = 8760
SINCE = "2026-06-01T00:00:00Z"
Row = dict[str, Any]


@dataclass(frozen=True)
class Prices:
    """Answers the one address of the API; `base` is where it is served."""

    base: str

    def answer(self, query: Mapping[str, str]) -> Answer:
        """Answer with a page of rows; 400 for a filter that nobody understands."""
        asked, skip = query.get("$filter", ""), query.get("$skip", "0")
        is_preview = query.get("api-version") == PREVIEW
        try:
            clauses = list(_clauses(asked))
            start = int(skip)
        except ValueError as error:
            words = {
                "Error": {
                    "Code": "InvalidParameter",
                    "Message": f"Invalid OData parameters: {error}",
                }
            }
            return Answer(400, words)
        rows = [
            row
            for row in _rows()
            if all(_holds(row, each, exactly=is_preview) for each in clauses)
        ]
        page = rows[start : start + PAGE]
        following = None
        if len(rows) > start + PAGE:
            following = f"{self.base}{PATH}?" + urlencode(
                {**query, "$skip": str(start + PAGE)}
            )
        return Answer(
            200,
            {
                "BillingCurrency": "USD",
                "CustomerEntityId": "Default",
                "CustomerEntityType": "Retail",
                "Items": [
                    row
                    if is_preview
                    else {k: v for k, v in row.items() if k != "savingsPlan"}
                    for row in page
                ],
                "NextPageLink": following,
                "Count": len(page),
            },
        )


def _clauses(asked: str) -> Iterator[tuple[str, str, str]]:
    """The comparisons of a filter: those joined by `and` are all there is."""
    for text in re.split(r"\s+and\s+", asked.strip()) if asked.strip() else ():
        if found := CLAUSE.fullmatch(text):
            yield found[1], found[2], found[3].replace("''", "'")
        elif found := CONTAINS.fullmatch(text):
            yield found[1], "contains", found[2].replace("''", "'")
        else:
            raise ValueError(text)


def _holds(row: Row, clause: tuple[str, str, str], *, exactly: bool) -> bool:
    name, operator, wanted = clause
    there = str(row.get(ALIASES.get(name, name), ""))
    if not exactly:
        there, wanted = there.lower(), wanted.lower()
    if operator == "contains":
        return wanted in there
    return (there == wanted) == (operator == "eq")


def _rows() -> Iterator[Row]:
    for size in SIZES:
        for region in size.zones:
            yield from _rows_of(size, region, Decimal(size.usd) * FACTORS[region])


def _rows_of(size: Size, region: str, usd: Decimal) -> Iterator[Row]:
    short = size.name.removeprefix("Standard_").replace("_", " ")
    product = f"Virtual Machines {size.family.removeprefix('Standard').removeprefix('standard').strip()}"
    licence = Decimal("0.046") * size.vcpus
    plans = [
        {
            "unitPrice": float(usd * Decimal("0.72")),
            "retailPrice": float(usd * Decimal("0.72")),
            "term": "1 Year",
        }
    ]
    kinds: tuple[tuple[str, str, Decimal, Mapping[str, Any]], ...] = (
        # What costs least comes first: who takes the first row is wrong.
        (f"{short} Low Priority", product, usd / 5, {}),
        (f"{short} Spot", product, usd * Decimal("0.3"), {}),
        (f"{short} Spot", f"{product} Windows", usd * Decimal("0.3") + licence, {}),
        (short, f"{product} Windows", usd + licence, {}),
        (short, f"{product} Windows", usd, {"type": "DevTestConsumption"}),
        (short, product, usd, {"savingsPlan": plans}),
        (short, product, usd * HOURS_OF_A_YEAR * Decimal("0.65"), _reserved("1 Year")),
        (
            short,
            product,
            usd * HOURS_OF_A_YEAR * 3 * Decimal("0.45"),
            _reserved("3 Years"),
        ),
    )
    for number, (meter, named, price, more) in enumerate(kinds):
        meter_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{size.name}/{region}/{number}"))
        yield {
            "currencyCode": "USD",
            "tierMinimumUnits": 0.0,
            "retailPrice": float(price),
            "unitPrice": float(price),
            "armRegionName": region,
            "location": PLACES[region],
            "effectiveStartDate": SINCE,
            "meterId": meter_id,
            "meterName": meter,
            "productId": f"DZH318Z{meter_id[:5].upper()}",
            "skuId": f"DZH318Z{meter_id[:5].upper()}/{meter_id[24:28].upper()}",
            "productName": named,
            "skuName": meter,
            "serviceName": "Virtual Machines",
            "serviceId": "DZH313Z7MMC8",
            "serviceFamily": "Compute",
            "unitOfMeasure": "1 Hour",
            "type": "Consumption",
            "isPrimaryMeterRegion": True,
            "armSkuName": size.name,
            **more,
        }


def _reserved(term: str) -> Mapping[str, Any]:
    return {"type": "Reservation", "reservationTerm": term}
