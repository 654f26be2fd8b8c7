"""How services stand: what they promise, and what was counted of them in the last days."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from accounts.models import User
from provisioning.stages import Stage
from workloads.service_levels.budget import DAYS, Budget, Day, State, budget_of
from workloads.service_levels.models import (
    ServiceDay,
    ServiceLevel,
    ServiceLevelQuerySet,
)

# The most pressing first.
ORDER = (State.SPENT, State.FAST, State.UNKNOWN, State.FEW, State.WELL)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A service with its days, the newest first, and its budget."""

    level: ServiceLevel
    days: Sequence[Day]
    budget: Budget

    @property
    def why_unknown(self) -> str:
        """Why nothing, or nothing new, is known of it, with what helps; empty where it is measured."""
        level, cluster = self.level, self.level.cluster.title
        if not level.cluster.prometheus:
            return f"No Prometheus of {cluster} is known to the portal. Ask a platform lead to name it."
        if level.problem:
            return f"The Prometheus of {cluster} was not read: {level.problem}"
        if level.measured_until is None:
            return "It is looked at within five minutes."
        if level.seen_at is None:
            return (
                f"The Prometheus of {cluster} knows no request of {level.service} in {level.tenancy.namespace} "
                f"by {level.meter_label}. Check the name of the Service and what counts its requests, and send one."
            )
        return ""


def standings(levels: ServiceLevelQuerySet, *, now: datetime) -> list[Standing]:
    """How these services stand, the most pressing first; two queries however many there are."""
    today = now.astimezone(UTC).date()
    found = list(levels.described())
    days = defaultdict[int, list[Day]](list)
    rows = ServiceDay.objects.filter(
        level__in=found, day__gt=today - timedelta(DAYS), day__lte=today
    )
    for row in rows.order_by("-day"):
        days[row.level_id].append(row.counted)
    standing = [
        Standing(
            level=level,
            days=days[level.pk],
            budget=budget_of(days[level.pk], level.objective, today=today),
        )
        for level in found
    ]
    return sorted(
        standing,
        key=lambda one: (
            ORDER.index(one.budget.state),
            -(one.budget.used or 0),
            one.level.service,
        ),
    )


def present_levels(user: User) -> ServiceLevelQuerySet:
    """The services of teams that a person may see, in places that are not gone."""
    rows = ServiceLevel.objects.visible_to(user)
    return rows.exclude(tenancy__stage=Stage.GONE)
