"""Times come from the database as they went in, in UTC, whatever the session's zone."""

from datetime import UTC, datetime

import pytest
from django.db import DataError, connection

pytestmark = pytest.mark.django_db
MOMENTS = (
    "2026-11-20 12:30:15.000250+00",
    "2026-11-20 12:30:15+00",
    "0001-01-02 00:00:00+00",
    "9999-12-30 23:59:59.999999+00",
    "2026-11-20 12:30:15+05:30",
)


@pytest.mark.parametrize("text", MOMENTS)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_a_moment_is_the_same_in_utc_in_every_zone_of_a_session(
    text: str, zone: str
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL TIME ZONE '{zone}'")
        cursor.execute("SELECT %s::timestamptz, NULL::timestamptz", [text])
        [(found, nothing)] = cursor.fetchall()
    assert found == datetime.fromisoformat(text)
    assert (found.tzinfo, nothing) == (UTC, None)


def test_a_moment_that_python_does_not_have_is_an_error() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT '12000-01-01 00:00:00+00'::timestamptz")
        with pytest.raises(DataError):
            cursor.fetchall()
