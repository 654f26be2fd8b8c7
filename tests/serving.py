"""Applications of the sandbox served while a test runs, from a thread of their own."""

import asyncio
import gc
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sandbox.serving import Served, serve

T = TypeVar("T")
DEADLINE = 120.0


@contextmanager
def serving(
    *served: Served,
    beside: Callable[[asyncio.Event], Coroutine[Any, Any, None]] | None = None,
) -> Iterator[asyncio.AbstractEventLoop]:
    """Serve until the block ends, and run `beside` until then; every port answers when it begins.

    Gives the loop: what it serves is its own, and whoever changes that from another thread goes through it.
    """
    started, loops = (
        threading.Event(),
        list[tuple[asyncio.AbstractEventLoop, asyncio.Event]](),
    )

    async def run() -> None:
        ready, stop = asyncio.Event(), asyncio.Event()
        loops.append((asyncio.get_running_loop(), stop))
        running = [asyncio.create_task(serve(served, ready, stop))]
        if beside is not None:
            running.append(asyncio.create_task(beside(stop)))
        await ready.wait()
        started.set()
        await asyncio.gather(*running)

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    assert started.wait(DEADLINE)
    loop, stop = loops[0]
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(DEADLINE)
        _bury(thread)


def in_loop(loop: asyncio.AbstractEventLoop, work: Callable[[], T]) -> T:
    """Do this where something is served: what goes on there by itself writes, too, and no two threads may at once."""

    async def turn() -> T:
        return work()

    return asyncio.run_coroutine_threadsafe(turn(), loop).result(DEADLINE)


def _bury(thread: threading.Thread) -> None:
    """Collect what asyncio's TLS leaves of connections that clients kept open: it would warn in a later test."""
    assert not thread.is_alive()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    # What lives now lives on for most of the run: the next one looks only at what is newer.
    gc.freeze()
