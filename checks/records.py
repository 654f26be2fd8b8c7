"""I5, I10, I15: the record is whole and guarded, keys have one answer, and what was accepted is there."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from django.db import connection
from django.db.models import Count
from django.db.models.functions import Coalesce

from accounts.models import Idempotency
from allocations.models import Allocation
from approvals.models import Request
from audit.events import Kind
from audit.models import Event, Head, verify
from checks.findings import Finding

GUARDS = ("audit_event_no_change", "audit_event_no_truncate")
LOCATION = re.compile(r"/requests/(\d+)/")
ENDED = {
    Allocation.End.EXPIRED.value: Kind.ALLOCATION_EXPIRED,
    Allocation.End.RETURNED.value: Kind.ALLOCATION_RETURNED,
}
RESTORE = "Keep the database as it is, and compare it with a backup: docs/how-to/verify-the-audit-log.md."
BACKUP = "Compare with a backup, and tell the developers."


def log_is_whole(now: datetime) -> Iterator[Finding]:
    """I5: no gap, no change, nothing cut off, guarded by the database, and an event for each change."""
    verdict = verify()
    if verdict.broken_at is not None:
        yield Finding("I5", f"event {verdict.broken_at}", verdict.reason, RESTORE)
    newest = Event.objects.order_by("-seq").values_list("seq").first() or (0,)
    head = Head.objects.filter(pk=1).values_list("seq").first() or (0,)
    if newest[0] > head[0]:
        yield Finding(
            "I5",
            f"event {newest[0]}",
            f"The newest event should be number {head[0]}.",
            RESTORE,
        )
    for guard in GUARDS:
        if not _stands(guard):
            yield Finding(
                "I5",
                guard,
                "The trigger that keeps events from being changed is off.",
                "Switch it on again, and verify the chain against the number you have kept elsewhere.",
            )
    yield from _untold()


def _stands(guard: str) -> bool:
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_trigger WHERE tgname = %s AND tgrelid = 'audit_event'::regclass "
            "AND tgenabled IN ('O', 'A'))",
            [guard],
        )
        return bool(cursor.fetchone()[0])


def _untold() -> Iterator[Finding]:
    """Changes of which there is no event, or more than one."""
    asked = _told(Kind.REQUEST_SUBMITTED)
    for pk in Request.objects.order_by("pk").values_list("pk", flat=True).iterator():
        if asked[str(pk)] != 1:
            yield Finding(
                "I5",
                f"request-{pk}",
                f"{asked[str(pk)]} events say that it was asked.",
                BACKUP,
            )
    told = {kind: _told(kind) for kind in set(ENDED.values())}
    # Of what ended in parts, each part has an event that names the whole.
    whole = Coalesce("part_of", "pk")
    rows = (
        Allocation.objects.of_gpus()
        .filter(end_reason__in=ENDED)
        .order_by()
        .annotate(whole=whole)
    )
    counted = rows.values_list("whole", "hold__request", "end_reason").annotate(
        ends=Count("pk")
    )
    for pk, request, reason, ends in counted.order_by("whole").iterator():
        number = told[ENDED[reason]][str(pk)]
        if number != ends:
            words = f"{number} events say that allocation {pk} has ended, which it did {ends} times."
            yield Finding("I5", f"request-{request}", words, BACKUP)


def _told(kind: Kind) -> Counter[str]:
    return Counter(
        Event.objects.filter(kind=kind).values_list("subject_id", flat=True).iterator()
    )


def keys_have_one_answer(now: datetime) -> Iterator[Finding]:
    """I10: a key is there once, with the answer that was given to it."""
    rows = Idempotency.objects.order_by()
    for row in (
        rows.values("user", "route", "key")
        .annotate(number=Count("pk"))
        .filter(number__gt=1)
    ):
        yield Finding(
            "I10",
            f"{row['route']} {row['key']}",
            f"The key is there {row['number']} times.",
            BACKUP,
        )
    for half in rows.filter(status=None, location=""):
        yield Finding(
            "I10",
            f"{half.route} {half.key}",
            "The key was taken, and its answer is not there.",
            BACKUP,
        )


def accepted_is_kept(now: datetime) -> Iterator[Finding]:
    """I15: what was answered with success, or written into the log as done, is there."""
    there = {
        str(pk)
        for pk in Request.objects.order_by().values_list("pk", flat=True).iterator()
    }
    answered = Idempotency.objects.exclude(location="").values_list(
        "location", flat=True
    )
    said = {
        found[1]
        for location in answered.iterator()
        if (found := LOCATION.search(location))
    }
    for number in sorted((said | set(_told(Kind.REQUEST_SUBMITTED))) - there, key=int):
        yield Finding(
            "I15", f"request-{number}", "It was accepted and is gone.", BACKUP
        )
    held = {
        str(pk)
        for pk in Allocation.objects.order_by().values_list("pk", flat=True).iterator()
    }
    for number in sorted(set(_told(Kind.ALLOCATION_ISSUED)) - held, key=int):
        yield Finding(
            "I15", f"allocation {number}", "It was granted and is gone.", BACKUP
        )
