"""The peer of B15: a Celery application as its documentation has it, with late acknowledgement on Redis."""

import os
import time

from celery import Celery
from redis import Redis

BROKER = os.environ.get("PLAIN_BROKER", "redis://127.0.0.1:9/0")
TASK = "plain.work"
RUNNING, KILLED, DONE = "plain-running", "plain-killed", "plain-done"

app = Celery("plain", broker=BROKER)
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


app.task(work, name=TASK)
