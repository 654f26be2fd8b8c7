"""What workers and the clock do: messages in any number and order, sweeps, looks, and time that goes by."""

from collections import Counter
from datetime import datetime, timedelta

from allocations import actions as granting
from allocations.bookings import actions as bookings
from allocations.budgets import actions as budget_actions
from allocations.ends import reminders as reminding
from allocations.ends import sweep as ends
from allocations.models import Budget
from allocations.sync import keep_in_step
from allocations.use import idle as idling
from allocations.use import measuring as use
from allocations.use import over_quota
from approvals.decisions import escalation
from approvals.fulfilment import free_again
from approvals.models import Request
from approvals.renewals import renewing
from approvals.renewals.lowering import lower
from approvals.renewals.voiding import withdraw_void
from approvals.requests import actions as approvals
from manual import reminders
from offboarding import sweep as leaving_sweep
from offboarding import written_off
from provisioning import scheduling
from provisioning.clusters.observe import look_at
from provisioning.drift import cluster_sweep
from provisioning.models import Tenancy
from tests.soak.meddling import push_by_hand
from tests.soak.walk import Walk
from tests.soak.walking import Nothing, Town


class Interleaved:
    """A worker's clock: at its n-th reading somebody else takes a turn, after some seconds have gone by."""

    def __init__(
        self, walk: Walk, tenancy: Tenancy, *, at: int, seconds: float
    ) -> None:
        self.walk, self.tenancy, self.left, self.seconds = walk, tenancy, at, seconds
        self.happened = False

    def __call__(self) -> datetime:
        self.left -= 1
        if self.left == 0:
            self.happened = True
            self.walk.town.later(seconds=self.seconds)
            if (
                self.tenancy.cluster_id == self.walk.town.followed.pk
                and self.walk.random.random() < 0.5
            ):
                self._push()
            else:
                self.walk.town.work(self.tenancy.pk)
        return self.walk.town.time

    def _push(self) -> None:
        try:
            push_by_hand(self.walk)
        except Nothing:
            self.walk.town.work(self.tenancy.pk)


def deliver(walk: Walk) -> str:
    """Messages arrive: once, twice, later, or never."""
    town = walk.town
    coming = [*town.late, *town.messages()]
    if not coming:
        raise Nothing
    town.late.clear()
    said = Counter[str]()
    for tenancy_id in coming:
        fate = walk.random.choices(
            ["once", "twice", "later", "never"], weights=[6, 2, 2, 1]
        )[0]
        said[fate] += 1
        if fate == "later":
            town.late.append(tenancy_id)
        for _ in range({"once": 1, "twice": 2}.get(fate, 0)):
            town.work(tenancy_id)
    return f"deliver: {dict(said)}"


def sweep(walk: Walk) -> str:
    """Workers look at whatever is due, by itself or with its whole cluster."""
    seen = swept(walk.town)
    if not seen:
        raise Nothing
    return f"sweep: {seen}"


def swept(town: Town) -> list[int | None]:
    """What each pass wrote of a sweep's."""
    found = [town.work(pk) for pk in scheduling.in_turns(now=town.time)]
    for cluster_id in scheduling.clusters_to_sweep(now=town.time):
        found += [
            0,
            *(town.work(pk) for pk in cluster_sweep.sweep(cluster_id, now=town.now)),
        ]
    return found


def two_workers(walk: Walk) -> str:
    """Two workers at one place; the second, or somebody else, comes in the middle of the first one's pass."""
    tenancy, at = walk.town.tenancy(), walk.random.randint(2, 14)
    clock = Interleaved(walk, tenancy, at=at, seconds=walk.random.choice([0, 1, 6]))
    wrote = walk.town.work(tenancy.pk, clock)
    return f"{'two workers' if clock.happened else 'one worker'}: {wrote} in {tenancy.namespace}"


def wrong_clock(walk: Walk) -> str:
    """A worker whose clock is ten minutes ahead or behind."""
    off = timedelta(minutes=walk.random.choice([-10, 10]))
    wrote = walk.town.work(walk.town.tenancy().pk, lambda: walk.town.time + off)
    return f"wrong clock: {off}, {wrote}"


def look(walk: Walk) -> str:
    """A cluster itself is looked at."""
    cluster = walk.random.choice(
        [walk.town.cluster, walk.town.cluster, walk.town.followed]
    )
    return f"look at a cluster: {cluster.name} {look_at(cluster.pk, now=walk.town.now)}"


def sweep_all(walk: Walk) -> str:
    """Everything settled on a cluster is compared at once, whether it is due or not."""
    differing = cluster_sweep.sweep(walk.town.cluster.pk, now=walk.town.now)
    return f"look through a cluster: {differing}"


def look_at_work(walk: Walk) -> str:
    """Somebody sees what still runs on GPUs that nobody holds any more."""
    due = over_quota.due(walk.town.time)
    if not due:
        raise Nothing
    return f"look at work: {[over_quota.look(pk, now=walk.town.now) for pk in due]}"


def tick(walk: Walk) -> str:
    """Some time goes by, sometimes days, and what is due by the clock happens, sometimes twice."""
    hours = walk.random.choice([0.001, 0.02, 2, 36])
    walk.town.later(hours=hours)
    for _ in range(walk.random.choice([1, 2])):
        by_the_clock(walk.town)
    return f"let time go by: {walk.town.time.isoformat()}"


def by_the_clock(town: Town) -> None:
    """What the clock's tasks do, each as often as it likes."""
    _of_what_is_granted(town)
    _of_requests(town.time)
    _of_surroundings(town)


def _of_what_is_granted(town: Town) -> None:
    now = town.time
    ends.sweep(now)
    for pk in bookings.to_begin(now):
        bookings.begin(pk, now=now)
    for pk in bookings.to_look_at(now):
        bookings.look(pk, now=now)
    for pk in list(reminding.due(now)):
        reminding.remind(pk, now=now)
    for pk in granting.not_charged_yet(now):
        granting.observe(pk, now=now)
    for pk in over_quota.due(now):
        over_quota.look(pk, now=town.now)


def _of_requests(now: datetime) -> None:
    waiting = Request.objects.overdue(now)
    for pk in list(waiting.values_list("pk", flat=True)):
        approvals.lapse(pk, now=now)
    for pk in escalation.due(now):
        escalation.look(pk, now=now)
    for pk in reminders.due(now):
        reminders.remind(pk, now=now)
    free_again.sweep(now)
    for pk in renewing.void():
        withdraw_void(pk, now=now)
    for pk in renewing.more_than_held(now):
        lower(pk, now=now)


def _of_surroundings(town: Town) -> None:
    now = town.time
    leaving_sweep.sweep(now=now)
    written_off.sweep(now=now)
    keep_in_step(now=town.now)
    for pk in use.due():
        use.sample(pk)
    for place in idling.idle(now):
        idling.tell_idle(place, now=now)
    budget_actions.tell_close(Budget.objects.to_tell(now), now=now)


WORKERS = {
    deliver: 8,
    sweep: 8,
    two_workers: 5,
    wrong_clock: 2,
    look: 2,
    sweep_all: 3,
    look_at_work: 3,
    tick: 9,
}
