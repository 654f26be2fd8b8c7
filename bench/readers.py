"""Clients who read a web server at the same time, each on a connection of its own that stays open where it may."""

import http.client
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from threading import Barrier

from bench.calls import SECONDS, Page

CLIENTS = 8


def per_second(readers: Sequence[Sequence[Page]], *, seconds: float) -> float:
    """Answers a second of all of them together; each reads its pages in turns until the time is over.

    Raises WrongAnswer when any answer is another page.
    """
    ready = Barrier(len(readers) + 1)

    def read(pages: Sequence[Page]) -> int:
        ready.wait(SECONDS)
        return sum(1 for _ in _answers(pages, until=time.perf_counter() + seconds))

    with ThreadPoolExecutor(len(readers)) as threads:
        running = [threads.submit(read, pages) for pages in readers]
        ready.wait(SECONDS)
        began = time.perf_counter()
        answers = sum(one.result() for one in running)
        return answers / (time.perf_counter() - began)


def _answers(pages: Sequence[Page], *, until: float) -> Iterator[None]:
    # One that the server closed after its answer is opened anew by the next call.
    connection = http.client.HTTPConnection("127.0.0.1", pages[0].port, timeout=SECONDS)
    try:
        for page in cycle(pages):
            if time.perf_counter() >= until:
                return
            page.read(connection)
            yield
    finally:
        connection.close()
