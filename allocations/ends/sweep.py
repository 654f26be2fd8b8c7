"""Ending everything that has reached its date, unless so much would end at once that the clock may be wrong."""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from django.db import IntegrityError, transaction
from django.urls import reverse

from accounts.models import User
from accounts.people import holding
from accounts.roles import Permission
from allocations.bookings import actions as bookings
from allocations.ends.actions import expire
from allocations.models import Allocation, Brake
from allocations.notices import held_back_message
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from notices.actions import tell_with_channels
from notices.kinds import NoticeKind
from reconciling.sweeping import for_each
from web.refusals import Conflict, NoRight

FEWEST = 10
PERCENT = 5


def too_many(due: int, live: int) -> bool:
    """Whether so many of what is live would end at once that a person has to look first."""
    return due > max(FEWEST, live * PERCENT / 100)


def sweep(now: datetime) -> int:
    """End what is due, each in a transaction of its own; returns how many ended.

    Too many at once are held back until a platform lead confirms them; what was confirmed ends at any rate.
    """
    due = list(
        Allocation.objects.over(now)
        .order_by("kept_until")
        .values_list("pk", "kept_until")
    )
    confirmed = Brake.objects.confirmed_until()
    free = [pk for pk, at in due if confirmed is not None and at <= confirmed]
    rest = [pk for pk, at in due if confirmed is None or at > confirmed]
    if too_many(
        len(rest), Allocation.objects.live().count() if len(rest) > FEWEST else 0
    ):
        hold_back(due=len(rest), live=Allocation.objects.live().count(), now=now)
        rest = []
    else:
        # Its moment has come and so many are not due any more: they were renewed or given back.
        Brake.objects.open().filter(clock__lte=now).update(
            answer=Brake.Answer.PASSED, answered_at=now
        )
    steps: tuple[Callable[[], int], ...] = (
        # Machines that are booked from an end on go on: they are taken over before they would be released.
        lambda: len(for_each(bookings.to_go_on(now), partial(bookings.begin, now=now))),
        lambda: sum(for_each([*free, *rest], partial(expire, now=now))),
    )
    _, ended = for_each(steps, lambda step: step())
    return ended


@transaction.atomic
def hold_back(*, due: int, live: int, now: datetime) -> bool:
    """Put the brake on and tell every platform lead; False when it is on already."""
    if Brake.objects.open().exists():
        return False
    try:
        with transaction.atomic():
            brake = Brake.objects.create(clock=now, due=due, live=live)
    except IntegrityError:  # somebody else has just put it on
        return False
    said, link, about = (
        held_back_message(brake),
        reverse("ends-held-back"),
        ("brake", brake.pk),
    )
    leads = holding(Permission.MANAGE_BUDGETS)
    tell_with_channels(
        NoticeKind.ENDS_HELD_BACK,
        to=leads,
        subject=about,
        link=link,
        message=said,
        now=now,
    )
    record(
        Kind.EXPIRY_BRAKED,
        actor=PORTAL,
        subject=about,
        due=due,
        live=live,
        clock=now.isoformat(),
    )
    return True


@transaction.atomic
def confirm(brake_id: int, *, by: User, now: datetime) -> Brake:
    """Say that the clock is right: everything due at the brake's moment ends at the next sweep.

    Raises NoRight for others than platform leads, Conflict once it is answered.
    """
    return _answer(
        brake_id, Brake.Answer.CONFIRMED, Kind.EXPIRY_CONFIRMED, by=by, now=now
    )


@transaction.atomic
def dismiss(brake_id: int, *, by: User, now: datetime) -> Brake:
    """Say that the clock was wrong: nothing ends by it. A clock that stays wrong puts the brake on again.

    Raises NoRight for others than platform leads, Conflict once it is answered.
    """
    return _answer(
        brake_id, Brake.Answer.DISMISSED, Kind.EXPIRY_DISMISSED, by=by, now=now
    )


def _answer(
    brake_id: int, answer: Brake.Answer, kind: Kind, *, by: User, now: datetime
) -> Brake:
    if not by.may(Permission.MANAGE_BUDGETS):
        raise NoRight(
            "Platform leads let many holdings end at once.", code="not_a_platform_lead"
        )
    mine = Brake.objects.open().filter(pk=brake_id)
    if not mine.update(answer=answer, answered_at=now, answered_by=by):
        raise Conflict(
            "Somebody has answered this already, or it is not needed any more.",
            code="already_answered",
        )
    brake = Brake.objects.get(pk=brake_id)
    record(
        kind,
        actor=by.as_actor(),
        subject=("brake", brake.pk),
        due=brake.due,
        live=brake.live,
        clock=brake.clock.isoformat(),
    )
    return brake
