"""What the leads of a team are told of its services."""

from datetime import datetime

from django.urls import reverse

from accounts.models import Membership, User
from notices.actions import tell_with_channels
from notices.kinds import NoticeKind
from notices.message import Message
from workloads.service_levels.budget import DAYS, Budget, State
from workloads.service_levels.models import ServiceLevel


def tell_leads(level: ServiceLevel, budget: Budget, *, now: datetime) -> None:
    """Tell the leads of the team that a service uses its error budget too fast, or has used it up."""
    leads = User.objects.filter(
        memberships__team=level.team, memberships__part=Membership.Part.LEAD
    )
    tell_with_channels(
        NoticeKind.SERVICE_LEVEL,
        to=leads,
        subject=("service_level", level.pk),
        link=reverse("service-level", args=[level.pk]),
        message=message_of(level, budget),
        now=now,
    )


def message_of(level: ServiceLevel, budget: Budget) -> Message:
    """How much failed of how much, and what to do."""
    how = (
        "has used up its error budget"
        if budget.state is State.SPENT
        else "uses its error budget too fast"
    )
    return Message(
        title=f"{level.service} {how}",
        sentence=f"{_failed(budget)} {budget.state.advice}",
        facts=(
            ("Team", level.team.name),
            ("Cluster", level.cluster.title),
            ("Promised", level.objective.words),
        ),
        action="Open the service",
    )


def _failed(budget: Budget) -> str:
    failed = f"{budget.failed:,.0f} of its {budget.requests:,.0f} requests"
    if budget.days == DAYS:
        return f"{failed} of the last {DAYS} days failed; {budget.may_fail:,.0f} may."
    return f"{failed} failed since it is measured; at as many a day, {budget.may_fail:,.0f} may within {DAYS} days."
