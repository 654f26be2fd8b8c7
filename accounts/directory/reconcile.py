"""Acting on what the directory says: at once where nothing is lost, and only when it can be believed where much is.

One answer that somebody is not there is a doubt, asked again. Before anything is taken the directory has to know its
own tenant and people who were just known, and no more may be lost at once than usually is: else a lead looks first.
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F

from accounts import people
from accounts.directory.app_roles import Assignments
from accounts.directory.models import AccessLoss, DirectoryBrakeQuerySet, Reason
from accounts.directory.sweep import (
    MANAGERS_KNOWN_FOR,
    Answer,
    ask,
    follow_managers,
    take,
)
from accounts.models import DirectoryBrake, Doubt, User
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.graph import Graph

logger = logging.getLogger(__name__)
# Whoever is not in the directory loses access once it has said so twice, this far apart.
CONFIRMED_AFTER = timedelta(minutes=1)
# Everybody is asked about within five minutes: what was lost within this time was lost at once.
AT_ONCE = timedelta(minutes=10)
FEWEST = 5
PERCENT = 5
# Before one loss is believed, at least so many people are asked about.
SAMPLE = 10


def limit(count: int) -> int:
    """How many of so many people may lose access at once unasked: five, or 5 percent where that is more."""
    return max(FEWEST, count * PERCENT // 100)


def follow(
    user: User, *, graph: Graph, now: datetime, assignments: Assignments | None = None
) -> None:
    """Ask the directory about one person, and make their access and their address what it says; raises ConnectorError.

    Who asks about several gives `assignments`, which are then listed once for all of them.
    """
    assignments = assignments or Assignments(graph)
    act_on(
        [ask(user, graph=graph, assignments=assignments)],
        graph=graph,
        now=now,
        assignments=assignments,
    )


def act_on(
    answers: Sequence[Answer], *, graph: Graph, now: datetime, assignments: Assignments
) -> None:
    """Make the access of these people what the directory says of them, as far as it can be believed.

    Raises ConnectorError when it does not answer, and PermanentError `strange_directory` when it cannot be the one
    that is known; nothing is lost then.
    """
    losing = _keep_harmless(answers, graph=graph, now=now)
    if losing:
        more = _sample(answers, graph=graph, now=now, assignments=assignments)
        losing += _keep_harmless(more, graph=graph, now=now)
        doubts = [_doubt(answer, now=now) for answer in losing]
        _check_directory([*answers, *more], graph=graph, now=now)
        _pass(
            DirectoryBrake.objects.open().filter(cause=DirectoryBrake.Cause.STRANGE),
            now=now,
        )
        _check_number(now=now)
        for answer, doubt in zip(losing, doubts, strict=True):
            if _may_be_taken(doubt, now=now):
                take(answer, now=now, released=doubt.released_at is not None)
    ease(graph=graph, now=now)


def ease(*, graph: Graph, now: datetime) -> None:
    """End a brake that is not needed any more: the directory is the known one again, or takes nothing from anybody.

    Raises PermanentError `strange_directory` while it still answers for another tenant.
    """
    brake = DirectoryBrake.objects.open().first()
    if brake is None or brake.at == now:
        return
    if brake.cause == DirectoryBrake.Cause.STRANGE and not _is_own_tenant(graph):
        raise PermanentError(brake.reason, code="strange_directory")
    if not Doubt.objects.unreleased().exists():
        _pass(DirectoryBrake.objects.open().filter(pk=brake.pk), now=now)


@transaction.atomic
def _pass(brakes: DirectoryBrakeQuerySet, *, now: datetime) -> None:
    for pk in brakes.values_list("pk", flat=True):
        mine = DirectoryBrake.objects.open().filter(pk=pk)
        if mine.update(answer=DirectoryBrake.Answer.PASSED, answered_at=now):
            record(Kind.DIRECTORY_PASSED, actor=PORTAL, subject=("directory-brake", pk))


def _keep_harmless(
    answers: Iterable[Answer], *, graph: Graph, now: datetime
) -> list[Answer]:
    """Act on the answers by which nobody loses anything; returns the others."""
    losing, staying = [], []
    for answer in answers:
        if answer.loss() is not None:
            losing.append(answer)
            continue
        take(answer, now=now)
        staying.append(answer.user)
    _follow_managers_of(staying, graph=graph, now=now)
    return losing


def _follow_managers_of(users: Iterable[User], *, graph: Graph, now: datetime) -> None:
    """Ask who is above these people, where that is long known; that nobody says so keeps no other from anything.

    Rights are what matters here: a chain that cannot be read is asked for again at the next look.
    """
    for user in users:
        known_at = user.managers_known_at
        if known_at is not None and known_at > now - MANAGERS_KNOWN_FOR:
            continue
        try:
            follow_managers(user, graph=graph, now=now)
        except ConnectorError as error:
            logger.warning("managers cannot be read", extra={"error": error.message})
            if isinstance(error, TemporaryError):  # the next would wait as long
                return


def _sample(
    answers: Sequence[Answer], *, graph: Graph, now: datetime, assignments: Assignments
) -> list[Answer]:
    """Answers about others, most lately confirmed first: one loss says nothing of whether many are lost.

    Of whom the directory says nothing now is left out; raises ConnectorError where it says nothing of anybody.
    """
    others = people.present().exclude(pk__in=[answer.user.pk for answer in answers])
    lately = others.filter(groups_known_at__lte=now).order_by(
        F("groups_known_at").desc(), "pk"
    )
    missing = max(SAMPLE - len(answers), 0)
    found: list[Answer] = []
    last: ConnectorError | None = None
    for user in lately[:missing]:
        try:
            found.append(ask(user, graph=graph, assignments=assignments))
        except ConnectorError as error:
            last = error
    if last is not None and not found:
        raise last
    return found


@transaction.atomic
def _doubt(answer: Answer, *, now: datetime) -> Doubt:
    """Keep since when and how often the directory has answered so."""
    reason = answer.loss() or Reason.RIGHTS
    doubt, is_new = Doubt.objects.select_for_update(no_key=True).get_or_create(
        user=answer.user, defaults={"reason": reason, "since": now, "asked_at": now}
    )
    if not is_new and doubt.asked_at < now:
        doubt.reason, doubt.asked_at, doubt.times = reason, now, doubt.times + 1
        doubt.save(update_fields=["reason", "asked_at", "times"])
    return doubt


def _may_be_taken(doubt: Doubt, *, now: datetime) -> bool:
    if doubt.released_at is not None:
        return True
    if DirectoryBrake.objects.open().exists():
        return False
    twice = doubt.times > 1 and doubt.since <= now - CONFIRMED_AFTER
    return doubt.reason != Reason.UNKNOWN or twice


def _check_directory(answers: Sequence[Answer], *, graph: Graph, now: datetime) -> None:
    """Raise PermanentError `strange_directory`, with the brake on, for what cannot be the directory that is known."""
    strange = ""
    if not _is_own_tenant(graph):
        strange = (
            f"Graph does not answer for the tenant {settings.ENV.entra_tenant_id}."
        )
    elif len(answers) > 1 and not any(answer.is_known for answer in answers):
        strange = (
            f"Graph knows none of {len(answers)} people whom it knew a moment ago."
        )
    if strange:
        reason = f"{strange} Check QM_GRAPH_URL and QM_ENTRA_TENANT_ID; nobody loses anything meanwhile."
        _brake(
            DirectoryBrake.Cause.STRANGE, people=len(answers), reason=reason, now=now
        )
        raise PermanentError(reason, code="strange_directory")


def _is_own_tenant(graph: Graph) -> bool:
    """Whether Graph answers for the tenant of the settings, as far as it may be asked."""
    ids = graph.tenant_ids()
    return ids is None or settings.ENV.entra_tenant_id.lower() in ids


def _check_number(*, now: datetime) -> None:
    """Put the brake on when more would be lost at once than may be unasked."""
    losses = AccessLoss.objects.filter(at__gt=now - AT_ONCE, released=False)
    lost = set(losses.values_list("user", flat=True))
    doubted = Doubt.objects.unreleased().filter(asked_at__gt=now - AT_ONCE)
    losing = lost | set(doubted.values_list("user", flat=True))
    if len(losing) <= FEWEST:
        return
    everybody = people.present().exclude(pk__in=lost).count() + len(lost)
    if len(losing) > limit(everybody):
        reason = (
            f"{len(losing)} of {everybody} people would lose access at once, "
            f"more than the {limit(everybody)} that may unasked."
        )
        _brake(DirectoryBrake.Cause.MASS, people=len(losing), reason=reason, now=now)


def _brake(
    cause: DirectoryBrake.Cause, *, people: int, reason: str, now: datetime
) -> None:
    """Put the brake on, once however many processes find out."""
    if DirectoryBrake.objects.open().exists():
        return
    try:
        with transaction.atomic():
            brake = DirectoryBrake.objects.create(
                at=now, cause=cause, people=people, reason=reason
            )
            about = ("directory-brake", brake.pk)
            record(
                Kind.DIRECTORY_BRAKED,
                actor=PORTAL,
                subject=about,
                reason=reason,
                people=people,
            )
    except IntegrityError:  # somebody else has just put it on
        return
