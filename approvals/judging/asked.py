"""A request as an ask again: what is asked for now, after the steps that approved fewer."""

from approvals.models import Decision, Request
from approvals.requests.wanted import Wanted, priced


def asked_for(request: Request) -> int:
    """How many units are asked for now: what the steps before have left of it."""
    given = [
        decision.count
        for decision in request.decisions.all()
        if decision.content_version == request.content_version
        and decision.verdict == Decision.Verdict.APPROVE
    ]
    return given[-1] if given and given[-1] is not None else request.count


def wanted_of(request: Request, count: int | None = None) -> Wanted:
    """A request as an ask again, for as many units as `count` says."""
    said = request.asked.fewer(count or request.count)
    offering = request.of
    spec = offering.spec.model_construct(**said)
    wanted = priced(
        team=request.team,
        offering=offering,
        spec=spec,
        until=request.until,
        starts=request.starts_at,
        reason=request.reason,
        tenancy=request.tenancy,
        flavor=request.flavor,
        cluster=request.flavor.cluster if request.flavor else None,
    )
    return wanted.going_on_from(request.renews)
