"""Waiting for a run, and following its log from its first line to its last, through every break."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import sleep
from typing import Any, Protocol

import click

from qm import words
from qm.calls import CLUSTER_AWAY, PATIENT_ATTEMPTS, Portal
from qm.endings import Code, Ended

LOOK_EVERY = 2.0
LONGEST_PAUSE = 30.0
# A pod of which nothing has started yet has no log: its connection would only stand open.
UNSTARTED = ("Waiting", "Starting")
GONE = "Gone"
Run = Mapping[str, Any]
# A pod that was made anew may bear the name of the one before it.
Key = tuple[str, Any]


class Output(Protocol):
    """Where a log goes, with what is said of it."""

    def line(self, text: str) -> None:
        """A line of the log."""

    def note(self, text: str) -> None:
        """A message for people."""

    def say(self, text: str) -> None:
        """Where it is, unless that was said."""

    def clear(self) -> None:
        """Take what was said away, before lines are written."""


class Progress:
    """One line on stderr that tells where a run is, written when it changes; in a terminal over itself.

    The lines of one log go to stdout as they are.
    """

    def __init__(self) -> None:
        self._said = ""
        self._over = sys.stderr.isatty()

    def tell(self, run: Run) -> None:
        """Say where it is, unless that was said."""
        self.say(words.progress(run))

    def say(self, text: str) -> None:
        """Write a line, unless it stands there."""
        if text == self._said:
            return
        self._said = text
        if self._over:
            click.echo(
                f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}",
                err=True,
                nl=False,
            )
        else:
            words.note(text)

    def line(self, text: str) -> None:
        """Write a line of the log."""
        click.echo(text)

    def note(self, text: str) -> None:
        """Write a message beside it."""
        words.note(text)

    def clear(self) -> None:
        """Take the line away, before others are written."""
        if self._said and self._over:
            click.echo("\r\x1b[K", err=True, nl=False)
        self._said = ""


def pods_of(run: Run, attempt: int | None = None) -> list[Mapping[str, Any]]:
    """A run's pods; of one that is over and has none, those of whose logs something is kept of its last attempt.

    With an attempt they are those of which something is kept of it. What is kept of others was written before the run
    was preempted: whoever follows it has read that.
    """
    if attempt is None and (run["pods"] or not run["is_over"]):
        return list(run["pods"])
    kept = _kept_pods(run)
    if attempt is None:
        attempt = max((one["attempt"] or 0 for one in kept), default=0)
    return [one for one in kept if (one["attempt"] or 0) == attempt]


def _kept_pods(run: Run) -> list[Mapping[str, Any]]:
    """The pods of whose logs something is kept, of all attempts."""
    gone = {"word": GONE, "started_at": None}
    return [{**gone, **one} for one in run["kept_logs"]]


def key_of(pod: Mapping[str, Any], known: Iterable[Key]) -> Key:
    """A pod's own name for its log; what is kept of one that is gone is the log that is known by then."""
    name = str(pod["name"])
    earlier = [one for one in known if one[0] == name] if pod["word"] == GONE else []
    return earlier[-1] if earlier else (name, pod["started_at"])


@dataclass(frozen=True)
class Wanted:
    """Which of a run's pods is meant; its first one unless a name or a number is given."""

    pod: str = ""
    worker: int | None = None

    def among(self, run: Run, attempt: int | None = None) -> list[Mapping[str, Any]]:
        """The pods that are meant, those of earlier attempts first."""
        pods = pods_of(run, attempt)
        if self.pod:
            if attempt is None and run["is_over"] and not run["pods"]:
                # A name finds one of an earlier attempt, too.
                pods = _kept_pods(run)
            pods = [one for one in pods if one["name"] == self.pod]
        elif pods:
            # The only pod of a run bears no number.
            number = (pods[0]["number"] or 0) if self.worker is None else self.worker
            pods = [one for one in pods if (one["number"] or 0) == number]
        # One that has not started follows those that have.
        return sorted(
            pods, key=lambda one: (one["started_at"] is None, one["started_at"] or "")
        )

    def newest(self, run: Run, attempt: int | None = None) -> str:
        """The pod to read now, empty where the portal is to choose; raises Ended for one that is not there."""
        pods = self.among(run, attempt)
        found = [one for one in pods if has_log(one)] or pods
        if not found and (self.pod or self.worker is not None):
            names = ", ".join(map(_named, pods_of(run, attempt))) or "none"
            kept = (
                " Once a run is over, the portal keeps the logs of up to eight of its pods: of those that failed, "
                "and then of those with the lowest numbers."
            )
            raise Ended(
                f"{run['name']} has no such pod. It has: {names}.{kept if run['is_over'] else ''}",
                Code.NOT_FOUND,
            )
        return str(found[-1]["name"]) if found else ""


@contextmanager
def left_running(run: Run) -> Iterator[None]:
    """Whoever interrupts is told that the run goes on; so is whose token is not taken any more meanwhile."""
    try:
        yield
    except Ended as ended:
        if ended.exit_code != Code.NOT_SIGNED_IN:
            raise
        goes_on = f"{run['name']} goes on. To wait on: qm wait {run['id']}"
        raise Ended(f"{ended.message}\n{goes_on}", Code.NOT_SIGNED_IN) from None
    except KeyboardInterrupt:
        goes_on = f"goes on. To end it: qm stop {run['id']}"
        said = "is being stopped all the same." if run["stop_asked_at"] else goes_on
        raise Ended(f"\n{run['name']} {said}", Code.INTERRUPTED) from None


def wait(portal: Portal, run: Run) -> Run:
    """Return the run when it is over."""
    progress = Progress()
    with left_running(run):
        while not run["is_over"]:
            progress.tell(run)
            sleep(LOOK_EVERY)
            run = portal.get(f"runs/{run['id']}/", patient=True)
    progress.clear()
    return run


def follow(portal: Portal, run: Run, wanted: Wanted, *, tail: int | None) -> Run:
    """Print a run's log until the run is over; of one that was preempted or restarted, the next pod's, too."""
    progress = Progress()
    read: set[Key] = set()
    with left_running(run):
        while True:
            if wanted.pod and not read:
                wanted.newest(run)
            found = [
                key_of(one, read)
                for one in wanted.among(run)
                if run["is_over"] or has_log(one)
            ]
            if found and found[-1] not in read:
                if print_log(portal, run, found[-1][0], progress, tail=tail):
                    # What failed before it is of no interest any more.
                    read, tail = read | {*found}, None
            elif run["is_over"]:
                progress.clear()
                if not read:
                    words.note("There is no log.")
                return run
            else:
                progress.tell(run)
                sleep(LOOK_EVERY)
            run = portal.get(f"runs/{run['id']}/", patient=True)


def ended(run: Run) -> None:
    """Say how a run ended; raises Ended with the code for one that did not finish."""
    said = f"{run['name']}: {run['state']} after {words.duration(run['ran_seconds'])}, {run['cost']} USD."
    text = "\n".join([said, *words.outcome(run)])
    if run["state"] != "finished":
        raise Ended(text, Code.NOT_DONE)
    words.note(text)


def _named(pod: Mapping[str, Any]) -> str:
    """A pod with its number, where it is one of several of a kind."""
    number = "" if pod["number"] is None else f" (worker {pod['number']})"
    return f"{pod['name']}{number}"


def has_log(pod: Mapping[str, Any]) -> bool:
    """Whether a pod has begun to write, or may have."""
    return pod["started_at"] is not None or pod["word"] not in UNSTARTED


def print_log(
    portal: Portal, run: Run, pod: str, output: Output, *, tail: int | None
) -> bool:
    """Print a pod's log to its end; False when it has none yet."""
    last, is_over = "", run["is_over"]
    try:
        # What is over is read and not followed: a pod that never started would be waited for.
        if tail is not None or is_over:
            found = portal.get(f"runs/{run['id']}/logs/", pod=pod, tail=tail)["lines"]
            output.clear()
            for line in found:
                output.line(line["text"])
                last = line["place"]
        if not is_over:
            output.clear()
            _stream(portal, run, pod, output, last)
    except Ended as refused:
        if refused.problem == "log_not_started" and not is_over:
            sleep(LOOK_EVERY)
            return False
        if refused.problem == CLUSTER_AWAY and not is_over:
            output.say(refused.message)
            sleep(LOOK_EVERY)
            return False
        output.clear()
        if refused.problem not in ("log_not_started", "log_never_begun", "log_gone"):
            raise
        output.note(refused.message)
    return True


def _stream(portal: Portal, run: Run, pod: str, output: Output, last: str) -> None:
    """Print from behind a line to the end; each new connection begins behind the last whole line of the one before."""
    failures = 0
    while True:
        pause = 1.0
        try:
            for event in portal.follow(run["id"], pod, after=last):
                failures = 0
                if event.kind == "message":
                    output.line(event.data)
                    last = event.id
                elif event.kind == "retry":
                    pause = float(event.data) / 1000
                elif event.kind == "missed":
                    output.note(
                        f"({event.data} lines are left out: they came too fast.)"
                    )
                elif event.data:
                    output.note(event.data)
                if event.kind == "end":
                    return
        except Ended as refused:
            failures += 1
            if not refused.again or failures > PATIENT_ATTEMPTS:
                raise
        sleep(max(pause, min(2.0**failures, LONGEST_PAUSE)) if failures else pause)
