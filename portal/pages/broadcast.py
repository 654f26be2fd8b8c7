"""One look at the audit log twice a second per process, while anybody listens; told to each by what they may see."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from asgiref.sync import sync_to_async
from django.db import DatabaseError, connections

from audit.events import Kind
from audit.models import Event

logger = structlog.get_logger(__name__)
EVERY = 0.5
MOST_AT_ONCE = 500
MOST_UNREAD = 1000
# What concerns everybody who is signed in, and not one team.
FOR_ALL = frozenset({"cluster", "flavor"})
# What happens to a team's objects and is shown on the page of their cluster, too: `details` names it by its id.
OF_CLUSTERS = frozenset(kind for kind in Kind.values if kind.startswith("drift.")) | {
    Kind.DRIFT_REPAIRED.value
}


# What changes how many GPUs are held, asked for or free: everybody sees these numbers, and nothing else of it.
OF_CAPACITY = frozenset({"allocation", "request"})


@dataclass(frozen=True)
class Sight:
    """Whose stream it is and which teams they may see; None is all of them."""

    user_id: int
    teams: frozenset[int] | None

    def covers(self, news: "News") -> bool:
        """Whether the person may know that this changed."""
        if news.team_id is None:
            return news.subject in FOR_ALL
        return self.teams is None or news.team_id in self.teams


@dataclass(frozen=True)
class News:
    """That something changed: the event's number, its subject, its team, and the cluster it happened on, if one."""

    seq: int
    subject: str
    subject_id: str
    team_id: int | None
    cluster_id: int | None = None

    def message(self, sight: Sight) -> str:
        """The server-sent events of it (WHATWG HTML, section 9.2) for somebody; empty when they may not know of it."""
        names = self._names() if sight.covers(self) else []
        names += ["capacity"] if self.subject in OF_CAPACITY else []
        return "".join(
            f"id: {self.seq}\ndata: changed {name}\n\n" for name in dict.fromkeys(names)
        )

    def _names(self) -> list[str]:
        """The thing, its team, its cluster, and the lists it stands in."""
        names = [f"{self.subject}-{self.subject_id}"] if self.subject else []
        names += [f"team-{self.team_id}"] if self.team_id is not None else []
        names += [f"cluster-{self.cluster_id}"] if self.cluster_id is not None else []
        names += (
            ["clusters"]
            if self.subject in FOR_ALL or self.cluster_id is not None
            else []
        )
        names += ["requests"] if self.subject == "request" else []
        return names


@dataclass(eq=False)
class Listener:
    """One open stream."""

    sight: Sight
    unread: asyncio.Queue[str] = field(
        default_factory=lambda: asyncio.Queue(MOST_UNREAD)
    )

    async def next(self) -> str:
        """The next message, whenever it comes."""
        return await self.unread.get()

    def tell(self, news: Sequence[News]) -> None:
        """Put what the person may see in line; who does not read loses the rest and will look at everything again."""
        for one in news:
            message = one.message(self.sight)
            if message and not self.unread.full():
                self.unread.put_nowait(message)


class Broadcaster:
    """The listeners of this process and the one task that looks for them."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_looking(self) -> bool:
        """Whether this process asks the database now."""
        return self._task is not None and not self._task.done()

    def streams_of(self, user_id: int) -> int:
        """How many streams a person has open here."""
        return sum(each.sight.user_id == user_id for each in self._listeners)

    async def join(self, sight: Sight, *, after: int | None = None) -> Listener:
        """Listen from now on, or from the event after a number that the browser has seen."""
        listener, newest = Listener(sight), await newest_seq()
        if after is not None and after < newest:
            listener.tell(await news_after(after))
        self._listeners.add(listener)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look(newest))
        return listener

    def leave(self, listener: Listener) -> None:
        """Stop listening; the last one to leave ends the looking."""
        self._listeners.discard(listener)
        if not self._listeners and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _look(self, seen: int) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                news = await news_after(seen)
            except DatabaseError as error:
                logger.warning("events cannot be read", error=type(error).__name__)
                continue
            if news:
                seen = news[-1].seq
                for listener in self._listeners:
                    listener.tell(news)


@sync_to_async(thread_sensitive=False)
def newest_seq() -> int:
    """The number of the newest event, 0 when there is none."""
    try:
        return Event.objects.order_by("-seq").values_list("seq", flat=True).first() or 0
    finally:
        connections.close_all()


@sync_to_async(thread_sensitive=False)
def news_after(seq: int) -> list[News]:
    """What was written to the audit log after an event, oldest first; a refusal has changed nothing."""
    try:
        rows = Event.objects.filter(seq__gt=seq, outcome=Event.Outcome.DONE).order_by(
            "seq"
        )
        found = rows.values_list(
            "seq", "subject_type", "subject_id", "team_id", "kind", "details"
        )[:MOST_AT_ONCE]
        return [
            News(number, subject, subject_id, team_id, _cluster(kind, details))
            for number, subject, subject_id, team_id, kind, details in found
        ]
    finally:
        connections.close_all()


def _cluster(kind: str, details: Mapping[str, Any]) -> int | None:
    """The cluster that an event of drift happened on; what people typed into details is never taken for one."""
    cluster = details.get("cluster") if kind in OF_CLUSTERS else None
    return cluster if isinstance(cluster, int) else None


broadcaster = Broadcaster()
