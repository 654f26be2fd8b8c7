"""I7, I12, I14, I16: what is due is worked on by the newest worker, ends are seen to, and reads are answered."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from urllib.parse import urlsplit

from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.db.models import Count, Exists, OuterRef
from django.http import HttpRequest

from allocations.models import Allocation
from audit.events import Kind
from audit.models import Event
from checks.findings import Finding
from manual.models import Task
from notices.models import Delivery
from notices.servers import mail_is_configured
from provisioning.models import Tenancy
from reconciling.lease import SECONDS

LATE = timedelta(seconds=30)
SLACK = timedelta(seconds=60)
READS = ("/healthz", "/readyz", "/sign-in")
CLOCK = "See whether a worker with its clock runs (celery worker -B), and what it logs."


def is_worked_on(now: datetime) -> Iterator[Finding]:
    """I7: no look and no message is due for longer than half a minute."""
    for tenancy in (
        Tenancy.objects.due(now - LATE).exclude(generation=0).order_by("requeue_at")
    ):
        seconds = (now - tenancy.requeue_at).total_seconds()
        yield Finding(
            "I7",
            f"tenancy {tenancy.namespace}",
            f"A look at it has been due for {seconds:,.0f} seconds.",
            CLOCK,
        )
    due = Delivery.objects.due(now - LATE).order_by("next_at")
    if not mail_is_configured():
        due = due.not_by_mail()
    for delivery in due:
        seconds = (now - delivery.next_at).total_seconds()
        yield Finding(
            "I7",
            str(delivery),
            f"Sending it has been due for {seconds:,.0f} seconds.",
            CLOCK,
        )


def newest_wins(now: datetime) -> Iterator[Finding]:
    """I12: every pass had a lease of its own, and no lease outlasts its five seconds."""
    told = _told(Kind.TENANCY_CONVERGED, Kind.TENANCY_FAILED)
    repaired = _told(Kind.DRIFT_REPAIRED)
    for tenancy in Tenancy.objects.order_by("pk"):
        # One pass may both have repaired something and have come to an end that is told of.
        key = str(tenancy.pk)
        passes = max(told[key], repaired[key]) or (1 if tenancy.last_looked_at else 0)
        if tenancy.lease_no < passes:
            yield Finding(
                "I12",
                f"tenancy {tenancy.namespace}",
                f"{passes} passes have written what they saw, with {tenancy.lease_no} leases taken.",
                "Stop all workers but one, and tell the developers: a worker wrote without a lease.",
            )
        if (
            tenancy.lease_until
            and tenancy.lease_until > now + timedelta(seconds=SECONDS) + SLACK
        ):
            yield Finding(
                "I12",
                f"tenancy {tenancy.namespace}",
                f"Its lease is held until {tenancy.lease_until:%Y-%m-%d %H:%M}.",
                "A worker's clock is ahead. Set it right, and set `lease_until` to NULL.",
            )


def _told(*kinds: Kind) -> Counter[str]:
    """How many of these events there are, by tenancy."""
    rows = (
        Event.objects.filter(subject_type="tenancy", kind__in=kinds)
        .order_by()
        .values_list("subject_id")
    )
    return Counter(dict(rows.annotate(number=Count("pk"))))


def ends_are_seen_to(now: datetime) -> Iterator[Finding]:
    """I14: whatever costs money outside is asked to be taken down once its time is over."""
    ended = Allocation.objects.filter(
        ended_at__lte=now - SLACK, task__kind=Task.Kind.SET_UP
    )
    # What goes on in part under a renewal is taken down at the end of that.
    goes_on = Exists(Allocation.objects.granted().filter(task=OuterRef("task")))
    over = ended.exclude(
        end_reason__in=[Allocation.End.RENEWED, Allocation.End.FAILED]
    ).filter(~goes_on, part_of=None)
    for row in over.exclude(task__state=Task.State.DROPPED).select_related(
        "hold__request", "flavor"
    ):
        words = (
            f"{row.title or row.what} is over, and nobody was asked to take it down."
        )
        yield Finding("I14", row.hold.reference, words, CLOCK)


def reads_are_answered(now: datetime) -> Iterator[Finding]:
    """I16: pages that need no sign-in are answered by this very process."""
    for path in READS:
        status = _handler().get_response(_get(path)).status_code
        if status != 200:
            yield Finding(
                "I16",
                path,
                f"It answers {status}.",
                "See what the web server logs of it.",
            )


@cache
def _handler() -> BaseHandler:
    handler = BaseHandler()
    handler.load_middleware()
    return handler


def _get(path: str) -> HttpRequest:
    address = urlsplit(settings.PUBLIC_URL)
    request = HttpRequest()
    request.method, request.path, request.path_info = "GET", path, path
    request.META = {
        "HTTP_HOST": address.netloc,
        "SERVER_NAME": address.hostname,
        "SERVER_PORT": "80",
        "REQUEST_METHOD": "GET",
        "HTTP_X_FORWARDED_PROTO": address.scheme,
        "REMOTE_ADDR": "127.0.0.1",
        "QUERY_STRING": "",
    }
    return request
