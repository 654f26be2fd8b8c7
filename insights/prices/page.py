"""Pages about prices: Azure's list beside the fleet's own prices, and what one machine has cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.current_user import visitor
from accounts.roles import Permission
from capacity.connection import is_connected
from capacity.models import DoubtedPrice, MachinePrice, PriceRegion
from capacity.prices import actions
from capacity.prices.shipped import SHIPPED_ON, VM_GPUS, VM_PRICES
from insights.prices.charting import Point, chart
from insights.prices.gathering import Ours, kinds_by_price, our_history, per_gpu
from ui.amounts import dated, gpus, rate
from ui.parts import Cell, Column, Columns, Figure, Row
from web.refusals import Refused

WAYS = {
    "on_demand": "On demand",
    "spot": "Spot",
    "one_year": "Reserved, 1 year",
    "three_years": "Reserved, 3 years",
}
PRICES: Columns = [
    "Machine",
    *(Column(label=label, kind="number") for label in WAYS.values()),
    "Our price per GPU-hour",
    "Holds since",
]
SHIPPED: Columns = [
    "Machine",
    {"label": "GPUs", "kind": "number"},
    {"label": "On demand", "kind": "number"},
    {"label": "Per GPU", "kind": "number"},
]
# So that a day is not broken in a narrow column.
NARROW = "\N{NO-BREAK SPACE}"
HISTORY: Columns = [
    "From",
    *(Column(label=label, kind="number") for label in WAYS.values()),
]
KINDS: Columns = [
    "Kind of GPU",
    {"label": "Our price", "kind": "number"},
    {"label": "The list's", "kind": "number"},
    "Difference",
]

OUR_HISTORY: Columns = [
    "From",
    "Kind of GPU",
    {"label": "USD per GPU-hour", "kind": "number"},
    "Set by",
]


@dataclass(frozen=True, kw_only=True)
class RegionState:
    """How the last reading of a region's prices went, and when it is read again where it failed."""

    name: str
    tone: str
    word: str
    at: datetime | None
    message: str
    again_at: datetime | None


@require_safe
def prices(request: HttpRequest) -> HttpResponse:
    """What the fleet's machines cost by Azure's list, region by region, beside our own prices."""
    user = visitor(request)
    rows = list(MachinePrice.objects.with_gpus())
    kinds, regions = kinds_by_price(rows), list(PriceRegion.objects.all())
    context = {
        "columns": PRICES,
        "regions": [
            {
                "name": name,
                "rows": [_price(one, kinds.get(one.pk, ())) for one in found],
            }
            for name, found in _by_region(rows, kinds)
        ],
        "states": [_state(one) for one in regions],
        "doubts": [words for one in regions if (words := _doubt(one))],
        "is_connected": is_connected(),
        "shipped_columns": SHIPPED,
        "shipped": []
        if rows
        else [_shipped(size, usd) for size, usd in VM_PRICES.items()],
        "shipped_month": f"{SHIPPED_ON:%B %Y}",
        "may_manage": user.may(Permission.MANAGE_CLUSTERS),
    }
    return render(request, "insights/prices.html", context)


@require_safe
def price(request: HttpRequest, pk: int) -> HttpResponse:
    """What one machine costs in a region, what it cost before, and what we charge for its GPUs."""
    user, now = visitor(request), timezone.now()
    row = get_object_or_404(MachinePrice.objects.with_gpus(), pk=pk)
    region = PriceRegion.objects.filter(name=row.region).first()
    machine, history = row.gpus, list(row.history.all())
    kinds = kinds_by_price([row]).get(row.pk, [])
    points = [
        Point(at=one.at, on_demand=one.on_demand, spot=one.spot, one_year=one.one_year)
        for one in reversed(history)
    ]
    context = {
        "price": row,
        "gpus": gpus(machine) if machine else "",
        "figures": [
            Figure(label=label, value=_usd(usd), note=_each(usd, machine))
            for label, usd in zip(WAYS.values(), row.by_way.values(), strict=True)
        ],
        "doubt": _doubt(region) if region is not None else "",
        "doubted": row.doubts,
        "doubted_words": "" if row.doubts is None else _doubted(row, row.doubts),
        "may_confirm": user.may(Permission.MANAGE_CLUSTERS),
        "chart": chart(points, now=now),
        "columns": HISTORY,
        "rows": [
            {"cells": [one.at, *(_usd(getattr(one, way)) for way in WAYS)]}
            for one in history
        ],
        "kind_columns": KINDS,
        "kinds": [_kind(one) for one in kinds],
        "our_columns": OUR_HISTORY,
        "our_rows": [
            {"cells": [one.at, one.flavor.words, rate(one.usd), one.by]}
            for one in our_history(kinds)
        ],
    }
    return render(request, "insights/price.html", context)


@require_POST
def confirm(request: HttpRequest, pk: int) -> HttpResponse:
    """Believe what the list says of one machine, as it was shown."""
    user = visitor(request)
    if not user.may(Permission.MANAGE_CLUSTERS):
        raise PermissionDenied("Platform leads confirm prices.")
    row = get_object_or_404(MachinePrice, pk=pk)
    try:
        seen = datetime.fromisoformat(request.POST.get("doubted_at", ""))
    except ValueError:
        messages.error(request, "It is not clear which prices were seen. Look again.")
        return redirect("price", pk)
    try:
        actions.confirm(row.pk, doubted_at=seen, by=user, now=timezone.now())
    except Refused as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(
            request,
            "Confirmed. Kinds of GPU that follow the list take it within a minute.",
        )
    return redirect("price", pk)


def _by_region(
    rows: Sequence[MachinePrice], kinds: dict[int, list[Ours]]
) -> list[tuple[str, list[MachinePrice]]]:
    """Prices by region, of machines with GPUs; those that kinds of GPU stand on come first."""
    found: dict[str, list[MachinePrice]] = {}
    shown = [one for one in rows if one.gpus or one.pk in kinds]
    for one in sorted(
        shown, key=lambda one: (one.region, one.pk not in kinds, one.size)
    ):
        found.setdefault(one.region, []).append(one)
    return list(found.items())


def _price(row: MachinePrice, kinds: Sequence[Ours]) -> Row:
    machine, notes = row.gpus, []
    if row.gpus:
        notes.append(gpus(row.gpus))
    if row.doubts is not None:
        notes.append("doubtful since the last reading")
    return {
        "cells": [
            {
                "text": row.size,
                "href": reverse("price", args=[row.pk]),
                "sub": " · ".join(notes),
            },
            *(
                Cell(text=_usd(usd), sub=_each(usd, machine))
                for usd in row.by_way.values()
            ),
            _ours(kinds),
            "not told" if row.since is None else dated(row.since).replace(" ", NARROW),
        ]
    }


def _ours(kinds: Sequence[Ours]) -> Cell:
    """Our prices of one machine's GPUs: the usual one kind in full, of several each."""
    if not kinds:
        return {"text": "–"}
    text = " · ".join(
        dict.fromkeys(rate(one.flavor.price_per_gpu_hour) for one in kinds)
    )
    if len(kinds) == 1:
        return {"text": text, "sub": kinds[0].words}
    return {
        "text": text,
        "sub": "; ".join(f"{one.flavor.kind}: {one.words}" for one in kinds),
    }


def _kind(one: Ours) -> Row:
    flavor = one.flavor
    return {
        "cells": [
            {
                "text": flavor.words,
                "sub": flavor.price_words,
                "href": reverse("cluster", args=[flavor.cluster.name]),
            },
            rate(flavor.price_per_gpu_hour),
            _usd(one.listed.of_its_kind),
            one.words,
        ]
    }


def _shipped(size: str, usd: Decimal) -> Row:
    return {"cells": [size, VM_GPUS[size], rate(usd), rate(usd / VM_GPUS[size])]}


def _state(region: PriceRegion) -> RegionState:
    tone, word = ("good", "Read") if region.read_at else ("waiting", "Not read yet")
    if region.failing_since:
        tone, word = "bad", "Cannot be read"
    return RegionState(
        name=region.name,
        tone=tone,
        word=word,
        at=region.read_at,
        message=region.message,
        again_at=region.next_read_at if region.failing_since else None,
    )


def _doubt(region: PriceRegion) -> str:
    """That a region's prices are older than they should be, in a sentence; empty where they are not."""
    if region.failing_since is None:
        return ""
    known = (
        f"those of {dated(region.read_at)}"
        if region.read_at
        else "those that came with the portal"
    )
    since = dated(region.failing_since)
    return f"Prices of {region.name} could not be read since {since}: until they are, {known} count."


def _doubted(row: MachinePrice, doubt: DoubtedPrice) -> str:
    """What the list says that is not believed: "on demand $40.00 instead of $3.67"."""
    jumps = [
        f"{WAYS[way].lower()} {rate(usd)} instead of {rate(row.by_way[way] or usd)}"
        for way, usd in doubt.by_way.items()
    ]
    return (
        f"Since {dated(doubt.at)} the list says {'; '.join(jumps)}. That is more than a factor of three: "
        "what was before counts until a platform lead confirms it."
    )


def _usd(usd: Decimal | None) -> str:
    return "–" if usd is None else rate(usd)


def _each(usd: Decimal | None, machine: int | None) -> str:
    """Of each GPU, where a machine has several."""
    each = per_gpu(usd, machine) if machine != 1 else None
    return "" if each is None else f"{rate(each)} per GPU"
