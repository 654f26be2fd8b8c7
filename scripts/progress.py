"""How far something has come that takes a while: which step of how many, and the seconds so far."""

import threading
import time
from collections.abc import Callable, Sequence

# How long a step may be silent.
QUIET_SECONDS = 5.0
Say = Callable[[str], None]
Step = tuple[str, Callable[[], object]]


def print_line(line: str) -> None:
    """Print a line at once, also where the output is a file or a pipe."""
    print(line, flush=True)


def silent(line: str) -> None:
    """Say nothing."""


def follow(steps: Sequence[Step], *, say: Say, quiet: float = QUIET_SECONDS) -> None:
    """Do the steps in order, saying which one begins and, when it takes long, that it goes on; raises what they do."""
    began = time.monotonic()
    for number, (words, step) in enumerate(steps, start=1):
        place = f"{number} of {len(steps)}"
        _say_at(began, f"{place}  {words}", say)
        over = threading.Event()
        watch = threading.Thread(
            target=_keep_saying, args=(over, began, place, say, quiet), daemon=True
        )
        watch.start()
        try:
            step()
        finally:
            over.set()
            watch.join()


def _keep_saying(
    over: threading.Event, began: float, place: str, say: Say, quiet: float
) -> None:
    while not over.wait(quiet):
        _say_at(began, f"{place}  goes on", say)


def _say_at(began: float, line: str, say: Say) -> None:
    say(f"  {time.monotonic() - began:5.1f} s  {line}")
