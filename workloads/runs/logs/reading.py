"""Logs of runs: one stream to the cluster for all who follow a pod here, and lines that bear their place.

A line's place is its time as the node wrote it, so that whoever was cut off goes on behind the last line they have:
after another worker answers, after a restart of the portal, and after the cluster's connection broke.
"""

import asyncio
import re
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

import structlog
from asgiref.sync import sync_to_async
from django.db import connections

from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.kubernetes import Cluster as Client
from connectors.kubernetes import Manifest
from provisioning.pods import is_over
from web.refusals import Away, Conflict
from workloads.runs.logs.rights import Guard, Right, guard

logger = structlog.get_logger(__name__)
MAX_KEPT = 5_000
# What somebody sees of a log that was written before they came.
TAIL = 1_000
PAUSE = 1.0
# How long a reader goes on without anybody, because a page that is loaded again comes back in a moment.
LINGER = 5.0
# Followers are woken at most so often, in seconds: a chatty program would else wake them for each line.
BREATH = 0.05
PING = 15.0
LONGEST = 600.0
MAX_FOLLOWED, MAX_READERS = 10, 200
# Who follows too much already asks again so late, in milliseconds.
REFUSED_RETRY = 15_000
# What a node says of a container that has not begun, and a server of a pod that is on no node.
NOT_STARTED = re.compile("waiting to start|does not have a host assigned")
# A node writes RFC 3339 with nanoseconds, in its own time zone. What has no time is its complaint, and no line of the
# program.
STAMP = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)((?:\.\d{1,9})?)(Z|[+-]\d\d:\d\d)", re.ASCII
)
PLACE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z\.\d{1,9}", re.ASCII)
POD = ("v1", "Pod")
GONE = "The pod is gone, and its log with it."
# To whoever followed it: its last lines may be kept.
POD_GONE = "The pod is gone."
KEPT = (
    "The pod is gone. These are the last lines of its log, which the portal has kept."
)
SILENT = "The cluster does not answer. The log goes on as soon as it does."
NEVER_STARTED = "The pod ended before its program began."


@dataclass(frozen=True)
class Line:
    """One line: `place` orders the lines of a pod, and begins with the time that the node put before it."""

    place: str
    text: str


@dataclass(frozen=True)
class Ended:
    """Why no more lines come: the container has ended, or the reason that the cluster gave."""

    message: str = ""


def lines_in(raw: Iterable[str], *, after: str = "") -> Iterable[Line]:
    """Lines with their places, those up to a place left out; two of one nanosecond are told apart by their number."""
    previous, number = "", 0
    for one in raw:
        if not one:
            continue
        first, _, said = one.partition(" ")
        at = _utc(first)
        if not at:
            at, said = previous or "0001-01-01T00:00:00Z", one
        number = number + 1 if at == previous else 0
        previous = at
        place = f"{at}.{number}"
        if not after or _key(place) > _key(after):
            yield Line(place, said)


def since_of(place: str) -> str:
    """The time from which the cluster is asked again: whole seconds are all it takes, what comes twice is left out."""
    at = _key(place)[0]
    return f"{at[:19]}Z" if at else ""


def _utc(stamp: str) -> str:
    """The time of a line in UTC, with all its nanoseconds; empty for what is none."""
    found = STAMP.fullmatch(stamp)
    if found is None or found[3] == "Z":
        return stamp if found else ""
    seconds = datetime.fromisoformat(f"{found[1]}{found[3]}").astimezone(UTC)
    return f"{seconds:%Y-%m-%dT%H:%M:%S}{found[2]}Z"


def _key(place: str) -> tuple[str, int]:
    """Places in order: "2026-11-23T10:00:00.123456789Z.2" is behind the same time's 1."""
    at, _, number = place.rpartition(".")
    seconds, _, fraction = at.rstrip("Z").partition(".")
    return (
        (f"{seconds}.{fraction:0<9}", int(number))
        if at and number.isdigit()
        else (place, 0)
    )


def _up_to(lines: Iterable[Line], place: str) -> int:
    """How many of these lines are not behind a place; none where it is empty."""
    return sum(_key(one.place) <= _key(place) for one in lines) if place else 0


def _is_over(pod: Manifest) -> bool:
    """Whether nothing is written in a pod any more: it has ended, or all its containers have."""
    status = pod.get("status", {})
    states = [one.get("state", {}) for one in status.get("containerStatuses") or ()]
    return is_over(pod) or (bool(states) and all("terminated" in one for one in states))


@dataclass(eq=False)
class Follower:
    """Somebody who reads; `event` is set when there is more. `position` counts the lines that were read for the pod.

    `after` is the place behind which it goes on, until a line behind it was read.
    """

    user_id: int
    loop: asyncio.AbstractEventLoop
    after: str = ""
    event: asyncio.Event = field(default_factory=asyncio.Event)
    position: int = 0
    # Whether it may read no more.
    is_shut: bool = False

    def wake(self) -> None:
        """Say that there is more, from any thread."""
        try:
            self.loop.call_soon_threadsafe(self.event.set)
        except RuntimeError:
            logger.debug("the loop of a follower has ended")

    def shut(self) -> None:
        """Let it read no more, from any thread."""
        self.is_shut = True
        self.wake()


class Reader:
    """The one that reads a pod's log in this process, in a thread of its own, while anybody follows."""

    def __init__(
        self, client: Callable[[], Client], namespace: str, pod: str, *, tail: int
    ) -> None:
        self._client, self._namespace, self._pod, self._tail = (
            client,
            namespace,
            pod,
            tail,
        )
        self._lock = threading.Lock()
        self._lines: deque[Line] = deque(maxlen=MAX_KEPT)
        self._count = 0
        self._followers: set[Follower] = set()
        # Those that have read everything: waking the others would only cost time.
        self._waiting: set[Follower] = set()
        self._over, self._joined = threading.Event(), threading.Event()
        # Whether the pod was over when the last read of its log began.
        self._was_over = False
        # Why nothing can come now; empty while the cluster answers.
        self.silence = ""
        self.ended: Ended | None = None

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._run, name=f"log {self._pod}", daemon=True).start()

    def join(self, follower: Follower) -> None:
        """Follow from the line behind the place that they have; from the oldest kept one where there is none."""
        with self._lock:
            known = _up_to(self._lines, follower.after)
            follower.position = self._count - len(self._lines) + known
            self._followers.add(follower)
            self._joined.set()

    def leave(self, follower: Follower) -> None:
        """Follow no more."""
        with self._lock:
            self._followers.discard(follower)
            self._waiting.discard(follower)

    def read(self, follower: Follower) -> tuple[Sequence[Line], int | None]:
        """What a follower has not read yet, and how many lines it missed because it was too slow.

        None where nobody knows how many: what follows the place with which it came is not kept any more.
        """
        with self._lock:
            follower.event.clear()
            first = self._count - len(self._lines)
            missed: int | None = max(0, first - follower.position)
            found = [*islice(self._lines, max(0, follower.position - first), None)]
            follower.position = self._count
            if follower.after and self._lines:
                if _key(self._lines[0].place) > _key(follower.after):
                    missed = None
                # A reader that began with this follower reads once more what it has.
                found = found[_up_to(found, follower.after) :]
                follower.after = "" if found else follower.after
            if not found and self.ended is None:
                self._waiting.add(follower)
            return found, missed

    @property
    def followers(self) -> Sequence[Follower]:
        """Those who follow now."""
        with self._lock:
            return [*self._followers]

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                self._read_on()
                self._joined.clear()
                if (
                    not self.followers
                    and not self._joined.wait(LINGER)
                    and readers.forget_unfollowed(self)
                ):
                    self._end("")
        finally:
            self._end("")
            readers.forget(self)
            # This thread belongs to no request, so nobody else would give its connection back.
            connections.close_all()

    def _read_on(self) -> None:
        """Read until the log ends, its reader is not needed any more, or the connection breaks."""
        opened = False

        def heard() -> None:
            nonlocal opened
            opened = True
            self._tell("")

        try:
            self._read_once(heard)
        except TemporaryError as error:
            # A pause of the program and a break of the connection look alike: both go on behind the last line.
            self._tell("" if opened else SILENT)
            logger.info(
                "log is asked for again", pod=self._pod, error=error.message[:100]
            )
            self._over.wait(PAUSE)
        except ConnectorError as error:
            self._end(
                POD_GONE if getattr(error, "code", "") == "not_found" else error.message
            )

    def _read_once(self, heard: Callable[[], None]) -> None:
        try:
            is_read = self._stream(heard)
        except PermanentError as error:
            if not NOT_STARTED.search(error.message):
                raise
            heard()
            self._wait_for_start()
            return
        if is_read:
            self._end_with_its_pod()

    def _wait_for_start(self) -> None:
        """Look again later, unless its container never begins: it says the same for ever.

        A short program runs and ends between a read and this look, so what is over is read once more.
        """
        pod = self._pod_now()
        if pod is None:
            self._end(POD_GONE)
        elif not is_over(pod):
            self._over.wait(PAUSE)
        elif self._was_over:
            self._end(NEVER_STARTED)
        else:
            self._was_over = True

    def _end_with_its_pod(self) -> None:
        """End what was read to its end; a pod on no node has an empty log, and a server that restarts ends it early.

        Only a read that began after the pod was over has seen its last line.
        """
        pod = self._pod_now()
        if pod is None:
            self._end(POD_GONE)
        elif not _is_over(pod):
            self._over.wait(PAUSE)
        elif self._was_over:
            self._end("")
        else:
            self._was_over = True

    def _pod_now(self) -> Manifest | None:
        """The pod as it is on the cluster; None when it is gone. Raises TemporaryError as any call does."""
        return self._client().get(POD, self._pod, self._namespace)

    def _stream(self, heard: Callable[[], None]) -> bool:
        """Take lines until there are no more; False when it stopped because nobody follows."""
        last = self._lines[-1].place if self._lines else ""
        raw = self._client().log(
            self._namespace,
            self._pod,
            since=since_of(last),
            tail=None if last else self._tail,
            follow=True,
            opened=heard,
        )
        with closing(raw):
            for line in lines_in(raw, after=last):
                with self._lock:
                    self._lines.append(line)
                    self._count += 1
                    waiting, self._waiting = self._waiting, set()
                    is_followed = bool(self._followers)
                for one in waiting:
                    one.wake()
                if not is_followed:
                    return False
        return True

    def _tell(self, silence: str) -> None:
        """Let those who follow know that the cluster is silent, or answers again."""
        if silence == self.silence:
            return
        self.silence = silence
        for one in self.followers:
            one.wake()

    def _end(self, message: str) -> None:
        with self._lock:
            self.ended = self.ended or Ended(message)
            self._over.set()
            followers = [*self._followers]
        for one in followers:
            one.wake()


class Readers:
    """The readers of this process, one for each pod that somebody follows."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_pod: dict[tuple[str, str, str], Reader] = {}

    def join(self, source: "Source", follower: Follower) -> Reader:
        """Follow a pod's log; raises Conflict for who follows too many, or where too many are read."""
        with self._lock:
            theirs = sum(
                one.user_id == follower.user_id
                for each in self._by_pod.values()
                for one in each.followers
            )
            if theirs >= MAX_FOLLOWED:
                raise Conflict(
                    f"You follow {MAX_FOLLOWED} logs already. Close some first.",
                    code="too_many_logs",
                )
            reader = self._by_pod.get(source.key)
            if reader is None or reader.ended is not None:
                if len(self._by_pod) >= MAX_READERS:
                    raise Conflict(
                        "Too many logs are followed now. Try again later.",
                        code="too_many_logs",
                    )
                # Whoever comes back finds what was written meanwhile.
                tail = MAX_KEPT if follower.after else TAIL
                reader = Reader(source.client, source.namespace, source.pod, tail=tail)
                self._by_pod[source.key] = reader
                reader.join(follower)
                reader.start()
            else:
                reader.join(follower)
            return reader

    def forget_unfollowed(self, reader: Reader) -> bool:
        """Forget a reader that nobody follows, so that nobody joins it as it ends; False where somebody does."""
        with self._lock:
            if reader.followers:
                return False
            self._forget(reader)
            return True

    def forget(self, reader: Reader) -> None:
        """A reader that has ended is asked no more."""
        with self._lock:
            self._forget(reader)

    def _forget(self, reader: Reader) -> None:
        for key in [key for key, one in self._by_pod.items() if one is reader]:
            del self._by_pod[key]


readers = Readers()


@dataclass(frozen=True)
class Source:
    """A pod of a cluster, whether it has ended, and how its log is asked for."""

    cluster: str
    namespace: str
    pod: str
    client: Callable[[], Client]
    is_over: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all others."""
        return self.cluster, self.namespace, self.pod


@dataclass(frozen=True)
class KeptSource:
    """What is kept of the log of a pod that is gone, oldest line first."""

    pod: str
    lines: Sequence[Line]

    def read(self, *, tail: int = MAX_KEPT, after: str = "") -> Sequence[Line]:
        """The last lines, or those behind a place."""
        return self.lines[_up_to(self.lines, after) :] if after else self.lines[-tail:]

    def frames(self, *, tail: int = MAX_KEPT, after: str = "") -> str:
        """The same as a whole stream of server-sent events, whose end says that there is no more."""
        lines = "".join(map(frame, self.read(tail=tail, after=after)))
        return f"{lines}event: end\ndata: {KEPT}\n\n"


class Frames:
    """A log as server-sent events: `id` is a line's place, `data` its text; `event: end` comes last, with the reason.

    `event: waiting` says why nothing comes while the cluster is silent, and `event: live` that it answers again.
    A stream lasts ten minutes at most, and seconds for whoever may read no more; whoever reads it asks again with the
    last id, and is judged anew.
    """

    def __init__(
        self,
        source: Source,
        *,
        right: Right,
        after: str = "",
        begun: Sequence[Line] = (),
        guard: Guard = guard,
    ) -> None:
        """Go on behind a place, or tell the lines that were read to begin with, and go on behind them."""
        self._source, self._right, self._begun = source, right, begun
        self._after = begun[-1].place if begun else after
        self._guard = guard

    async def __aiter__(self) -> AsyncIterator[str]:
        """Send what was written, then what comes."""
        # A stream lasts for minutes. Django would keep the request's connection to the database until its end, so that
        # as many followers as the process has connections would leave none to anybody else.
        await sync_to_async(connections.close_all)()
        loop = asyncio.get_running_loop()
        until = loop.time() + LONGEST
        user_id = self._right.credential.user_id
        follower = Follower(user_id, loop, after=self._after)
        try:
            # Not in a thread: one whose wait is cancelled would join for somebody who has gone.
            reader = readers.join(self._source, follower)
        except Conflict as refusal:
            yield f"retry: {REFUSED_RETRY}\n\nevent: refused\ndata: {refusal.message}\n\n"
            return
        try:
            with self._guard.over(self._right, follower.shut):
                yield "".join(["retry: 1000\n\n", *map(frame, self._begun)])
                told = ""
                while loop.time() < until and not follower.is_shut:
                    ended = reader.ended
                    found, missed = reader.read(follower)
                    if told != (silence := reader.silence):
                        told = silence
                        yield f"event: {'waiting' if told else 'live'}\ndata: {told}\n\n"
                    if missed != 0:
                        yield f"event: missed\ndata: {'some' if missed is None else missed}\n\n"
                    if found:
                        yield "".join(map(frame, found))
                        await asyncio.sleep(BREATH)
                    elif ended is not None:
                        yield f"event: end\ndata: {ended.message}\n\n"
                        return
                    else:
                        try:
                            await asyncio.wait_for(follower.event.wait(), PING)
                        except TimeoutError:
                            yield ": still here\n\n"
        finally:
            reader.leave(follower)


def frame(line: Line) -> str:
    """A line as one event. Of a progress bar, which writes over itself, what a terminal would show in the end."""
    text = line.text.rstrip("\r").rpartition("\r")[2]
    return f"id: {line.place}\ndata: {text}\n\n"


def read_log(
    source: Source | KeptSource, *, tail: int, after: str = ""
) -> Sequence[Line]:
    """The last lines of a pod's log now, or those behind a place; raises Conflict where there is none, and why."""
    if isinstance(source, KeptSource):
        return source.read(tail=tail, after=after)
    try:
        raw = source.client().log(
            source.namespace,
            source.pod,
            since=since_of(after),
            tail=None if after else tail,
        )
        with closing(raw):
            return [*islice(lines_in(raw, after=after), MAX_KEPT)]
    except TemporaryError as error:
        raise Away(
            f"The cluster does not answer: {error.message[:200]}", code="cluster_away"
        ) from error
    except ConnectorError as error:
        if NOT_STARTED.search(error.message):
            if source.is_over:
                raise Conflict(NEVER_STARTED, code="log_never_begun") from error
            raise Conflict(
                "The pod has not started yet.", code="log_not_started"
            ) from error
        if getattr(error, "code", "") != "not_found":
            raise Away(
                f"The cluster refuses its log: {error.message[:200]}",
                code="cluster_away",
            ) from error
        raise Conflict(GONE, code="log_gone") from error
