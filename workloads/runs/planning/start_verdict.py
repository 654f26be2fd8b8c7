"""Whether a run or a notebook starts at once, and after what else: the answer to who has not sent it yet."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from provisioning.models import Tenancy
from ui.amounts import span
from ui.parts import Verdict
from workloads.freshness import seen_of
from workloads.reasons.words import waits_for
from workloads.runs.planning.maintained import with_maintenance
from workloads.runs.planning.nodes import nodes_as_seen, on_nodes
from workloads.runs.planning.plan import Plan
from workloads.runs.planning.pools import Pool
from workloads.runs.planning.queue_copies import dated_demands
from workloads.runs.planning.queue_demand import QueueDemand, value_of
from workloads.runs.planning.sizes import Short, short_of, sizes_words
from workloads.templates.pods import priority_of

AT_ONCE = "It can start at once"
WAITS = "It waits in line first"
MAY_BE_STOPPED = "It may start, and be stopped for what waits"
NOT_SHORT = Short()
SENT_THEN = (
    "It is sent to the cluster then, and takes its place in the line. "
    "If that run does not finish, this one is skipped."
)
BACK_IN_LINE = "the run goes back to the line then"


def start_verdict_of_plan(
    plan: Plan, tenancy: Tenancy, flavor: str, now: datetime
) -> Verdict:
    """Whether a run that can be sent starts at once, in a tenancy with its cluster; no cluster is asked.

    Of a cluster that is silent, it is what was known before. Of what waits for another run, nobody knows.
    """
    if plan.after:
        return {
            "tone": "waiting",
            "sentence": f"It begins when {plan.after} has finished",
            "detail": SENT_THEN,
            "rules": [],
        }
    priority = priority_of(plan.manifests)
    wanted = flavor, plan.gpus
    demand = dated_demands(tenancy, [wanted], priority=priority, now=now)[wanted]
    # Of Volcano's jobs no CPUs are copied, only GPUs: what they leave free nobody knows here.
    rooms = () if tenancy.cluster.has_volcano else plan.rooms
    short = short_of(plan.sizes, rooms, demand.sizes)
    found = (
        _start_without_gpus(short)
        if plan.pool is None or not plan.gpus
        else start_verdict(
            plan.gpus, plan.pool, demand, priority=value_of(priority), short=short
        )
    )
    if found["tone"] == "good" and plan.pool is not None and plan.gpus:
        nodes = nodes_as_seen(tenancy.cluster_id, tenancy.cluster.flavors.all())
        each = plan.gpus // max(plan.pods, 1)
        found = on_nodes(
            found,
            plan.pool,
            nodes,
            each=each,
            pods=plan.pods,
            is_together=plan.is_gang,
        )
    limit = None if plan.seconds is None else timedelta(seconds=plan.seconds)
    found = with_maintenance(found, tenancy.cluster, limit, now=now)
    silence = seen_of(tenancy.cluster, now).silence(now)
    if not silence:
        return found
    return {
        "tone": "waiting",
        "sentence": "It is sent when the cluster answers again",
        "detail": f"{silence}. What was known then: {found['detail']}",
        "rules": [],
    }


def _start_without_gpus(short: Short) -> Verdict:
    """Whether a run that takes CPUs and memory alone starts at once."""
    is_short = bool(short.waited or short.borrowed)
    said = [*_short_words(short, BACK_IN_LINE), "It takes no GPU."]
    return {
        "tone": "waiting" if is_short else "good",
        "sentence": _sentence(
            may_borrow="CPUs" if short.borrowed else "", takes=False, fits=False
        )
        if is_short
        else AT_ONCE,
        "detail": " ".join(said),
        "rules": [],
    }


def start_verdict(
    wanted: int,
    pool: Pool,
    demand: QueueDemand,
    *,
    priority: int,
    taken_back: str = BACK_IN_LINE,
    short: Short = NOT_SHORT,
) -> Verdict:
    """Whether so many GPUs, which are possible here, start at once, by borrowing, by preempting, or after others.

    `taken_back` is what becomes of it when others take its GPUs: what it borrowed, or what a higher priority takes.
    `short` are the CPUs and the memory that its queue has not left for it now.
    """
    way = _way_in(wanted, pool, demand, short=short)
    if way.is_free and not demand.waiting and not way.is_short:
        return {
            "tone": "good",
            "sentence": AT_ONCE,
            "detail": _held_words(pool, way.free),
            "rules": [],
        }
    ahead = demand.going_first(priority) if way.fits else 0
    said = [
        *_short_words(short, taken_back),
        *_others_words(wanted, pool, demand, way, taken_back),
        *_line_words(demand, way, ahead, taken_back),
        *_time_words(demand, way),
    ]
    lent = ("CPUs" if way.is_free else "GPUs") if way.borrows else ""
    return {
        "tone": "waiting",
        "sentence": MAY_BE_STOPPED
        if ahead
        else _sentence(may_borrow=lent, takes=way.takes, fits=way.fits),
        "detail": f"{_held_words(pool, way.free)} {' '.join(said)}",
        "rules": [],
    }


@dataclass(frozen=True)
class _WayIn:
    """How what is asked for comes by its GPUs: they are free, lent, taken from lower priorities, or it takes its turn.

    `free` is how many of the team's own nothing uses, below zero while others' are borrowed; `fits` is that nothing
    of the queue is in the way but what waits before it.
    """

    free: int
    is_free: bool
    is_short: bool
    borrows: bool
    takes: bool
    fits: bool

    @property
    def is_by_turn(self) -> bool:
        """Whether it starts when its turn comes and no sooner."""
        return not (self.takes or self.borrows or self.is_short)


def _way_in(wanted: int, pool: Pool, demand: QueueDemand, *, short: Short) -> _WayIn:
    free = pool.gpus - demand.used
    is_free = wanted <= free
    # What runs may have borrowed already, and nobody lends the same twice.
    borrows = (
        (not is_free or bool(short.borrowed))
        and wanted - free <= pool.borrow
        and not demand.waiting
        and not short.waited
    )
    reachable = min(free + demand.below, pool.gpus)
    return _WayIn(
        free=free,
        is_free=is_free,
        is_short=bool(short.waited or short.borrowed),
        borrows=borrows,
        takes=not is_free and not borrows and wanted <= reachable,
        fits=is_free and not short.waited,
    )


def _held_words(pool: Pool, free: int) -> str:
    are = "is" if free == 1 else "are"
    return f"{max(free, 0)} of your {pool.gpus} × {pool.title} {are} free now."


def _others_words(
    wanted: int, pool: Pool, demand: QueueDemand, way: _WayIn, taken_back: str
) -> list[str]:
    """What it borrows of others, and what it stops."""
    borrowed = wanted - (max(way.free, 0) if way.borrows else pool.gpus)
    said = [_borrow_words(pool, borrowed, taken_back)] if borrowed > 0 else []
    if way.takes:
        said.append(
            f"Jobs of your team with a lower priority hold {demand.below}: as many of them as it takes are stopped "
            "for it and go back to the line."
        )
        if demand.lost:
            said.append(_lost_words(demand.lost))
    return said


def _line_words(
    demand: QueueDemand, way: _WayIn, ahead: int, taken_back: str
) -> list[str]:
    """What waits already, and how many of it, `ahead`, take its GPUs once there are enough."""
    said = []
    if demand.waiting:
        earlier = (
            "; the line goes by priority and age, and a smaller job may start earlier"
            if way.is_free
            else ""
        )
        said.append(
            f"{_jobs(demand.waiting)} of your team wait{'s' if demand.waiting == 1 else ''} already{earlier}."
        )
    if ahead:
        said.append(f"{_goes_first(ahead, demand.waiting)}: {taken_back}.")
    return said


def _time_words(demand: QueueDemand, way: _WayIn) -> list[str]:
    """By when it starts, where its turn is all that it waits for, and how long others of its size have waited."""
    said = [demand.starts_by] if way.is_by_turn and demand.starts_by else []
    if demand.estimate is not None:
        low, high = span(demand.estimate.low), span(demand.estimate.high)
        said.append(
            f"Jobs of this size waited {low} to {high} here ({demand.estimate.samples} of them)."
        )
    elif not said:
        said.append("Too few jobs of this size have waited here to say how long.")
    return said


def _sentence(*, may_borrow: str, takes: bool, fits: bool) -> str:
    if may_borrow:
        return f"It starts if {may_borrow} can be borrowed"
    if takes:
        return "It pushes out work of a lower priority"
    return "It may start before what waits" if fits else WAITS


def _goes_first(count: int, waiting: int) -> str:
    if count == 1:
        it = "It" if waiting == 1 else "One of them"
        return f"{it} has a higher priority and takes these GPUs as soon as they are enough for it"
    return f"{count} of them have a higher priority and take these GPUs as soon as they are enough for one"


def _borrow_words(pool: Pool, borrowed: int, taken_back: str) -> str:
    return (
        f"{borrowed} × {pool.title} would be borrowed from teams that leave theirs idle; they can take them back, "
        f"and {taken_back}."
    )


def _short_words(short: Short, taken_back: str) -> list[str]:
    """The sentence that a waiting run has of it, too, or the one of what others lend."""
    if short.waited:
        return [waits_for(sizes_words(short.waited))]
    if short.borrowed:
        lent = f"{sizes_words(short.borrowed)} would be borrowed from teams that leave theirs idle"
        return [f"{lent}; they can take them back, and {taken_back}."]
    return []


def _lost_words(count: int) -> str:
    if count == 1:
        return "One of them, a notebook or a bare pod, does not come back: what it has in memory is lost."
    return f"{count} of them, notebooks or bare pods, do not come back: what they have in memory is lost."


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
