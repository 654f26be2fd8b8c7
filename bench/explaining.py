"""B23: why each of 10,000 Workloads waits, from the portal's copies to the sentence; beside a bare look at them."""

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from bench import rig
from bench.results import Better, Goal, Measured
from tests.workloads.known import objects
from workloads.explaining import UNKNOWN
from workloads.grouping import pieces_of
from workloads.listing import Around, Work, queue_seen, work_of
from workloads.observed import Cluster, Nodes, Queue
from workloads.queueing import by_queue
from workloads.reading.queues import team_queue_of
from workloads.reading.values import part, text
from workloads.reading.work import read_once, workload_of
from workloads.watching.kept import copy_of

WORKLOADS, TEAMS, PAIRS = 10_000, 50, 5
MOST_SECONDS = 1
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
RECORDINGS = Path(__file__).resolve().parent.parent / "tests" / "recordings"
Copy = dict[str, Any]


@dataclass(frozen=True)
class Team:
    """The copies of one team's namespace: its queues and what waits in them."""

    queue: Copy
    team_queue: Copy
    workloads: Sequence[Copy]


def measure(on: rig.Rig) -> Measured:
    """10,000 Workloads of 50 teams in five turns."""
    return measured(count=WORKLOADS, teams=TEAMS, pairs=PAIRS)


def measured(*, count: int, teams: int, pairs: int) -> Measured:
    """Both over the same copies, in turns; what counts is the time of the processor."""
    waiting = teams_of(count, teams)
    everything = [one for team in waiting for one in team.workloads]
    found = explain_all(waiting)
    codes = Counter(one.why.code for one in found)
    if len(found) != count:
        raise RuntimeError(f"{len(found)} of {count} Workloads were explained.")
    both = [
        (_timed(partial(explain_all, waiting)), _timed(partial(look, everything)))
        for _ in range(pairs)
    ]
    return Measured(
        what=f"why {count:,} Workloads wait, one; peer: a bare look at what Kueue says of it",
        portal=[1e6 * portal / count for portal, _ in both],
        peer=[1e6 * bare / count for _, bare in both],
        unit="µs",
        better=Better.PORTAL_OVER_PEER,
        others=[
            Goal(
                f"s of processor for {count:,}",
                statistics.median(each for each, _ in both),
                most=MOST_SECONDS,
            ),
            Goal("not known why", codes[UNKNOWN], most=0),
            # Of one kind they would be explained faster than any that a cluster has.
            Goal("different reasons", len(codes), least=15),
        ],
    )


def explain_all(teams: Sequence[Team]) -> list[Work]:
    """What the page of each team's work says of all that waits there."""
    return [one for team in teams for one in explain_team(team)]


def explain_team(team: Team) -> Iterator[Work]:
    """The lines of one team, read from its copies as the page does that (workloads.board)."""
    read = read_once()
    in_queue = by_queue(team.workloads, [team.team_queue], read=read)
    name = text(part(team.queue, "metadata"), "name")
    own = team_queue_of(team.team_queue)
    around = Around(
        cluster="training",
        queues={
            each: queue_seen(team.queue if each == name else None, all_of, read=read)
            for each, all_of in in_queue.items()
        },
        team_queues={
            (text(part(team.team_queue, "metadata"), "namespace"), own.name): own
        },
        nodes=Nodes(),
        known=_known,
    )
    for piece in pieces_of(team.workloads, (), (), read=read):
        yield work_of(piece, around, {}, now=NOW)


def look(workloads: Sequence[Copy]) -> list[str]:
    """The condition that says why, with its time, as a terminal would show it; nothing is made of it."""
    found = []
    for one in workloads:
        conditions = one["status"].get("conditions", ())
        said = next(
            (each for each in conditions if each["type"] == "QuotaReserved"), None
        )
        since = datetime.fromisoformat(said["lastTransitionTime"]) if said else NOW
        found.append(
            f"{one['metadata']['name']} {NOW - since} {said['message'] if said else ''}"
        )
    return found


def teams_of(count: int, teams: int) -> list[Team]:
    """So many Workloads, each a copy of one that was recorded as it waited, shared out among teams."""
    patterns = list(recorded())
    queue, team_queue = recorded_queues()
    made = []
    for number in range(teams):
        namespace = f"qm-team-{number}-main"
        share = range(number, count, teams)
        made.append(
            Team(
                named(queue, namespace, ""),
                leading_to(named(team_queue, "default", namespace), namespace),
                [
                    renamed(patterns[each % len(patterns)], each, namespace)
                    for each in share
                ],
            )
        )
    return made


def recorded() -> Iterator[Copy]:
    """The Workloads of the recordings that waited, as the portal copies them."""
    return map(copy_of, recorded_waits())


def recorded_waits() -> Iterator[Copy]:
    """The Workloads of the recordings that waited in a queue, one for each thing that Kueue said of one."""
    known = set[tuple[Any, ...]]()
    for found in _all_recorded("Workload"):
        workload = workload_of(found)
        said = workload.conditions.get("QuotaReserved")
        is_waiting = (
            workload.is_active
            and not workload.holds("QuotaReserved")
            and not workload.holds("Finished")
        )
        key = (said.reason, said.message) if said else ()
        if is_waiting and key not in known:
            known.add(key)
            yield found


def recorded_queues() -> tuple[Copy, Copy]:
    """A ClusterQueue with a quota of GPUs, and a LocalQueue, as the portal copies them."""
    queue = next(
        one
        for one in _all_recorded("ClusterQueue")
        if one["spec"].get("resourceGroups")
    )
    return copy_of(queue), copy_of(next(_all_recorded("LocalQueue")))


def _all_recorded(kind: str) -> Iterator[Copy]:
    for path in sorted(RECORDINGS.glob("*.json")):
        for step in json.loads(path.read_text()):
            yield from (
                dict(one) for one in objects(step["response"].get("body"), kind)
            )


def named(found: Copy, name: str, namespace: str) -> Copy:
    """The same object under another name."""
    metadata = {**found["metadata"], "name": name} | (
        {"namespace": namespace} if namespace else {}
    )
    return {**found, "metadata": metadata}


def leading_to(team_queue: Copy, queue: str) -> Copy:
    """A LocalQueue of this ClusterQueue."""
    return {**team_queue, "spec": {**team_queue["spec"], "clusterQueue": queue}}


def renamed(pattern: Copy, number: int, namespace: str) -> Copy:
    """A Workload of its own with what was recorded of another, in a line that grew for hours."""
    copy: Copy = json.loads(json.dumps(pattern))
    metadata, created = copy["metadata"], NOW - timedelta(seconds=number + 3_600)
    metadata |= {
        "name": f"job-train-{number:05}-1a2b3",
        "namespace": namespace,
        "uid": f"w-{number}",
        "creationTimestamp": f"{created:%Y-%m-%dT%H:%M:%SZ}",
    }
    for owner in metadata.get("ownerReferences", ()):
        owner |= {"name": f"train-{number:05}", "uid": f"j-{number}"}
    return copy


def _known(queue: Queue | None) -> Mapping[str, Any]:
    return {
        "titles": {"a100": "A100", "h100": "H100"},
        "cluster": Cluster(title="Training"),
    }


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
