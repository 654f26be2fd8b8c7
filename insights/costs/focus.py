"""A month's charges as the FinOps Open Cost and Usage Specification has them (FOCUS 1.2, focus.finops.org), as CSV.

All mandatory columns, those of the conditional ones that hold here, and ours, which begin with `x_`.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal

from django.http import HttpResponse

from allocations.budgets.money import hours_between
from catalogue.offerings import OFFERINGS
from insights.costs.charges import Charge, Month
from web.spreadsheets import safe_cell

NAME, ACCOUNT = "Quartermaster", "quartermaster"
QUANTITY, PRICE = Decimal("0.000001"), Decimal("0.00000001")


def csv_file(charges: Iterable[Charge], month: Month) -> HttpResponse:
    """The charges as a file to keep."""
    name = f"costs-{month.first:%Y-%m}.csv"
    return HttpResponse(
        as_csv(charges, month),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def as_csv(charges: Iterable[Charge], month: Month) -> str:
    """The charges of which anything is spent, a line each, under the names of their columns."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for one in charges:
        if one.start < one.end:
            cells = _columns(one, month)
            writer.writerow({name: safe_cell(cells[name]) for name in COLUMNS})
    return text.getvalue()


def _columns(charge: Charge, month: Month) -> Mapping[str, object]:
    row, usd = charge.allocation, charge.spent.usd
    offering, request = OFFERINGS[row.offering], row.hold.request_id
    sku = offering.key if row.flavor is None else row.flavor.key
    cluster = row.tenancy.cluster if row.tenancy is not None else None
    unit, units = ("GPU-Hours", row.gpus) if row.gpus else ("Hours", 1)
    quantity = (units * hours_between(charge.start, charge.end)).quantize(
        QUANTITY, ROUND_HALF_UP
    )
    price = (row.usd_per_hour / units).quantize(PRICE, ROUND_HALF_UP).normalize()
    category, subcategory = offering.service
    region = cluster.region if cluster is not None else row.place
    return {
        "BilledCost": usd,
        "BillingAccountId": ACCOUNT,
        "BillingAccountName": NAME,
        "BillingCurrency": "USD",
        "BillingPeriodEnd": _moment(month.end),
        "BillingPeriodStart": _moment(month.start),
        "ChargeCategory": "Usage",
        "ChargeClass": "",
        "ChargeDescription": f"{row.what} at {row.where}, held by {row.team.name}",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodEnd": _moment(charge.end),
        "ChargePeriodStart": _moment(charge.start),
        "ConsumedQuantity": quantity,
        "ConsumedUnit": unit,
        "ContractedCost": usd,
        "ContractedUnitPrice": f"{price:f}",
        "EffectiveCost": usd,
        "InvoiceIssuerName": NAME,
        "ListCost": usd,
        "ListUnitPrice": f"{price:f}",
        "PricingCategory": "Standard",
        "PricingQuantity": quantity,
        "PricingUnit": unit,
        "ProviderName": NAME,
        "PublisherName": NAME,
        "RegionId": region,
        "RegionName": region,
        "ResourceId": f"allocation-{row.pk}",
        "ResourceName": row.what,
        "ResourceType": offering.name,
        "ServiceCategory": category,
        "ServiceName": offering.name,
        "ServiceSubcategory": subcategory,
        "SkuId": sku,
        "SkuPriceId": f"{sku}@{price:f}",
        "SubAccountId": row.team.slug,
        "SubAccountName": row.team.name,
        "SubAccountType": "Team",
        "Tags": json.dumps(_tags(charge), ensure_ascii=False, sort_keys=True),
        "x_CostCentre": charge.cost_centre,
        "x_IdleCost": f"{charge.idle_usd:.2f}",
        "x_Project": "" if row.tenancy is None else row.tenancy.project.slug,
        "x_Requester": row.requester.name,
        "x_RequestId": "" if request is None else request,
    }


# In the order of the file.
COLUMNS = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
    "SkuId",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "SubAccountType",
    "Tags",
    "x_CostCentre",
    "x_IdleCost",
    "x_Project",
    "x_Requester",
    "x_RequestId",
)


def _tags(charge: Charge) -> dict[str, str]:
    """The labels that its objects on the cluster bear for cost."""
    tenancy = charge.allocation.tenancy
    tags = {"cost-center": charge.cost_centre, "team": charge.allocation.team.slug}
    if tenancy is None:
        return tags
    return tags | {
        "project": tenancy.project.slug,
        "environment": tenancy.environment,
        "namespace": tenancy.namespace,
        "cluster": tenancy.cluster.name,
    }


def _moment(at: datetime) -> str:
    """As FOCUS writes moments: in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
