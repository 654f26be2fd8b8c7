"""A PostgreSQL that a test may hurt, with the portal's tables, and what is read and written meanwhile."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import psycopg
import requests
from django.db import connection, connections
from django.test import Client
from django.utils import timezone

from accounts.models import User
from approvals.models import Request
from checks.invariants import check
from fleet.models import Flavor
from provisioning.models import Tenancy
from tests import factories
from tests.services.environment import POSTGRES_USER
from tests.services.plugin import lent
from tests.services.postgres import Postgres
from tests.services.process import wait_until

SLOTS = 60
PAUSE = 0.01


def address() -> str:
    """The database that the ORM of this process speaks to."""
    at = connection.settings_dict
    return f"postgresql://{POSTGRES_USER}@{at['HOST']}:{at['PORT']}/{at['NAME']}"


@contextmanager
def moved(server: Postgres, database: str) -> Iterator[None]:
    """Let the ORM of this process speak to another server's database."""
    at: Any = connection.settings_dict
    before = {key: at[key] for key in ("HOST", "PORT", "NAME")}
    try:
        let_go()
        at.update(HOST="127.0.0.1", PORT=str(server.port), NAME=database)
        yield
    finally:
        let_go()
        at.update(before)


@contextmanager
def hurt(name: str) -> Iterator[Postgres]:
    """A server of few connections with the portal's tables in a database of this name; the ORM speaks to it."""
    with lent(Postgres) as own:
        own.copy(address(), name)
        own.stop()
        own.options = {
            "max_connections": str(SLOTS),
            "superuser_reserved_connections": "0",
        }
        own.start()
        with moved(own, name):
            yield own


def let_go() -> None:
    """Give every connection of this thread and all that are pooled back, before they are cut."""
    connections.close_all()
    raw: Any = connection
    raw.close_pool()


def ended_backends(server: Postgres, *, database: str) -> int:
    """End every connection to a database but this one; returns how many there were."""
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
    with psycopg.connect(server.dsn(), autocommit=True) as own:
        return own.execute(others, [database]).rowcount


def fall_over(server: Postgres) -> float:
    """Cut everybody off and come back; returns when it was back."""
    connection.close()
    server.stop_at_once()
    server.start()
    return time.monotonic()


@contextmanager
def no_slot_left(server: Postgres, database: str) -> Iterator[None]:
    """Hold every connection the server has."""
    let_go()
    with ExitStack() as held:
        full = False
        first = held.enter_context(psycopg.connect(server.dsn(), autocommit=True))
        while not full:
            try:
                while True:
                    held.enter_context(
                        psycopg.connect(
                            server.dsn(), autocommit=True, connect_timeout=5
                        )
                    )
            except psycopg.OperationalError:
                others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
                full = first.execute(others, [database]).rowcount == 0
        yield


@dataclass(frozen=True)
class Answer:
    """One call: when it began and ended, in seconds, and what came."""

    began: float
    ended: float
    status: int
    headers: Any
    body: str

    @property
    def is_told(self) -> bool:
        """Whether it says, with a time to come back, that it is not possible just now."""
        return self.status == 503 and int(self.headers["Retry-After"]) > 0


@dataclass
class Person:
    """Somebody with a browser that is signed in and a script that has a token, who may ask for GPUs."""

    url: str
    tenancy: Tenancy
    flavor: Flavor
    user: User = field(init=False)
    token: str = field(init=False)
    cookie: str = field(init=False)
    until: str = field(init=False)

    def __post_init__(self) -> None:
        from tests.calling import token_of

        self.user = self.tenancy.team.created_by
        factories.join(self.tenancy.team, self.user)
        self.token = token_of(self.user)
        self.until = (
            timezone.now().replace(microsecond=0) + timedelta(days=1)
        ).isoformat()
        browser = Client()
        browser.force_login(self.user)
        self.cookie = browser.cookies["qm_session"].value

    def api(self, path: str) -> Answer:
        """Read by the API."""
        return self._call("GET", f"/api/v1/{path}")

    def page(self, path: str) -> Answer:
        """Read as a person does."""
        return self._call("GET", path)

    def ask(self, key: str = "") -> Answer:
        """Ask for a GPU once, whatever the answer."""
        body = {
            "team": self.tenancy.team.slug,
            "flavor": f"{self.flavor.cluster.name}/{self.flavor.name}",
            "gpus": 1,
            "purpose": "training",
            "until": self.until,
            "reason": "Find out whether this is kept.",
        }
        return self._call("POST", "/api/v1/requests/", body, key or uuid.uuid4().hex)

    def _call(
        self, method: str, path: str, body: object = None, key: str = ""
    ) -> Answer:
        headers = {"Idempotency-Key": key} if key else {}
        cookies = {}
        if path.startswith("/api/"):
            headers["Authorization"] = f"Bearer {self.token}"
        else:
            cookies["qm_session"] = self.cookie
        began = time.monotonic()
        answer = requests.request(
            method,
            f"{self.url}{path}",
            json=body,
            headers=headers,
            cookies=cookies,
            timeout=60,
            allow_redirects=False,
        )
        return Answer(
            began, time.monotonic(), answer.status_code, answer.headers, answer.text
        )


@dataclass
class Load:
    """Calls made over and over by threads, with every answer."""

    answers: list[Answer] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def statuses(self) -> Counter[int]:
        """How often each status came."""
        return Counter(answer.status for answer in self.answers)

    def other_than(self, *statuses: int) -> list[str]:
        """What came beside these, in words."""
        rest = [answer for answer in self.answers if answer.status not in statuses]
        return [
            f"{answer.status} after {answer.ended - answer.began:.1f} s: {answer.body[:300]}"
            for answer in rest
        ]

    def more(self, number: int) -> None:
        """Wait until this many further calls were answered."""
        enough = len(self.answers) + number
        wait_until(
            lambda: len(self.answers) >= enough or bool(self.broken),
            what=f"{number} answers",
        )


@contextmanager
def under_load(calls: Sequence[Callable[[], Answer]]) -> Iterator[Load]:
    """Make each of the calls again and again while the block runs, each in a thread of its own."""
    load, over = Load(), threading.Event()

    def run(call: Callable[[], Answer]) -> None:
        while not over.wait(PAUSE):
            try:
                load.answers.append(call())
            except requests.RequestException as error:
                load.broken.append(str(error))

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        over.set()
        for thread in threads:
            thread.join()


def broken_books() -> list[str]:
    """Every promise of the books that does not hold; what is due by now may be."""
    return [
        str(each)
        for each in check(now=timezone.now(), clusters=False).findings
        if each.promise != "I7"
    ]


def asked_by(person: Person) -> int:
    """How many requests a person has."""
    return Request.objects.filter(requester=person.user).count()
