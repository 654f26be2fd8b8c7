"""The page of a cluster's queues."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.current_user import visitor
from accounts.models import Team
from fleet.models import Cluster
from fleet.names import profile_of
from provisioning.desired.priorities import title_of
from ui.amounts import gpus, jobs, span
from workloads.own_work import OwnWork, Place, own_link, own_work_in
from workloads.queue_board import ClusterQueues, Others, TeamLine, queues_of_cluster
from workloads.queueing import Holder, QueueLine, Waiter
from workloads.reasons.words import gpu_words

# The oldest of a line and the first to stop are what people look for; the API gives all.
MOST_JOBS = 50


@dataclass(frozen=True, kw_only=True)
class JobLine:
    """A job that has its GPUs or waits, with these and its priority in words.

    It is called as people named the run or notebook that it is, with `sub` for what it is on the cluster.
    """

    job: Holder | Waiter
    name: str
    sub: str
    href: str
    gpus: str
    priority: str
    place: "Standing"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a job is, as a badge with its tone, and what is to be said beside it."""

    tone: str
    word: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Block:
    """The line of a team: what it holds, and its jobs: who runs, then who waits."""

    team: Team
    namespace: str
    line: QueueLine
    holds: Sequence[str]
    oldest: str
    stops: str
    jobs: Sequence[JobLine]
    more: int


@require_safe
def queue(request: HttpRequest, name: str) -> HttpResponse:
    """Who runs and who waits on a cluster, with the names of the person's own teams; renews itself."""
    user, now = visitor(request), timezone.now()
    cluster = get_object_or_404(Cluster, name=name)
    found = queues_of_cluster(cluster, by=user, now=now)
    titles = {one.name: one.kind for one in found.flavors}
    sliced = {one.name for one in found.flavors if profile_of(one.resource)}
    silence, own = found.seen.silence(now), _own_work(found)
    # What fits in a maintenance does not start in it.
    rooms = () if cluster.maintenance_now(now) else found.rooms
    context = {
        "cluster": cluster,
        "announced": cluster.announces(now),
        "rooms": [
            {
                "title": titles[one.flavor],
                "room": one,
                "unit": "slices" if one.flavor in sliced else "GPUs",
            }
            for one in rooms
        ],
        "teams": [_block(one, titles, sliced, own, now) for one in found.teams],
        "others": _others(found.others, now, has_slices=bool(sliced)),
        "silent": f"{silence}: what you see is from then." if silence else "",
        "is_unread": not found.seen.is_known and not silence,
    }
    return render(request, "workloads/queue.html", context)


def _own_work(found: ClusterQueues) -> Mapping[Place, OwnWork]:
    """What the portal started of the jobs that are shown."""
    keys = [
        each.key
        for one in found.teams
        for those in (one.line.running, one.line.waiting)
        for each in those[:MOST_JOBS]
    ]
    tenancies = [one.tenancy for one in found.teams]
    return own_work_in(tenancies, {found.seen.cluster.name: keys})


def _job(
    job: Holder | Waiter,
    takes: str,
    place: tuple[str, str],
    own: Mapping[Place, OwnWork],
) -> JobLine:
    started = own.get((*place, job.key.name))
    return JobLine(
        job=job,
        name=started.title if started else job.key.name,
        sub=str(job.key) if started else job.key.kind,
        href=own_link(run=started.run, notebook=started.notebook) if started else "",
        gpus=takes,
        priority=title_of(job.priority),
        place=holds(job) if isinstance(job, Holder) else waits(job),
    )


def holds(job: Holder) -> Standing:
    """Whether a job that was let in has its GPUs: its pods may still have to find a node."""
    if job.is_placed:
        tone, word = "good", "Has its GPUs"
    elif job.on_nodes:
        tone, word = "waiting", f"Let in, {job.on_nodes} of {job.pods} pods on a node"
    else:
        tone, word = "waiting", "Let in, on no node yet"
    if not job.may_be_stopped:
        return Standing(tone=tone, word=word)
    return Standing(tone="ending", word=f"{word}, may be stopped")


def waits(job: Waiter) -> Standing:
    """The place of a job in the line, or that it is in none."""
    if job.is_gated:
        return Standing(
            tone="waiting", word="Not in line", note="Somebody has to approve it."
        )
    note = (
        "It does not start as it is."
        if job.position is None
        else f"Number {job.position}"
    )
    if not job.fits:
        return Standing(tone="ending", word="Larger than its queue", note=note)
    if job.position is None:
        return Standing(tone="ending", word="Not in line", note=note)
    return Standing(tone="waiting", word=f"Waits, number {job.position}")


def _block(
    one: TeamLine,
    titles: dict[str, str],
    sliced: Collection[str],
    own: Mapping[Place, OwnWork],
    now: datetime,
) -> Block:
    line, place = one.line, (one.tenancy.cluster.name, one.namespace)
    return Block(
        team=one.team,
        namespace=one.namespace,
        line=line,
        holds=[
            f"{titles.get(share.flavor, share.flavor)}: "
            f"{share.held if share.flavor in sliced else gpus(share.held)} in use, {share.guaranteed} guaranteed"
            + (
                f", {borrowed} borrowed"
                if (borrowed := share.borrowed - share.over_quota)
                else ""
            )
            + (f", {share.over_quota} over quota" if share.over_quota else "")
            for share in line.shares
        ],
        oldest=f"The oldest has waited {span(now - line.oldest)}."
        if line.oldest
        else "",
        stops=stops_of(line),
        jobs=[
            *(
                _job(each, _gpus(each, titles), place, own)
                for each in line.running[:MOST_JOBS]
            ),
            *(
                _job(each, gpu_words(each.gpus, each.slices) or "none", place, own)
                for each in line.waiting[:MOST_JOBS]
            ),
        ],
        more=max(len(line.running) - MOST_JOBS, 0)
        + max(len(line.waiting) - MOST_JOBS, 0),
    )


def stops_of(line: QueueLine) -> str:
    """Which jobs run beyond what is guaranteed, and what may end them; empty where none does."""
    stops = sum(each.may_be_stopped for each in line.running)
    if not stops:
        return ""
    if line.borrowed > sum(one.over_quota for one in line.shares):
        return f"{jobs(stops)} would stop if other teams called back what is borrowed."
    return f"{jobs(stops)} {'runs' if stops == 1 else 'run'} on GPUs that are no longer held."


def _gpus(one: Holder, titles: dict[str, str]) -> str:
    return ", ".join(
        gpus(count, titles.get(flavor, flavor))
        for flavor, count in sorted(one.gpus.items())
    )


def _others(found: Others, now: datetime, *, has_slices: bool) -> str:
    if not found.queues:
        return ""

    def counted(count: int) -> str:
        # Sums of both where the cluster has both.
        both = "1 GPU or slice" if count == 1 else f"{count:,} GPUs and slices"
        return both if has_slices else gpus(count)

    waits = (
        "no job waits"
        if not found.waiting
        else f"{jobs(found.waiting)} {_wait(found.waiting)}"
    )
    wanted = (
        f" for {counted(found.wanted)}, the oldest for {span(now - found.oldest)}"
        if found.oldest
        else ""
    )
    borrowed = f" ({found.borrowed} borrowed)" if found.borrowed else ""
    return f"Other teams: {counted(found.held)} in use{borrowed}, {waits}{wanted}."


def _wait(count: int) -> str:
    return "waits" if count == 1 else "wait"
