"""A month's charges as the FinOps Open Cost and Usage Specification has them (FOCUS 1.2, focus.finops.org), as CSV.

All mandatory columns, those of the conditional ones that hold here, and ours, which begin with `x_`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property

from django.http import HttpResponse

from allocations.budgets.money import hours_between
from allocations.models import Allocation
from catalogue.offering import Offering
from catalogue.offerings import OFFERINGS
from insights.costs.charges import Charge, Month
from web import downloads
from web.spreadsheets import csv_lines

NAME, ACCOUNT = "Quartermaster", "quartermaster"
QUANTITY, PRICE = Decimal("0.000001"), Decimal("0.00000001")


def csv_file(charges: Iterable[Charge], month: Month) -> HttpResponse:
    """The charges as a file to keep."""
    name = f"costs-{month.first:%Y-%m}.csv"
    return downloads.csv_file(as_csv(charges, month), name=name, for_programs=True)


def as_csv(charges: Iterable[Charge], month: Month) -> str:
    """The charges of which anything is spent, a line each, under the names of their columns."""
    lines = (Line(charge=one, month=month) for one in charges if one.start < one.end)
    cells = ([cell(line) for cell in COLUMNS.values()] for line in lines)
    return csv_lines([COLUMNS, *cells])


@dataclass(frozen=True, kw_only=True)
class Line:
    """A charge with what several columns say of it."""

    charge: Charge
    month: Month

    @property
    def row(self) -> Allocation:
        """What was held."""
        return self.charge.allocation

    @property
    def usd(self) -> Decimal:
        """What it costs: there is one price for all."""
        return self.charge.spent.usd

    @property
    def offering(self) -> Offering:
        """As what it was asked for."""
        return OFFERINGS[self.row.offering]

    @property
    def unit(self) -> str:
        """What is priced."""
        return "GPU-Hours" if self.row.gpus else "Hours"

    @cached_property
    def quantity(self) -> Decimal:
        """How much of it was held."""
        hours = hours_between(self.charge.start, self.charge.end)
        return (hours * (self.row.gpus or 1)).quantize(QUANTITY, ROUND_HALF_UP)

    @cached_property
    def price(self) -> str:
        """USD of one unit."""
        each = self.row.usd_per_hour / (self.row.gpus or 1)
        return f"{each.quantize(PRICE, ROUND_HALF_UP).normalize():f}"

    @property
    def sku(self) -> str:
        """What has that price."""
        flavor = self.row.flavor
        return self.offering.key if flavor is None else flavor.key

    @property
    def region(self) -> str:
        """Where it stands."""
        tenancy = self.row.tenancy
        return self.row.place if tenancy is None else tenancy.cluster.region

    @property
    def tags(self) -> str:
        """The labels that its objects on the cluster bear for cost, as JSON."""
        tags = {"cost-center": self.charge.cost_centre, "team": self.row.team.slug}
        if (tenancy := self.row.tenancy) is not None:
            tags |= {
                "project": tenancy.project.slug,
                "environment": tenancy.environment,
                "namespace": tenancy.namespace,
                "cluster": tenancy.cluster.name,
            }
        return json.dumps(tags, ensure_ascii=False, sort_keys=True)


def _moment(at: datetime) -> str:
    """As FOCUS writes moments: in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


# In the order of the file.
COLUMNS: Mapping[str, Callable[[Line], object]] = {
    "BilledCost": lambda one: one.usd,
    "BillingAccountId": lambda one: ACCOUNT,
    "BillingAccountName": lambda one: NAME,
    "BillingCurrency": lambda one: "USD",
    "BillingPeriodEnd": lambda one: _moment(one.month.end),
    "BillingPeriodStart": lambda one: _moment(one.month.start),
    "ChargeCategory": lambda one: "Usage",
    "ChargeClass": lambda one: "",
    "ChargeDescription": lambda one: (
        f"{one.row.what} at {one.row.where}, held by {one.row.team.name}"
    ),
    "ChargeFrequency": lambda one: "Usage-Based",
    "ChargePeriodEnd": lambda one: _moment(one.charge.end),
    "ChargePeriodStart": lambda one: _moment(one.charge.start),
    "ConsumedQuantity": lambda one: one.quantity,
    "ConsumedUnit": lambda one: one.unit,
    "ContractedCost": lambda one: one.usd,
    "ContractedUnitPrice": lambda one: one.price,
    "EffectiveCost": lambda one: one.usd,
    "InvoiceIssuerName": lambda one: NAME,
    "ListCost": lambda one: one.usd,
    "ListUnitPrice": lambda one: one.price,
    "PricingCategory": lambda one: "Standard",
    "PricingQuantity": lambda one: one.quantity,
    "PricingUnit": lambda one: one.unit,
    "ProviderName": lambda one: NAME,
    "PublisherName": lambda one: NAME,
    "RegionId": lambda one: one.region,
    "RegionName": lambda one: one.region,
    "ResourceId": lambda one: f"allocation-{one.row.pk}",
    "ResourceName": lambda one: one.row.what,
    "ResourceType": lambda one: one.offering.name,
    "ServiceCategory": lambda one: one.offering.service[0],
    "ServiceName": lambda one: one.offering.name,
    "ServiceSubcategory": lambda one: one.offering.service[1],
    "SkuId": lambda one: one.sku,
    "SkuPriceId": lambda one: f"{one.sku}@{one.price}",
    "SubAccountId": lambda one: one.row.team.slug,
    "SubAccountName": lambda one: one.row.team.name,
    "SubAccountType": lambda one: "Team",
    "Tags": lambda one: one.tags,
    "x_CostCentre": lambda one: one.charge.cost_centre,
    "x_IdleCost": lambda one: f"{one.charge.idle_usd:.2f}",
    "x_Project": lambda one: one.row.tenancy.project.slug if one.row.tenancy else "",
    "x_Requester": lambda one: one.row.requester.name,
    "x_RequestId": lambda one: one.row.hold.request_id or "",
}
