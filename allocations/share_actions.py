"""What changes about a team's share of a cluster and its distance to others: by platform leads, audited."""

from datetime import datetime

from django.db import transaction

from accounts.models import User
from accounts.roles import Permission
from allocations.changes import refresh
from allocations.models import Allocation
from audit.events import Kind
from audit.log import record
from fleet import dedicated_nodes
from fleet.models import Cluster
from provisioning.desired.isolation import flavors_for
from provisioning.desired.priorities import PRIORITIES
from provisioning.desired.spec import LARGEST_WEIGHT
from provisioning.models import Isolation, Tenancy
from web.refusals import BadInput, Conflict, NoRight


@transaction.atomic
def set_shares(
    tenancy_id: int,
    *,
    by: User,
    now: datetime,
    weight: int | None = None,
    isolation: str | None = None,
    priority_limit: str | None = None,
) -> Tenancy:
    """Set a tenancy's weight among those that want more than they hold, and how far apart the team is; None stays.

    `priority_limit` is the highest priority that its pods may have; empty: as environment and cluster are for.

    The queue follows in the same transaction; `approvals.shares.actions` does the same for pages and API, and has a
    person make a subscription. Raises NoRight for others than platform leads, BadInput, Conflict for what the fleet
    does not have, or the team still holds or has booked.
    """
    tenancy = locked(tenancy_id, by=by)
    before = (tenancy.weight, tenancy.isolation, tenancy.priority_limit)
    tenancy.weight = tenancy.weight if weight is None else _weight(weight)
    tenancy.isolation = (
        tenancy.isolation if isolation is None else _isolation(isolation)
    )
    tenancy.priority_limit = (
        tenancy.priority_limit if priority_limit is None else _priority(priority_limit)
    )
    if (tenancy.weight, tenancy.isolation, tenancy.priority_limit) == before:
        return tenancy
    if tenancy.isolation != before[1]:
        _check_there_is(tenancy)
    tenancy.save(update_fields=["weight", "isolation", "priority_limit"])
    refresh(tenancy, actor=by.as_actor(), now=now)
    record(
        Kind.TENANCY_CHANGED,
        actor=by.as_actor(),
        subject=("tenancy", tenancy.pk),
        team_id=tenancy.team_id,
        weight=tenancy.weight,
        weight_before=before[0],
        isolation=str(tenancy.isolation),
        isolation_before=str(before[1]),
        priority_limit=tenancy.priority_limit,
        priority_limit_before=before[2],
        generation=tenancy.generation,
    )
    return tenancy


def locked(tenancy_id: int, *, by: User) -> Tenancy:
    """The tenancy for somebody who may set its share, locked after its cluster; raises NoRight."""
    if not by.may(Permission.MANAGE_CLUSTERS):
        raise NoRight(
            "Platform leads set shares and isolation.", code="not_a_platform_lead"
        )
    found = Tenancy.objects.get(pk=tenancy_id)
    Cluster.objects.select_for_update(no_key=True).get(pk=found.cluster_id)
    rows = Tenancy.objects.locked()
    return rows.select_related("team", "cluster", "project").get(pk=tenancy_id)


def _weight(number: int) -> int:
    if not 1 <= number <= LARGEST_WEIGHT:
        raise BadInput(
            f"A share is 1 to {LARGEST_WEIGHT}.", code="out_of_range", field="weight"
        )
    return number


def _priority(name: str) -> str:
    if name and name not in PRIORITIES:
        raise BadInput(
            "Choose one of the four priorities.",
            code="unknown_priority",
            field="priority_limit",
        )
    return name


def _isolation(level: str) -> Isolation:
    if level not in Isolation.values:
        raise BadInput(
            "Choose one of the four levels.",
            code="unknown_isolation",
            field="isolation",
        )
    return Isolation(level)


def _check_there_is(tenancy: Tenancy) -> None:
    """Refuse a level whose nodes or cluster are not there, or that the team's GPUs are not of."""
    team, cluster = tenancy.team, tenancy.cluster
    if tenancy.isolation == Isolation.CLUSTER and cluster.dedicated_to_id != team.pk:
        raise Conflict(
            f"{cluster.title} is for all teams. Make it {team.name}'s alone first.",
            code="not_dedicated",
            field="isolation",
        )
    if tenancy.isolation != Isolation.NODE_POOL:
        return
    own = flavors_for(tenancy)
    if not own.exists():
        raise Conflict(
            f"No kind of GPU on {cluster.title} is {team.name}'s alone. Dedicate one first.",
            code="not_dedicated",
            field="isolation",
        )
    fleet = list(cluster.flavors.all())
    mixed = next(
        (
            one
            for one in fleet
            if one.dedicated_to_id == team.pk and dedicated_nodes.lacking(one, fleet)
        ),
        None,
    )
    if mixed is not None:
        raise Conflict(
            f"Others' jobs may run on the nodes of {mixed.name}: give it a taint and a label of its own first.",
            code="not_apart",
            field="isolation",
        )
    shared = (
        Allocation.objects.granted()
        .of_gpus()
        .filter(tenancy=tenancy)
        .exclude(flavor__in=own)
    )
    if shared.exists():
        raise Conflict(
            f"{team.name} holds or has booked GPUs of shared nodes. They end, are given back or are cancelled first.",
            code="held",
            field="isolation",
        )
