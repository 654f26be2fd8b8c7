"""The watcher: a thread for each feed that it holds. Any number of watchers may run; a feed is held by one."""

import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from django.db import Error, connection

from connectors.errors import ConnectorError, PermanentError
from connectors.kubernetes import Cluster as Client
from connectors.kubernetes import Manifest, Ref
from provisioning.delivery import client_for
from provisioning.desired.naming import PREFIX
from workloads.models import Feed
from workloads.watching import feeds
from workloads.watching.kept import kinds_of

logger = logging.getLogger(__name__)
# A cluster whose answer ends here is asked again at once: a silence is noticed within thirteen seconds.
SECONDS = 10
LOOK_ROUND = 1.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0


@dataclass
class Following:
    """One feed and the thread that keeps it."""

    feed: Feed
    now: Callable[[], datetime]
    over: threading.Event = field(default_factory=threading.Event)
    pause: float = FIRST_PAUSE
    # The resourceVersion from which the next watch goes on, and whose objects are copied; empty: a list comes first.
    version: str = ""
    namespaces: frozenset[str] = frozenset()

    def run(self) -> None:
        """Keep the copy until it is over or another watcher took the feed."""
        try:
            while not self.over.is_set():
                self._turn()
        except feeds.FeedLost:
            logger.info("feed lost", extra={"feed": self.feed.pk})
        finally:
            self.over.set()
            connection.close()

    def _turn(self) -> None:
        """One watch, begun by a list where one is due; failures are waited out."""
        try:
            client = client_for(self.feed.cluster)
            self._list_if_due(client)
            self._watch(client)
            self.pause = FIRST_PAUSE
        except ConnectorError as error:
            if isinstance(error, PermanentError) and error.code == "expired":
                self.version = ""
                return
            feeds.silent(self.feed, error.message, now=self.now())
            self._wait()
        except Error:
            # What was read and not written is read again.
            logger.warning("feed waits for the database", extra={"feed": self.feed.pk})
            self.version = ""
            self._wait()
        finally:
            # Back into the pool: a watch is silent for most of its time.
            connection.close()

    def _list_if_due(self, client: Client) -> None:
        """Begin with a list where nothing is known yet, or where teams came or went since."""
        namespaces = feeds.namespaces_of(self.feed.cluster_id)
        if not self.version or namespaces != self.namespaces:
            found, version = client.snapshot(self._ref)
            feeds.replace(self.feed, found, namespaces=namespaces, now=self.now())
            self.version, self.namespaces = version, namespaces
        connection.close()

    def _watch(self, client: Client) -> None:
        for kind, found in client.watch(self._ref, since=self.version, seconds=SECONDS):
            if self.over.is_set():
                return
            self._know(found)
            feeds.change(
                self.feed, kind, found, namespaces=self.namespaces, now=self.now()
            )
            self.version = str(found["metadata"]["resourceVersion"])
            connection.close()
        feeds.heard(self.feed, now=self.now())

    @property
    def _ref(self) -> Ref:
        """What is watched: what Volcano has in place of Kueue's kinds, where the queues are its own."""
        return kinds_of(self.feed.cluster.queueing)[self.feed.kind]

    def _know(self, found: Manifest) -> None:
        """A team that came a moment ago: its namespace has a name of ours, and is not among those known so far."""
        namespace = str(found["metadata"].get("namespace", ""))
        if namespace.startswith(f"{PREFIX}-") and namespace not in self.namespaces:
            self.namespaces = feeds.namespaces_of(self.feed.cluster_id)

    def _wait(self) -> None:
        self.over.wait(self.pause)
        self.pause = min(self.pause * 2, LONGEST_PAUSE)


def watch(stop: threading.Event, *, now: Callable[[], datetime]) -> None:
    """Keep the copies of all clusters until told to stop; what another watcher lets go is taken over."""
    holder, running = uuid.uuid4().hex, dict[int, Following]()
    try:
        while not stop.is_set():
            began = time.monotonic()
            try:
                _look_round(holder, running, now=now)
            except Error:
                logger.warning("the database does not answer")
            finally:
                connection.close()
            stop.wait(max(0.0, LOOK_ROUND - (time.monotonic() - began)))
    finally:
        for one in running.values():
            one.over.set()
        feeds.let_go(holder, now=now())
        connection.close()


def _look_round(
    holder: str, running: dict[int, Following], *, now: Callable[[], datetime]
) -> None:
    """Hold what is held, end what is lost, and begin with what is free."""
    feeds.declare()
    held = feeds.hold(holder, now=now())
    for pk in [
        pk for pk, one in running.items() if pk not in held or one.over.is_set()
    ]:
        running.pop(pk).over.set()
    for feed in feeds.take(holder, now=now()):
        feed.holder = holder
        running[feed.pk] = one = Following(feed, now)
        threading.Thread(target=one.run, name=f"feed {feed}", daemon=True).start()
