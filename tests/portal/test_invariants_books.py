"""Every promise that the books can break is broken here for real, and the checker says so, and what to do."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection, transaction

from accounts.models import Idempotency
from allocations.models import Allocation, Brake, Budget, LedgerEntry
from approvals.decisions import actions as decisions
from approvals.models import Request, Step
from approvals.requests import actions
from approvals.states import State
from checks.findings import Finding
from checks.invariants import BOOKS, check
from checks.work import reads_are_answered
from fleet.models import Cluster, Flavor
from notices.models import Delivery
from provisioning.models import Tenancy
from tests import factories
from tests.scene import DAY, HOUR, NOW, Scene, scene

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(hours=2)


class Whole(Exception):
    """Raised to have everything as it was."""


@pytest.fixture
def place() -> Scene:
    """A team with one ask that the policy approved, one that people approved, one that waits, and one withdrawn."""
    found = scene()
    found.ask(2)
    asked = found.ask(4)
    version = Request.objects.get(pk=asked.pk).version
    decisions.approve(asked.pk, by=found.priya, expected_version=version, now=NOW)
    found.ask(3)
    actions.withdraw(found.ask(5).pk, by=found.ada, now=NOW)
    factories.make_true(found.tenancy, at=NOW)
    Tenancy.objects.update(requeue_at=LATER + DAY, lease_no=3)
    Delivery.objects.all().delete()
    return found


def plain(statement: str) -> None:
    """Do what the database refuses, as who owns it may: its guards are away for one statement."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(statement)
        cursor.execute("SET session_replication_role = DEFAULT")


def without(table: str, name: str) -> None:
    """Take a constraint or a unique index off a table until the test's end."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}")
        cursor.execute(f"DROP INDEX IF EXISTS {name}")


def by_people() -> Request:
    return Request.objects.get(gpus=4)


def granted_twice() -> None:
    without("allocations_allocation", "a_request_is_granted_once")
    again = Allocation.objects.get(gpus=2)
    again.pk = None
    again.save(force_insert=True)


def paid_and_forgotten() -> None:
    asked = by_people()
    Allocation.objects.filter(hold=asked.hold_id).update(
        task=factories.task(asked), ended_at=NOW + HOUR, end_reason="returned"
    )


def overspent() -> None:
    without("allocations_budget", "a_budget_is_never_overspent")
    Budget.objects.update(limit_usd=1)


def held_for_nothing() -> None:
    [withdrawn] = Request.objects.filter(state=State.WITHDRAWN)
    budget = Budget.objects.order_by("month")[0]
    LedgerEntry.objects.create(
        budget=budget, hold=withdrawn.hold, usd=5, gpu_hours=5, at=NOW, why="set aside"
    )
    Budget.objects.filter(pk=budget.pk).update(
        held_usd=budget.held_usd + 5, held_gpu_hours=budget.held_gpu_hours + 5
    )


def own_vote() -> None:
    without("approvals_decision", "nobody_decides_their_own_request")
    plain(
        f"UPDATE approvals_decision SET by_id = requester_id WHERE request_id = {by_people().pk}"
    )


def one_vote_less() -> None:
    plain(f"DELETE FROM approvals_decision WHERE request_id = {by_people().pk}")


def kept_key(**fields: object) -> Idempotency:
    return Idempotency.objects.create(
        **{
            "user": by_people().requester,
            "route": "api/v1/requests/",
            "key": "k",
            "body_hash": "h",
            **fields,
        }
    )


def key_twice() -> None:
    without("accounts_idempotency", "one_row_per_idempotency_key")
    for _ in range(2):
        kept_key(status=201, body={}, location="/api/v1/x/")


PLANTED: dict[str, tuple[str, str, Callable[[], object]]] = {
    "a request is granted twice": ("I1", "granted 2 times", granted_twice),
    "a flavor promises more than can be had": (
        "I1",
        "25 GPUs are offered, 24 can be had",
        lambda: Flavor.objects.update(gpus_total=25),
    ),
    "a flavor counts a GPU that nobody holds": (
        "I1",
        "counted as taken",
        lambda: Flavor.objects.update(allocated=9),
    ),
    "more is desired than is held": (
        "I2",
        "3 × a100 are desired, 6 × a100 are held",
        lambda: Tenancy.objects.update(
            spec=Tenancy.objects.get().spec | {"flavors": [{"name": "a100", "gpus": 3}]}
        ),
    ),
    "an end left no trace in what is desired": (
        "I2",
        "no GPUs are held",
        lambda: Allocation.objects.update(ended_at=NOW + HOUR, end_reason="expired"),
    ),
    "a requester approved their own": ("I3", "Its own requester approved it", own_vote),
    "a vote is missing": ("I3", "nobody decided", one_vote_less),
    "a step was passed by too few": (
        "I3",
        "1 of 2",
        lambda: Step.objects.update(quorum=2),
    ),
    "what the policy looked at was changed": (
        "I3",
        "changed afterwards",
        lambda: plain("UPDATE approvals_evaluation SET inputs = '{}'"),
    ),
    "the policy's answer is gone": (
        "I3",
        "without an answer",
        lambda: plain("DELETE FROM approvals_evaluation WHERE outcome = 'automatic'"),
    ),
    "GPUs are held that nobody approved": (
        "I3",
        "nobody approved it",
        lambda: Allocation.objects.filter(gpus=2).update(
            hold=factories.hold(factories.team())
        ),
    ),
    "a budget holds more than its limit": ("I4", "of $1.00 are set aside", overspent),
    "a budget differs from its ledger": (
        "I4",
        "its ledger",
        lambda: Budget.objects.update(held_usd=Decimal("7.25")),
    ),
    "money is kept for what was withdrawn": ("I4", "still set aside", held_for_nothing),
    "an event was changed": (
        "I5",
        "was changed",
        lambda: plain("UPDATE audit_event SET details = '{}' WHERE seq = 2"),
    ),
    "an event is missing": (
        "I5",
        "is missing",
        lambda: plain("DELETE FROM audit_event WHERE seq = 3"),
    ),
    "the newest events were cut off": (
        "I5",
        "the newest that is known, is missing",
        lambda: plain(
            "DELETE FROM audit_event WHERE seq = (SELECT max(seq) FROM audit_event)"
        ),
    ),
    "the log's trigger is off": (
        "I5",
        "is off",
        lambda: plain("ALTER TABLE audit_event DISABLE TRIGGER audit_event_no_change"),
    ),
    "a request that nobody was told of": (
        "I5",
        "0 events say that it was asked",
        lambda: plain(
            "UPDATE audit_event SET subject_id = '0' WHERE kind = 'request.submitted'"
        ),
    ),
    "an end that nobody was told of": (
        "I5",
        "0 events say that allocation",
        lambda: Allocation.objects.filter(gpus=2).update(
            ended_at=NOW + HOUR, end_reason="returned", ended_by="?"
        ),
    ),
    "a state that no event leads to": (
        "I6",
        "It is rejected; its events say approved",
        lambda: plain(
            "UPDATE approvals_request SET state = 'rejected', approved_count = NULL, approved_until = NULL, "
            f"allocation_id = NULL WHERE id = {by_people().pk}"
        ),
    ),
    "a request that should have lapsed": (
        "I6",
        "still waits",
        lambda: Request.objects.filter(gpus=3).update(lapses_at=NOW),
    ),
    "a question that should have lapsed": (
        "I6",
        "still waits",
        lambda: Request.objects.filter(gpus=3).update(turn="requester", answer_by=NOW),
    ),
    "an approval that brought nothing": (
        "I6",
        "no GPUs were ever held",
        lambda: plain("DELETE FROM allocations_allocation WHERE gpus = 2"),
    ),
    "a place that nobody has looked at": (
        "I6",
        "Nobody has looked",
        lambda: Tenancy.objects.update(last_looked_at=None, changed_at=NOW),
    ),
    "a look that is due": (
        "I7",
        "has been due",
        lambda: Tenancy.objects.update(requeue_at=NOW),
    ),
    "an idempotency key twice": ("I10", "there 2 times", key_twice),
    "a key without its answer": ("I10", "its answer is not there", kept_key),
    "a holding past its end": (
        "I11",
        "should have ended",
        lambda: Allocation.objects.filter(gpus=2).update(
            starts_at=NOW - DAY, until=NOW, kept_until=NOW, remind_at=None
        ),
    ),
    "ends that a brake holds back": (
        "I11",
        "a clock that is wrong: 1, the first",
        lambda: (
            Allocation.objects.filter(gpus=2).update(
                starts_at=NOW - DAY, until=NOW, kept_until=NOW, remind_at=None
            ),
            Brake.objects.create(clock=NOW, due=1, live=1),
        ),
    ),
    "a status without a lease": (
        "I12",
        "with 0 leases taken",
        lambda: Tenancy.objects.update(lease_no=0),
    ),
    "a lease from a clock that is ahead": (
        "I12",
        "held until",
        lambda: Tenancy.objects.update(lease_until=LATER + timedelta(minutes=10)),
    ),
    "a personal token in a kept answer": (
        "I13",
        "hold a secret",
        lambda: kept_key(
            status=201, body={"token": "qm_01234567_" + "a" * 43}, location="/tokens/"
        ),
    ),
    "the client's secret on a page": (
        "I13",
        "hold a secret",
        lambda: Cluster.objects.update(message="401 for tests-only-" + "k" * 50),
    ),
    "a key in an audit event": (
        "I13",
        "hold a secret",
        lambda: plain(
            'UPDATE audit_event SET details = \'{"k": "-----BEGIN RSA PRIVATE KEY"}\' WHERE seq = 1'
        ),
    ),
    "something paid past its end": (
        "I14",
        "nobody was asked to take it down",
        paid_and_forgotten,
    ),
    "an answered ask that is gone": (
        "I15",
        "accepted and is gone",
        lambda: kept_key(status=201, body={}, location="/api/v1/requests/99999/"),
    ),
    "a granted holding that is gone": (
        "I15",
        "granted and is gone",
        lambda: plain("DELETE FROM allocations_allocation WHERE gpus = 2"),
    ),
}


@pytest.mark.slow
def test_books_that_are_right_break_no_promise(place: Scene) -> None:
    report = check(now=LATER, clusters=False)
    assert report.findings == []
    assert report.checked == {f"I{n}" for n in range(1, 17)} - {"I8", "I9"}
    assert any("not looked at, as you said" in note for note in report.notes)


@pytest.mark.slow
def test_each_broken_promise_is_found_with_what_to_do(place: Scene) -> None:
    missed = {}
    for name, (promise, words, plant) in PLANTED.items():
        # One team for all of them: each is broken in a savepoint of its own, and whole again after it.
        with suppress(Whole), transaction.atomic():
            plant()
            found = [*BOOKS[promise](LATER)]
            if not any(words in f.words and f.subject and f.todo for f in found):
                missed[name] = found
            raise Whole
    assert missed == {}
    assert check(now=LATER, clusters=False).findings == []
    assert {promise for promise, _, _ in PLANTED.values()} == set(BOOKS), (
        "one of each, at least"
    )


@pytest.mark.slow
def test_a_check_that_breaks_is_a_finding_and_the_others_are_made(
    place: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(now: datetime) -> Iterator[Finding]:
        yield from ()
        with connection.cursor() as cursor:
            cursor.execute("SELECT no_such_column FROM fleet_cluster")

    monkeypatch.setitem(BOOKS, "I1", breaks)
    report = check(now=LATER, clusters=False)
    assert [(f.promise, f.words) for f in report.findings] == [
        ("I1", "It could not be checked: ProgrammingError.")
    ]
    assert "I16" in report.checked


@pytest.mark.slow
def test_reads_that_fail_are_found(place: Scene, settings: object) -> None:
    settings.ALLOWED_HOSTS = []  # type: ignore[attr-defined]
    found = [*reads_are_answered(LATER)]
    assert found
    assert "answers 4" in found[0].words
