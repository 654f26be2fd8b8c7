"""What others do to what is ours on a cluster or in a repository, and what leads decide about it."""

from datetime import timedelta
from typing import Any

from fleet.models import Flavor
from provisioning.drift import actions as drift_actions
from provisioning.drift import adopting
from provisioning.drift.comparing import What
from provisioning.drift.models import Drift
from provisioning.git.repository import tenancy_folder
from provisioning.models import Tenancy
from tests.soak.walk import Walk
from tests.soak.walking import Nothing

HARD = (
    {"requests.nvidia.com/gpu": "64"},
    {"pods": "900"},
    {"pods": "3"},
    {"count/services": "90"},
)
WAYS: list[tuple[tuple[str, str], str, Any]] = [
    *(
        (("v1", "ResourceQuota"), "team-quota", {"spec": {"hard": hard}})
        for hard in HARD
    ),
    (("v1", "Namespace"), "", {"metadata": {"labels": {"quartermaster.io/team": "x"}}}),
    (("v1", "LimitRange"), "team-defaults", None),
    (("networking.k8s.io/v1", "NetworkPolicy"), "default-deny", None),
    (("kueue.x-k8s.io/v1beta2", "LocalQueue"), "default", None),
    (("kueue.x-k8s.io/v1beta2", "ClusterQueue"), "", {"spec": {"stopPolicy": "Hold"}}),
    (("v1", "Namespace"), "", None),
]


def meddle(walk: Walk) -> str:
    """Somebody changes or deletes one of our objects by hand."""
    way = walk.random.choice(WAYS)
    tenancy = walk.town.tenancy(near=True)
    if not _changed(walk, tenancy, way):
        raise Nothing
    if walk.random.random() < 0.5:  # a worker finds out at once
        walk.town.work(tenancy.pk)
    return f"{'delete by hand' if way[2] is None else 'change by hand'}: {way[0][1]} {way[2] or ''}"


def meddle_everywhere(walk: Walk) -> str:
    """Somebody does the same to every team of a cluster."""
    way = walk.random.choice(WAYS)
    rows = Tenancy.objects.present().filter(cluster=walk.town.cluster).order_by("pk")
    changed = [row.pk for row in rows if _changed(walk, row, way)]
    if len(changed) < 2:
        raise Nothing
    if walk.random.random() < 0.5:  # workers find out at once
        for tenancy_id in changed:
            walk.town.work(tenancy_id)
    return f"change everywhere: {way[0][1]} {way[2] or 'gone'}"


def _changed(
    walk: Walk, tenancy: Tenancy, way: tuple[tuple[str, str], str, Any]
) -> bool:
    ref, called, body = way
    name, namespace = called or tenancy.namespace, tenancy.namespace if called else None
    with walk.town.place.by_hand() as kubernetes:
        found = kubernetes.get(ref, name, namespace)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return False
        if body is None:
            kubernetes.delete(ref, name, namespace)
        else:
            kubernetes.patch(ref, name, namespace, body)
    return True


def deal_with_drift(walk: Walk) -> str:
    """A lead has something put right, takes it over, or leaves it alone."""
    rows, by, now = (
        Drift.objects.open(),
        walk.random.choice(walk.town.leads),
        walk.town.time,
    )
    changed = [
        row.pk
        for row in rows.filter(what=What.CHANGED)
        if not adopting.refusal(row.kind, row.fields)
    ]
    if (
        changed and walk.random.random() < 0.5
    ):  # seldom there, and what may be taken over is to be
        rows = rows.filter(pk__in=changed)
    row = walk.one_of(rows)
    kind = walk.random.choice(["repair", "adopt", "adopt", "ignore"])
    if kind == "repair":
        drift_actions.repair(row.pk, by=by, now=now)
    elif kind == "adopt":
        drift_actions.adopt(row.pk, by=by, now=now, seen=row.content)
    else:
        until = now + timedelta(days=walk.random.choice([0.05, 30]))
        drift_actions.ignore(
            row.pk, by=by, reason="It is meant so.", until=until, now=now
        )
    return f"{kind}: {row}"


def think_again(walk: Walk) -> str:
    """A lead takes up what was left alone, or gives up what was taken over."""
    over = Drift.objects.filter(state__in=[Drift.State.IGNORED, Drift.State.ADOPTED])
    row, by, now = walk.one_of(over), walk.town.leads[0], walk.town.time
    if row.state == Drift.State.IGNORED:
        drift_actions.take_up(row.pk, by=by, now=now)
        return f"take up: {row}"
    drift_actions.give_up(row.pk, by=by, now=now)
    return f"give up: {row}"


def push_by_hand(walk: Walk) -> str:
    """Somebody pushes into the repository: over one of our files, beside them, or a history of their own."""
    theirs, cluster = walk.town.theirs, walk.town.followed.name
    if not theirs.path.exists() or theirs.is_locked() or not theirs.tip():
        raise Nothing
    beside: dict[str, bytes | None] = {
        "README.md": b"Ours, and yours.\n",
        "apps/theirs.yaml": b"{}\n",
    }
    if walk.random.random() < 0.3:
        theirs.push(beside, anew=True)
        return "push by force: "
    rows = Tenancy.objects.present().filter(cluster=walk.town.followed)
    folders = [
        tenancy_folder(cluster, namespace)
        for namespace in rows.values_list("namespace", flat=True)
    ]
    ours = sorted(
        path
        for path in theirs.files()
        if any(path.startswith(f"{folder}/") for folder in folders)
    )
    path = walk.random.choice(ours) if ours else ""
    if not path or walk.random.random() < 0.2:
        theirs.push(beside)
        return "push by hand: beside ours"
    is_changed = path.endswith(".json") and walk.random.random() < 0.7
    theirs.push(
        {
            path: theirs.files()[path].replace(b"inference", b"theirs") + b"\n"
            if is_changed
            else None
        }
    )
    return f"push by hand: {'over' if is_changed else 'without'} {path}"


def add_nodes(walk: Walk) -> str:
    """Some nodes go away or come back: what a cluster has is what is counted at the next look."""
    flavor: Flavor = walk.town.flavor(walk.town.followed)
    total = walk.random.choice([2, 8, 16])
    Flavor.objects.filter(pk=flavor.pk).update(gpus_total=total, gpus_ready=total)
    return f"add nodes: {total}"


OTHERS = {
    meddle: 6,
    meddle_everywhere: 4,
    deal_with_drift: 25,
    think_again: 15,
    push_by_hand: 2,
    add_nodes: 1,
}
