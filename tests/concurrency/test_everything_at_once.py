"""Eight people and processes do whatever they may, at once: no deadlock, and the books are right afterwards."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from itertools import count
from random import Random

import pytest
from django.db import OperationalError, connection
from django.utils import timezone
from psycopg.errors import LockNotAvailable

from accounts.directory.client import graph
from accounts.models import Team
from accounts.roles import Role
from allocations.budgets import actions as budget_actions
from allocations.budgets.money import month_of
from allocations.ends import actions as ends
from allocations.models import Allocation
from approvals.decisions import actions as decisions
from approvals.decisions.routing import open_step
from approvals.models import Request
from approvals.requests import actions as approvals
from fleet.clusters.actions import change_cluster
from fleet.flavors.actions import change_flavor
from fleet.models import Flavor
from onboarding.actions import Enrolment, Start, onboard
from provisioning.actions import look_again
from provisioning.controller import acquire
from provisioning.models import Tenancy
from provisioning.status import write_status
from tests import factories
from tests.concurrency.books import wrong_in_the_books
from tests.sandbox.entra.running import Running
from web.refusals import Refused

pytestmark = pytest.mark.slow

logger = logging.getLogger(__name__)
THREADS = 8
EACH = 30
SEED = 20261121
archives = count(1)


class Mixed:
    """One thread's operations, drawn by a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.done: Counter[str] = Counter()
        self.broken: list[str] = []

    def run(self) -> None:
        """Do them all; what is refused is part of the story, anything else is written down."""
        try:
            for _ in range(EACH):
                self.step(self.random.choices(OPERATIONS, weights=WEIGHTS)[0])
        finally:
            connection.close()

    def step(self, operation: Callable[["Mixed"], None]) -> None:
        """One operation."""
        try:
            operation(self)
            self.done[operation.__name__] += 1
        except Refused:
            self.done[f"{operation.__name__} refused"] += 1
        except OperationalError as error:
            # On a machine that is busy a lock is given up after some seconds; PostgreSQL finds a deadlock in one.
            if not isinstance(error.__cause__, LockNotAvailable):
                self.broken.append(
                    f"{operation.__name__}: {type(error).__name__}: {error}"
                )
            self.done[f"{operation.__name__} kept waiting"] += 1
        except Exception as error:
            self.broken.append(f"{operation.__name__}: {type(error).__name__}: {error}")

    def submit(self) -> None:
        """Somebody asks for a few GPUs: some asks are automatic, some wait."""
        tenancy = self.random.choice(Tenancy.objects.select_related("team"))
        flavor = self.random.choice(tenancy.cluster.flavors.all())
        factories.request(
            tenancy.team.created_by,
            tenancy,
            flavor,
            gpus=self.random.choice([1, 1, 2, 3, 8]),
            days=self.random.choice([1, 12, 40]),
        )

    def decide(self) -> None:
        """A lead approves or rejects what waits."""
        request = self.random.choice(Request.objects.waiting() or [None])
        if request is None:
            return
        seat = open_step(request)
        role = (
            Role.PLATFORM_LEAD
            if seat and seat.seat == "platform_leads"
            else Role.ENGINEERING_LEADERSHIP
        )
        by, now = factories.person("", role), timezone.now()
        if self.random.random() < 0.7:
            decisions.approve(
                request.pk, by=by, expected_version=request.version, now=now
            )
        else:
            decisions.reject(
                request.pk,
                by=by,
                expected_version=request.version,
                reason="No.",
                now=now,
            )

    def withdraw(self) -> None:
        """Somebody takes an ask back."""
        request = self.random.choice(
            Request.objects.waiting().select_related("requester") or [None]
        )
        if request is not None:
            approvals.withdraw(request.pk, by=request.requester, now=timezone.now())

    def give_back(self) -> None:
        """Somebody gives one GPU or all of them back."""
        held = self.random.choice(
            Allocation.objects.live().select_related("team__created_by") or [None]
        )
        if held is not None:
            gpus = self.random.choice([1, None])
            ends.give_back(
                held.pk, gpus=gpus, by=held.team.created_by, now=timezone.now()
            )

    def expire(self) -> None:
        """The clock ends what is held."""
        held = self.random.choice(Allocation.objects.live() or [None])
        if held is not None:
            ends.expire(held.pk, now=held.until + timedelta(seconds=1))

    def set_budget(self) -> None:
        """A lead changes a budget."""
        limit = Decimal(self.random.choice([20_000, 60_000]))
        lead = factories.person("", Role.PLATFORM_LEAD)
        team = self.random.choice(Team.objects.all())
        budget_actions.set_budget(
            team, month=month_of(timezone.now()), limit_usd=limit, by=lead
        )

    def enrol(self) -> None:
        """A lead brings a team on board, which starts with a GPU."""
        flavor, number, now = (
            self.random.choice(flavors()),
            next(archives),
            timezone.now(),
        )
        start = Start(
            flavor=flavor, gpus=1, until=now + timedelta(days=1), purpose="notebook"
        )
        enrolment = Enrolment(
            name=f"Archive {number}",
            entra_group=f"00000000-0000-4000-9001-{number:012d}",
            cost_centre="CC-1",
            project="main",
            environment="dev",
            cluster=flavor.cluster,
            start=self.random.choice([start, None]),
        )
        onboard(
            enrolment,
            by=factories.person("", Role.PLATFORM_LEAD),
            graph=graph(),
            now=now,
        )

    def finish_pass(self) -> None:
        """A worker takes a lease and writes its status."""
        tenancy, now = self.random.choice(Tenancy.objects.all()), timezone.now()
        held = acquire(tenancy.pk, now=now)
        if held is not None:
            read = Tenancy.objects.select_related("cluster", "team").get(pk=tenancy.pk)
            write_status(
                read, held, seen=[], error=None, writes=1, now=now, requeue_at=now
            )

    def look_again(self) -> None:
        """Somebody wants it tried again."""
        tenancy = self.random.choice(Tenancy.objects.select_related("team__created_by"))
        look_again(tenancy, by=tenancy.team.created_by, now=timezone.now())

    def change_fleet(self) -> None:
        """A lead renames a cluster and reprices a flavor."""
        lead, flavor = (
            factories.person("", Role.PLATFORM_LEAD),
            self.random.choice(flavors()),
        )
        title = f"Training {self.random.random():.6f}"
        change_cluster(flavor.cluster_id, values={"title": title}, by=lead)
        price = Decimal(self.random.randint(10_000, 40_000)) / 10_000
        change_flavor(flavor.pk, values={"price_per_gpu_hour": price}, by=lead)


OPERATIONS = [
    Mixed.submit,
    Mixed.decide,
    Mixed.withdraw,
    Mixed.give_back,
    Mixed.expire,
    Mixed.set_budget,
    Mixed.enrol,
    Mixed.finish_pass,
    Mixed.look_again,
    Mixed.change_fleet,
]
WEIGHTS = [10, 6, 2, 4, 3, 1, 2, 4, 1, 2]


def flavors() -> list[Flavor]:
    """Every kind of GPU with its cluster."""
    return list(Flavor.objects.select_related("cluster"))


@pytest.mark.django_db(transaction=True)
def test_everything_at_once_never_deadlocks_and_leaves_the_books_right(
    directory: Running,
) -> None:
    cluster = factories.cluster()
    for _ in range(2):
        factories.flavor(cluster, gpus_total=60)
    for _ in range(3):
        team = factories.team()
        factories.join(team, team.created_by)
        factories.tenancy(team, cluster)
    mixed = [Mixed(SEED + number) for number in range(THREADS)]
    started = time.monotonic()
    threads = [threading.Thread(target=one.run) for one in mixed]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = sum((one.done for one in mixed), Counter[str]())
    logger.info(
        "%d operations in %.1f s: %s",
        done.total(),
        time.monotonic() - started,
        dict(done),
    )
    broken = [text for one in mixed for text in one.broken]
    assert not broken, "\n".join(broken)
    assert wrong_in_the_books() == []
    assert {operation.__name__ for operation in OPERATIONS} <= set(done), (
        "every kind of operation happened"
    )
