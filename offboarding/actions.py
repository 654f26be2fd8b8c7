"""What changes about a team's leaving: asked for, taken back, confirmed, restored.

Locks: the departure, the team that leaves the platform, then all its tenancies in order of their keys, then the audit
chain.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from accounts.directory import freshness
from accounts.identities.actions import remove_team_identities
from accounts.models import Team, User
from accounts.roles import Permission
from accounts.tokens.actions import revoke_team_tokens
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record, together
from capacity.registry import actions as registry
from offboarding import notices
from offboarding.models import LONGEST_RETENTION, Departure, DeparturePlace
from offboarding.preview import needs_second, places_of, seen, stays_anywhere
from provisioning import leaving
from provisioning.models import Tenancy
from provisioning.stages import Stage
from web.refusals import BadInput, Conflict, NoRight, Stale

LEAST_REASON = 10
FURTHEST = timedelta(days=400)


@dataclass(frozen=True, kw_only=True)
class Wish:
    """How a team leaves: the platform, or these places; from when; with what still runs; kept for how long."""

    tenancies: Sequence[int]
    is_whole: bool
    leaves_at: datetime
    hold: bool
    retention_days: int
    reason: str


def may_ask(team: Team, user: User) -> bool:
    """Whether this person may ask for the team to leave: its leads and platform leads."""
    return user.may(Permission.REMOVE_TEAMS) or user.leads(team)


@transaction.atomic
def ask(team: Team, wish: Wish, *, by: User, now: datetime) -> Departure:
    """Ask for a team to leave; nothing else happens until it is confirmed.

    Raises NoRight, BadInput naming the field, Conflict for a place that is being left already.
    """
    if not may_ask(team, by):
        raise NoRight(
            "The team’s leads and platform leads ask for it to leave.",
            code="not_a_lead",
        )
    _check(wish, now=now)
    places = _places(team, wish)
    made = Departure.objects.create(
        team=team,
        is_whole=wish.is_whole,
        leaves_at=max(wish.leaves_at, now),
        hold=wish.hold,
        retention_days=wish.retention_days,
        reason=wish.reason.strip(),
        asked_by=by,
        asked_at=now,
        needs_second=needs_second(places),
    )
    try:
        with transaction.atomic():
            DeparturePlace.objects.bulk_create(
                DeparturePlace(departure=made, tenancy=place) for place in places
            )
    except IntegrityError as error:
        raise Conflict(
            "Somebody asked for this a moment ago.", code="is_leaving"
        ) from error
    notices.asked(made, by=by, now=now)
    _tell(
        Kind.DEPARTURE_ASKED,
        made,
        by.as_actor(),
        reason=made.reason,
        leaves_at=made.leaves_at,
        clusters=[place.cluster.name for place in places],
    )
    return made


@transaction.atomic
def withdraw(departure_id: int, *, by: User, now: datetime) -> Departure:
    """Take back what was asked for before it is confirmed; raises NoRight, Conflict once it is confirmed or over."""
    found = locked(departure_id)
    if found.asked_by_id != by.pk and not may_ask(found.team, by):
        raise NoRight(
            "The team’s leads and platform leads take it back.", code="not_a_lead"
        )
    if found.ended_at is not None or found.confirmed_at is not None:
        raise Conflict(
            "It is confirmed or over: it can be restored only.",
            code="already_confirmed",
        )
    _end(found, Departure.End.WITHDRAWN, by=by.name, now=now)
    notices.withdrawn(found, by=by, now=now)
    _tell(Kind.DEPARTURE_WITHDRAWN, found, by.as_actor())
    return found


@transaction.atomic
def confirm(
    departure_id: int, *, name: str, seen_content: str, by: User, now: datetime
) -> Departure:
    """Confirm that a team leaves, having typed its name; from now on nothing new is granted at its places.

    Who leaves the platform leaves all where it is now, also where it came after that was asked for.

    `seen_content` is the fingerprint of the preview that was looked at. Raises NoRight, Stale when something of what
    goes has changed since, BadInput for another name, Conflict for what is protected or over.
    """
    found = locked(departure_id)
    if not by.may(Permission.REMOVE_TEAMS):
        raise NoRight(
            "Platform leads confirm that a team leaves.", code="not_a_platform_lead"
        )
    freshness.check(by, now=now)
    if found.ended_at is not None or found.confirmed_at is not None:
        raise Conflict("It is confirmed or over already.", code="already_confirmed")
    _mark(found, leaves_at=max(found.leaves_at, now))
    places = _lock_places(found)
    # Before anything else: what a refusal names has to stand on the page that was looked at.
    if seen(found) != seen_content:
        raise Stale(
            "What goes has changed since you looked. Look again, then confirm.",
            code="stale",
        )
    _cover(found, places)
    _check_second_person(found, places, by=by)
    _check_protection(places)
    if name.strip() != found.team.name:
        raise BadInput(
            f"Type the team’s name as it is written here: {found.team.name}.",
            code="wrong_name",
            field="name",
        )
    found.leaves_at = max(found.leaves_at, now)
    found.confirmed_by, found.confirmed_at = by, now
    _save(found, "leaves_at", "confirmed_by", "confirmed_at", "needs_second")
    notices.confirmed(found, now=now)
    for place in places:
        leaving.announce(
            place.pk,
            leaves_at=found.leaves_at,
            hold=found.hold,
            actor=by.as_actor(),
            now=now,
        )
    _tell(
        Kind.DEPARTURE_CONFIRMED,
        found,
        by.as_actor(),
        leaves_at=found.leaves_at,
        retained_until=found.retained_until,
        clusters=[place.cluster.name for place in places],
    )
    return found


@transaction.atomic
def restore(departure_id: int, *, by: User, now: datetime) -> Departure:
    """Put everything back but the GPUs, while nothing is deleted yet; the places are protected again.

    Raises NoRight, Conflict once deleting has begun or when there is nothing to restore.
    """
    found = locked(departure_id)
    if not may_ask(found.team, by):
        raise NoRight(
            "The team’s leads and platform leads restore it.", code="not_a_lead"
        )
    if found.confirmed_at is None or found.ended_at is not None:
        raise Conflict("There is nothing to restore.", code="nothing_to_restore")
    _mark(found, leaves_at=None)
    places = _lock_places(found)
    if any(place.stage in (Stage.REMOVING, Stage.GONE) for place in places):
        raise Conflict(
            "Deleting has begun. It cannot be undone any more.",
            code="deleting_has_begun",
        )
    found.took_gpus = any(place.stage == Stage.RETAINED for place in places)
    _end(found, Departure.End.RESTORED, by=by.name, now=now)
    notices.restored(found, by=by, now=now)
    for place in places:
        leaving.restore(place.pk, actor=by.as_actor(), now=now)
    _tell(
        Kind.DEPARTURE_RESTORED,
        found,
        by.as_actor(),
        clusters=[place.cluster.name for place in places],
    )
    return found


@transaction.atomic
def hold_back(departures: Iterable[int], *, now: datetime) -> None:
    """Delete none of these until a platform lead agrees to it, one by one; tells all platform leads once."""
    rows = Departure.objects.under_way().filter(
        pk__in=departures, held_back_at=None, agreed_at=None
    )
    found = list(
        rows.select_for_update(of=("self",), no_key=True)
        .select_related("team")
        .order_by("pk")
    )
    if not found:
        return
    Departure.objects.filter(pk__in=[row.pk for row in found]).update(held_back_at=now)
    notices.held_back(found, now=now)
    record(
        Kind.DEPARTURE_BRAKED,
        actor=PORTAL,
        subject=("departure", found[0].pk),
        due=len(found),
        departures=[row.pk for row in found],
    )


@transaction.atomic
def agree(departure_id: int, *, by: User, now: datetime) -> Departure:
    """Let a departure be deleted although too many would be at once; raises NoRight, Conflict before it is due."""
    found = locked(departure_id)
    if not by.may(Permission.REMOVE_TEAMS):
        raise NoRight("Platform leads let deleting go on.", code="not_a_platform_lead")
    if (
        found.confirmed_at is None
        or found.ended_at is not None
        or found.retained_until > now
    ):
        raise Conflict("Nothing of it is to be deleted now.", code="not_due")
    if found.agreed_at is None:
        found.agreed_at = now
        _save(found, "agreed_at")
        _tell(Kind.DEPARTURE_CONFIRMED, found, by.as_actor(), deleting="goes on")
    return found


def locked(departure_id: int) -> Departure:
    """The departure, locked, with its team."""
    rows = Departure.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("team").get(pk=departure_id)


@transaction.atomic
def finish(departure_id: int, *, actor: Actor, now: datetime) -> bool:
    """End a departure of which nothing is left; False, and nothing changed, before that.

    With the last of all its places a team's tokens and identities end, whichever departure that was of.
    """
    found = locked(departure_id)
    if found.ended_at is not None or found.confirmed_at is None:
        return False
    if found.places.exclude(tenancy__stage=Stage.GONE).exists():
        return False
    _mark(found, leaves_at=None)
    _end(found, Departure.End.GONE, by=actor.name, now=now)
    registry.follow(found.team, now=now)
    notices.gone(found, now=now)
    # The audit chain is locked last: after the tokens, and after the identities.
    with together():
        if not stays_anywhere(found.team):
            revoke_team_tokens(found.team, actor=actor, now=now)
            remove_team_identities(found.team, actor=actor, now=now)
        _tell(Kind.DEPARTURE_DONE, found, actor)
    return True


@transaction.atomic
def leave_out_written_off(tenancy_id: int, *, now: datetime) -> None:
    """Take a place that is lost with its cluster out of a departure from others; what was asked for it alone is over.

    A confirmed departure from it alone ends as any other, once nothing is left there.
    """
    open_places = DeparturePlace.objects.filter(tenancy=tenancy_id, is_open=True)
    for departure_id in list(open_places.values_list("departure", flat=True)):
        found = locked(departure_id)
        if found.ended_at is not None:
            continue
        if found.places.exclude(tenancy=tenancy_id).exists():
            found.places.filter(tenancy=tenancy_id).delete()
            _save(found)
        elif found.confirmed_at is None:
            _end(found, Departure.End.WITHDRAWN, by=PORTAL.name, now=now)
            _tell(Kind.DEPARTURE_WITHDRAWN, found, PORTAL)


def _check(wish: Wish, *, now: datetime) -> None:
    if len(wish.reason.strip()) < LEAST_REASON:
        raise BadInput("Say in a sentence why.", code="reason_needed", field="reason")
    if not 1 <= wish.retention_days <= LONGEST_RETENTION:
        raise BadInput(
            f"Everything is kept for 1 to {LONGEST_RETENTION} days.",
            code="out_of_range",
            field="retention_days",
        )
    if wish.leaves_at > now + FURTHEST:
        raise BadInput(
            f"The date lies too far ahead: at most {FURTHEST.days} days.",
            code="too_far_ahead",
            field="leaves_at",
        )


def _places(team: Team, wish: Wish) -> list[Tenancy]:
    """The places the wish is about, each where the team is now; raises BadInput or Conflict."""
    rows = (
        Tenancy.objects.present()
        .filter(team=team)
        .select_related("cluster")
        .order_by("pk")
    )
    places = [
        place for place in rows if wish.is_whole or place.pk in set(wish.tenancies)
    ]
    if not places or (not wish.is_whole and len(places) != len(set(wish.tenancies))):
        raise BadInput(
            "Choose one of the clusters the team is on.",
            code="no_such_place",
            field="cluster",
        )
    if not wish.is_whole:
        going = [place for place in places if place.stage != Stage.HERE]
    else:
        going, places = [], [place for place in places if place.stage == Stage.HERE]
    if going or not places:
        raise Conflict(
            "The team is leaving it already.", code="is_leaving", field="cluster"
        )
    if DeparturePlace.objects.filter(
        tenancy__in=[place.pk for place in places], is_open=True
    ).exists():
        raise Conflict(
            "Somebody has asked for this already.", code="is_leaving", field="cluster"
        )
    return places


def _cover(found: Departure, places: Sequence[Tenancy]) -> None:
    """Have a departure be from locked places where the team came after it was asked for.

    Raises Conflict for one that somebody has asked to leave by itself.
    """
    known = set(found.places.values_list("tenancy", flat=True))
    try:
        with transaction.atomic():
            DeparturePlace.objects.bulk_create(
                DeparturePlace(departure=found, tenancy=place)
                for place in places
                if place.pk not in known
            )
    except IntegrityError as error:
        raise Conflict(
            "Somebody has asked to leave one of these clusters by itself. Take that back first.",
            code="is_leaving",
        ) from error


def _check_second_person(
    found: Departure, places: Sequence[Tenancy], *, by: User
) -> None:
    """Raise NoRight for who asked, where there is production by now."""
    found.needs_second = needs_second(places)
    if found.needs_second and found.asked_by_id == by.pk:
        raise NoRight(
            "There is production here: another platform lead confirms what you asked for.",
            code="second_person",
        )


def _check_protection(places: Sequence[Tenancy]) -> None:
    kept = [place.cluster.title for place in places if place.is_protected]
    if kept:
        raise Conflict(
            f"Protected from deletion: {', '.join(kept)}. Take the protection off first.",
            code="protected",
        )


def _mark(found: Departure, *, leaves_at: datetime | None) -> None:
    """Keep with a team that it leaves the platform, or that it does not; its row is locked before its places."""
    if found.is_whole:
        Team.objects.filter(pk=found.team_id).update(leaves_platform_at=leaves_at)


def _lock_places(found: Departure) -> list[Tenancy]:
    """All its tenancies, locked in order before any event is written."""
    rows = Tenancy.objects.locked().select_related("cluster")
    return list(rows.filter(pk__in=places_of(found).values("pk")).order_by("pk"))


def _end(found: Departure, end: str, *, by: str, now: datetime) -> None:
    found.end, found.ended_at, found.ended_by = end, now, by
    _save(found, "end", "ended_at", "ended_by", "took_gpus")
    found.places.update(is_open=False)


def _save(found: Departure, *names: str) -> None:
    found.version += 1
    found.save(update_fields=[*names, "version"])


def _tell(kind: Kind, found: Departure, actor: Actor, **details: Any) -> None:
    record(
        kind,
        actor=actor,
        subject=("departure", found.pk),
        team_id=found.team_id,
        team=found.team.name,
        whole=found.is_whole,
        **details,
    )
