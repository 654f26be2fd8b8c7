"""The peer of B10, B11 and B15: a Celery application as its documentation has it, late acknowledgement on Redis."""

import os
import time
from functools import cache

from celery import Celery
from redis import Redis

BROKER = os.environ.get("PLAIN_BROKER", "redis://127.0.0.1:9/0")
TASK = "plain.work"
NOTE = "plain.note"
RUNNING, KILLED, DONE, STARTED = (
    "plain-running",
    "plain-killed",
    "plain-done",
    "plain-started",
)

# Imported beside the portal it must not become the application that the portal rings with.
app = Celery("plain", broker=BROKER, set_as_current=False)
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    broker_transport_options={"visibility_timeout": 10},
    broker_connection_retry_on_startup=True,
)


def work(number: int) -> None:
    """Be in the middle of something until the worker was killed; after that, be done at once."""
    with Redis.from_url(BROKER) as redis:
        redis.sadd(RUNNING, number)
        while not redis.exists(KILLED):
            time.sleep(0.05)
        redis.zadd(DONE, {str(number): time.time()})


def note(number: int) -> None:
    """Write down when this began, and nothing else: a task without work."""
    at = time.time()
    notes().zadd(STARTED, {str(number): at})


@cache
def notes() -> Redis:
    """One connection for each process of the pool, as a task that does next to nothing has one."""
    return Redis.from_url(BROKER)


app.task(work, name=TASK)
app.task(note, name=NOTE)
