"""What the portal may do in a subscription, purpose by purpose, as people read it."""

from typing import Any

from capacity.models import Subscription
from connectors.azure.rights import NEEDED
from ui.amounts import capitalized


def rights_of(subscription: Subscription) -> list[tuple[str, list[str]]] | None:
    """Each purpose with the actions that the portal lacks for it; None before that was read."""
    lacking = subscription.missing_rights
    return None if lacking is None else [(purpose, list(lacking.get(purpose, ()))) for purpose in NEEDED]


def shown_rights(subscription: Subscription) -> dict[str, Any]:
    """The same for a page: how many purposes lack something, each with its words, and what is not known."""
    rights = rights_of(subscription)
    rows = [
        {"purpose": capitalized(purpose), "lacking": lacking, "tone": "bad" if lacking else "good"}
        for purpose, lacking in rights or ()
    ]
    return {
        "rows": rows,
        "lacking": sum(1 for row in rows if row["lacking"]),
        "at": subscription.rights_checked_at,
        "problem": subscription.rights_message,
    }
