"""How long a session lasts: it slides while its person works, and ends for good some hours after they signed in."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.utils import timezone
from django.utils.dateparse import parse_datetime

STARTED = "session_started"
# A session is written again only when its end moves by as much: not with every page.
SLIDE_STEP = timedelta(minutes=5)


def begin(session: SessionBase, *, now: datetime) -> None:
    """Start both clocks, at sign-in."""
    session[STARTED] = now.isoformat()
    session.set_expiry(_end(now, now))


def keep(session: SessionBase, *, now: datetime, active: bool) -> bool:
    """Whether the session still holds; what its person does (`active`) moves its end, up to the absolute limit."""
    started = parse_datetime(str(session.get(STARTED, "")))
    if started is None:
        begin(session, now=now)
        return True
    if now >= started + timedelta(hours=settings.ENV.session_limit_hours):
        return False
    end = _end(started, now)
    if active and end - session.get_expiry_date() >= SLIDE_STEP:
        session.set_expiry(end)
    return True


def begin_at_sign_in(sender: object, request: Any, **_: object) -> None:
    """Receive Django's `user_logged_in`: whoever signs in, however, starts both clocks."""
    begin(request.session, now=timezone.now())


def _end(started: datetime, now: datetime) -> datetime:
    idle = now + timedelta(hours=settings.ENV.session_hours)
    return min(idle, started + timedelta(hours=settings.ENV.session_limit_hours))
