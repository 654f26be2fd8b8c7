"""Links to the form of an offering, filled in."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from accounts.models import User
from approvals.models import Request
from ui.parts import Link
from web.fields import INPUT

# Addresses that are much longer are cut off or refused on their way.
MOST_IN_A_LINK = 500


def ask_link(
    offering: str,
    *,
    team: str,
    spec: Mapping[str, Any],
    until: datetime,
    namespace: str = "",
    starts: datetime | None = None,
    reason: str = "",
) -> str:
    """The form of an offering (its key) for a team (its slug), filled in with this; empty values are left out."""
    begins = "" if starts is None else starts.strftime(INPUT)
    values = {
        "team": team,
        "namespace": namespace,
        **spec,
        "starts_at": begins,
        "until": until.strftime(INPUT),
        "reason": reason,
    }
    query = urlencode(
        {name: str(value) for name, value in values.items() if value != ""}
    )
    return f"{reverse('request-new', args=[offering])}?{query}"


def again_link(request: Request, *, now: datetime) -> str:
    """The form of its offering, filled in with the same for as long from now on, and the reason where it is short."""
    # What was made for a request for a namespace is where it led to, not where it is asked for.
    place = None if request.offering == "namespace" else request.tenancy
    return ask_link(
        request.offering,
        team=request.team.slug,
        spec=request.spec,
        until=(now + request.duration).replace(second=0, microsecond=0),
        namespace=place.namespace if place else "",
        reason=request.reason if len(request.reason) <= MOST_IN_A_LINK else "",
    )


def on_board_link(user: User) -> Link | None:
    """The wizard that brings a team on board; None for somebody to whom it is not offered."""
    if not user.may_onboard:
        return None
    return {"label": "Bring a team on board", "href": reverse("onboard")}
