"""Bringing a team on board: one action for the wizard and the API."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from accounts.actions import check_free, create_team, hold_groups
from accounts.models import Team, User
from accounts.roles import Permission
from allocations.changes import refresh
from approvals.requests.actions import submit
from approvals.requests.wanted import Wanted
from capacity.registry import actions as registry
from capacity.subscriptions.following import lock_quotas
from connectors.graph import Graph, Group
from fleet.models import Cluster, Flavor
from onboarding.models import Onboarding
from onboarding.notices import tell_cost_centre
from provisioning.actions import create_tenancy
from provisioning.desired.naming import NameRefused, display_name, slug_of
from provisioning.models import Tenancy
from web.refusals import BadInput, Conflict


@dataclass(frozen=True, kw_only=True)
class Start:
    """The GPUs a team starts with."""

    flavor: Flavor
    gpus: int
    until: datetime
    purpose: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Enrolment:
    """What the wizard or the API call says about a team."""

    name: str
    entra_group: str
    cost_centre: str
    project: str
    environment: str
    cluster: Cluster
    start: Start | None = None


@dataclass(frozen=True)
class Brought:
    """The group that a team brings; `is_news` when its bringer joined it after signing in."""

    group: Group
    is_news: bool


def onboard(
    enrolment: Enrolment, *, by: User, graph: Graph, now: datetime
) -> Onboarding:
    """Create team, project, tenancy and first ask in one transaction, after asking the directory about the group.

    Raises BadInput or Conflict naming the field, ConnectorError when the directory does not answer.
    """
    return enrol(
        enrolment, brought=ask_directory(enrolment, by=by, graph=graph), by=by, now=now
    )


def ask_directory(enrolment: Enrolment, *, by: User, graph: Graph) -> Brought:
    """The first half of `onboard`, for callers with a transaction of their own: it writes nothing."""
    slug_for(enrolment.name, field="name")
    slug_for(enrolment.project, field="project")
    group = check_group(enrolment.entra_group, by=by, graph=graph)
    # Who joined the group after signing in is in it all the same, and must be in the team to ask for its GPUs.
    is_news = group.oid not in by.groups and graph.is_member(str(by.oid), [group.oid])
    return Brought(group, is_news)


def slug_for(name: str, *, field: str) -> str:
    """The slug of a name; raises BadInput at the field."""
    try:
        return slug_of(name)
    except NameRefused as refusal:
        raise BadInput(str(refusal), code="bad_name", field=field) from refusal


def check_name_free(name: str) -> str:
    """The slug that a new team of this name would get; raises BadInput or Conflict."""
    slug = slug_for(name, field="name")
    check_free(name=display_name(name), slug=slug)
    return slug


def check_group(oid: str, *, by: User, graph: Graph) -> Group:
    """The Entra group of this object id, if it exists, is free, and the person may bring it; raises Refused."""
    try:
        wanted = str(uuid.UUID(oid))
    except ValueError as error:
        raise BadInput(
            "This is no object id of a group. Entra ID shows it on the group’s page, such as 3f2c81d0-….",
            code="not_a_group_id",
            field="entra_group",
        ) from error
    group = graph.group(wanted)
    if group is None:
        raise BadInput(
            "Entra ID has no such group.", code="no_such_group", field="entra_group"
        )
    if Team.objects.filter(entra_group=wanted).exists():
        raise Conflict(
            "This group has a team already. Ask its members.",
            code="group_taken",
            field="entra_group",
        )
    if not by.may(Permission.ONBOARD_ANY_GROUP) and wanted not in graph.groups_of(
        str(by.oid)
    ):
        raise BadInput(
            "You are not a member of this group. Choose one of yours, or ask a platform lead.",
            code="not_a_member",
            field="entra_group",
        )
    return group


def check_open(cluster: Cluster) -> None:
    """Refuse a cluster that takes no teams; raises Conflict."""
    if not cluster.enabled:
        raise Conflict(
            "This cluster takes no teams now. Choose another.",
            code="cluster_off",
            field="cluster",
        )


@transaction.atomic
def enrol(
    enrolment: Enrolment, *, brought: Brought, by: User, now: datetime
) -> Onboarding:
    """The second half of `onboard`, which asks nobody outside; raises BadInput or Conflict naming the field."""
    slug = slug_for(enrolment.name, field="name")
    project = slug_for(enrolment.project, field="project")
    group = brought.group
    # The person's, the cluster's, the flavor's and its quotas' rows before the audit chain, as every other action takes
    # them.
    User.objects.select_for_update(no_key=True).get(pk=by.pk)
    cluster = Cluster.objects.select_for_update(no_key=True).get(
        pk=enrolment.cluster.pk
    )
    if enrolment.start is not None:
        flavor = Flavor.objects.select_for_update(no_key=True).get(
            pk=enrolment.start.flavor.pk
        )
        if flavor.azure_nodes is not None:
            lock_quotas(cluster)
    check_open(cluster)
    if brought.is_news:
        hold_groups(by, [group.oid], only=False)
    team, first = create_team(
        name=display_name(enrolment.name),
        slug=slug,
        entra_group=group.oid,
        entra_group_name=group.name,
        cost_centre=enrolment.cost_centre,
        project=project,
        by=by,
    )
    tell_cost_centre(team, by=by, now=now)
    tenancy = create_tenancy(
        team=team,
        cluster=cluster,
        project=first,
        environment=enrolment.environment,
        now=now,
    )
    refresh(Tenancy.objects.locked().get(pk=tenancy.pk), actor=by.as_actor(), now=now)
    registry.follow(team, now=now)
    request = None
    if enrolment.start is not None:
        wanted = Wanted.of_gpus(
            tenancy=tenancy,
            flavor=enrolment.start.flavor,
            gpus=enrolment.start.gpus,
            until=enrolment.start.until,
            purpose=enrolment.start.purpose,
            reason=enrolment.start.reason,
        )
        request = submit(wanted, by=by, now=now)
    return Onboarding.objects.create(
        team=team,
        tenancy=Tenancy.objects.get(pk=tenancy.pk),
        request=request,
        by=by,
        submitted_at=now,
    )
