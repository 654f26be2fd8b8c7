"""B8: thirty-two clients who spend one budget over the API, beside the bare SQL of it and a bare REST view."""

import http.client
import json
import statistics
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from itertools import chain
from pathlib import Path
from threading import Barrier
from typing import Any, Protocol

import psycopg
from django.utils import timezone

from accounts.tokens.actions import create_token
from allocations.budgets import money
from allocations.models import Budget
from approvals.states import State
from bench import rig
from bench.plain_sql import BUDGET, KEEP, SPEND, TABLES, TOKEN, digest_of
from bench.results import Better, Goal, Measured
from policy.document import Thresholds
from tests import factories
from tests.services.environment import POSTGRES_USER

CLIENTS, EACH, PAIRS = 32, 4, 5
LEAST, MOST_AT_WORST = 0.2, 100
# Of ten asks nine are paid for, so that the last ones find the budget spent.
PAID = 0.9
DATABASE, LONGEST, MUCH = "plain", 120, 1_000_000
BUSY = 503
ROOT = Path(__file__).resolve().parent.parent
HELD = timedelta(days=20)
REASON = "Whoever comes first gets the last of the month."
WIDE = Thresholds(
    automatic_gpus=9999,
    automatic_gpu_hours=None,
    automatic_usd=Decimal(9_999_999),
    automatic_days=90,
    window_gpus_team=99_999,
    window_gpus_person=None,
    window_usd_team=None,
    window_usd_person=None,
    automatic_beyond_soft_budget=True,
)


@dataclass(frozen=True)
class Turn:
    """What all clients did together: decisions a second, what each call took, and how many were granted."""

    per_second: float
    seconds: Sequence[float]
    granted: int


class Client(Protocol):
    """One of those who ask at the same time."""

    def ask(self, calls: int) -> Iterator[tuple[float, bool]]:
        """Ask so often, one after another: seconds, and whether it was granted."""


@dataclass(frozen=True)
class Caller:
    """A client of a web server, with its token and a connection that stays open."""

    port: int
    path: str
    secret: str
    body: Mapping[str, object]

    def ask(self, calls: int) -> Iterator[tuple[float, bool]]:
        """Ask as a client does, once more when the server is too busy; raises RuntimeError when it was refused."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONGEST)
        try:
            for _ in range(calls):
                began, key = time.perf_counter(), uuid.uuid4().hex
                status, answer = self._post(connection, key)
                while status == BUSY:
                    status, answer = self._post(connection, key)
                if status != 201:
                    raise RuntimeError(f"{self.path} answered {status}: {answer}")
                yield time.perf_counter() - began, answer["state"] == State.APPROVED
        finally:
            connection.close()

    def _post(
        self, connection: http.client.HTTPConnection, key: str
    ) -> tuple[int, dict[str, Any]]:
        """One call; of a server that is too busy, after the time that it asks for."""
        headers = {
            "Authorization": f"Bearer {self.secret}",
            "Content-Type": "application/json",
        }
        connection.request(
            "POST",
            self.path,
            json.dumps(self.body),
            {**headers, "Idempotency-Key": key},
        )
        answer = connection.getresponse()
        found: dict[str, Any] = json.loads(answer.read())
        if answer.status == BUSY:
            time.sleep(float(answer.headers.get("Retry-After", 0)))
            # A server closes what is idle for some seconds: the next call opens it anew.
            connection.close()
        return answer.status, found


def measure(on: rig.Rig) -> Measured:
    """Four asks of each client in each of five turns."""
    return measured(on, clients=CLIENTS, each=EACH, pairs=PAIRS)


def measured(on: rig.Rig, *, clients: int, each: int, pairs: int) -> Measured:
    """Each turn has a budget of its own that pays for nine asks of ten; portal and peers in turns."""
    paid = int(clients * each * PAID)
    with rig.portal(on) as ours, plain_view(on) as theirs:
        groups = of_the_portal(ours, clients, pairs + 1, paid=paid)
        rig.settle(on)
        together(groups[0], each)
        three = [
            (
                together(group, each),
                together(of_sql(on, clients, paid=paid), each),
                together(of_the_view(on, theirs, clients, paid=paid), each),
            )
            for group in groups[1:]
        ]
    seconds = list(chain.from_iterable(portal.seconds for portal, _, _ in three))
    beyond = max(portal.granted - paid for portal, _, _ in three)
    return Measured(
        what=f"asks decided by the policy, {clients} clients, one budget; peer: conditional update and insert in SQL",
        portal=[portal.per_second for portal, _, _ in three],
        peer=[bare.per_second for _, bare, _ in three],
        unit="/s",
        better=Better.PORTAL_OVER_PEER,
        least=LEAST,
        others=[
            Goal(
                "ms, 99 of 100",
                1000 * statistics.quantiles(seconds, n=100)[-1],
                most=MOST_AT_WORST,
            ),
            Goal("granted beyond the budget", beyond, most=0),
            Goal(
                "beside a bare REST view, ratio",
                statistics.median(
                    portal.per_second / view.per_second for portal, _, view in three
                ),
            ),
        ],
    )


def of_the_portal(
    port: int, clients: int, groups: int, *, paid: int
) -> list[list[Client]]:
    """So many groups of people with a team, a place and a budget of their own."""
    now = timezone.now()
    factories.policy(WIDE, now=now)  # money alone decides
    flavor = factories.flavor(gpus_total=MUCH)
    until = now.replace(microsecond=0) + HELD
    cost = money.by_month(
        gpus=1, usd_per_hour=flavor.price_per_gpu_hour, start=now, end=until
    )
    found = list[list[Client]]()
    for _ in range(groups):
        team = factories.team()
        factories.tenancy(team, flavor.cluster)
        for month, part in cost.items():
            # It falls by a little each second: the half of an ask is never a whole one.
            Budget.objects.create(
                team=team, month=month, limit_usd=part.usd * paid + part.usd / 2
            )
        body = {
            "team": team.slug,
            "flavor": f"{flavor.cluster.name}/{flavor.name}",
            "gpus": 1,
            "until": until.isoformat(),
            "purpose": "training",
            "reason": REASON,
        }
        people = [factories.person(teams=[team]) for _ in range(clients)]
        tokens = [
            create_token(user=one, name="bench", scope="write", days=1, now=now)[1]
            for one in people
        ]
        found.append(
            [Caller(port, "/api/v1/requests/", secret, body) for secret in tokens]
        )
    return found


def of_the_view(on: rig.Rig, port: int, clients: int, *, paid: int) -> list[Client]:
    """As many who ask the bare view."""
    until = (timezone.now() + HELD).isoformat()
    body = {"budget": budget_of(on, paid), "gpus": 1, "until": until, "reason": REASON}
    return [Caller(port, "/asks/", _secret(number), body) for number in range(clients)]


@dataclass(frozen=True)
class Connection:
    """A client that asks the database itself, with the two statements that a budget needs."""

    dsn: str
    budget: int

    def ask(self, calls: int) -> Iterator[tuple[float, bool]]:
        """Ask so often, each in a transaction of its own."""
        until = timezone.now() + HELD
        with psycopg.connect(self.dsn) as connection:
            for _ in range(calls):
                began = time.perf_counter()
                is_granted = (
                    connection.execute(SPEND, [1, self.budget, 1]).rowcount == 1
                )
                connection.execute(KEEP, [self.budget, 1, 1, until, REASON, is_granted])
                connection.commit()
                yield time.perf_counter() - began, is_granted


def of_sql(on: rig.Rig, clients: int, *, paid: int) -> list[Client]:
    """As many connections."""
    return [Connection(on.postgres.dsn(DATABASE), budget_of(on, paid))] * clients


def together(clients: Sequence[Client], each: int) -> Turn:
    """All of them at once, each with so many asks in a row."""
    ready = Barrier(len(clients) + 1)

    def ask(client: Client) -> list[tuple[float, bool]]:
        ready.wait(LONGEST)
        return list(client.ask(each))

    with ThreadPoolExecutor(len(clients)) as threads:
        running = [threads.submit(ask, client) for client in clients]
        ready.wait(LONGEST)
        began = time.perf_counter()
        answers = [answer for one in running for answer in one.result()]
        took = time.perf_counter() - began
    granted = sum(is_granted for _, is_granted in answers)
    return Turn(len(answers) / took, [seconds for seconds, _ in answers], granted)


def budget_of(on: rig.Rig, paid: int) -> int:
    """A budget of the bare database that pays for so many."""
    with psycopg.connect(on.postgres.dsn(DATABASE)) as connection:
        found = connection.execute(BUDGET, [paid]).fetchone()
    assert found is not None
    return int(found[0])


@contextmanager
def plain_view(on: rig.Rig) -> Iterator[int]:
    """The bare REST view with its database, until the block ends; its port."""
    on.postgres.execute(f"CREATE DATABASE {DATABASE}")
    with psycopg.connect(on.postgres.dsn(DATABASE)) as connection:
        connection.execute(TABLES)
        for number in range(CLIENTS):
            connection.execute(TOKEN, [digest_of(_secret(number)), number])
    variables = {
        "PYTHONPATH": str(ROOT),
        "PLAIN_PORT": str(on.postgres.port),
        "PLAIN_DATABASE": DATABASE,
        "PLAIN_USER": POSTGRES_USER,
    }
    command = [
        str(Path(sys.executable).parent / "gunicorn"),
        "bench.plain_drf:application",
    ]
    try:
        with rig.serving("the bare view", on, command, variables) as port:
            yield port
    finally:
        on.postgres.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def _secret(number: int) -> str:
    return f"token-{number}"
