"""How many rows of one target are worked on at once: each takes a slot, and the database gives no slot to two."""

from datetime import datetime
from secrets import SystemRandom
from typing import Any

from django.db.models import QuerySet

from reconciling.claims import unclaimed


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
