"""Work shared out among processes, forked as a worker forks its own, and the seconds until the last is done."""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Barrier
from typing import Any

from django.db import connection, connections

LONGEST = 600


def together(turns: Sequence[Callable[[], Callable[[], object]]]) -> float:
    """Seconds from the moment when all have got ready until the last has ended; RuntimeError when one failed.

    Each turn is called in a process of its own, gets ready, and returns what is to be done.
    """
    # A pool's threads and a connection's socket do not come through a fork.
    connections.close_all()
    pooled: Any = connection
    pooled.close_pool()
    fork = multiprocessing.get_context("fork")
    ready = fork.Barrier(len(turns) + 1)
    running = [fork.Process(target=_take, args=(turn, ready)) for turn in turns]
    for each in running:
        each.start()
    ready.wait(LONGEST)
    began = time.perf_counter()
    for each in running:
        each.join(LONGEST)
    seconds = time.perf_counter() - began
    if any(each.exitcode for each in running):
        raise RuntimeError("A process failed; what it said stands above.")
    return seconds


def _take(turn: Callable[[], Callable[[], object]], ready: Barrier) -> None:
    work = turn()
    ready.wait(LONGEST)
    work()
