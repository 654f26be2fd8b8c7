"""What changes about the catalogue: on or off, the gate, the order and the prices of each offering."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.db import transaction

from accounts.models import User
from accounts.roles import Permission
from allocations.schedule import LONGEST_DRAIN, LONGEST_GRACE, WhenOver
from audit import clock
from audit.events import Kind
from audit.log import record
from catalogue.models import OfferingSetting, prices_of
from catalogue.offering import Gate
from catalogue.offerings import OFFERINGS
from web.refusals import BadInput, NoRight

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
MOST_PRICES = 50
MOST_USD = Decimal(100_000)


@transaction.atomic
def change(
    key: str,
    *,
    by: User,
    enabled: bool | None = None,
    gate: str | None = None,
    position: int | None = None,
    prices: Mapping[str, Decimal | None] | None = None,
    grace_hours: int | None = None,
    when_over: str | None = None,
    drain_hours: int | None = None,
) -> OfferingSetting:
    """Change how an offering is offered; what is None stays. Asks that wait are judged by the new gate when decided.

    `position` counts from 1. `prices` are USD by what may be chosen; a price of None takes the choice away, and the
    offering's own prices stay for what is not named. How it ends holds for what is granted from now on.
    Raises NoRight, BadInput.
    """
    if not by.may(Permission.MANAGE_CATALOGUE):
        raise NoRight(
            "Platform leads change the catalogue.", code="not_a_platform_lead"
        )
    rows = settings_for_change()
    row = rows[key]
    before = _told(row)
    if enabled is not None:
        row.enabled = enabled
    if gate is not None:
        row.gate = _gate(gate)
    if prices is not None:
        _set_prices(row, _prices(row, prices))
    _set_end(row, grace_hours=grace_hours, when_over=when_over, drain_hours=drain_hours)
    if position is not None:
        _place(rows, row, position)
    row.save()
    _tell_changes(row, before, by=by)
    return row


def _tell_changes(row: OfferingSetting, before: Mapping[str, Any], *, by: User) -> None:
    changed = {
        name: value for name, value in _told(row).items() if value != before[name]
    }
    if changed:
        was = {f"{name}_before": before[name] for name in changed}
        record(
            Kind.OFFERING_CHANGED,
            actor=by.as_actor(),
            subject=("offering", row.key),
            offering=OFFERINGS[row.key].name,
            **was,
            **changed,
        )


def move(key: str, *, by: User, up: bool) -> OfferingSetting:
    """Move an offering one place up or down; the first stays first and the last last. Raises NoRight."""
    places = [row.key for row in settings_in_order()]
    at = places.index(key) + (0 if up else 2)
    return change(key, by=by, position=min(max(at, 1), len(places)))


def settings_in_order() -> list[OfferingSetting]:
    """How every offering is offered, in its order, in one query; as in the catalogue where nobody has changed it."""
    known = {row.key: row for row in OfferingSetting.objects.all()}
    rows = [known.get(key) or _fresh(key) for key in OFFERINGS]
    return sorted(rows, key=lambda row: (row.position, row.key not in known, row.key))


def settings_for_change() -> dict[str, OfferingSetting]:
    """The same, stored and locked by key."""
    OfferingSetting.objects.bulk_create(map(_fresh, OFFERINGS), ignore_conflicts=True)
    rows = OfferingSetting.objects.select_for_update(no_key=True).order_by("key")
    return {row.key: row for row in rows}


def _fresh(key: str) -> OfferingSetting:
    return OfferingSetting(
        key=key, gate=OFFERINGS[key].gate, position=list(OFFERINGS).index(key)
    )


def _set_end(
    row: OfferingSetting,
    *,
    grace_hours: int | None,
    when_over: str | None,
    drain_hours: int | None,
) -> None:
    said = {
        "grace_hours": grace_hours,
        "when_over": when_over,
        "drain_hours": drain_hours,
    }
    given = [name for name, value in said.items() if value is not None]
    if given and not OFFERINGS[row.key].on_cluster:
        raise BadInput(
            f"{OFFERINGS[row.key].name} takes no GPUs: a platform lead takes it down.",
            code="no_end_here",
            field=given[0],
        )
    if when_over is not None and when_over not in list(WhenOver):
        raise BadInput(
            f"Choose one of: {', '.join(WhenOver)}.",
            code="unknown_end",
            field="when_over",
        )
    for name, hours, most in (
        ("grace_hours", grace_hours, LONGEST_GRACE),
        ("drain_hours", drain_hours, LONGEST_DRAIN),
    ):
        if hours is not None and not 0 <= hours <= most:
            raise BadInput(
                f"A whole number of hours from 0 to {most}.",
                code="out_of_range",
                field=name,
            )
    for name in given:
        setattr(row, name, said[name])


def _gate(gate: str) -> str:
    if gate not in [each.value for each in Gate]:
        raise BadInput(
            f"Choose one of: {', '.join(Gate)}.", code="unknown_gate", field="gate"
        )
    return gate


def _prices(
    row: OfferingSetting, prices: Mapping[str, Decimal | None]
) -> dict[str, str | None]:
    if not OFFERINGS[row.key].prices:
        raise BadInput(
            f"{OFFERINGS[row.key].name} has no prices of its own.",
            code="no_prices_here",
            field="prices",
        )
    for name, price in prices.items():
        if not NAME.fullmatch(name):
            raise BadInput(
                "Name what the price is for.", code="unknown_price", field="prices"
            )
        if price is not None and not 0 <= price <= MOST_USD:
            raise BadInput(
                f"A price lies between $0 and ${MOST_USD:,}.",
                code="out_of_range",
                field="prices",
            )
    _check_names(row, prices)
    said = {
        name: None if price is None else str(price) for name, price in prices.items()
    }
    own = {
        name: price
        for name, price in {**row.prices, **said}.items()
        if not _is_usual(row, name, price)
    }
    if len(own) > MOST_PRICES:
        raise BadInput(
            f"At most {MOST_PRICES} prices.", code="too_many", field="prices"
        )
    return own


def _set_prices(row: OfferingSetting, prices: Mapping[str, str | None]) -> None:
    """Set the installation's own prices, each with the day on which it became another one."""
    today = clock.now().date().isoformat()
    row.priced_on = {
        name: row.priced_on.get(name, today)
        if row.prices.get(name, "") == price
        else today
        for name, price in prices.items()
    }
    row.prices = dict(prices)


def _check_names(row: OfferingSetting, prices: Mapping[str, Decimal | None]) -> None:
    """Refuse names that no ask could ever choose, where the choices are fixed or have a pattern."""
    spec = OFFERINGS[row.key].spec
    field = next(
        name for name in ("vm_size", "model", "access") if name in spec.model_fields
    )
    schema: dict[str, Any] = spec.model_json_schema()["properties"][field]
    for name in prices:
        fits = (
            name in schema["enum"]
            if "enum" in schema
            else re.fullmatch(schema["pattern"], name)
        )
        if not fits:
            raise BadInput(
                f"“{name}” can be no {schema['title'].lower()}.",
                code="unknown_price",
                field="prices",
            )


def _is_usual(row: OfferingSetting, name: str, price: str | None) -> bool:
    usual = OFFERINGS[row.key].prices.get(name)
    return usual is None if price is None else usual == Decimal(price)


def _place(
    rows: Mapping[str, OfferingSetting], row: OfferingSetting, position: int
) -> None:
    if not 1 <= position <= len(rows):
        raise BadInput(
            f"A place from 1 to {len(rows)}.", code="out_of_range", field="position"
        )
    others = sorted(
        (other for other in rows.values() if other != row),
        key=lambda o: (o.position, o.key),
    )
    others.insert(position - 1, row)
    for place, other in enumerate(others):
        other.position = place
    OfferingSetting.objects.bulk_update(others, ["position"])


def _told(row: OfferingSetting) -> dict[str, Any]:
    prices = {
        name: str(price) for name, price in prices_of(OFFERINGS[row.key], row).items()
    }
    told = {
        "enabled": row.enabled,
        "gate": row.gate,
        "position": row.position + 1,
        "prices": prices,
    }
    return told | ends_of(row) if OFFERINGS[row.key].on_cluster else told


def ends_of(row: OfferingSetting) -> dict[str, Any]:
    """How what is granted now will end, as it is told."""
    terms = row.terms
    return {
        "grace_hours": terms.grace_hours,
        "when_over": terms.when_over.value,
        "drain_hours": terms.drain_hours,
    }
