"""The logs of all workers of a run: each line behind the worker that wrote it, and followed all at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from queue import Empty, Queue
from threading import Thread
from time import monotonic, sleep
from typing import Any

from qm import following, words
from qm.calls import Portal
from qm.endings import Code, Ended
from qm.following import LOOK_EVERY, Key, Progress, Run

# So many logs the portal lets one person follow at once.
MOST_AT_ONCE = 10
# So many lines may be read and not yet written; then their readers wait, as the portal does for these.
MOST_AHEAD = 1_000
GLANCE = 0.1
# Why one of several workers has no log; the others are read all the same.
WITHOUT_LOG = ("log_not_started", "log_never_begun", "log_gone")
Pod = Mapping[str, Any]
# What a worker wrote, or a message about it.
Told = tuple[str, bool]


def label(pod: Pod, pods: Sequence[Pod]) -> str:
    """What stands before each line of a pod: its worker's number, or its name where no number tells it apart."""
    number = pod["number"]
    is_one = sum(one["number"] == number for one in pods) == 1
    return f"[worker {number}]" if number is not None and is_one else f"[{pod['name']}]"


def last_lines(
    portal: Portal, run: Run, *, attempt: int | None, tail: int | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The last lines of each pod with its label; raises Ended where no pod has any.

    Why one of several has none is said on stderr.
    """
    pods = following.pods_of(run, attempt)
    # Without a pod the portal says why there is no log.
    asked = [(one["name"], label(one, pods)) for one in pods] or [("", "")]
    refusals: list[Ended] = []
    for name, before in asked:
        is_alone = len(asked) == 1
        found = _lines_of(portal, run, name, attempt, tail=tail, is_alone=is_alone)
        if isinstance(found, Ended):
            refusals.append(found)
            words.note(f"{before} {found.message}")
        else:
            yield before, found
    if len(refusals) == len(asked):
        said = f"No worker of {run['name']} has a log."
        raise Ended(said, Code(refusals[0].exit_code))


def _lines_of(
    portal: Portal,
    run: Run,
    pod: str,
    attempt: int | None,
    *,
    tail: int | None,
    is_alone: bool,
) -> dict[str, Any] | Ended:
    """The last lines of a pod, or why it has none; raises Ended for that where it is the only one."""
    try:
        return dict(
            portal.get(
                f"runs/{run['id']}/logs/", pod=pod or None, attempt=attempt, tail=tail
            )
        )
    except Ended as refused:
        if is_alone or refused.problem not in WITHOUT_LOG:
            raise
        return refused


def follow(portal: Portal, run: Run, *, tail: int | None) -> Run:
    """Print what all workers write, as it comes, until the run is over.

    One that ends, or whose log cannot be read, ends no other; raises Ended for the latter once all others are read.
    """
    readers = Readers(portal, tail)
    with following.left_running(run):
        while True:
            readers.begin(run)
            if readers.have_more():
                readers.write()
            elif readers.have_failed(run):
                raise readers.failure()
            elif run["is_over"]:
                break
            else:
                readers.progress.tell(run)
                sleep(LOOK_EVERY)
            run = portal.get(f"runs/{run['id']}/", patient=True)
    readers.progress.clear()
    if not readers.of:
        words.note("There is no log.")
    if readers.failures:
        # Of a run that ended badly, that is what is told.
        following.ended(run)
        raise readers.failure()
    return run


class Worker:
    """Where a reader puts the lines of one worker, and what is said of it."""

    def __init__(self, before: str, told: Queue[Told]) -> None:
        self._before, self._told, self._said = before, told, ""

    def line(self, text: str) -> None:
        """A line of its log."""
        self._told.put((f"{self._before} {text}", True))

    def note(self, text: str) -> None:
        """A message about it."""
        self._told.put((f"{self._before} {text}", False))

    def say(self, text: str) -> None:
        """The same once, however often it is said."""
        if text != self._said:
            self._said = text
            self.note(text)

    def clear(self) -> None:
        """Nothing stands in the way of lines."""


class Reader(Thread):
    """One pod's log, read to its end; `is_read` is False where the pod has none yet."""

    def __init__(
        self, portal: Portal, run: Run, pod: str, worker: Worker, tail: int | None
    ) -> None:
        # Whoever interrupts does not wait for it.
        super().__init__(daemon=True)
        self._asked, self._tail, self.worker = (portal, run, pod), tail, worker
        # What breaks within is not begun anew.
        self.is_read = True
        self.failure: Ended | None = None

    def run(self) -> None:
        """Read it."""
        portal, run, pod = self._asked
        try:
            self.is_read = following.print_log(
                portal, run, pod, self.worker, tail=self._tail
            )
        except Ended as refused:
            self.failure = refused
        except Exception as error:
            said = f"Its log could not be read: {type(error).__name__}: {error}"
            self.failure = Ended(said, Code.AWAY)
        if self.failure is not None:
            self.worker.note(self.failure.message)


class Readers:
    """The readers of a run's pods, and what they have read and nobody has written yet."""

    def __init__(self, portal: Portal, tail: int | None) -> None:
        self.of: dict[Key, Reader] = {}
        self.progress = Progress()
        self._portal, self._tail = portal, tail
        self._told: Queue[Told] = Queue(MOST_AHEAD)
        self._numbers: set[object] = set()
        self._is_told_of_others = False

    @property
    def failures(self) -> list[Ended]:
        """Why logs could not be read to their end."""
        return [one.failure for one in self.of.values() if one.failure is not None]

    def have_failed(self, run: Run) -> bool:
        """Whether of none of the pods that are there now the log can be read."""
        pods = following.pods_of(run)
        there = [self.of.get(following.key_of(one, self.of)) for one in pods]
        return bool(there) and all(one is not None and one.failure for one in there)

    def failure(self) -> Ended:
        """The end of the command, where nothing but failures is left; each was told already."""
        found = self.failures
        said = f"{len(found)} of {len(self.of)} logs could not be read to their end."
        return Ended(said, Code(found[0].exit_code))

    def begin(self, run: Run) -> None:
        """Read every log that has begun since, as many at once as the portal allows."""
        pods = following.pods_of(run)
        due = [
            (key, one)
            for one in pods
            if (run["is_over"] or following.has_log(one))
            and not self._is_at_it(key := following.key_of(one, self.of))
        ]
        room = MOST_AT_ONCE - sum(one.is_alive() for one in self.of.values())
        for key, one in due[:room]:
            earlier = self.of.get(key)
            worker = earlier.worker if earlier else Worker(label(one, pods), self._told)
            # Of one that was restarted, everything is of interest.
            tail = None if one["number"] in self._numbers else self._tail
            self.of[key] = Reader(self._portal.twin(), run, one["name"], worker, tail)
            self.of[key].start()
        self._numbers |= {one["number"] for _, one in due[:room]}
        left = 0 if run["is_over"] else len(due[room:])
        if left and not self._is_told_of_others:
            self._is_told_of_others = True
            words.note(
                f"The portal lets you follow {MOST_AT_ONCE} logs at once: {left} more follow as these end. "
                f"For the last lines of one of them: qm logs {run['id']} --worker N"
            )

    def _is_at_it(self, key: Key) -> bool:
        """Whether a log is being read, or was read or failed; one that had not begun is asked for again."""
        found = self.of.get(key)
        return found is not None and (
            found.is_alive() or found.is_read or found.failure is not None
        )

    def have_more(self) -> bool:
        """Whether anything is being read, or is to be written; in this order, for a reader writes before it ends."""
        return any(one.is_alive() for one in self.of.values()) or not self._told.empty()

    def write(self) -> None:
        """Write what they read, until it is time to look at the run again or there is no more."""
        self.progress.clear()
        until = monotonic() + LOOK_EVERY
        while monotonic() < until:
            told = self._next()
            if told is not None:
                (self.progress.line if told[1] else self.progress.note)(told[0])
            elif not self.have_more():
                return

    def _next(self) -> Told | None:
        try:
            return self._told.get(timeout=GLANCE)
        except Empty:
            return None
