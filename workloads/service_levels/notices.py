"""What the leads of a team are told of its services."""

from datetime import datetime

from django.urls import reverse

from accounts.models import Membership, User
from notices.actions import tell_with_channels
from notices.kinds import NoticeKind
from notices.message import Message
from workloads.service_levels.budget import DAYS, Budget, State
from workloads.service_levels.models import ServiceLevel
from workloads.service_levels.tiers import seconds


def tell_leads(level: ServiceLevel, message: Message, *, now: datetime) -> None:
    """Tell the leads of the team that a service does not keep what it promises, or will not."""
    leads = User.objects.filter(
        memberships__team=level.team, memberships__part=Membership.Part.LEAD
    )
    tell_with_channels(
        NoticeKind.SERVICE_LEVEL,
        to=leads,
        subject=("service_level", level.pk),
        link=reverse("service-level", args=[level.pk]),
        message=message,
        now=now,
    )


def message_of_budget(level: ServiceLevel, budget: Budget) -> Message:
    """How much failed of how much, and what to do."""
    how = (
        "has used up its error budget"
        if budget.state is State.SPENT
        else "uses its error budget too fast"
    )
    return Message(
        title=f"{level.service} {how}",
        sentence=f"{_failed(budget)} {budget.state.advice}",
        facts=_facts(level),
        action="Open the service",
    )


def message_of_latency(level: ServiceLevel, budget: Budget) -> Message:
    """How slow it was, and what is promised."""
    promised = seconds(level.objective.p99_seconds)
    return Message(
        title=f"{level.service} is slower than it promises",
        sentence=f"99 of 100 requests were answered {budget.within} in its worst hour since yesterday, and {promised} "
        "is promised. The page of the service says how it was day by day.",
        facts=_facts(level),
        action="Open the service",
    )


def _facts(level: ServiceLevel) -> tuple[tuple[str, str], ...]:
    return (
        ("Team", level.team.name),
        ("Cluster", level.cluster.title),
        ("Promised", level.objective.words),
    )


def _failed(budget: Budget) -> str:
    failed = f"{budget.failed:,.0f} of its {budget.requests:,.0f} requests"
    if budget.days == DAYS:
        return f"{failed} of the last {DAYS} days failed; {budget.may_fail:,.0f} may."
    return f"{failed} failed since it is measured; at as many a day, {budget.may_fail:,.0f} may within {DAYS} days."
