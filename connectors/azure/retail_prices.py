"""Azure's retail prices, which anybody may read: what one machine costs in an hour, in US dollars.

https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from connectors.azure.failures import LONGEST_MESSAGE, SERVER_ERROR, TEMPORARY
from connectors.azure.session import shaped
from connectors.errors import AnswerLost, PermanentError, TemporaryError
from connectors.graph import BoundedSession
from connectors.patience import seconds

URL = "https://prices.azure.com"
PATH = "/api/retail/prices"
CURRENCY = "USD"
AN_HOUR = "1 Hour"
HOURS = {"1 Year": 8760, "3 Years": 3 * 8760}
MAX_PAGES = 40


@dataclass(frozen=True)
class Price:
    """What a size costs in a region for an hour with Linux: on demand, as spot, and reserved for a term.

    A price is None where Azure sells the size in no such way. `since` is from when the first one holds.
    """

    size: str
    location: str
    on_demand: Decimal | None = None
    spot: Decimal | None = None
    one_year: Decimal | None = None
    three_years: Decimal | None = None
    since: datetime | None = None
    meter: str = ""


class RetailPrices:
    """Reads prices; raises TemporaryError, or PermanentError(code="invalid" or "failed")."""

    def __init__(self, url: str = URL, ca_file: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._session = BoundedSession(ca_file)

    def prices(self, location: str, sizes: Collection[str]) -> list[Price]:
        """Return the prices of sizes in a region, by name; a size without any is not among them."""
        found = (self._price(location, size) for size in sorted(set(sizes)))
        return [price for price in found if price is not None]

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _price(self, location: str, size: str) -> Price | None:
        asked = (
            f"serviceName eq 'Virtual Machines' and armRegionName eq '{_quoted(location)}'"
            f" and armSkuName eq '{_quoted(size)}'"
        )
        rows = list(self._rows(asked))
        return shaped(lambda rows: read(rows, location, size), rows)

    def _rows(self, asked: str) -> Iterator[Mapping[str, Any]]:
        url: str | None = f"{self._url}{PATH}"
        params: dict[str, str] | None = {"$filter": asked, "currencyCode": CURRENCY}
        for _ in range(MAX_PAGES):
            if url is None:
                return
            page = self._page(url, params)
            yield from page["Items"]
            # It holds the filter, and names the port.
            url, params = page.get("NextPageLink") or None, None
            if url is not None and _place(url) != _place(self._url):
                raise PermanentError(
                    "The prices go on at another server.", code="foreign_link"
                )
        raise PermanentError("The prices have no end.", code="failed")

    def _page(self, url: str, params: Mapping[str, str] | None) -> Mapping[str, Any]:
        try:
            answer = self._session.get(url, params=params)
            status, text = answer.status_code, answer.text
        except OSError as error:
            raise TemporaryError(
                f"Azure's prices cannot be read: {type(error).__name__}."
            ) from error
        if status in TEMPORARY or status >= SERVER_ERROR:
            wait = seconds(answer.headers.get("Retry-After"))
            raise TemporaryError(f"Azure's prices answered {status}.", retry_after=wait)
        if status != 200:
            words = " ".join(text.split())[:LONGEST_MESSAGE]
            code = "invalid" if status == 400 else "failed"
            raise PermanentError(
                f"Azure's prices answered {status}: {words}", code=code
            )
        try:
            page = answer.json(parse_float=Decimal)
        except ValueError as error:
            raise AnswerLost("The answer of Azure's prices ended too early.") from error
        if not isinstance(page, dict) or not isinstance(page.get("Items"), list):
            raise AnswerLost("Azure's prices gave an answer of an unknown shape.")
        return page


def read(rows: Iterable[Mapping[str, Any]], location: str, size: str) -> Price | None:
    """Return what rows of the list say of a size, None where they say nothing of it.

    Those of Windows, of Low Priority, of tests and of Cloud Services are passed over.
    """
    nothing = price = Price(size, location)
    place = (location.lower(), size.lower())
    for row in rows:
        here = (
            str(row.get("armRegionName")).lower(),
            str(row.get("armSkuName")).lower(),
        )
        if here == place and _is_linux(row):
            price = _with(price, row)
    return None if price == nothing else price


def _is_linux(row: Mapping[str, Any]) -> bool:
    meter, product = _meter(row), str(row.get("productName")).lower()
    return (
        "windows" not in product
        and "cloud services" not in product
        and "low priority" not in meter
        and row.get("currencyCode") == CURRENCY
        and row.get("unitOfMeasure") == AN_HOUR
        and not row.get("tierMinimumUnits")
    )


def _with(price: Price, row: Mapping[str, Any]) -> Price:
    """A price with what one row adds to it; of two rows the one that holds since later counts."""
    amount = Decimal(str(row["retailPrice"]))
    if amount <= 0:
        return price
    if row.get("type") == "Reservation":
        return _reserved(price, str(row.get("reservationTerm")), amount)
    if row.get("type") != "Consumption":
        return price
    if "spot" in _meter(row):
        return replace(price, spot=amount)
    since = datetime.fromisoformat(str(row["effectiveStartDate"]))
    if price.since is not None and price.since > since:
        return price
    return replace(
        price, on_demand=amount, since=since, meter=str(row.get("meterId") or "")
    )


def _reserved(price: Price, term: str, amount: Decimal) -> Price:
    """With what an hour of a reservation costs: the list names the price of the whole term."""
    if term not in HOURS:
        return price
    an_hour = (amount / HOURS[term]).quantize(Decimal("0.000001"))
    return (
        replace(price, one_year=an_hour)
        if term == "1 Year"
        else replace(price, three_years=an_hour)
    )


def _meter(row: Mapping[str, Any]) -> str:
    return f"{row.get('meterName')} {row.get('skuName')}".lower()


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _place(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or 443
