"""Between which ends a vote may choose."""

from datetime import datetime, timedelta

import pytest

from approvals.decisions.shortening import earliest_end, out_of_range, whole_time
from approvals.models import Request
from tests.scene import DAY, HOUR, NOW


@pytest.mark.parametrize(
    ("own_until", "earliest"),
    [
        pytest.param(None, NOW + DAY, id="a day after it begins"),
        pytest.param(NOW + HOUR, NOW + DAY, id="a renewal of what ends soon"),
        pytest.param(NOW + 3 * DAY, NOW + 4 * DAY, id="whole days behind its end"),
        pytest.param(
            NOW + 2 * DAY - timedelta(minutes=1),
            NOW + 2 * DAY + timedelta(minutes=14),
            id="as much longer as any renewal",
        ),
        pytest.param(NOW - HOUR, NOW + DAY, id="what it kept has ended"),
    ],
)
def test_the_earliest_end(own_until: datetime | None, earliest: datetime) -> None:
    assert earliest_end(NOW, own_until) == earliest


def test_it_says_which_ends_there_are_or_that_there_is_none() -> None:
    assert out_of_range(NOW + DAY, NOW + 2 * DAY, now=NOW) == (
        "Approve an end between Sat 21 Nov, 12:00 UTC and Sun 22 Nov, 12:00 UTC."
    )
    assert out_of_range(NOW + DAY, NOW + HOUR, now=NOW) == (
        "It cannot be approved for a shorter time: it ends on Fri 20 Nov, 13:00 UTC, "
        "and Sat 21 Nov, 12:00 UTC would be the earliest end."
    )


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        pytest.param(None, None, id="nothing"),
        pytest.param(NOW, None, id="as a form writes it, without seconds"),
        pytest.param(NOW + timedelta(seconds=40), None, id="to the second"),
        pytest.param(NOW - timedelta(minutes=1), NOW - timedelta(minutes=1), id="less"),
    ],
)
def test_all_of_its_time_is_no_end_of_its_own(
    said: datetime | None, meant: datetime | None
) -> None:
    request = Request(until=NOW + timedelta(seconds=40))
    assert whole_time(request, said) == meant
