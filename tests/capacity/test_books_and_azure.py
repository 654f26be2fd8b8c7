"""Whatever is granted, given back and let go, and whatever fails: in the end Azure has what the books have, once.

I14: the active reservations in the portal's books are those that are in Azure.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

import pytest

from allocations.ends import actions as ends
from allocations.ends import sweep
from allocations.models import Allocation, LedgerEntry
from capacity.models import Reservation
from capacity.reservations import reconcile as engine
from capacity.reservations.states import State
from reconciling import failpoints
from tests.capacity.connected import Site, connected, site
from tests.sandbox.azure.running import Running
from web.refusals import Refused

pytestmark = pytest.mark.django_db
SIZES = ("Standard_NC24ads_A100_v4", "Standard_NC4as_T4_v3", "Standard_NC96ads_A100_v4")
RESERVING = "capacityReservations/"
ANYTHING = "providers/Microsoft"
POINTS = (
    "reservation.reserve",
    "reservation.resize",
    "reservation.release",
    "reservation.make_pool",
    "reservation.stored",
)
STEPS = 14


class Crash(BaseException):
    """The process ended here."""


def _crash() -> None:
    raise Crash


@contextmanager
def crashing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a failpoint that is reached end the worker, and the next one begin."""
    monkeypatch.setattr(failpoints, "strike", _crash)
    failpoints.forget()
    yield
    monkeypatch.delenv("FAILPOINT", raising=False)


class Walk:
    """One sequence of what people do and what fails, drawn by a seed."""

    def __init__(
        self, here: Site, draw: Random, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.here, self.draw, self.env, self.said = here, draw, monkeypatch, list[str]()

    def go(self) -> None:
        """Take the steps, with workers at it in between."""
        deeds: list[Callable[[], str]] = [
            self.grant,
            self.grant,
            self.give_back,
            self.let_go,
            self.fail,
            self.fail,
            self.crash,
        ]
        for _ in range(STEPS):
            self.said.append(self.draw.choice(deeds)())
            self.work(self.draw.randrange(4))

    def rest(self) -> None:
        """Let everything work again, and workers go on until nothing is due for a day."""
        self.here.azure.admin("DELETE", "/sandbox/faults")
        self.env.delenv("FAILPOINT", raising=False)
        for _ in range(6):
            self.here.azure.advance(3600)
            self.here.time.pass_(hours=2)
            self.here.work(30)

    def work(self, rounds: int) -> None:
        """Let workers do what is due, each of whom may end in the middle."""
        for _ in range(rounds):
            try:
                self.here.work(1)
            except Crash:
                self.env.delenv("FAILPOINT", raising=False)
                failpoints.forget()
                # The lease of who is gone has to end.
                self.here.time.pass_(minutes=3)
            self.here.time.pass_(seconds=self.draw.choice((1, 20, 120)))
            self.here.azure.advance(self.draw.choice((0, 5, 30)))

    def grant(self) -> str:
        instances, size = self.draw.randint(1, 4), self.draw.choice(SIZES)
        changes = {"zone": self.draw.choice(("", "1", "2")), "nodes_for": ""}
        if size == SIZES[1] and self.draw.random() < 0.5:
            changes["nodes_for"] = "dev-eastus/t4"
        try:
            self.here.grant(
                instances, vm_size=size, days=self.draw.choice((1, 9)), **changes
            )
        except Refused as refusal:
            return refusal.message
        return f"grant {instances} × {size} {changes}"

    def give_back(self) -> str:
        row = self._one()
        if row is None:
            return "nothing to give back"
        machines = self.draw.randint(1, row.count)
        ends.give_back_machines(
            row.pk, machines, by=self.here.scene.ada, now=self.here.time()
        )
        return f"give back {machines} of {row.pk}"

    def let_go(self) -> str:
        if self.draw.random() < 0.3:
            self.here.time.pass_(days=2)
            sweep.sweep(self.here.time())
            return "two days pass"
        row = self._one()
        if row is not None:
            ends.release(
                row.pk,
                actor=self.here.scene.ada.as_actor(),
                now=self.here.time(),
                why="let go early",
            )
        return f"let go of {row and row.pk}"

    def fail(self) -> str:
        method, path, what = self.draw.choice(
            (
                ("PUT", RESERVING, {"status": 503, "retry_after": 0}),
                ("PUT", RESERVING, {"status": 429, "retry_after": 0}),
                ("PUT", RESERVING, {"drop": True}),
                (
                    "PUT",
                    RESERVING,
                    {
                        "operation": {
                            "error": {"code": "AllocationFailed", "message": "No room."}
                        }
                    },
                ),
                ("PATCH", RESERVING, {"drop": True}),
                (
                    "PATCH",
                    RESERVING,
                    {
                        "operation": {
                            "error": {"code": "AllocationFailed", "message": "No room."}
                        }
                    },
                ),
                ("DELETE", RESERVING, {"drop": True}),
                ("DELETE", RESERVING, {"status": 500, "retry_after": 0}),
                ("GET", ANYTHING, {"truncate": 20}),
                ("GET", ANYTHING, {"status": 504, "retry_after": 0}),
                ("GET", "operations", {"status": 404}),
                ("PUT", "agentPools", {"drop": True}),
                (
                    "PUT",
                    "agentPools",
                    {
                        "operation": {
                            "error": {"code": "InternalError", "message": "Sorry."}
                        }
                    },
                ),
                ("DELETE", "agentPools", {"drop": True}),
                ("PUT", "capacityReservationGroups/[^/]*$", {"drop": True}),
                (
                    "PUT",
                    RESERVING,
                    {"status": 409, "code": "QuotaExceeded", "message": "quota"},
                ),
            )
        )
        self.here.azure.fault(
            method, path, times=self.draw.choice((1, 1, 3, 6)), **what
        )
        return f"{method} {path} {what}"

    def crash(self) -> str:
        point = self.draw.choice(POINTS)
        self.env.setenv("FAILPOINT", point)
        return f"crash at {point}"

    def _one(self) -> Allocation | None:
        rows = list(
            Allocation.objects.live()
            .filter(kept_until__gt=self.here.time())
            .order_by("pk")
        )
        return self.draw.choice(rows) if rows else None


def _walked(here: Site, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_random", Random(seed))
    walk = Walk(here, Random(seed), monkeypatch)
    with crashing(monkeypatch):
        walk.go()
        walk.rest()
    story = "\n".join(
        [f"seed {seed}", *walk.said, *map(str, Reservation.objects.values())]
    )
    assert here.in_azure() == here.in_books(), story
    assert not Reservation.objects.exclude(
        state__in=(State.RESERVED, State.RELEASED)
    ).exists(), story
    live = Allocation.objects.live().filter(reservation__isnull=False)
    assert sum(one.count for one in live) == sum(here.in_azure().values()), story
    pools = Reservation.objects.filter(state=State.RESERVED, flavor__isnull=False)
    assert sorted(here.pools.values()) == sorted(
        pools.values_list("machines", flat=True)
    ), story
    failed = Allocation.objects.filter(end_reason=Allocation.End.FAILED)
    assert all(one.failure for one in failed), story
    holds = LedgerEntry.objects.filter(hold__in=failed.values("hold"))
    assert sum(one.usd for one in holds) == 0, story


@pytest.fixture
def here(azure: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with connected(azure, monkeypatch):
        yield site(azure)


@pytest.mark.parametrize(
    "seed",
    [
        0,
        pytest.param(1, marks=pytest.mark.slow),
        pytest.param(2, marks=pytest.mark.slow),
    ],
)
def test_books_and_azure_agree(
    here: Site, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _walked(here, seed, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_books_and_azure_agree_many_times(
    here: Site, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _walked(here, seed, monkeypatch)
