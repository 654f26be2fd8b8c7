"""A team's share of a cluster and its distance to others, with the task of whoever makes a subscription for it."""

from datetime import datetime

from django.db import transaction

from accounts.models import User
from allocations import share_actions
from approvals.judging.inputs import policy_in_force
from manual import actions as tasks
from manual.briefs import Brief
from manual.models import Task
from provisioning.models import Isolation, Tenancy


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
    """As in `allocations.share_actions`, whose errors it raises; a subscription of its own becomes a person's task.

    Choosing another level while nobody has made it drops the task.
    """
    before = share_actions.locked(tenancy_id, by=by)
    # The task before the audit chain, in the order in which finishing it takes them.
    unfinished = (
        Task.objects.unfinished()
        .select_for_update(no_key=True)
        .filter(tenancy=before)
        .first()
    )
    tenancy = share_actions.set_shares(
        tenancy_id,
        by=by,
        now=now,
        weight=weight,
        isolation=isolation,
        priority_limit=priority_limit,
    )
    if tenancy.isolation == before.isolation:
        return tenancy
    if unfinished is not None:
        tasks.drop(unfinished, now=now)
    if tenancy.isolation == Isolation.SUBSCRIPTION:
        tasks.ask(
            _brief(tenancy),
            kind=Task.Kind.SET_APART,
            team=tenancy.team,
            tenancy=tenancy,
            wanted_by=by,
            hours=policy_in_force(now)[1].thresholds.carried_out_hours,
            now=now,
        )
    return tenancy


@transaction.atomic
def drop(tenancy_id: int, *, now: datetime) -> None:
    """Let nobody make a subscription for a team that leaves the place; harmless to repeat."""
    for task in Task.objects.unfinished().filter(tenancy=tenancy_id):
        tasks.drop(task, now=now)


def _brief(tenancy: Tenancy) -> Brief:
    team, cluster = tenancy.team, tenancy.cluster
    return Brief(
        title=f"for {team.name}",
        instruction=(
            f"Make an Azure subscription for {team.name} alone, billed to {team.cost_centre}, with identities, network "
            f"and quota of its own; then add its cluster under Clusters, for {team.name} alone. "
            f"Until then the team works on in {cluster.title}."
        ),
        facts=(("Place", cluster.title),),
    )
