"""What platform leads do: decide, carry out, and set what everybody goes by."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from allocations import share_actions
from allocations.budgets import actions as budget_actions
from allocations.budgets.money import month_of
from allocations.ends import sweep as ending
from allocations.models import Brake
from approvals.decisions import actions as decisions
from approvals.decisions.routing import open_step
from approvals.decisions.seats import sits
from approvals.fulfilment import actions as fulfilment
from approvals.models import Request
from approvals.policy_desk import actions as policy_actions
from catalogue import actions as offering_actions
from fleet.clusters.actions import change_cluster
from fleet.flavors.actions import change_flavor
from fleet.models import Cluster
from manual import actions as task_actions
from manual.models import Task
from policy.document import to_json
from policy.models import PolicyDraft, PolicyVersion
from provisioning.actions import look_again
from provisioning.drift import brake
from tests.soak.walk import Walk
from tests.soak.walking import Nothing


def decide(walk: Walk) -> str:
    """Who may decides what waits."""
    request = walk.one_of(Request.objects.waiting())
    step = open_step(request)
    if step is None:
        raise Nothing
    deciders = [*walk.town.leads, walk.town.boss]
    by = next((lead for lead in deciders if sits(lead, step.seat)), deciders[0])
    version = request.version - walk.random.choice([0, 0, 0, 1])
    kind = walk.random.choices(
        ["approve", "approve fewer", "reject", "ask back"], weights=[6, 2, 1, 3]
    )[0]
    now = walk.town.time
    if kind == "reject":
        because = walk.random.choice(["capacity", "other"])
        decisions.reject(
            request.pk,
            by=by,
            expected_version=version,
            reason="No.",
            because=because,
            now=now,
        )
    elif kind == "ask back":
        decisions.ask_back(
            request.pk, by=by, expected_version=version, question="Why?", now=now
        )
    else:
        count = 1 if kind == "approve fewer" else None
        decisions.approve(
            request.pk, by=by, expected_version=version, count=count, now=now
        )
    return f"{kind}: {request.reference}"


def carry_out(walk: Walk) -> str:
    """A lead takes a task, is done with it, or cannot do it."""
    task, by = (
        walk.one_of(Task.objects.unfinished()),
        walk.random.choice(walk.town.leads),
    )
    kind = walk.random.choice(["take", "finish", "fail"])
    if kind == "take":
        task_actions.take(task.pk, to=by, by=by, now=walk.town.time)
    else:
        fulfilment.finish(
            task.pk, by=by, note="So it is.", failed=kind == "fail", now=walk.town.time
        )
    return f"{kind} a task: of {task.request_number}"


def set_budget(walk: Walk) -> str:
    """A lead sets what a team may spend in a month."""
    limit = Decimal(walk.random.choice([800, 6_000, 20_000, 90_000]))
    team, month = walk.town.tenancy().team, month_of(walk.town.time)
    budget_actions.set_budget(team, month=month, by=walk.town.leads[0], limit_usd=limit)
    return f"set a budget: ${limit}"


def set_price(walk: Walk) -> str:
    """A lead sets a price."""
    price = Decimal(walk.random.randint(1, 5))
    change_flavor(
        walk.town.flavor().pk,
        values={"price_per_gpu_hour": price},
        by=walk.town.leads[0],
    )
    return f"set a price: ${price}"


def set_share(walk: Walk) -> str:
    """A lead sets a team's weight in its cluster's queues."""
    weight = walk.random.choice([1, 2, 5, 200])
    share_actions.set_shares(
        walk.town.tenancy().pk, by=walk.town.leads[0], now=walk.town.time, weight=weight
    )
    return f"set a share: {weight}"


def set_end(walk: Walk) -> str:
    """A lead sets what becomes of GPUs whose time is over."""
    grace, drain = walk.random.choice([0, 1, 24]), walk.random.choice([0, 2, 48])
    when_over = walk.random.choice(["finish", "drain", "stop"])
    offering_actions.change(
        "gpus",
        by=walk.town.leads[0],
        grace_hours=grace,
        when_over=when_over,
        drain_hours=drain,
    )
    return f"set an end: {grace} h of grace, then {when_over} within {drain} h"


def change_policy(walk: Walk) -> str:
    """A lead drafts a policy; another one puts it in force, takes it over or throws it away, or what is to come."""
    leads, now = walk.town.leads, walk.town.time
    to_come = PolicyVersion.objects.standing().filter(active_from__gt=now)
    if to_come.exists() and walk.random.random() < 0.8:
        number = walk.one_of(to_come).number
        by = walk.random.choice([*leads, walk.town.boss])
        policy_actions.cancel(number, by=by, now=now, why="Not so soon.")
        return f"cancel a policy: {number}"
    drafts = PolicyDraft.objects.filter(closed_at=None)
    if drafts.count() < walk.random.choice([1, 1, 2]):
        numbers: dict[str, Any] = {
            "automatic_gpus": walk.random.choice([0, 2, 4]),
            "window_gpus_team": walk.random.choice([6, 50]),
            "keep_free_gpus": walk.random.choice([0, 4]),
            "automatic_days": walk.random.choice([1, 14]),
        }
        newest = PolicyVersion.objects.standing().latest("number").policy
        said = to_json(
            replace(newest, thresholds=replace(newest.thresholds, **numbers))
        )
        policy_actions.draft(by=leads[0], now=now, said=said, why="Less waiting.")
        return f"draft a policy: {numbers}"
    found = walk.one_of(drafts)
    if found.base_id != PolicyVersion.objects.standing().latest("number").pk:
        policy_actions.take_over(
            found.pk, by=leads[0], expected_version=found.version, now=now
        )
        return "take a policy over: "
    if walk.random.random() < 0.3:
        policy_actions.discard(found.pk, by=leads[1], now=now)
        return "discard a policy: "
    by = leads[walk.random.choice([0, 1, 1, 1])]
    later = walk.random.choice([None, now + timedelta(days=1)])
    policy_actions.activate(
        found.pk,
        by=by,
        expected_version=found.version,
        now=now,
        active_from=later,
        everything_automatic=True,
    )
    if later is not None:
        return f"schedule a policy: for {later.isoformat()}"
    if walk.random.random() < 0.5:  # others wait on the version before
        policy_actions.draft(by=leads[0], now=now, base=1, why="As it was.")
    return "activate a policy: "


def change_the_cluster(walk: Walk) -> str:
    """A lead changes how a cluster is worked on."""
    cluster = walk.random.choice(
        [walk.town.cluster, walk.town.cluster, walk.town.followed]
    )
    values: dict[str, Any] = walk.random.choice(
        [
            {"borrow_percent": walk.random.choice([0, 50, 100])},
            {"on_drift": "ask"},
            {"on_drift": "repair"},
            {"on_drift": "ask"},
            {"most_at_once": walk.random.choice([1, 4])},
            {"dashboards": False},
            {"writes_per_second": walk.random.choice([1, 20])},
            {"storage_class": "fast"},
            {"dashboards": True},
        ]
    )
    change_cluster(cluster.pk, values=values, by=walk.town.leads[1])
    return f"change a cluster: {values} of {cluster.name}"


def maintain(walk: Walk) -> str:
    """A lead has a cluster maintained, now or soon, or says that it is over."""
    cluster, now = (
        walk.random.choice([walk.town.cluster, walk.town.followed]),
        walk.town.time,
    )
    starts = now + timedelta(minutes=walk.random.choice([-10, 0, 30]))
    ends = starts + timedelta(minutes=walk.random.choice([1, 20, 60]))
    # The action goes by the machine's clock, which is not the walk's.
    Cluster.objects.filter(pk=cluster.pk).update(
        maintenance_starts_at=starts,
        maintenance_ends_at=ends,
        maintenance_drains=walk.random.random() < 0.5,
    )
    return f"maintain a cluster: {cluster.name} until {ends:%H:%M}"


def try_again(walk: Walk) -> str:
    """Somebody wants it tried again."""
    tenancy = walk.town.tenancy()
    look_again(tenancy, by=tenancy.team.created_by, now=walk.town.time)
    return f"try again: {tenancy.namespace}"


def release_a_brake(walk: Walk) -> str:
    """A lead has looked, and lets repairs go on, or says whether the clock that would end so much is right."""
    by, now = walk.random.choice(walk.town.leads), walk.town.time
    held_back = Brake.objects.open().first()
    if held_back is not None:
        if walk.random.random() < 0.5:
            ending.confirm(held_back.pk, by=by, now=now)
            return "confirm ends: "
        ending.dismiss(held_back.pk, by=by, now=now)
        return "dismiss ends: "
    cluster = walk.one_of(Cluster.objects.filter(braked_at__isnull=False))
    brake.release(cluster.pk, by=by, now=now)
    return f"release a brake: of {cluster.name}"


LEADS = {
    decide: 14,
    carry_out: 30,
    set_budget: 1,
    set_price: 1,
    set_share: 2,
    set_end: 2,
    change_policy: 6,
    change_the_cluster: 3,
    maintain: 3,
    try_again: 1,
    release_a_brake: 20,
}
