"""What a run would find if it were submitted now: how many of the team's GPUs are free, and how long others waited."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Q

from fleet.names import profile_of
from provisioning.desired.priorities import PRIORITIES
from provisioning.models import Tenancy
from ui.amounts import span
from ui.parts import Verdict
from workloads.estimating import Estimate, history_of
from workloads.freshness import seen_of
from workloads.listing import line_in
from workloads.models import ClusterObject
from workloads.observed import Queue, Workload, by_profile
from workloads.reading.facts import waits_of
from workloads.reading.queues import (
    promised_by_volcano,
    queue_of,
    quota_holders_of,
    sizes_held_in,
)
from workloads.reading.work import workload_of
from workloads.reasons.messages import waits_for as flavors_waited_for
from workloads.reasons.waiting import is_in_line
from workloads.reasons.words import waits_for
from workloads.runs.planning.latest_starts import latest_starts_of
from workloads.runs.planning.lending import Cell
from workloads.runs.planning.maintained import with_maintenance
from workloads.runs.planning.nodes import nodes_as_seen, on_nodes
from workloads.runs.planning.plan import Plan
from workloads.runs.planning.pools import Pool
from workloads.runs.planning.sizes import Short, short_of, sizes_words
from workloads.templates.pods import priority_of

AT_ONCE = "It can start at once"
WAITS = "It waits in line first"
MAY_BE_STOPPED = "It may start, and be stopped for what waits"
POD = "Pod"
NOT_SHORT = Short()
BACK_IN_LINE = "the run goes back to the line then"


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """GPUs of a flavor that Workloads hold in a namespace, or have been promised, how many wait for such GPUs,
    and an estimate.

    `below` are those of the GPUs held that Kueue takes from work of a lower priority, of which `lost` are pods that
    nothing makes anew, such as notebooks. `priorities` are those of what waits, where that can take GPUs away. `sizes`
    are the CPUs and GiB of memory that Workloads hold, by flavor and resource. `starts_by` is by when they start, in
    words; empty where nobody can say.
    """

    used: int
    waiting: int
    estimate: Estimate | None
    below: int = 0
    lost: int = 0
    priorities: tuple[int, ...] = ()
    sizes: Mapping[Cell, int] = field(default_factory=dict)
    starts_by: str = ""

    def going_first(self, priority: int) -> int:
        """How many of what waits could take the GPUs of work with this priority."""
        return sum(one > priority for one in self.priorities)


def outlook_of(
    tenancy: Tenancy,
    flavor: str,
    gpus: int,
    *,
    priority: str = "",
    now: datetime | None = None,
) -> Outlook:
    """What so many GPUs of a flavor would find in a namespace, as `outlooks_of` finds it."""
    found = outlooks_of(tenancy, [(flavor, gpus)], priority=priority, now=now)
    return found[flavor, gpus]


def outlooks_of(
    tenancy: Tenancy,
    wanted: Collection[tuple[str, int]],
    *,
    priority: str = "",
    now: datetime | None = None,
) -> Mapping[tuple[str, int], Outlook]:
    """Look at the portal's copies of the namespace's Workloads and of its queue; no cluster is asked.

    A namespace's queue is its own, so these are all that stand in it. Work without a `priority` takes nothing away.
    One query, and with `now` two more where something has to wait, for by when it starts.
    """
    copies = _copies_of(tenancy)
    found, queue = copies.workloads, copies.queue
    history = history_of(
        waits_of(found),
        source=f"the jobs of {tenancy.namespace} that the cluster still shows",
    )
    line = [one for one in line_in(map(workload_of, found)) if is_in_line(one, queue)]
    # Volcano takes nothing away for pods that preempt nobody, and no pod of a team may.
    takes_away = not tenancy.cluster.has_volcano
    promised = (
        promised_by_volcano(found) if tenancy.cluster.has_volcano else Counter[str]()
    )
    sizes = sizes_held_in(found)
    profiles = {one.name: profile_of(one.resource) for one in tenancy.desired.flavors}
    value, _ = PRIORITIES.get(priority, (0, ""))
    lower = quota_holders_of(_below(found, value)) if priority and takes_away else ()
    lines = {
        flavor: [
            one
            for one in line
            if _is_before(one, flavor, profiles.get(flavor, ""), queue)
        ]
        for flavor, _ in wanted
    }
    used = Counter[str]()
    for one in quota_holders_of(found):
        used[one.flavor] += one.gpus
    starts_by = dict[tuple[str, int], str]()
    # Volcano's queues go by shares: nobody has a place in them.
    if queue is not None and now is not None and takes_away:
        starts_by = latest_starts_of(
            [
                (flavor, gpus)
                for flavor, gpus in wanted
                if gpus and (lines[flavor] or gpus > queue.own(flavor) - used[flavor])
            ],
            tenancy=tenancy,
            queue=queue,
            workloads=found,
            jobs=copies.jobs,
            ahead=[one for one in line if one.priority >= value],
            now=now,
        )
    return {
        (flavor, gpus): Outlook(
            below=sum(one.gpus for one in lower if one.flavor == flavor),
            lost=sum(one.flavor == flavor and one.key.kind == POD for one in lower),
            used=used[flavor] + promised[profiles.get(flavor, "")],
            waiting=len(lines[flavor]),
            priorities=tuple(one.priority for one in lines[flavor])
            if takes_away
            else (),
            estimate=history.estimate(gpus, waited=timedelta(0)),
            sizes=sizes,
            starts_by=starts_by.get((flavor, gpus), ""),
        )
        for flavor, gpus in wanted
    }


class _Copies(NamedTuple):
    workloads: Sequence[Any]
    jobs: Sequence[Any]
    queue: Queue | None


def _copies_of(tenancy: Tenancy) -> _Copies:
    """The copies of a namespace's Workloads and Jobs, and of its queue; in one query."""
    rows = ClusterObject.objects.filter(
        Q(kind__in=("Workload", "Job"), namespace=tenancy.namespace)
        # A team's own queue has the name of its namespace.
        | Q(kind="ClusterQueue", name=tenancy.namespace),
        cluster=tenancy.cluster_id,
    )
    found: dict[str, list[Any]] = {"Workload": [], "Job": [], "ClusterQueue": []}
    for kind, body in rows.values_list("kind", "body"):
        found[kind].append(body)
    queue = next(map(queue_of, found["ClusterQueue"]), None)
    return _Copies(found["Workload"], found["Job"], queue)


def _is_before(one: Workload, flavor: str, profile: str, queue: Queue | None) -> bool:
    """Whether one that waits counts for whoever wants GPUs of this flavor, which are whole or slices of a profile.

    One queue holds all of a team's flavors. The portal makes each of them BestEffortFIFO, by which Kueue passes whoever
    does not fit: what waits for H100 keeps no A100 from anybody. A StrictFIFO queue blocks across flavors, and in one
    that somebody has made so, everything counts. What has not been looked at yet may be of the same kind.
    """
    if queue is not None and queue.is_strict:
        return True
    if profile not in by_profile(one.gpus, one.slices):
        return False
    condition = one.lacks("QuotaReserved")
    waited_for = flavors_waited_for(condition.message) if condition else frozenset()
    return not waited_for or flavor in waited_for


def _below(found: Iterable[Any], priority: int) -> list[Any]:
    """The Workloads of a lower priority than this one."""
    return [one for one in found if workload_of(one).priority < priority]


def start_of_plan(plan: Plan, tenancy: Tenancy, flavor: str, now: datetime) -> Verdict:
    """Whether a run that can be sent starts at once, in a tenancy with its cluster; no cluster is asked.

    Of a cluster that is silent, it is what was known before.
    """
    priority = priority_of(plan.manifests)
    value, _ = PRIORITIES.get(priority, (0, ""))
    seen = outlook_of(tenancy, flavor, plan.gpus, priority=priority, now=now)
    # Of Volcano's jobs no CPUs are copied, only GPUs: what they leave free nobody knows here.
    rooms = () if tenancy.cluster.has_volcano else plan.rooms
    short = short_of(plan.sizes, rooms, seen.sizes)
    found = (
        _start_without_gpus(short)
        if plan.pool is None or not plan.gpus
        else start_of(plan.gpus, plan.pool, seen, priority=value, short=short)
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


def start_of(
    wanted: int,
    pool: Pool,
    outlook: Outlook,
    *,
    priority: int,
    taken_back: str = BACK_IN_LINE,
    short: Short = NOT_SHORT,
) -> Verdict:
    """Whether so many GPUs, which are possible here, start at once, by borrowing, by preempting, or after others.

    `taken_back` is what becomes of it when others take its GPUs: what it borrowed, or what a higher priority takes.
    `short` are the CPUs and the memory that its queue has not left for it now.
    """
    free = pool.gpus - outlook.used
    are = "is" if free == 1 else "are"
    held = f"{max(free, 0)} of your {pool.gpus} × {pool.title} {are} free now"
    is_short = bool(short.waited or short.borrowed)
    if wanted <= free and not outlook.waiting and not is_short:
        return {
            "tone": "good",
            "sentence": AT_ONCE,
            "detail": f"{held}.",
            "rules": [],
        }
    # What runs may have borrowed already, and nobody lends the same twice.
    may_borrow = (
        (wanted > free or bool(short.borrowed))
        and wanted - free <= pool.borrow
        and not outlook.waiting
        and not short.waited
    )
    borrowed = wanted - max(free, 0) if may_borrow else wanted - pool.gpus
    said = _short_words(short, taken_back)
    said += [_borrow_words(pool, borrowed, taken_back)] if borrowed > 0 else []
    takes = (
        wanted > free
        and not may_borrow
        and wanted <= min(free + outlook.below, pool.gpus)
    )
    if takes:
        said.append(
            f"Jobs of your team with a lower priority hold {outlook.below}: as many of them as it takes are stopped "
            "for it and go back to the line."
        )
        if outlook.lost:
            said.append(_lost_words(outlook.lost))
    if outlook.waiting:
        earlier = (
            "; the line goes by priority and age, and a smaller job may start earlier"
            if wanted <= free
            else ""
        )
        said.append(
            f"{_jobs(outlook.waiting)} of your team wait{'s' if outlook.waiting == 1 else ''} already{earlier}."
        )
    lent = ("CPUs" if wanted <= free else "GPUs") if may_borrow else ""
    fits = wanted <= free and not short.waited
    ahead = outlook.going_first(priority) if fits else 0
    if ahead:
        said.append(f"{_goes_first(ahead, outlook.waiting)}: {taken_back}.")
    is_by_turn = not (takes or may_borrow or is_short)
    if is_by_turn and outlook.starts_by:
        said.append(outlook.starts_by)
    if outlook.estimate is not None:
        low, high = span(outlook.estimate.low), span(outlook.estimate.high)
        said.append(
            f"Jobs of this size waited {low} to {high} here ({outlook.estimate.samples} of them)."
        )
    elif not (is_by_turn and outlook.starts_by):
        said.append("Too few jobs of this size have waited here to say how long.")
    return {
        "tone": "waiting",
        "sentence": MAY_BE_STOPPED
        if ahead
        else _sentence(may_borrow=lent, takes=takes, fits=fits),
        "detail": f"{held}. {' '.join(said)}",
        "rules": [],
    }


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
