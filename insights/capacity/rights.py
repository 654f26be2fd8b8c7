"""What the portal may do in a subscription, purpose by purpose, as people read it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from capacity.models import Subscription
from connectors.azure.rights import NEEDED
from ui.amounts import capitalized
from ui.parts import Badge, Columns, Content, Row

COLUMNS: Columns = ["To", "The portal", "Missing permissions"]


@dataclass(frozen=True, kw_only=True)
class Rights:
    """What the portal may do in a subscription, as a table, with how many purposes lack something."""

    columns: Columns
    rows: Sequence[Row]
    lacking: int
    at: datetime | None
    problem: str


def rights_of(subscription: Subscription) -> list[tuple[str, list[str]]] | None:
    """Each purpose with the actions that the portal lacks for it; None before that was read."""
    lacking = subscription.missing_rights
    return (
        None
        if lacking is None
        else [(purpose, list(lacking.get(purpose, ()))) for purpose in NEEDED]
    )


def shown_rights(subscription: Subscription) -> Rights:
    """The same for a page: a table, what lacks something first, and what is not known."""
    rights = sorted(rights_of(subscription) or (), key=lambda one: not one[1])
    return Rights(
        columns=COLUMNS,
        rows=[{"cells": _cells(purpose, lacking)} for purpose, lacking in rights],
        lacking=sum(1 for _, lacking in rights if lacking),
        at=subscription.rights_checked_at,
        problem=subscription.rights_message,
    )


def _cells(purpose: str, lacking: list[str]) -> list[Content]:
    state = (
        Badge(tone="bad", word="Lacks") if lacking else Badge(tone="good", word="May")
    )
    return [capitalized(purpose), state, ", ".join(lacking)]
