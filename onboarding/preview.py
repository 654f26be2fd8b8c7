"""What bringing a team on board would make, and what would be said to its first ask; nothing is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accounts.actions import check_cost_centre
from accounts.cost_centres.models import unconfirmed, unconfirmed_words
from accounts.models import User
from approvals.requests import preview
from approvals.requests.actions import check_grantable, judge
from connectors.graph import Graph
from onboarding.actions import (
    Brought,
    Enrolment,
    check_name_free,
    check_open,
    slug_for,
)
from onboarding.presenting import (
    People,
    Planned,
    first_ask,
    people_of,
    planned_objects,
)
from provisioning.desired.naming import namespace_of


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A team as it would be; `start` is what would be said to its first ask, None where it asks for nothing."""

    slug: str
    namespace: str
    group_name: str
    people: People
    sentences: Sequence[str]
    objects: Sequence[Planned]
    start: dict[str, Any] | None


def plan_of(
    enrolment: Enrolment, *, brought: Brought, by: User, graph: Graph, now: datetime
) -> Plan:
    """The plan of an enrolment whose group the directory was asked about; raises Refused as enrolling it would."""
    team = check_name_free(enrolment.name)
    project = slug_for(enrolment.project, field="project")
    cost_centre = check_cost_centre(enrolment.cost_centre)
    check_open(enrolment.cluster)
    unknown = unconfirmed(cost_centre)
    return Plan(
        slug=team,
        namespace=namespace_of(team=team, project=project),
        group_name=brought.group.name,
        people=people_of(brought.group.oid, graph),
        sentences=[unconfirmed_words(unknown)] if unknown else [],
        objects=planned_objects(
            enrolment.cluster,
            team=team,
            project=project,
            cost_centre=cost_centre,
            environment=enrolment.environment,
            entra_group=brought.group.oid,
        ),
        start=_said(enrolment, cost_centre=cost_centre, by=by, now=now),
    )


def _said(
    enrolment: Enrolment, *, cost_centre: str, by: User, now: datetime
) -> dict[str, Any] | None:
    start = enrolment.start
    if start is None:
        return None
    wanted = first_ask(
        start, environment=enrolment.environment, cost_centre=cost_centre
    )
    check_grantable(wanted, now=now)
    return preview.told(judge(wanted, person=by, now=now), by=by, now=now)
