"""Only a cluster that kept a worker waiting and gave no answer is left alone."""

import pytest

from connectors.errors import ConnectorError, PermanentError, TemporaryError
from provisioning import breaker

CLUSTER = 987_654_321


@pytest.fixture(autouse=True)
def _forget() -> None:
    breaker.has_answered(CLUSTER)


def silence() -> ConnectorError:
    """What the connector raises when no answer came."""
    error = TemporaryError("GET /version: ReadTimeoutError")
    error.__cause__ = TimeoutError()
    return error


@pytest.mark.parametrize(
    ("error", "seconds"),
    [(silence(), 0.1), (TemporaryError("503"), 12.0), (PermanentError("403", code="forbidden"), 12.0)],
    ids=["refused at once", "answered that it is busy", "answered no"],
)
def test_a_cluster_that_answers_or_refuses_at_once_is_asked_again(
    error: ConnectorError, seconds: float
) -> None:
    assert not breaker.kept_waiting(CLUSTER, error, seconds=seconds)
    assert breaker.seconds_left(CLUSTER) == 0


def test_each_further_silence_doubles_the_pause_up_to_thirty_seconds() -> None:
    pauses = []
    for _ in range(5):
        assert breaker.kept_waiting(CLUSTER, silence(), seconds=3.0)
        pauses.append(round(breaker.seconds_left(CLUSTER)))
    assert pauses == [5, 10, 20, 30, 30]
    breaker.has_answered(CLUSTER)
    assert breaker.seconds_left(CLUSTER) == 0
