"""How many rows of one target are worked on at once: each takes a slot, and the database gives no slot to two."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from secrets import SystemRandom
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet

from reconciling.claims import unclaimed

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Slots(Generic[M]):
    """The slots of each target: `target` is the foreign key to it, `limit` how many a row's target has now.

    The model has a field `slot`, which is unique among the rows of a target.
    """

    target: str
    limit: Callable[[M], int]

    def free(self, row: M, *, now: datetime) -> int | None:
        """A slot that the row may try to take; None when its target has none left."""
        same = {self.target: getattr(row, f"{self.target}_id")}
        return free_slot(type(row)._default_manager.filter(**same), limit=self.limit(row), now=now)


def free_slot(rows: QuerySet[Any], *, limit: int, now: datetime) -> int | None:
    """Any slot that no live lease has among the rows of a target; None when `limit` of them have one.

    Any, not the first: workers that look at once would all go for the same one, and all but one of them in vain.
    """
    slotted = rows.filter(slot__isnull=False).order_by()
    held = list(slotted.values_list("slot", "lease_until"))
    live = {slot for slot, until in held if until is not None and until > now}
    if len(live) >= limit:
        return None
    if len(held) > len(live):
        slotted.filter(unclaimed("lease_until", now)).update(slot=None)
    return SystemRandom().choice([slot for slot in range(limit) if slot not in live])
