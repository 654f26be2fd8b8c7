"""B22: lines of a log to the browser, beside the API server's own stream of it; and what two hundred followers cost."""

import http.client
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.utils import timezone

from bench import rig, training
from bench.results import Better, Goal, Measured
from bench.training import Crew, job
from connectors.kubernetes import path
from tests import factories
from tests.services.process import wait_until
from workloads.models import ClusterObject, Run
from workloads.runs.logs.reading import MAX_FOLLOWED
from workloads.templates.pods import RUN_LABEL
from workloads.watching.kept import copy_of

GPUS, PAIRS = 6, 7
LEAST = 0.5
# A chatty program: as fast as the sandbox's API server writes, and one whose lines are told to two hundred people.
FAST, CALM = "0.0001", "0.05"
FIRST, SECONDS = 5_000, 3.0
FOLLOWERS, AT_ONCE, LINES, LONGEST = 200, 4, 60, 120
CHUNK = 65_536
POD = ("v1", "Pod")
PLACE = re.compile(rb"^id: (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Log:
    """Where the log of one run's pod is read, from the portal and from the API server."""

    run: Run
    pod: str


def measure(on: rig.Rig) -> Measured:
    """Seven readings of each, in turns, and two hundred followers."""
    return measured(on, pairs=PAIRS, followers=FOLLOWERS)


def measured(on: rig.Rig, *, pairs: int, followers: int) -> Measured:
    """Both read the same log for three seconds, line by line as it is written."""
    with training.crew(on, gpus=GPUS, people=-(-followers // MAX_FOLLOWED)) as crew:
        fast, calm = log_of(crew, "fast", every=FAST), log_of(crew, "calm", every=CALM)
        # One process: each has a reader of its own, and what is told of followers is told of one.
        crew.portal.web(workers=1)
        headers = [crew.headers(number) for number in range(len(crew.people))]
        both = [
            (
                rate(partial(portal_stream, crew, fast, headers[0])),
                rate(partial(raw_stream, crew, fast)),
            )
            for _ in range(pairs)
        ]
        before = streams(crew)
        readings = follow(
            crew, calm, [headers[number // MAX_FOLLOWED] for number in range(followers)]
        )
        cost = streams(crew) - before
    whole = [one for one in readings if one.is_whole]
    return Measured(
        what="lines of a log to the browser; peer: the API server's own stream",
        portal=[ours.lines_per_second for ours, _ in both],
        peer=[theirs.lines_per_second for _, theirs in both],
        unit="lines/s",
        better=Better.PORTAL_OVER_PEER,
        least=LEAST,
        others=[
            # Whoever is too slow for a program is told how many lines they missed: those are not in the pace.
            Goal(
                "times that lines were left out", sum(ours.missed for ours, _ in both)
            ),
            Goal(f"streams at the API server for {followers} followers", cost, most=1),
            Goal("of them had every line", len(whole), least=followers),
        ],
    )


def log_of(crew: Crew, name: str, *, every: str) -> Log:
    """A run whose pod writes a line each so many seconds, and of which the portal knows."""
    namespace = crew.tenancy.namespace
    manifest = job(
        name, namespace, annotations={"test/log-every": every}, labels={RUN_LABEL: name}
    )
    admin = crew.ground.world.admin()
    admin.create(manifest)
    found: list[dict[str, Any]] = []

    def runs() -> bool:
        found[:] = admin.list(POD, namespace, label_selector=f"{RUN_LABEL}={name}")
        return any(one["status"].get("phase") == "Running" for one in found)

    wait_until(runs, what=f"the pod of {name} to run", seconds=LONGEST)
    admin.close()
    now = timezone.now()
    run = factories.run(
        crew.tenancy,
        crew.people[0],
        name=name,
        state="running",
        created_at=now,
        sent_at=now,
        started_at=now,
        running_since=now,
    )
    [pod] = found
    body = copy_of({**pod, "kind": "Pod"})
    ClusterObject.objects.create(
        cluster=crew.cluster,
        kind="Pod",
        namespace=namespace,
        name=pod["metadata"]["name"],
        body=body,
    )
    return Log(run, pod["metadata"]["name"])


@dataclass
class Reading:
    """What somebody read of a log: how many lines, in which time, and their places where the stream tells those."""

    began: float = 0.0
    ended: float = 0.0
    lines: int = 0
    missed: int = 0
    places: list[bytes] = field(default_factory=list)
    is_enough: bool = False
    is_whole: bool = False

    @property
    def lines_per_second(self) -> float:
        """The pace of what was read."""
        return self.lines / (self.ended - self.began)


Stream = Callable[[], Any]


def rate(opened: Stream) -> Reading:
    """Read a stream for some seconds once its old lines are through; raises RuntimeError for one that ends."""
    found, passed = Reading(), 0
    with opened() as parts:
        for lines, missed, _ in parts:
            now = time.perf_counter()
            if not found.began:
                passed += lines
                found.began = now if passed >= FIRST else 0.0
                continue
            found.lines, found.missed, found.ended = (
                found.lines + lines,
                found.missed + missed,
                now,
            )
            if now - found.began >= SECONDS:
                return found
    raise RuntimeError("The log ended before it was measured.")


Part = tuple[int, int, bytes]


@contextmanager
def raw_stream(crew: Crew, log: Log) -> Iterator[Iterator[Part]]:
    """The log as the API server sends it, each line behind its time."""
    where = f"{path(POD, crew.tenancy.namespace, log.pod)}/log?follow=true&timestamps=true&tailLines=1000"
    context = ssl.create_default_context(
        cafile=str(crew.ground.world.folder / "ca.pem")
    )
    host = str(urlsplit(crew.ground.administrator.server).netloc)
    connection = http.client.HTTPSConnection(host, timeout=LONGEST, context=context)
    with _answer(connection, where, crew.ground.administrator.headers) as answer:
        yield ((part.count(b"\n"), 0, part) for part in _parts(answer))


@contextmanager
def portal_stream(
    crew: Crew, log: Log, headers: Mapping[str, str]
) -> Iterator[Iterator[Part]]:
    """The log as a browser gets it, each line an event with its place."""
    where = f"/api/v1/runs/{log.run.pk}/logs/?follow=true&pod={log.pod}"
    connection = http.client.HTTPConnection(
        str(urlsplit(crew.portal.url).netloc), timeout=LONGEST
    )
    with _answer(connection, where, headers) as answer:
        yield (counted(part) for part in events(answer))


def follow(
    crew: Crew, log: Log, people: Sequence[Mapping[str, str]]
) -> Sequence[Reading]:
    """Followers of one log at the same time, each with the headers of a person; what each read."""
    readings = [Reading() for _ in people]
    gate = Gate(threading.Semaphore(AT_ONCE), threading.Barrier(len(people)))
    threads = [
        threading.Thread(target=_follow, args=(crew, log, headers, found, gate))
        for headers, found in zip(people, readings, strict=True)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(LONGEST)
    return compared(readings)


def compared(readings: Sequence[Reading]) -> Sequence[Reading]:
    """The same, each whole when it has every line that anybody read between its first and its last, and enough."""
    everything = sorted({place for one in readings for place in one.places})
    for one in readings:
        first = everything.index(one.places[0]) if one.places else 0
        one.is_whole = (
            one.is_enough and one.places == everything[first : first + len(one.places)]
        )
    return readings


def streams(crew: Crew) -> int:
    """How many logs the API server has been asked for."""
    return int(crew.ground.world.switch("GET", "stats")["logs"])


@dataclass(frozen=True)
class Gate:
    """How followers come: a few at a time, and nobody leaves before the last one is there."""

    coming: threading.Semaphore
    everybody: threading.Barrier


def _follow(
    crew: Crew, log: Log, headers: Mapping[str, str], found: Reading, gate: Gate
) -> None:
    """Follow until everybody has begun, and for so many lines more."""
    with ExitStack() as stack:
        with gate.coming:
            parts = stack.enter_context(portal_stream(crew, log, headers))
            _, missed, part = next(parts)
        found.places, found.missed = PLACE.findall(part), missed
        gate.everybody.wait(LONGEST)
        enough = len(found.places) + LINES
        for _, missed, part in parts:
            found.places += PLACE.findall(part)
            found.missed += missed
            if len(found.places) >= enough:
                found.is_enough = True
                return


@contextmanager
def _answer(
    connection: http.client.HTTPConnection, where: str, headers: Mapping[str, str]
) -> Iterator[http.client.HTTPResponse]:
    try:
        connection.request("GET", where, headers=dict(headers))
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(
                f"{where} answered {answer.status}: {answer.read()[:300]!r}"
            )
        yield answer
    finally:
        connection.close()


def _parts(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    while part := answer.read1(CHUNK):
        yield part


def events(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """Whole events, however the network cut them."""
    left = b""
    for part in _parts(answer):
        whole, end, left = (left + part).rpartition(b"\n\n")
        if end:
            yield whole + end


def counted(text: bytes) -> Part:
    """How many lines are in whole events, how often some were left out, and the events."""
    return len(PLACE.findall(text)), text.count(b"event: missed"), text
