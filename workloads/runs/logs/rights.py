"""Whether those who follow logs may still read them, asked every few seconds for all of this process together."""

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.db import connections
from django.utils import timezone

from accounts.credentials import Credential, still_good
from accounts.models import User
from workloads.runs.actions import may_stop

logger = structlog.get_logger(__name__)
EVERY = 5.0


@dataclass(frozen=True)
class Right:
    """By what somebody reads a log: what they came with, and the team whose run it is."""

    credential: Credential
    team_id: int


def still_held(rights: Collection[Right], *, now: datetime) -> set[Right]:
    """Those that are still held; six queries however many there are."""
    good = still_good({one.credential for one in rights}, now=now)
    rows = User.objects.filter(
        pk__in={one.user_id for one in good}, is_active=True
    ).prefetch_related("roles_held", "memberships__team")
    people = {one.pk: one for one in rows}
    for one in people.values():
        one.teams = tuple(each.team for each in one.memberships.all())
    return {
        one
        for one in rights
        if one.credential in good
        and (by := people.get(one.credential.user_id)) is not None
        and may_stop(one.team_id, by)
    }


class Guard:
    """Ends the streams of those who may read no more, from a thread of its own, while anybody follows."""

    def __init__(
        self, held: Callable[[Collection[Right]], Collection[Right]] | None = None
    ) -> None:
        self._held = held or (lambda rights: still_held(rights, now=timezone.now()))
        self._lock = threading.Lock()
        # Which right ends which stream.
        self._streams: dict[Callable[[], None], Right] = {}
        self._unfollowed = threading.Event()
        self._is_awake = False

    @contextmanager
    def over(self, right: Right, end: Callable[[], None]) -> Iterator[None]:
        """Call `end`, from any thread, once the right is not held any more."""
        with self._lock:
            self._streams[end] = right
            self._unfollowed.clear()
            if not self._is_awake:
                self._is_awake = True
                threading.Thread(
                    target=self._run, name="rights of logs", daemon=True
                ).start()
        try:
            yield
        finally:
            with self._lock:
                del self._streams[end]
                if not self._streams:
                    self._unfollowed.set()

    def _run(self) -> None:
        while self._is_needed():
            try:
                self._look()
            except Exception:
                # While the database is away nobody can take a right away, either.
                logger.exception("rights of those who follow logs cannot be looked at")
            finally:
                # This thread belongs to no request, so nobody else would give its connection back.
                connections.close_all()

    def _is_needed(self) -> bool:
        self._unfollowed.wait(EVERY)
        with self._lock:
            self._is_awake = bool(self._streams)
            return self._is_awake

    def _look(self) -> None:
        with self._lock:
            streams = dict(self._streams)
        held = self._held(set(streams.values()))
        for end, right in streams.items():
            if right not in held:
                end()


guard = Guard()
