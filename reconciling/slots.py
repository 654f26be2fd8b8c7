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

    The model has a field `slot`, which is unique among the rows of a target. `left_out` is told when a row finds none.
    """

    target: str
    limit: Callable[[M], int]
    left_out: Callable[[], None]

    def free(self, row: M, *, now: datetime) -> int | None:
        """A slot that the row may try to take; None when its target has none left."""
        same = {self.target: getattr(row, f"{self.target}_id")}
        rows, limit = type(row)._default_manager.filter(**same), self.limit(row)
        found = free_slot(rows, limit=limit, now=now)
        if found is None:
            self.left_out()
            # Who let go of its slot a moment before saw nobody left out.
            found = free_slot(rows, limit=limit, now=now)
        return found


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
