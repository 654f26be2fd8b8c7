"""What changes about bookings: they begin by themselves, are cancelled, fail, and tell what stands in their way.

Locks are taken in the order that `allocations.changes` has.
"""

from collections.abc import Set
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse

from accounts import people
from accounts.models import User
from accounts.roles import Permission
from allocations import provisioners, webhooks
from allocations.bookings.hindrances import beyond, hindrances, of_place
from allocations.bookings.notices import blocked_message
from allocations.changes import end, locked_with_all, record_change, settle
from allocations.models import Allocation
from allocations.schedule import Provisioner, next_reminder
from allocations.taking_back import keep_reason
from audit.actors import PORTAL, Actor
from audit.events import Kind
from capacity.reservations.asking import quota_left
from capacity.subscriptions.following import follow_shared
from notices.actions import tell_with_channels
from notices.channels.events import WebhookEvent
from notices.kinds import NoticeKind
from reconciling.turns import in_turn
from ui.amounts import gpus
from web.refusals import BadInput, Conflict, Refused

# From when on people are told what stands in a booking's way, and how far ahead something can be booked.
LOOKED_AT_AHEAD, MAX_AHEAD = timedelta(days=2), timedelta(days=90)
# A hindrance that went and came back is told again after so long at the earliest.
HINDRANCE_TOLD_AGAIN_AFTER = timedelta(hours=6)
# How much is kept of what stands in a booking's way.
LONGEST = 400
# Whoever filled in the form for "now" is not told that it lies in the past.
NOW = timedelta(minutes=5)
MAX_AT_ONCE = 200
# How often bookings are begun, and how often it is looked what stands in their way.
BEGIN_SECONDS, LOOK_SECONDS = 2, 300


def start_of(
    asked: datetime | None, *, until: datetime, now: datetime
) -> datetime | None:
    """From when an ask is: a later moment, or None for at once. Raises BadInput at `starts_at`."""
    if asked is None or now - NOW <= asked <= now:
        return None
    if asked < now:
        raise BadInput(
            "This lies in the past. Leave it empty to begin at once.",
            code="in_the_past",
            field="starts_at",
        )
    if asked > now + MAX_AHEAD:
        raise BadInput(
            f"At most {MAX_AHEAD.days} days ahead.",
            code="too_far_ahead",
            field="starts_at",
        )
    if asked >= until:
        raise BadInput(
            "It has to begin before it ends.",
            code="begins_after_its_end",
            field="starts_at",
        )
    return asked


def to_begin(now: datetime) -> list[int]:
    """Bookings whose time has come, the earliest first; of too many for one sweep, those whose turn it is."""
    rows = Allocation.objects.booked().filter(starts_at__lte=now)
    return _in_turn(rows, seconds=BEGIN_SECONDS, now=now)


def to_go_on(now: datetime) -> list[int]:
    """Bookings in Azure whose time has come, of teams of whose machines some end now."""
    over = Allocation.objects.over(now).filter(provisioner=Provisioner.AZURE)
    rows = Allocation.objects.booked().filter(
        provisioner=Provisioner.AZURE, starts_at__lte=now, team__in=over.values("team")
    )
    return list(rows.order_by("starts_at", "pk").values_list("pk", flat=True))


def to_look_at(now: datetime) -> list[int]:
    """Bookings that begin within two days, the earliest first; of too many for one sweep, those whose turn it is."""
    rows = Allocation.objects.booked().filter(starts_at__lte=now + LOOKED_AT_AHEAD)
    return _in_turn(rows, seconds=LOOK_SECONDS, now=now)


def _in_turn(rows: QuerySet[Allocation], *, seconds: int, now: datetime) -> list[int]:
    found = list(rows.order_by("starts_at", "pk").values_list("pk", flat=True))
    # What cannot begin stays in front.
    return in_turn(found, most=MAX_AT_ONCE, seconds=seconds, now=now)


@transaction.atomic
def begin(allocation_id: int, *, now: datetime) -> bool:
    """Begin a booking whose time has come: it is taken, made and paid from now on. False where it does not begin now.

    What stands in its way is kept as its hindrance, and it is tried again, without holding up any other; what could not
    begin before its end fails, and its money is free.
    """
    allocation = locked_with_all(allocation_id, taking=True)
    if not allocation.is_booked or allocation.starts_at > now:
        return False
    if allocation.until <= now:
        _fail(allocation, now=now)
        return False
    found = of_place(allocation)
    hindrance = found.sentence if found else _begin(allocation, now=now)
    if hindrance:
        _note(allocation, hindrance)
    return not hindrance


def _begin(allocation: Allocation, *, now: datetime) -> str:
    """Take and make a locked booking; returns why it could not be, and then nothing of it is done."""
    before = allocation.hindrance
    try:
        with transaction.atomic():
            _take(allocation, now=now)
            _make(allocation, now=now)
    except Refused as refusal:
        allocation.hindrance = before
        return refusal.message
    return ""


def _take(allocation: Allocation, *, now: datetime) -> None:
    flavor = allocation.flavor
    if flavor is None:
        _check_quota(allocation, now=now)
        return
    follow_shared(flavor)
    if not flavor.take(allocation.gpus):
        fewer = f"Fewer than {gpus(allocation.gpus, flavor.kind)} are free."
        raise Conflict(fewer, code="not_enough_free")


def _check_quota(allocation: Allocation, *, now: datetime) -> None:
    """Raise Conflict where machines to reserve do not fit a quota of Azure now, as far as that was read.

    What is reserved there already, and ends now, fits.
    """
    if allocation.provisioner != Provisioner.AZURE:
        return
    found = quota_left(allocation.spec)
    if found is None:
        return
    missing = (
        allocation.count
        - found[0]
        - provisioners.machines_left_over(allocation, now=now)
    )
    if missing > 0:
        raise Conflict(
            beyond(allocation, missing, found[1]),
            code="beyond_quota",
        )


def _make(allocation: Allocation, *, now: datetime) -> None:
    cluster = allocation.tenancy.cluster if allocation.tenancy is not None else None
    is_there = provisioners.is_there_at_once(
        Provisioner(allocation.provisioner), cluster
    )
    allocation.begun_at, allocation.charged_from = now, now if is_there else None
    allocation.hindrance, allocation.remind_at = (
        "",
        next_reminder(now, allocation.until, after=now),
    )
    allocation.save(
        update_fields=["begun_at", "charged_from", "hindrance", "remind_at"]
    )
    settle(allocation.hold, now=now, why="costs from when it begins")
    provisioners.begin(allocation, is_new=True, actor=PORTAL, now=now)
    if is_there:
        webhooks.tell_of(WebhookEvent.ALLOCATION_READY, allocation, now=now)
    record_change(
        Kind.ALLOCATION_BEGUN, allocation, PORTAL, until=allocation.until.isoformat()
    )


@transaction.atomic
def cancel(
    allocation_id: int, *, actor: Actor, now: datetime, why: str, because: str = ""
) -> bool:
    """Cancel a booking before it begins: it costs nothing, and its days are free again. False for no booking.

    `because` is the reason of who takes it back from its team, which is told.
    """
    allocation = locked_with_all(allocation_id)
    if not allocation.is_booked:
        return False
    end(allocation, Allocation.End.RETURNED, by=actor.name, now=now)
    freed = settle(allocation.hold, now=now, why=why)
    taken = keep_reason(allocation, because, by=actor.name, now=now)
    record_change(
        Kind.ALLOCATION_RETURNED,
        allocation,
        actor,
        freed_usd=f"{freed.usd:.2f}",
        reason=why,
        **taken,
    )
    return True


@transaction.atomic
def look(allocation_id: int, *, now: datetime) -> str:
    """Keep what stands in the way of a booking that begins soon, and tell its team and platform leads once of it.

    A number that changes is nothing new; what comes back after nothing stood in the way is told again.
    """
    allocation = locked_with_all(allocation_id)
    if not allocation.is_booked:
        return ""
    found = hindrances(allocation, now=now)
    _note(allocation, " ".join(each.sentence for each in found))
    _tell_new(allocation, {each.key for each in found}, now=now)
    return allocation.hindrance


def _note(allocation: Allocation, hindrance: str) -> None:
    # What a cluster or Azure said may be of any length.
    hindrance = hindrance[:LONGEST]
    if allocation.hindrance != hindrance:
        allocation.hindrance = hindrance
        allocation.save(update_fields=["hindrance"])


def _fail(allocation: Allocation, *, now: datetime) -> None:
    allocation.failure = (
        f"It could not begin before its end. {allocation.hindrance}".strip()
    )
    allocation.save(update_fields=["failure"])
    end(allocation, Allocation.End.FAILED, by=PORTAL.name, now=now)
    settle(allocation.hold, now=now, why="could not begin")
    record_change(Kind.ALLOCATION_FAILED, allocation, PORTAL)


def _tell_new(allocation: Allocation, keys: Set[str], *, now: datetime) -> None:
    """Tell people if any of these is new since something stands in the way.

    Once nothing does, what was told six hours ago or more is forgotten: what comes and goes is told that often.
    """
    before = allocation.hindrances_told
    told = {
        key: at
        for key, at in before.items()
        if keys or datetime.fromisoformat(at) > now - HINDRANCE_TOLD_AGAIN_AFTER
    }
    if keys - set(told):
        _tell(allocation, now=now)
    told |= {key: now.isoformat() for key in keys - set(told)}
    if told != before:
        allocation.hindrances_told = told
        allocation.save(update_fields=["hindrances_told"])


def _tell(allocation: Allocation, *, now: datetime) -> None:
    about, message = ("allocation", allocation.pk), blocked_message(allocation, now=now)
    number = allocation.hold.request_id
    link = (
        reverse("request", args=[number])
        if number
        else reverse("team", args=[allocation.team.slug])
    )
    members = User.objects.filter(memberships__team=allocation.team_id)
    told = [*members, *people.holding(Permission.MANAGE_CLUSTERS)]
    kind = NoticeKind.BOOKING_BLOCKED
    tell_with_channels(
        kind, to=told, subject=about, link=link, message=message, now=now
    )
