"""Who is in which team, and as what: it follows the directory's groups, and each team's part of it is written down."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import GroupHeld, Membership, Team, User
from accounts.roles import Role
from audit.actors import Actor
from audit.events import Kind
from audit.log import record

# So many people are named in an event; of more it says how many there are.
MAX_NAMED = 20


@dataclass(frozen=True)
class PartChange:
    """That somebody's part in a team is another one than before; a part is empty for who is not in it."""

    team_id: int
    name: str
    before: str
    after: str


@dataclass
class _Told:
    """What an event says of one team: the names of those who came, went, and began or ceased to lead."""

    joined: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    leads: list[str] = field(default_factory=list)
    no_longer_leads: list[str] = field(default_factory=list)

    def add(self, change: PartChange) -> None:
        if not change.before:
            self.joined.append(change.name)
        if not change.after:
            self.left.append(change.name)
        if change.after == Membership.Part.LEAD:
            self.leads.append(change.name)
        elif change.before == Membership.Part.LEAD and change.after:
            self.no_longer_leads.append(change.name)


def record_parts(changes: Iterable[PartChange], *, actor: Actor) -> None:
    """Append one event for each team whose people have changed; call it after every lock, as `audit.log.record`."""
    by_team: dict[int, _Told] = {}
    for change in changes:
        by_team.setdefault(change.team_id, _Told()).add(change)
    for team_id, told in sorted(by_team.items()):
        record(
            Kind.MEMBERS_CHANGED,
            actor=actor,
            subject=("team", team_id),
            team_id=team_id,
            joined=_named(told.joined),
            left=_named(told.left),
            leads=_named(told.leads),
            no_longer_leads=_named(told.no_longer_leads),
        )


def _named(names: list[str]) -> list[str]:
    names = sorted(names)
    more = len(names) - MAX_NAMED
    return [*names[:MAX_NAMED], f"{more} more"] if more > 0 else names


def join_teams(user: User, groups: list[str], *, lead: bool) -> list[PartChange]:
    """Make memberships equal to the person's groups, with `lead` as a lead of each; who answers for a team leads it.

    Returns what changed, to be recorded last.
    """
    changes = leave_teams(user, but=groups)
    parts = dict(user.memberships.values_list("team", "part"))
    for team in Team.objects.filter(entra_group__in=groups):
        part = _part(lead=lead or team.accountable_id == user.pk)
        if parts.get(team.pk) != part:
            changes += _join(team, user, part)
    return changes


def leave_teams(user: User, *, but: Iterable[str] = ()) -> list[PartChange]:
    """Take somebody out of every team but those of these groups; returns what changed."""
    rows = user.memberships.exclude(team__entra_group__in=list(but))
    gone = _take_out(rows)
    return [PartChange(one.team_id, user.name, one.part, "") for one in gone]


def members_by_group(team: Team) -> list[PartChange]:
    """Make a team's members those who are in its group, as the directory last said; returns what changed."""
    there = GroupHeld.objects.filter(group=team.entra_group).values("user")
    people = team.memberships.of_people()
    gone = _take_out(people.exclude(user__in=there).select_related("user"))
    changes = [PartChange(team.pk, one.user.name, one.part, "") for one in gone]
    for user in User.objects.filter(is_active=True, pk__in=there).prefetch_related(
        "roles_held"
    ):
        changes += _join(team, user, part_in(team, user))
    return changes


def _take_out(rows: QuerySet[Membership]) -> list[Membership]:
    """End these memberships; returns those that this ended, and not what somebody else ends at the same moment."""
    locked = rows.select_for_update(of=("self",), no_key=True).order_by("pk")
    gone = list(locked)
    if gone:
        Membership.objects.filter(pk__in=[one.pk for one in gone]).delete()
    return gone


def lead_by_owner(team: Team) -> list[PartChange]:
    """Make leads of a team's members those who have the role, and who answers for it now; returns what changed."""
    changes = []
    people = team.memberships.of_people()
    members = people.select_related("user").prefetch_related("user__roles_held")
    # Locked, so that who leaves at this moment is not put back.
    locked = members.select_for_update(of=("self",), no_key=True).order_by("pk")
    for membership in locked:
        part = part_in(team, membership.user)
        if membership.part != part:
            changes += _join(team, membership.user, part)
    return changes


def rejoin(user: User, teams: Iterable[Team]) -> list[PartChange]:
    """Put somebody back into teams, as what they are there now; who is in one stays as they are."""
    here = set(user.memberships.values_list("team", flat=True))
    changes = []
    for team in teams:
        if team.pk not in here:
            changes += _join(team, user, part_in(team, user))
    return changes


def part_in(team: Team, user: User) -> Membership.Part:
    """What a member is in a team: a lead by their role or because they answer for it, or a member."""
    is_lead = Role.TEAM_LEAD in user.roles
    return _part(lead=is_lead or team.accountable_id == user.pk)


def _part(*, lead: bool) -> Membership.Part:
    return Membership.Part.LEAD if lead else Membership.Part.MEMBER


def _join(team: Team, user: User, part: Membership.Part) -> list[PartChange]:
    membership, is_new = Membership.objects.get_or_create(
        team=team, user=user, defaults={"part": part, "since": timezone.now()}
    )
    before = "" if is_new else membership.part
    if before == part:
        return []
    if not is_new:
        membership.part = part
        membership.save(update_fields=["part"])
    return [PartChange(team.pk, user.name, before, part)]
