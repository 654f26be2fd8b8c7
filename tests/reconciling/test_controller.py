"""Who may work on a row and when, and what each way to end a try leaves of it."""

from datetime import UTC, datetime, timedelta

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError
from django.db.models import F

from connectors.errors import ConnectorError, PermanentError, TemporaryError
from provisioning.controller import CONTROLLER
from provisioning.models import Tenancy
from reconciling.controller import RequeueAfter
from reconciling.lease import SECONDS, Lease, LeaseLost
from tests import factories

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
GIVEN_BACK = (None, 0)


@pytest.fixture
def row() -> Tenancy:
    """A row that is due and was made true once."""
    made = factories.make_true(factories.tenancy(), at=NOW - MINUTE)
    Tenancy.objects.filter(pk=made.pk).update(requeue_at=NOW)
    return made


def taken(
    row: Tenancy, *, now: datetime = NOW, only_due: bool = False
) -> Lease[Tenancy]:
    """The lease, which has to be free."""
    lease = CONTROLLER.acquire(row.pk, now=now, only_due=only_due)
    assert lease is not None
    return lease


def is_worth_a_try(row: Tenancy, *, now: datetime = NOW, **fields: object) -> bool:
    """Whether a message about the row, changed like that, begins a try."""
    Tenancy.objects.filter(pk=row.pk).update(**fields)
    return CONTROLLER.acquire(row.pk, now=now, only_due=True) is not None


def test_a_message_begins_a_try_when_the_row_is_due(row: Tenancy) -> None:
    assert is_worth_a_try(row, requeue_at=NOW)


def test_a_second_message_about_the_same_change_begins_none(row: Tenancy) -> None:
    assert not is_worth_a_try(row, requeue_at=NOW + MINUTE)


def test_a_new_generation_is_tried_though_the_clock_that_wrote_it_is_ahead(
    row: Tenancy,
) -> None:
    assert is_worth_a_try(row, requeue_at=NOW + MINUTE, generation=F("generation") + 1)


def test_a_try_that_failed_is_not_repeated_before_its_time(row: Tenancy) -> None:
    assert not is_worth_a_try(
        row, requeue_at=NOW + MINUTE, generation=F("generation") + 1, attempts=1
    )


def test_forty_thousand_tries_in_a_row_are_counted(row: Tenancy) -> None:
    Tenancy.objects.filter(pk=row.pk).update(attempts=40_000)

    taken(row)
    assert Tenancy.objects.get().attempts == 40_001


def test_what_is_wanted_anew_during_a_try_is_tried_at_once(row: Tenancy) -> None:
    lease = taken(row)
    Tenancy.objects.update(generation=F("generation") + 1)
    told: list[int] = []
    lease.enqueue_on_commit = told.append

    assert lease.finish(requeue_at=NOW + MINUTE, now=NOW + SECOND, attempts=0)
    found = Tenancy.objects.get()
    assert (found.requeue_at, told) == (NOW + SECOND, [row.pk])
    assert (found.lease_until, found.unfinished) == GIVEN_BACK


def test_whose_lease_was_taken_over_finishes_nothing(row: Tenancy) -> None:
    late = taken(row)
    taken(row, now=NOW + SECONDS * SECOND)
    before = Tenancy.objects.get()

    assert not late.finish(requeue_at=NOW + MINUTE, now=NOW, attempts=0, is_true=False)
    after = Tenancy.objects.get()
    assert (after.requeue_at, after.attempts, after.is_true) == (
        before.requeue_at,
        before.attempts,
        True,
    )
    assert after.unfinished == 0, "it was only slow, and nothing ended it"


def attempt(
    row: Tenancy, error: BaseException | None, *, lease: Lease[Tenancy] | None = None
) -> list[ConnectorError]:
    """A try that ends like this; what it was said to have failed of."""
    failures = list[ConnectorError]()
    with CONTROLLER.work(
        lease or taken(row), now=lambda: NOW + SECOND, fail=failures.append
    ):
        if error is not None:
            raise error
    return failures


@pytest.mark.parametrize(
    "error", [TemporaryError("503"), PermanentError("403", code="forbidden")]
)
def test_what_an_outside_system_said_is_for_the_owner_to_write_down(
    row: Tenancy, error: ConnectorError
) -> None:
    assert attempt(row, error) == [error]


def test_a_try_whose_time_is_over_is_made_again_and_no_mistake_of_ours(
    row: Tenancy,
) -> None:
    [failure] = attempt(row, SoftTimeLimitExceeded())

    assert isinstance(failure, TemporaryError)
    assert failure.message.startswith("It took longer than a worker has for one try")


def test_a_mistake_of_ours_is_a_failure_that_names_no_detail(row: Tenancy) -> None:
    [failure] = attempt(row, KeyError("secret"))

    assert isinstance(failure, PermanentError)
    assert failure.message == "The portal failed (KeyError). Its operators were told."


def test_who_comes_later_is_tried_then_as_if_it_had_not_been(row: Tenancy) -> None:
    assert attempt(row, RequeueAfter(7 * SECOND)) == []
    found = Tenancy.objects.get()
    assert (found.requeue_at, found.attempts) == (NOW + 8 * SECOND, 0)
    assert (found.lease_until, found.unfinished) == GIVEN_BACK


def test_what_is_wanted_anew_during_a_try_that_is_put_off_is_tried_at_once(
    row: Tenancy,
) -> None:
    lease = taken(row)
    told: list[int] = []
    lease.enqueue_on_commit = told.append
    Tenancy.objects.update(generation=F("generation") + 1)

    assert attempt(row, RequeueAfter(MINUTE), lease=lease) == []
    found = Tenancy.objects.get()
    assert (found.requeue_at, found.attempts, told) == (NOW + SECOND, 0, [row.pk])
    assert (found.lease_until, found.unfinished) == GIVEN_BACK


def test_a_lost_lease_is_no_failure_and_leaves_the_row_to_the_other(
    row: Tenancy,
) -> None:
    assert attempt(row, LeaseLost()) == []
    found = Tenancy.objects.get()
    assert (found.lease_until, found.unfinished) == (NOW + SECONDS * SECOND, 0)


def test_a_database_that_went_away_is_raised_and_counts_as_no_crash(
    row: Tenancy,
) -> None:
    with pytest.raises(OperationalError):
        attempt(row, OperationalError())
    found = Tenancy.objects.get()
    assert (found.lease_until, found.requeue_at, found.unfinished) == (
        NOW + SECONDS * SECOND,
    ) * 2 + (0,)


def test_a_lack_of_memory_is_raised_and_counts_as_a_crash(row: Tenancy) -> None:
    with pytest.raises(MemoryError):
        attempt(row, MemoryError())
    assert Tenancy.objects.get().unfinished == 1
