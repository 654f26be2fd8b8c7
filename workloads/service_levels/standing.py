"""How services stand: what they promise, and what was counted of them in the last days."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import OuterRef, Subquery

from accounts.models import User
from provisioning.stages import Stage
from ui.amounts import moment
from workloads.service_levels.budget import DAYS, Budget, Day, State, budget_of
from workloads.service_levels.models import (
    ServiceDay,
    ServiceLevel,
    ServiceLevelQuerySet,
)

# Counted every five minutes, a minute late: after these something is wrong. Of a metric that lasts, all looks tell.
LATE, FORGOTTEN = timedelta(minutes=30), timedelta(days=1)
FIRST_DAY = (
    ServiceDay.objects.filter(level=OuterRef("pk")).order_by("day").values("day")[:1]
)
# The most pressing first.
ORDER = (State.SPENT, State.FAST, State.UNKNOWN, State.FEW, State.WELL)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A service with its budget, and the days on which it had requests, the newest first."""

    level: ServiceLevel
    days: Sequence[Day]
    budget: Budget
    now: datetime

    @property
    def why_unknown(self) -> str:
        """Why nothing, or nothing new, is known of it, with what helps; empty where it is measured."""
        level, cluster = self.level, self.level.cluster.title
        if not level.cluster.prometheus:
            lacking = f"No Prometheus of {cluster} is known to the portal."
            return f"{lacking} A platform lead names it on the page of the cluster."
        since = level.measured_until or level.set_at
        if since < self.now - LATE:
            return f"Nothing was counted since {moment(since, self.now)}: {self._why_late}."
        if level.problem:
            return f"The {self._not_read}."
        if level.measured_until is None:
            return "It is counted for the first time within ten minutes."
        return self._why_unseen

    @property
    def _why_late(self) -> str:
        cluster = self.level.cluster
        if not cluster.is_observed:
            return f"the portal has no access to {cluster.title}, which follows a Git repository"
        if cluster.is_away:
            return f"{cluster.title} does not answer"
        if self.level.problem:
            return f"the {self._not_read}"
        return "the worker of the portal did not get to it"

    @property
    def _not_read(self) -> str:
        level = self.level
        return f"Prometheus of {level.cluster.title} was not read: {level.problem.rstrip('.')}"

    @property
    def _why_unseen(self) -> str:
        """That Prometheus does not know the service, or knows it no more; empty where it does."""
        level, cluster = self.level, self.level.cluster.title
        what = f"request of {level.service} in {level.tenancy.namespace} by {level.meter_label}"
        check = "Check the name of the Service and what counts its requests"
        if level.seen_at is None:
            return (
                f"The Prometheus of {cluster} knows no {what}. {check}, and send one."
            )
        if level.seen_at < self.now - FORGOTTEN:
            since = moment(level.seen_at, self.now)
            return f"The Prometheus of {cluster} has known no {what} since {since}. {check}, and whether it runs."
        return ""


def standings(levels: ServiceLevelQuerySet, *, now: datetime) -> list[Standing]:
    """How these services stand, the most pressing first; two queries however many there are."""
    today = now.astimezone(UTC).date()
    found = list(levels.described().annotate(first_day=Subquery(FIRST_DAY)))
    days = defaultdict[int, list[Day]](list)
    rows = ServiceDay.objects.filter(
        level__in=found, day__gt=today - timedelta(DAYS), day__lte=today
    )
    for row in rows.order_by("-day"):
        days[row.level_id].append(row.counted)
    standing = [
        Standing(
            level=level,
            days=[one for one in days[level.pk] if one.requests],
            now=now,
            budget=budget_of(
                days[level.pk],
                level.objective,
                today=today,
                first=vars(level)["first_day"],
            ),
        )
        for level in found
    ]
    return sorted(
        standing,
        key=lambda one: (
            not one.budget.needs_care,
            ORDER.index(one.budget.state),
            -(one.budget.used or 0),
            one.level.service,
        ),
    )


def present_levels(user: User) -> ServiceLevelQuerySet:
    """The services of teams that a person may see, in places that are not gone."""
    rows = ServiceLevel.objects.visible_to(user)
    return rows.exclude(tenancy__stage=Stage.GONE)
