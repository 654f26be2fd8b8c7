"""After a walk: everything comes to rest without faults, and then every promise holds."""

from collections.abc import Iterator
from datetime import timedelta

from django.db.models import F, Max

from allocations.ends import sweep as ends
from allocations.models import Allocation, Brake, Leftover
from approvals.models import Request
from checks.invariants import AZURE, check
from connectors.kubernetes import rendered
from fleet.models import Cluster
from provisioning.actions import look_again
from provisioning.clusters.observe import look_at
from provisioning.desired.manifests import tenancy_objects
from provisioning.drift import actions as drift_actions
from provisioning.drift import brake
from provisioning.drift.models import Drift
from provisioning.git.repository import file_name, tenancy_folder
from provisioning.models import Tenancy
from tests.soak.walking import Town
from tests.soak.working import by_the_clock, swept

ROUNDS = 25
LATE = timedelta(minutes=5)
BY_GIT = "inference: delivered by Git, so what stands there was not compared."
LEFT_ALONE = "found changed from elsewhere, left alone"


def wrong(town: Town) -> list[str]:
    """Every promise that does not hold after the walk."""
    if not quiet(town):
        rows = Tenancy.objects.exclude(pk__in=Tenancy.objects.converged().values("pk"))
        return [
            f"did not come to rest: {[(r.namespace, r.stage, r.ready, r.requeue_at, r.lease_until) for r in rows]}"
        ]
    report = check(now=town.time)
    found = [str(finding) for finding in report.findings]
    found += [
        note
        for note in report.notes
        if note not in (AZURE, BY_GIT) and LEFT_ALONE not in note
    ]
    found += [
        *_not_still(town),
        *_not_committed(town),
        *_late_or_early(town),
        *_left_behind(),
        *town.broken,
    ]
    if town.place.not_ours() != town.place.strangers:
        found.append(
            f"I9 touched: {set(town.place.not_ours().items()) ^ set(town.place.strangers.items())}"
        )
    kept = set(Request.objects.values_list("pk", flat=True))
    return found + [
        f"I15 {key} was accepted and is gone"
        for key, pk in town.accepted.items()
        if pk not in kept
    ]


def quiet(town: Town) -> bool:
    """Let everything come to rest without faults, and be looked at once more by a right clock; whether it did."""
    # A clock that was ahead may have stamped a look with a time that is still to come.
    looks = (
        Tenancy.objects.aggregate(newest=Max("last_looked_at"))["newest"] or town.time
    )
    began = max(town.time, looks + timedelta(seconds=1))
    here = Tenancy.objects.present()
    clusters = list(Cluster.objects.not_written_off().order_by("pk"))
    for number in range(ROUNDS):
        town.later(seconds=61)
        leads_look(town)
        by_the_clock(town)
        town.messages()
        answered = [
            number % 5 or look_at(cluster.pk, now=town.now) for cluster in clusters
        ]
        wrote = any(swept(town))
        moving = here.exclude(pk__in=Tenancy.objects.converged().values("pk"))
        unseen = here.exclude(last_looked_at__gte=began)
        if all(answered) and not (
            wrote or moving.exists() or unseen.exists() or _waits(town)
        ):
            return True
    return False


def _waits(town: Town) -> bool:
    """Whether something waits for a lead, or work that is to be stopped is not yet."""
    here = Tenancy.objects.present()
    running = Leftover.objects.open().filter(tenancy__in=here, stop_at__lte=town.time)
    drifted = Drift.objects.open().filter(tenancy__in=here)
    return running.exists() or drifted.exists() or Brake.objects.open().exists()


def leads_look(town: Town) -> None:
    """Leads answer whatever waits for them about clusters and ends; what they left alone stays so."""
    by, now = town.leads[0], town.time
    for parked in Tenancy.objects.exclude(parked_at=None):
        look_again(parked, by=by, now=now)
    for cluster in Cluster.objects.filter(braked_at__isnull=False):
        brake.release(cluster.pk, by=by, now=now)
    for held_back in Brake.objects.open():
        ends.confirm(held_back.pk, by=by, now=now)
    waiting = Drift.objects.open().filter(repair_asked_at=None)
    for pk in list(waiting.order_by("pk").values_list("pk", flat=True)):
        drift_actions.repair(pk, by=by, now=now)


def _not_still(town: Town) -> Iterator[str]:
    """I8: another pass over what is at rest writes nothing."""
    for row in Tenancy.objects.present().order_by("pk"):
        wrote = town.work(row.pk)
        if wrote != 0:
            yield f"I8 another pass over {row.namespace} wrote {wrote}"


def _not_committed(town: Town) -> Iterator[str]:
    """The repository holds exactly what is wanted, byte for byte, and nothing of ours beside it."""
    files = town.theirs.files()
    rows = Tenancy.objects.present().filter(cluster=town.followed, generation__gt=0)
    for row in rows.select_related("cluster"):
        folder = tenancy_folder(row.cluster.name, row.namespace)
        wanted = {
            f"{folder}/{file_name(one)}": rendered(one)
            for one in tenancy_objects(row.desired)
        }
        there = {
            path: content
            for path, content in files.items()
            if path.startswith(f"{folder}/")
        }
        differing = {path for path in wanted if there.get(path) != wanted[path]}
        # Claims are kept there when nothing else is.
        claims = f"{folder}/persistentvolumeclaim-"
        over = {
            path for path in there if path not in wanted and not path.startswith(claims)
        }
        over.discard(f"{folder}/kustomization.yaml")
        if differing or over:
            yield f"{row.namespace} is not committed as wanted: {sorted(differing)} differ, {sorted(over)} are too much"


def _left_behind() -> Iterator[str]:
    """Of a cluster that is written off nothing is left: no place, nothing held, booked or asked for."""
    lost = Cluster.objects.filter(written_off_at__isnull=False)
    for place in Tenancy.objects.present().filter(cluster__in=lost):
        yield f"{place.namespace} stands on a cluster that is gone"
    for held in Allocation.objects.live().filter(tenancy__cluster__in=lost):
        yield f"{held.hold} is held on a cluster that is gone"
    for asked in Request.objects.waiting().filter(tenancy__cluster__in=lost):
        yield f"{asked.reference} waits for a cluster that is gone"


def _late_or_early(town: Town) -> Iterator[str]:
    """I11: nothing begins or ends before its date, and nothing runs on after the date on which it is stopped."""
    for row in Allocation.objects.filter(begun_at__lt=F("starts_at")):
        yield f"I11 {row.hold} began before its time"
    for row in Allocation.objects.booked().filter(until__lte=town.time - LATE):
        yield f"I11 {row.hold} never began, and is booked still after its end"
    for row in Allocation.objects.filter(end_reason="expired"):
        if row.ended_at and row.ended_at < row.kept_until:
            yield f"I11 {row.hold} ended before its end"
    late = Leftover.objects.open().filter(stop_at__lte=town.time - LATE)
    for left in late.exclude(tenancy__stage="gone"):
        yield f"I11 work of {left.allocation.hold} was to be stopped at {left.stop_at} and is not dealt with"
