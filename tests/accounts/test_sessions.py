"""How long a session lasts: it slides with work, and not beyond its absolute limit."""

from datetime import UTC, datetime, timedelta

from django.contrib.sessions.backends.db import SessionStore

from accounts import sessions

NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


def begun() -> SessionStore:
    """A session whose person signed in at nine."""
    session = SessionStore()
    sessions.begin(session, now=NOW)
    return session


def test_a_session_ends_eight_hours_after_the_last_work() -> None:
    session = begun()
    assert session.get_expiry_date() == NOW + 8 * HOUR
    assert sessions.keep(session, now=NOW + 6 * HOUR, active=True)
    assert session.get_expiry_date() == NOW + 14 * HOUR


def test_work_moves_its_end_only_up_to_the_absolute_limit() -> None:
    session = begun()
    for hours in (7, 14, 20, 23):
        assert sessions.keep(session, now=NOW + hours * HOUR, active=True)
    assert session.get_expiry_date() == NOW + 24 * HOUR
    assert not sessions.keep(session, now=NOW + 24 * HOUR, active=True)


def test_what_a_page_fetches_by_itself_is_no_work() -> None:
    session = begun()
    assert sessions.keep(session, now=NOW + 6 * HOUR, active=False)
    assert session.get_expiry_date() == NOW + 8 * HOUR


def test_a_page_right_after_another_writes_nothing() -> None:
    session = begun()
    session.modified = False
    assert sessions.keep(session, now=NOW + timedelta(minutes=4), active=True)
    assert not session.modified


def test_a_session_of_before_gets_its_clocks_at_the_first_page() -> None:
    session = SessionStore()
    assert sessions.keep(session, now=NOW, active=True)
    assert not sessions.keep(session, now=NOW + 25 * HOUR, active=True)
