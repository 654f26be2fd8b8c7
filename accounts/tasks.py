"""What accounts do by the clock: forget answers and sessions that are over, and follow the directory."""

import logging
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any

from celery import shared_task
from django.contrib.sessions.models import Session
from django.db.models import QuerySet

from accounts.directory import reconcile as following
from accounts.directory import sweep as leaving
from accounts.directory.app_roles import Assignments
from accounts.directory.client import graph
from accounts.models import Contact, Idempotency, User
from audit import clock
from connectors.errors import ConnectorError, TemporaryError

logger = logging.getLogger(__name__)
MOST_AT_ONCE = 100
# After so many people in a row for whom it does not answer, the directory is away for everybody.
AWAY_AFTER = 3
KEPT = timedelta(days=7)
BATCH = 1_000


@shared_task(name="accounts.tasks.forget_old_answers")
def forget_old_answers() -> None:
    """Delete the answers to repeated POSTs after seven days, and sessions that are over."""
    forget(clock.now())


@shared_task(name="accounts.tasks.follow_directory")
def follow_directory() -> None:
    """Follow the people who are due."""
    follow_due(clock.now())


def follow_due(now: datetime) -> None:
    """Follow who is due; one who cannot be asked about stops no other, a directory away stops all.

    Everybody of a round is asked about before anything is taken from anybody.
    """
    users = leaving.due(now, most=MOST_AT_ONCE)
    assignments = Assignments(graph())
    answers, error, is_away = _ask(users, assignments)
    try:
        following.act_on(answers, graph=graph(), now=now, assignments=assignments)
    except ConnectorError as refused:
        logger.warning(
            "the directory is not followed", extra={"error": refused.message}
        )
        Contact.objects.failed(now, refused.message)
        return
    if error is not None and (is_away or not answers):
        Contact.objects.failed(now, error.message)
        return
    if answers:
        Contact.objects.answered(now)
        _follow_absences([answer.user for answer in answers], now)


def _ask(
    users: list[User], assignments: Assignments
) -> tuple[list[leaving.Answer], ConnectorError | None, bool]:
    """What the directory says of these people, the last error, and whether the directory is away, which ends it.

    It is away once it has not answered for several people in a row. They are asked about from both ends of the list:
    whoever it never answers for is the most overdue of all, and several of those would stop everybody else.
    """
    answers: list[leaving.Answer] = []
    last: ConnectorError | None = None
    silent_in_a_row = 0
    for user in _from_both_ends(users):
        try:
            answers.append(leaving.ask(user, graph=graph(), assignments=assignments))
            silent_in_a_row = 0
        except ConnectorError as error:
            logger.warning(
                "the directory says nothing of one",
                extra={"person": user.pk, "error": error.message},
            )
            last = error
            silent_in_a_row += isinstance(error, TemporaryError)
            if silent_in_a_row == AWAY_AFTER:
                return answers, error, True
    return answers, last, False


def _from_both_ends(users: list[User]) -> list[User]:
    """The first, the last, the second, the last but one, and so on."""
    half = (len(users) + 1) // 2
    pairs = zip_longest(users[:half], reversed(users[half:]))
    return [user for pair in pairs for user in pair if user is not None]


def _follow_absences(users: list[User], now: datetime) -> None:
    """Who is out of office; that nobody says so is no reason to stop."""
    try:
        leaving.follow_absences(users, graph=graph(), now=now)
    except ConnectorError as error:
        logger.warning(
            "nobody says who is out of office", extra={"error": error.message}
        )


def forget(now: datetime, *, batch: int = BATCH) -> int:
    """Delete what is too old at this moment, in batches that each lock few rows and briefly; returns how many rows."""
    answers = Idempotency.objects.filter(created_at__lt=now - KEPT)
    sessions = Session.objects.filter(expire_date__lt=now)
    return _delete(answers, batch) + _delete(sessions, batch)


def _delete(rows: QuerySet[Any], batch: int) -> int:
    deleted = 0
    while keys := list(rows.values_list("pk", flat=True)[:batch]):
        deleted += rows.filter(pk__in=keys).delete()[0]
    return deleted
