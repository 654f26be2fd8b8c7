"""What people are told about a team's leaving; called inside the transaction of what it tells of, before its event."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db.models import Q, QuerySet, prefetch_related_objects
from django.urls import reverse

from accounts.models import Membership, User
from accounts.roles import HOLDERS, Permission
from notices.actions import tell_with_channels
from notices.kinds import NoticeKind
from notices.message import Message
from offboarding.models import Departure
from offboarding.plan import STAY_WITHDRAWN
from provisioning.models import Tenancy
from ui.amounts import dated_moment, moment

MOST_NAMES = 12


def asked(departure: Departure, *, by: User, now: datetime) -> None:
    """Tell platform leads that a departure waits for one of them, and the team's leads, who may take it back.

    The one who asked knows.
    """
    said = Message(
        title=f"{departure.team.name} asks to leave {what(departure)}",
        sentence=f"{by.name} asks for it: {departure.reason} Nothing happens until a platform lead confirms. "
        "Until then a lead of the team can take it back.",
        facts=_dates(departure, now),
        action="Look at what goes",
    )
    _tell(departure, said, to=_concerned(departure, but=by), now=now)


def withdrawn(departure: Departure, *, by: User, now: datetime) -> None:
    """Tell whoever was told that a departure was asked for, and who asked, that it was taken back."""
    said = Message(
        title=f"{departure.team.name} stays: leaving {what(departure)} was taken back",
        sentence=f"{by.name} took it back before anybody confirmed it. Nothing has changed.",
        action="Open the team",
    )
    link = reverse("team", args=[departure.team.slug])
    to = _concerned(departure, but=by)
    _tell_of(("departure", departure.pk), link, said, to=to, now=now)


def confirmed(departure: Departure, *, now: datetime) -> None:
    """Tell the team's members that it leaves, and what happens when."""
    who = departure.confirmed_by.name if departure.confirmed_by else ""
    said = Message(
        title=f"{departure.team.name} leaves {what(departure)} on {moment(departure.leaves_at, now)}",
        sentence=f"{who} confirmed it. Save what you need: then work stops, and later everything is deleted.",
        facts=_dates(departure, now),
        action="See what happens next",
    )
    _tell(departure, said, to=_members(departure), now=now)


def held_back(departures: Sequence[Departure], *, now: datetime) -> None:
    """Tell platform leads that more would be deleted at once than usual, and that each waits for one of them."""
    first = departures[0]
    many = "1 team" if len(departures) == 1 else f"{len(departures)} teams"
    names = ", ".join(sorted(row.team.name for row in departures)[:MOST_NAMES])
    said = Message(
        title=f"Deleting has stopped: {many}",
        sentence="What they left is to be deleted now, more at once than usual, and a wrong clock looks the same. "
        "Nothing of it goes before a platform lead has looked at it and let it go on.",
        facts=(
            ("The portal's clock", dated_moment(now)),
            ("Teams", names),
        ),
        action="Look at the first",
    )
    _tell(first, said, to=_leads(), now=now)


def restored(departure: Departure, *, by: User, now: datetime) -> None:
    """Tell the team's members that everything is back, and whether they have their GPUs."""
    back = (
        "Nothing had ended yet: the team holds its GPUs and pays them as before."
        if not departure.took_gpus
        else "Namespaces, claims and access are back; ask for GPUs again."
    )
    said = Message(
        title=f"{departure.team.name} is restored",
        sentence=f"{by.name} restored it. {back} {STAY_WITHDRAWN}",
        action="Open the team",
    )
    _tell(departure, said, to=_members(departure), now=now)


def gone(departure: Departure, *, now: datetime) -> None:
    """Tell the team's members that nothing is left."""
    said = Message(
        title=f"{departure.team.name} has left {what(departure)}",
        sentence="Namespaces and claims are deleted. The history stays.",
        action="See what went",
    )
    _tell(departure, said, to=_members(departure), now=now)


def lost(place: Tenancy, *, now: datetime) -> None:
    """Tell the team's members that what they had on a cluster is lost with it."""
    cluster = place.cluster
    said = Message(
        title=f"{cluster.title} is gone for good",
        sentence=f"Platform leads have written it off, with all namespaces and volumes there. What {place.team.name} "
        "held there has ended and costs nothing from now on. Ask for GPUs on another cluster.",
        action="Open the team",
    )
    members = User.objects.filter(memberships__team=place.team)
    link = reverse("team", args=[place.team.slug])
    _tell_of(("tenancy", place.pk), link, said, to=members, now=now)


def what(departure: Departure) -> str:
    """What is left, in words: the platform, or the clusters by their titles."""
    if departure.is_whole:
        return "the platform"
    # Asks nothing where a list has fetched them already.
    prefetch_related_objects([departure], "places__tenancy__cluster")
    titles = sorted({place.tenancy.cluster.title for place in departure.places.all()})
    return " and ".join(titles) or "a cluster"


def _dates(departure: Departure, now: datetime) -> tuple[tuple[str, str], ...]:
    if departure.is_asked and departure.leaves_at <= now:
        days = departure.retention_days
        return (
            ("Work stops", "as soon as it is confirmed"),
            ("Deleted for good", f"{days} day{'' if days == 1 else 's'} after that"),
        )
    return (
        ("Work stops", moment(departure.leaves_at, now)),
        ("Deleted for good", moment(departure.retained_until, now)),
    )


def _leads() -> QuerySet[User]:
    roles = [role.value for role in HOLDERS[Permission.REMOVE_TEAMS]]
    return User.objects.filter(is_active=True, roles_held__role__in=roles).distinct()


def _concerned(departure: Departure, *, but: User) -> QuerySet[User]:
    """Platform leads, the team's leads and who asked, but for the one who does it."""
    leads_team = Membership.objects.of_people().filter(
        team=departure.team, part=Membership.Part.LEAD
    )
    concerned = (
        Q(pk__in=_leads().values("pk"))
        | Q(pk__in=leads_team.values("user"))
        | Q(pk=departure.asked_by_id)
    )
    return User.objects.filter(concerned, is_active=True).exclude(pk=but.pk)


def _members(departure: Departure) -> Iterable[User]:
    return User.objects.filter(
        Q(memberships__team=departure.team) | Q(pk=departure.asked_by_id)
    ).distinct()


def _tell(
    departure: Departure, said: Message, *, to: Iterable[User], now: datetime
) -> None:
    link = reverse("departure", args=[departure.team.slug, departure.pk])
    _tell_of(("departure", departure.pk), link, said, to=to, now=now)


def _tell_of(
    subject: tuple[str, int],
    link: str,
    said: Message,
    *,
    to: Iterable[User],
    now: datetime,
) -> None:
    """Tell people and channels, about whatever it is."""
    tell_with_channels(
        NoticeKind.TEAM_LEAVES, to=to, subject=subject, link=link, message=said, now=now
    )
