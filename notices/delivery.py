"""Sending what is due: claim by conditional update, send with no transaction open, then write down how it went.

A claim books the next try two minutes ahead, which no attempt outlasts: while a worker lives nobody else sends the
same message, and when it dies before it could write the message is sent again, under the same id.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db.models import Case, F, When

from connectors.backstage import Away
from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.mail import Letter, ReceiptLost, ServerAway
from connectors.webhooks import Gone
from notices import in_backstage, rendering
from notices.channels import sending, webhook_actions
from notices.in_backstage import NobodyToTell
from notices.kinds import GATHERED, Way
from notices.models import Delivery, Notice
from notices.rendering import Entry
from notices.servers import Outside
from reconciling import claims
from reconciling.backoff import Backoff

logger = structlog.get_logger(__name__)
LEASE = timedelta(minutes=2)
# While a receiver is away or busy.
RETRIES = Backoff(timedelta(seconds=30), timedelta(hours=1), factor=3)
# While only the receipt was lost: nobody is away, so the first tries come within seconds.
RECEIPTS = Backoff(timedelta(seconds=4), timedelta(hours=1), factor=3)
MAX_ATTEMPTS = 8
MAX_GATHERED = 50
# With the longest attempt after it, still within a task's time limit.
LONGEST_PASS_SECONDS = 12
MOST_IN_A_PASS = 200
# A receiver that takes longer than this keeps others waiting.
SLOW = timedelta(seconds=2)
SETTINGS_PATH = "/settings/notices/"
WORKER_DIED = "Each worker that sent it ended before it could say how it went."


@dataclass(frozen=True)
class Claim:
    """The right to send one delivery; `attempt` counts from 1."""

    delivery: Delivery
    attempt: int


def deliver_due(
    *,
    now: Callable[[], datetime],
    outside: Outside,
    jitter: Callable[[], float] = random.random,
) -> int:
    """Send what is due, for some twelve seconds at most; returns how many messages left."""
    # Mail comes first, and Backstage last: a slow receiver must not keep the others waiting.
    rank = Case(When(way=Way.EMAIL, then=0), When(way=Way.BACKSTAGE, then=2), default=1)
    due = Delivery.objects.due(now()).order_by(rank, "next_at", "id")
    if outside.mail is None:
        due = due.not_by_mail()
    sent, started = 0, time.monotonic()
    for pk in list(due.values_list("pk", flat=True)[:MOST_IN_A_PASS]):
        if time.monotonic() - started > LONGEST_PASS_SECONDS:
            break
        claim = take(pk, now=now())
        if claim is not None:
            sent += attempt(claim, now=now, outside=outside, jitter=jitter)
    return sent


def take(pk: int, *, now: datetime) -> Claim | None:
    """Claim a delivery that is due; None when somebody else has, or when it was tried often enough."""
    found = _whole().due(now).filter(pk=pk).first()
    if found is None:
        return None
    mine = Delivery.objects.due(now).filter(pk=pk, attempts=found.attempts)
    if found.attempts >= MAX_ATTEMPTS:
        mine.update(
            state=Delivery.State.PARKED, last_error=found.last_error or WORKER_DIED
        )
        return None
    taken = claims.claim(mine, "next_at", until=now + LEASE, attempts=F("attempts") + 1)
    return Claim(found, found.attempts + 1) if taken else None


def attempt(
    claim: Claim,
    *,
    now: Callable[[], datetime],
    outside: Outside,
    jitter: Callable[[], float],
) -> bool:
    """Send what was claimed and write down how it went; True when it left."""
    began = now()
    try:
        send(claim.delivery, now=began, outside=outside)
    except NobodyToTell:
        _still_mine(claim).delete()
    except PermanentError as error:
        _park(claim, error.message)
        if isinstance(error, Gone):
            _switch_off(claim, now=now())
    except Exception as error:
        if not isinstance(error, ConnectorError):
            # A mistake of ours: it counts as an attempt like any other, and stops nothing else.
            logger.exception("notice not sent", delivery=claim.delivery.pk)
        _later(claim, error, now=now(), jitter=jitter())
    else:
        Delivery.objects.filter(
            pk=claim.delivery.pk, state=Delivery.State.WAITING
        ).update(state=Delivery.State.SENT, sent_at=now(), last_error="")
        _let_others_go_first(claim, took=now() - began, now=now())
        return True
    return False


def send(delivery: Delivery, *, now: datetime, outside: Outside) -> None:
    """Hand one message to the outside; raises ConnectorError when it was not taken, or NobodyToTell."""
    notice = delivery.notice
    if notice and delivery.way == Way.BACKSTAGE:
        in_backstage.send(notice, outside)
        return
    channel = notice.channel if notice else None
    if notice is None or channel is None:
        _mail(delivery, now=now, outside=outside)
        return
    sending.send(
        notice, channel, message_id=delivery.stable_id, now=now, outside=outside
    )


def _mail(delivery: Delivery, *, now: datetime, outside: Outside) -> None:
    if outside.mail is None:
        raise ServerAway("No mail server is configured.")
    settings_url = outside.public_url + SETTINGS_PATH
    together: list[Delivery] = []
    if delivery.digest:
        person = delivery.digest.person
        entries = [_entry(notice, outside) for notice in delivery.digest.notices.all()]
        page = rendering.digest(
            entries, day=delivery.digest.day, settings_url=settings_url
        )
    else:
        notice: Any = delivery.notice
        person = notice.person
        together = _together(delivery, now=now)
        entries = [
            _entry(notice, outside),
            *(_entry(each.notice, outside) for each in together if each.notice),
        ]
        title = f"{len(entries)} requests wait for your decision"
        page = (
            rendering.gathered(entries, title=title, settings_url=settings_url)
            if together
            else rendering.mail(entries[0], settings_url=settings_url)
        )
    if not person.is_active:
        raise PermanentError("This account is blocked.")
    if not person.email:
        raise PermanentError("The directory has no e-mail address of this person.")
    message_id = f"{delivery.stable_id}@{outside.host}"
    outside.mail.send(
        Letter(person.email, page.subject, page.text, page.html, message_id), now=now
    )
    Delivery.objects.filter(
        pk__in=[each.pk for each in together], state=Delivery.State.WAITING
    ).update(state=Delivery.State.SENT, sent_at=now, last_error="")


def _together(delivery: Delivery, *, now: datetime) -> list[Delivery]:
    """What else is due to the same person of a kind that is gathered, claimed like the delivery itself.

    With one that is tried again it is what was in the mail before, and nothing else: whoever has had it takes no second
    one under its id.
    """
    notice = delivery.notice
    # What was to leave at once, because somebody chose that, leaves by itself.
    if notice is None or notice.kind not in GATHERED or delivery.next_at <= notice.at:
        return []
    tried = delivery.attempts
    same = _like(delivery, notice, attempts=tried).due(now)
    same = (
        same.filter(next_at=delivery.next_at)
        if tried
        else same.filter(next_at__gt=F("notice__at"))
    )
    found = list(same.order_by("id")[:MAX_GATHERED])
    fresh = Delivery.objects.due(now).filter(attempts=tried)
    # To the same moment: by that they are known as one mail, also when this worker dies.
    until = Delivery.objects.values_list("next_at", flat=True).get(pk=delivery.pk)
    return [
        each
        for each in found
        if claims.claim(
            fresh.filter(pk=each.pk), "next_at", until=until, attempts=tried + 1
        )
    ]


def _like(delivery: Delivery, notice: Notice, *, attempts: int) -> Any:
    """Other deliveries of the same kind to the same person, tried as often: those that one mail can gather."""
    return (
        _whole()
        .filter(
            way=delivery.way,
            attempts=attempts,
            notice__kind=notice.kind,
            notice__person=notice.person_id,
        )
        .exclude(pk=delivery.pk)
    )


def _entry(notice: Notice, outside: Outside) -> Entry:
    return Entry(notice.said, outside.public_url + notice.link)


def _whole() -> Any:
    return Delivery.objects.select_related(
        "notice__person", "notice__channel", "digest__person"
    )


def _let_others_go_first(claim: Claim, *, took: timedelta, now: datetime) -> None:
    """Let what waits for a slow receiver wait for as long as its last message took, so that it takes half the time."""
    notice = claim.delivery.notice
    if took > SLOW and notice is not None and notice.channel_id is not None:
        same = Delivery.objects.due(now + took).filter(
            notice__channel=notice.channel_id
        )
        same.update(next_at=now + took)


def _switch_off(claim: Claim, *, now: datetime) -> None:
    notice = claim.delivery.notice
    if notice is not None and notice.channel is not None:
        webhook_actions.switch_off_gone(notice.channel, now=now)


def _park(claim: Claim, why: str) -> None:
    _still_mine(claim).update(state=Delivery.State.PARKED, last_error=_short(why))


def _later(claim: Claim, error: Exception, *, now: datetime, jitter: float) -> None:
    """Book the next try, or park it after the last; what waits for the same receiver waits as long, uncounted."""
    why = (
        error.message
        if isinstance(error, ConnectorError)
        else f"A fault of the portal: {type(error).__name__}."
    )
    if claim.attempt >= MAX_ATTEMPTS:
        _park(claim, why)
        return
    if isinstance(error, ReceiptLost):
        # Nobody is away: this mail alone waits.
        next_at = now + RECEIPTS.wait(claim.attempt, chance=jitter)
        _put_off(claim, next_at, why)
        return
    asked = error.retry_after if isinstance(error, TemporaryError) else None
    next_at = now + RETRIES.wait(claim.attempt, chance=jitter, retry_after=asked)
    _put_off(claim, next_at, why)
    notice = claim.delivery.notice
    if isinstance(error, ServerAway):
        Delivery.objects.due(next_at).filter(way=Way.EMAIL).exclude(
            pk=claim.delivery.pk
        ).update(next_at=next_at)
    elif isinstance(error, Away):
        Delivery.objects.due(next_at).filter(way=Way.BACKSTAGE).exclude(
            pk=claim.delivery.pk
        ).update(next_at=next_at)
    elif isinstance(error, TemporaryError) and notice and notice.channel_id:
        same = Delivery.objects.due(next_at).filter(notice__channel=notice.channel_id)
        same.exclude(pk=claim.delivery.pk).update(next_at=next_at)


def _put_off(claim: Claim, next_at: datetime, why: str) -> None:
    """Book the next try of a delivery, and with it of what was gathered in its mail."""
    booked = _still_mine(claim).values_list("next_at", flat=True).first()
    notice = claim.delivery.notice
    if booked is not None and notice is not None and notice.kind in GATHERED:
        _like(claim.delivery, notice, attempts=claim.attempt).filter(
            state=Delivery.State.WAITING, next_at=booked
        ).update(next_at=next_at)
    _still_mine(claim).update(next_at=next_at, last_error=_short(why))


def _still_mine(claim: Claim) -> Any:
    return Delivery.objects.filter(
        pk=claim.delivery.pk, state=Delivery.State.WAITING, attempts=claim.attempt
    )


def _short(text: str) -> str:
    return text[:300]
