"""Only a target that kept a worker waiting and gave no answer is left alone."""

from datetime import UTC, datetime, timedelta

import pytest

from connectors.errors import ConnectorError, PermanentError, TemporaryError
from provisioning.models import ClusterThrottle
from reconciling import breaker
from tests import factories

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def target() -> ClusterThrottle:
    return ClusterThrottle(pk=factories.cluster().pk)


def silence() -> ConnectorError:
    """What the connector raises when no answer came."""
    error = TemporaryError("GET /version: ReadTimeoutError")
    error.__cause__ = TimeoutError()
    return error


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (silence(), 0.1),
        (TemporaryError("503"), 12.0),
        (PermanentError("403", code="forbidden"), 12.0),
    ],
    ids=["refused at once", "answered that it is busy", "answered no"],
)
def test_a_target_that_answers_or_refuses_at_once_is_called_again(
    target: ClusterThrottle, error: ConnectorError, seconds: float
) -> None:
    assert not breaker.failed(target, error, seconds=seconds, now=NOW)
    assert breaker.seconds_here(target) == 0
    assert not ClusterThrottle.objects.exists()


def test_each_further_silence_doubles_the_pause_of_all_workers_up_to_thirty_seconds(
    target: ClusterThrottle,
) -> None:
    here, everywhere = [], []
    for _ in range(5):
        assert breaker.failed(target, silence(), seconds=3.0, now=NOW)
        here.append(round(breaker.seconds_here(target)))
        until = ClusterThrottle.objects.get().open_until
        everywhere.append(until and (until - NOW) / timedelta(seconds=1))

    assert here == everywhere == [5, 10, 20, 30, 30]


def test_an_answer_ends_the_pauses_and_the_next_begins_with_the_first(
    target: ClusterThrottle,
) -> None:
    for _ in range(3):
        breaker.failed(target, silence(), seconds=3.0, now=NOW)
    breaker.forget(target)
    assert breaker.seconds_here(target) == 0
    assert breaker.close_everywhere(target)
    assert not breaker.close_everywhere(target), "it was closed already"

    breaker.failed(target, silence(), seconds=3.0, now=NOW)
    assert round(breaker.seconds_here(target)) == 5


def test_targets_of_two_clusters_have_nothing_to_do_with_each_other(
    target: ClusterThrottle,
) -> None:
    other = ClusterThrottle(pk=factories.cluster().pk)
    breaker.failed(target, silence(), seconds=3.0, now=NOW)

    assert breaker.seconds_here(other) == 0
    assert breaker.seconds_to_wait(other, now=NOW) == 0
