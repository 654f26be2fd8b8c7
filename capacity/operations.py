"""Long operations of Azure on rows that workers make true: kept with the row, so that whoever comes next goes on.

A row that uses them has two fields: `operation`, None or {"step", "token", "since", ...}, and `message`.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from capacity.connection import Azure
from connectors.azure.session import Operation
from connectors.errors import ConnectorError, PermanentError, TemporaryError
from reconciling.backoff import Backoff
from reconciling.controller import MAX_UNFINISHED, RequeueAfter
from reconciling.lease import Lease
from ui.amounts import moment

RETRIES = Backoff(timedelta(seconds=5), timedelta(minutes=10))
# What Azure says of the wish itself, and will say again however often it is asked: the wish fails. Everything else
# keeps the portal from it (a right, a policy, a name, the subscription, something in the way): the wish waits.
REFUSALS = frozenset(
    {"quota", "size_not_available", "not_supported", "immutable", "invalid"}
)
# After how many tries platform leads are told of that: a right that was just given takes Azure some time to know of.
TOLD_AFTER = 3
# What an operation is forgotten for: whatever it was about is looked at again.
FORGOTTEN = frozenset({"not_found", "no_parent", "bad_token", "foreign_link"})
# How soon an operation is asked after, what Azure works on is seen again, and what is as wanted is looked at again;
# how long an operation may take until it is said that it does, and until it is asked after no more.
SOON, BUSY_WAIT, LOOK_AGAIN = (
    timedelta(seconds=2),
    timedelta(seconds=10),
    timedelta(minutes=5),
)
LONG, DEADLINE = timedelta(minutes=30), timedelta(hours=2)
PARKED = (
    f"{MAX_UNFINISHED} tries in a row ended the portal's worker. Platform leads find out why in the workers' logs, "
    "and have it tried again."
)
Clock = Callable[[], datetime]


def see_through(
    lease: Lease[Any], azure: Azure, now: Clock, *, is_wanted: bool = True
) -> None:
    """Ask how far the stored operation is; raises RequeueAfter while it goes on, PermanentError when it has failed.

    A failure of one that was begun for what is no longer wanted is passed over: what is wanted now was not asked for.
    """
    stored = lease.row.operation
    since = datetime.fromisoformat(stored["since"])
    try:
        operation = azure.session.poll(stored["token"])
    except PermanentError as error:
        forget(lease)
        if error.code in FORGOTTEN or not is_wanted:
            return
        raise
    except TemporaryError:
        # Azure answers some operations with a server's error for ever.
        if now() - since > DEADLINE:
            forget(lease)
        raise
    if operation.is_done:
        forget(lease)
        return
    if now() - since > LONG:
        lease.write(
            message=f"Azure has worked on it since {moment(since, now())} and does not say that it is done."
        )
    if now() - since > DEADLINE:
        # What it was about is looked at instead: what Azure does not work on any more is asked for once more.
        forget(lease)
        return
    raise RequeueAfter(wait_for(operation))


def keep(
    lease: Lease[Any],
    operation: Operation,
    step: str,
    *,
    now: datetime,
    **about: str | int,
) -> None:
    """Keep the operation that is under way, so that whoever comes next goes on with it and knows what it is for."""
    _store(
        lease,
        {"step": step, "token": operation.token, "since": now.isoformat(), **about},
    )


def forget(lease: Lease[Any]) -> None:
    """No operation is under way any more."""
    _store(lease, None)


def wait_for(operation: Operation) -> timedelta:
    """When to ask after it again."""
    return max(SOON, timedelta(seconds=operation.retry_after or 0))


def told(error: ConnectorError) -> str:
    """What people are told of a call that failed."""
    if isinstance(error, PermanentError) and error.code == "principal_not_found":
        return "Azure does not know the team’s group yet; it is told of a new group within minutes."
    return error.message


def _store(lease: Lease[Any], operation: Mapping[str, str | int] | None) -> None:
    lease.row.operation = None if operation is None else dict(operation)
    lease.write(operation=lease.row.operation)
