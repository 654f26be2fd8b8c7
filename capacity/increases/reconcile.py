"""What a worker does for a request for more quota: send it once, ask what became of it, and have its limit read.

One worker at a time holds a request's lease. Before it is sent that is written down, so that whoever comes after a lost
answer, or after a worker that died, first looks whether Azure has it.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from random import SystemRandom

from capacity.connection import Azure, azure_of
from capacity.increases import actions
from capacity.increases.enqueue import queue
from capacity.increases.models import QuotaIncrease, QuotaIncreaseQuerySet
from capacity.increases.states import State, next_look
from capacity.subscriptions import observing
from connectors.azure.quota import QuotaRequest
from connectors.errors import ConnectorError, PermanentError, TemporaryError
from reconciling import failpoints
from reconciling.backoff import Backoff
from reconciling.controller import Controller
from reconciling.lease import Lease

RETRIES = Backoff(timedelta(seconds=10), timedelta(hours=1))
# Somebody has asked for another limit elsewhere; Azure takes days for that.
ANOTHER_OPEN = Backoff(timedelta(minutes=10), timedelta(hours=1))
# What Azure says to the request itself, and what keeps the portal from asking at all.
REFUSING = frozenset({"quota", "not_supported", "size_not_available", "not_allowed"})
PREVENTING = frozenset(
    {
        "forbidden",
        "invalid",
        "not_found",
        "no_subscription",
        "not_registered",
        "denied_by_policy",
        "bad_name",
    }
)
# How far Azure's clock may be behind, and how soon it lists what it took.
CLOCK_SKEW, LISTED_WITHIN = timedelta(minutes=10), timedelta(hours=1)
OUTCOMES = {"granted": State.GRANTED, "refused": State.REFUSED}
UNKNOWN = "Azure knows this request no more. Look there for what became of it before you ask again."
_random = SystemRandom()
Clock = Callable[[], datetime]


def _rows() -> QuotaIncreaseQuerySet:
    return QuotaIncrease.objects.select_related("asked_by").in_progress()


CONTROLLER: Controller[QuotaIncrease] = Controller(
    rows=_rows, queue=queue, park=actions.fail_parked
)


def reconcile(increase_id: int, *, now: Clock) -> bool:
    """Do what is due for a request; False when nothing is, or another worker is at it."""
    lease = CONTROLLER.acquire(increase_id, now=now(), only_due=True)
    if lease is None:
        return False
    with CONTROLLER.work(
        lease, now=now, fail=lambda error: _failed(lease, error, now=now())
    ):
        azure = azure_of(lease.row.subscription)
        _go_on(lease, azure, now)
    if QuotaIncrease.objects.filter(pk=increase_id, state=State.GRANTED).exists():
        observing.observe(lease.row.subscription, now=now)
    return True


def _go_on(lease: Lease[QuotaIncrease], azure: Azure, now: Clock) -> None:
    row = lease.row
    if row.state == State.NEW:
        found: QuotaRequest | None = _sent(lease, azure, now)
    else:
        found = azure.quota.request(row.region, row.azure_id)
    since = now() - (row.sent_at or now())
    if found is None and since > LISTED_WITHIN:
        _end(lease, State.FAILED, UNKNOWN, now())
    elif found is None or found.state == "open":
        message = row.message if found is None else found.message
        lease.finish(
            requeue_at=now() + next_look(since),
            now=now(),
            attempts=0,
            message=message[:600],
        )
    else:
        _end(lease, OUTCOMES[found.state], _words(found), now())


def _sent(lease: Lease[QuotaIncrease], azure: Azure, now: Clock) -> QuotaRequest:
    """Have Azure take the request, once, whatever became of an earlier try."""
    row = lease.row
    lease.check(now=now())
    found = None if row.sending_since is None else _there(row, azure)
    if found is None:
        row.sending_since = row.sending_since or now()
        lease.write(sending_since=row.sending_since)
        failpoints.reach("increase.sending")
        found = azure.quota.request_increase(row.region, row.family, row.limit)
        failpoints.reach("increase.sent")
    actions.sent(row.pk, azure_id=found.id, message=found.message, now=now())
    return found


def _there(row: QuotaIncrease, azure: Azure) -> QuotaRequest | None:
    """What Azure has of a request that may have reached it; an older one for the same limit is none of it."""
    assert row.sending_since is not None  # noqa: S101 - its caller has looked
    begun = row.sending_since - CLOCK_SKEW
    alike = (one for one in azure.quota.requests(row.region) if one.limit == row.limit)
    mine = (one for one in alike if one.name.casefold() == row.family.casefold())
    return next(
        (one for one in mine if one.submitted_at is None or one.submitted_at >= begun),
        None,
    )


def _end(
    lease: Lease[QuotaIncrease], state: State, message: str, now: datetime
) -> None:
    if lease.finish(requeue_at=now, now=now, attempts=0):
        actions.answered(lease.row.pk, state, message=message, now=now)


def _failed(
    lease: Lease[QuotaIncrease], error: ConnectorError, *, now: datetime
) -> None:
    """Book the next try; what Azure will say again however often it is asked ends a request that it has not taken."""
    row = lease.row
    code = error.code if isinstance(error, PermanentError) else ""
    # What was refused is not there; of everything else that is not known.
    nothing_there = {"sending_since": None} if code else {}
    if row.state == State.NEW and code in REFUSING | PREVENTING:
        _end(
            lease,
            State.REFUSED if code in REFUSING else State.FAILED,
            error.message,
            now,
        )
        return
    retry_after = error.retry_after if isinstance(error, TemporaryError) else None
    backoff = ANOTHER_OPEN if code == "request_open" else RETRIES
    wait = backoff.wait(row.attempts, chance=_random.random(), retry_after=retry_after)
    lease.finish(
        requeue_at=now + wait, now=now, message=error.message[:600], **nothing_there
    )


def _words(found: QuotaRequest) -> str:
    """Azure's sentence, and the code that it gives for a refusal."""
    message = found.message or "Azure does not say why."
    return f"{message} ({found.code})" if found.code else message
