"""What people of teams do: ask, change, answer, renew, give back, use."""

from datetime import timedelta

from django.db.models import Q

from accounts.idempotency import once
from accounts.models import User
from allocations.ends import actions as ends
from allocations.models import Allocation
from approvals.conversation import actions as conversation
from approvals.fulfilment import actions as fulfilment
from approvals.models import Request
from approvals.renewals import renewing
from approvals.requests import actions as approvals
from approvals.requests.wanted import Wanted, resolve
from fleet.models import Cluster
from provisioning.models import Tenancy
from tests import factories
from tests.soak.walk import Walk
from tests.soak.walking import Nothing

REASON = "Retrain the detector before the review."


def ask(walk: Walk) -> str:
    """Somebody asks for something, from now on or from later on, sometimes twice with one key."""
    town, by = walk.town, walk.random.choice(walk.town.askers)
    home = town.home_of(by.teams[0])
    flavor, gpus = town.flavor(home.cluster), walk.random.choice([1, 1, 2, 3, 8])
    days = walk.random.choice([0.1, 1, 3, 12])
    kind = walk.random.choices(
        ["gpus", "notebook", "volume", "endpoint"], weights=[8, 1, 1, 3]
    )[0]
    said = {
        "gpus": {"flavor": f"{home.cluster.name}/{flavor.name}", "gpus": gpus},
        "notebook": {
            "flavor": f"{home.cluster.name}/{flavor.name}",
            "gpus": min(gpus, 2),
            "profile": factories.notebooks_on(
                home.cluster, slug=flavor.name, flavor=flavor.name
            ).slug,
        },
        "volume": {"cluster": home.cluster.name, "name": "data", "gib": 100 * gpus},
        "endpoint": {
            "flavor": f"{home.cluster.name}/{flavor.name}",
            "model": "mistral-7b",
            "gpus_per_replica": 1,
            "replicas": min(gpus, 2),
        },
    }[kind]
    ahead = walk.random.choice([0, 0, 0, 0.01, 1.5]) if kind == "gpus" else 0
    begins = town.time + timedelta(days=ahead)
    wanted = resolve(
        kind,
        said,
        team=by.teams[0],
        until=begins + timedelta(days=days),
        starts=begins if ahead else None,
        reason=REASON,
    )
    _submit(walk, wanted, by=by)
    what = f"{gpus} × {flavor.name} for {days} days"
    return f"book {kind}: {what}, in {ahead}" if ahead else f"ask for {kind}: {what}"


def come(walk: Walk) -> str:
    """A team asks for a place on a cluster where it is not."""
    by = walk.random.choice(walk.town.askers)
    there = Tenancy.objects.present().filter(team=by.teams[0]).values("cluster")
    cluster = walk.one_of(Cluster.objects.exclude(pk__in=there))
    said = {"cluster": cluster.name, "environment": "dev", "project": "main"}
    until = walk.town.time + timedelta(days=walk.random.choice([1, 12]))
    _submit(
        walk,
        resolve("namespace", said, team=by.teams[0], until=until, reason=REASON),
        by=by,
    )
    return f"ask for a namespace: on {cluster.name}"


def _submit(walk: Walk, wanted: Wanted, *, by: User) -> None:
    """Ask, once or twice with one key; whatever was answered must be there at the end."""
    town, key = walk.town, f"key-{walk.random.random()}"

    def action() -> str:
        return f"/requests/{approvals.submit(wanted, by=by, now=town.time).pk}/"

    answers = set()
    for _ in range(walk.random.choice([1, 1, 2])):
        where = once(by, route="request-new", key=key, body={}, action=action)
        town.accepted[key] = int(where.split("/")[2])
        answers.add(where)
    assert len(answers) == 1


def edit(walk: Walk) -> str:
    """Who asked wants another number or another end."""
    request = walk.one_of(
        Request.objects.waiting()
        .filter(offering="gpus")
        .select_related("requester", "team")
    )
    said = {**request.spec, "gpus": walk.random.choice([1, 2, 4])}
    until = walk.town.time + timedelta(days=walk.random.choice([1, 5]))
    wanted = resolve("gpus", said, team=request.team, until=until, reason=REASON)
    version = request.version - walk.random.choice([0, 0, 0, 1])
    conversation.edit(
        request.pk,
        wanted,
        by=request.requester,
        expected_version=version,
        now=walk.town.time,
    )
    return f"edit: {said['gpus']}"


def answer(walk: Walk) -> str:
    """Who asked answers, or takes it back."""
    waiting = Request.objects.waiting().select_related("requester")
    asked = waiting.filter(turn=Request.Turn.REQUESTER)
    if asked.exists() and walk.random.random() < 0.8:
        request = walk.one_of(asked)
        approvals.answer(
            request.pk, by=request.requester, text="So.", now=walk.town.time
        )
        return "answer: "
    request = walk.one_of(waiting)
    approvals.withdraw(request.pk, by=request.requester, now=walk.town.time)
    return "withdraw: "


def renew(walk: Walk) -> str:
    """What is held, or is in its grace, is to go on."""
    held = walk.one_of(
        Allocation.objects.live().select_related("team__created_by", "flavor__cluster")
    )
    first = renewing.request_of(held)
    if first is None:
        raise Nothing
    until = renewing.usual_until(held, days=walk.random.choice([1, 7, 30]))
    wanted = renewing.wanted(first, until=until, reason=REASON, now=walk.town.time)
    _submit(walk, wanted, by=held.team.created_by)
    return f"renew: {held} until {until}"


def give_back(walk: Walk) -> str:
    """Some or all GPUs go back."""
    held = walk.one_of(Allocation.objects.live().select_related("team__created_by"))
    gpus = walk.random.choice([1, None])
    ends.give_back(held.pk, gpus=gpus, by=held.team.created_by, now=walk.town.time)
    return f"give back: {gpus or 'all'} of {held}"


def let_go(walk: Walk) -> str:
    """A booking is cancelled, or what takes no GPUs ends before its date."""
    granted = Allocation.objects.granted().filter(hold__request__isnull=False)
    ends_early = Q(begun_at=None) | Q(flavor=None)
    held = walk.one_of(
        granted.filter(ends_early).select_related("team__created_by", "hold")
    )
    number = held.hold.request_id
    assert number is not None
    fulfilment.release(number, by=held.team.created_by, now=walk.town.time)
    return f"{'cancel a booking' if held.is_booked else 'let go'}: {held}"


def run(walk: Walk) -> str:
    """A job begins on what is held, or one ends."""
    held = walk.one_of(
        Allocation.objects.live().filter(gpus__gt=0, tenancy__cluster=walk.town.cluster)
    )
    assert held.tenancy is not None
    assert held.flavor is not None
    name, gpus = held.tenancy.namespace, walk.random.choice([0, held.gpus, held.gpus])
    kubernetes = walk.town.place.kubernetes
    if (
        kubernetes.get(("kueue.x-k8s.io/v1beta2", "LocalQueue"), "default", name)
        is None
    ):
        raise Nothing
    said = {
        "namespace": name,
        "flavor": held.flavor.name,
        "gpus": gpus,
        "name": f"job-{held.hold.reference}",
    }
    kubernetes.write("POST", "/sandbox/workloads", said)
    return f"run: {gpus} GPUs in {name}"


PEOPLE = {
    ask: 10,
    come: 2,
    edit: 4,
    answer: 14,
    renew: 5,
    give_back: 3,
    let_go: 2,
    run: 5,
}
