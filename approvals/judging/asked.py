"""A request as an ask again: what is asked for now, after the steps that approved less."""

from datetime import datetime

from approvals.models import Request
from approvals.requests.wanted import Wanted, priced


def wanted_of(
    request: Request, count: int | None = None, until: datetime | None = None
) -> Wanted:
    """A request as an ask again, for as many units as `count` says and until `until`; else as it was asked."""
    said = request.asked.fewer(count or request.count)
    offering = request.of
    spec = offering.spec.model_construct(**said)
    wanted = priced(
        team=request.team,
        offering=offering,
        spec=spec,
        until=until or request.until,
        starts=request.starts_at,
        reason=request.reason,
        tenancy=request.tenancy,
        flavor=request.flavor,
        cluster=request.flavor.cluster if request.flavor else None,
        asked_at=request.asked_at,
    )
    return wanted.going_on_from(request.renews)
