"""Keeping rights what the directory says between sign-ins: groups and app roles followed, leavers' access ended."""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import F, Q, QuerySet

from accounts.actions import hold_groups, object_ids
from accounts.directory.app_roles import Assignments
from accounts.directory.models import AccessLoss, Reason
from accounts.memberships import join_teams, leave_teams, record_parts
from accounts.models import Doubt, RoleHeld, Team, User
from accounts.roles import DECIDING, HOLDERS, Role
from accounts.tokens.actions import suspend_tokens
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import PermanentError
from connectors.graph import Absence, Graph

logger = logging.getLogger(__name__)

# How often the clock asks for a round, and for how long an answer is good before it is asked for again.
EVERY = timedelta(seconds=30)
KNOWN_FOR = timedelta(minutes=4)
DECIDERS_KNOWN_FOR = timedelta(minutes=2)
MANAGERS_KNOWN_FOR = timedelta(hours=1)
# Whom the directory no longer knows is asked about again this soon, and then as often as everybody.
ASKED_AGAIN = timedelta(minutes=1)
DECIDERS = frozenset(
    role.value for permission in DECIDING for role in HOLDERS[permission]
)


def due(now: datetime, *, most: int) -> list[User]:
    """People with rights here of whom the directory has not been asked for a while, the most overdue first.

    Who decides is asked about more often; nobody waits longer because of them than the order of deadlines makes them.
    """
    deciders = RoleHeld.objects.filter(role__in=DECIDERS).values("user")
    others = RoleHeld.objects.exclude(user__in=deciders).values("user")
    found = [
        (user, known_for)
        for having_roles, known_for in (
            (deciders, DECIDERS_KNOWN_FOR),
            (others, KNOWN_FOR),
        )
        for user in _turn(having_roles, known_for, now, most=most)
    ]
    found.sort(key=lambda pair: _deadline(*pair))
    return [user for user, _ in found[:most]]


@dataclass(frozen=True)
class Answer:
    """What the directory says of one person now; `gone` why their account is no good, None while it is."""

    user: User
    gone: Reason | None = None
    email: str = ""
    groups: tuple[str, ...] = ()
    withdrawn: frozenset[str] = frozenset()

    @property
    def is_known(self) -> bool:
        """Whether the directory has this person."""
        return self.gone is not Reason.UNKNOWN

    def loss(self) -> Reason | None:
        """Why the person would lose access by this answer; None when they lose nothing."""
        if self.gone is not None:
            return self.gone
        lost = self.withdrawn or lost_with_groups(self.user, self.groups)
        teams = self.user.memberships.exclude(team__entra_group__in=self.groups)
        return Reason.RIGHTS if lost or teams.exists() else None


def ask(user: User, *, graph: Graph, assignments: Assignments) -> Answer:
    """Ask the directory about one person, changing nothing; raises ConnectorError."""
    found = graph.person(str(user.oid))
    if found is None:
        return Answer(user, Reason.UNKNOWN)
    if not found.enabled:
        return Answer(user, Reason.BLOCKED)
    groups = tuple(object_ids(graph.groups_of(str(user.oid))))
    # What was read of the person a while ago may have changed since.
    now_stored = User.objects.get(pk=user.pk)
    return Answer(
        now_stored, None, found.email, groups, assignments.withdrawn(now_stored, groups)
    )


def take(answer: Answer, *, now: datetime, released: bool = False) -> None:
    """Make a person's access what an answer says; `released` when a platform lead let it take effect."""
    user = answer.user
    if answer.gone is not None:
        end_access(user.pk, reason=answer.gone, now=now, released=released)
        return
    # Who has no address there keeps the one that their token named.
    if answer.email and answer.email != user.email:
        User.objects.filter(pk=user.pk).update(email=answer.email)
    take_groups(
        user.pk,
        groups=answer.groups,
        withdrawn=answer.withdrawn,
        now=now,
        released=released,
    )


def follow_managers(user: User, *, graph: Graph, now: datetime) -> None:
    """Keep who is above a person, nearest first, without blocked accounts; raises ConnectorError.

    Where reading managers was not granted, there are none. That the person is not found says nothing of who is above
    them: what was known stays, and it is asked again at the next look.
    """
    try:
        chain = graph.manager_chain(str(user.oid))
    except PermanentError as error:
        if error.code != "forbidden":
            raise
        chain = []
    if chain is None:
        logger.warning(
            "the chain of managers is not found", extra={"person": str(user.oid)}
        )
        return
    known = [person for person in chain if person.enabled and object_ids([person.oid])]
    above = [person for person in known if person.oid != str(user.oid)]
    User.objects.filter(pk=user.pk).update(
        managers=object_ids_in_order(person.oid for person in above),
        manager_names={
            person.oid.lower(): {"name": person.name, "email": person.email}
            for person in above
        },
        managers_known_at=now,
    )


def object_ids_in_order(oids: Iterable[str]) -> list[str]:
    """These object ids in small letters, each once."""
    return list(dict.fromkeys(known for oid in oids for known in object_ids([oid])))


def follow_absences(users: Iterable[User], *, graph: Graph, now: datetime) -> None:
    """Keep who of these people is out of office, asked for all of them at once; raises ConnectorError."""
    by_oid = {str(user.oid): user.pk for user in users}
    for oid, absence in graph.away(by_oid, now=now).items():
        take_absence(by_oid[oid], absence, now=now)


def take_absence(user_id: int, absence: Absence, *, now: datetime) -> None:
    """Keep what is known of one person's absence."""
    until = absence.until if absence.is_away else None
    User.objects.filter(pk=user_id).update(
        is_away=absence.is_away, away_until=until, away_known_at=now
    )


def lost_with_groups(user: User, groups: Iterable[str]) -> set[str]:
    """The roles that groups gave this person and, now that they are in these, no longer give."""
    by_group = settings.ENV.role_groups
    given = {by_group[oid] for oid in groups if oid in by_group}
    return {by_group[oid] for oid in user.groups if oid in by_group} - given


@transaction.atomic
def take_groups(
    user_id: int,
    *,
    groups: Iterable[str],
    withdrawn: Collection[str] = (),
    now: datetime,
    released: bool = False,
) -> None:
    """Make teams, and the roles that groups give, what the directory says now; `withdrawn` roles are lost too.

    A role that was lost with a group is lost at once, though an app role may give it too: the next sign-in tells.
    What is lost is written down, so that it can come back.
    """
    user = User.objects.select_for_update(no_key=True).get(pk=user_id)
    before, known = set(user.groups), object_ids(groups)
    user.groups_known_at = now
    user.save(update_fields=["groups_known_at"])
    Doubt.objects.filter(user=user_id).delete()
    if before == set(known) and not withdrawn and _is_in_their_teams(user, known):
        return
    by_group = settings.ENV.role_groups
    wanted = {by_group[oid] for oid in known if oid in by_group}
    lost = (lost_with_groups(user, known) | set(withdrawn)) - wanted
    loss = _write_down(user, Reason.RIGHTS, known, lost, now=now, released=released)
    hold_groups(user, known)
    user.roles_held.filter(role__in=lost).delete()
    held = set(user.roles_held.values_list("role", flat=True))
    for role in wanted - held or ({Role.DATA_SCIENTIST.value} if not held else set()):
        RoleHeld.objects.create(user=user, role=role)
    if loss is not None and not held and not wanted:
        AccessLoss.objects.filter(pk=loss.pk).update(fallback=True)
    changes = join_teams(user, known, lead=Role.TEAM_LEAD in wanted | held)
    record(
        Kind.MEMBERS_SYNCED,
        actor=PORTAL,
        subject=("person", user.pk),
        name=user.name,
        left=sorted(before - set(known)),
        joined=sorted(set(known) - before),
        withdrawn=sorted(withdrawn),
    )
    record_parts(changes, actor=PORTAL)


def _is_in_their_teams(user: User, groups: Collection[str]) -> bool:
    """Whether somebody is in the teams of these groups and in no other.

    Who signs in at the moment in which a team gets its group is seen by neither of the two.
    """
    is_theirs = Q(entra_group__in=groups)
    is_in_it = Q(pk__in=user.memberships.values("team"))
    return not Team.objects.filter(is_theirs ^ is_in_it).exists()


@transaction.atomic
def end_access(
    user_id: int, *, reason: Reason, now: datetime, released: bool = False
) -> None:
    """End sessions, teams and roles of somebody whom the directory has blocked or lost, and suspend their tokens.

    Signing in again, once the directory lets them, gives teams and roles back. Tokens come back by `restore` alone.
    """
    user = User.objects.select_for_update(no_key=True).get(pk=user_id)
    user.groups_known_at = now
    user.save(update_fields=["groups_known_at"])
    Doubt.objects.filter(user=user_id).delete()
    held = list(user.roles_held.values_list("role", flat=True))
    loss = _write_down(user, reason, [], held, now=now, released=released)
    hold_groups(user, [])
    changes = leave_teams(user)
    user.roles_held.all().delete()
    for session in Session.objects.filter(expire_date__gt=now):
        if session.get_decoded().get(SESSION_KEY) == str(user.pk):
            session.delete()
    if loss is not None:
        suspend_tokens(user, loss)
    record(
        Kind.MEMBERS_SYNCED,
        actor=PORTAL,
        subject=("person", user.pk),
        name=user.name,
        account="unknown" if reason is Reason.UNKNOWN else "blocked",
    )
    record_parts(changes, actor=PORTAL)


def _write_down(
    user: User,
    reason: Reason,
    groups: Collection[str],
    roles: Iterable[str],
    *,
    now: datetime,
    released: bool,
) -> AccessLoss | None:
    """Keep what the person, who is left with these groups, loses; None when that is nothing."""
    lost_roles = sorted(
        set(roles) & set(user.roles_held.values_list("role", flat=True))
    )
    lost_teams = user.memberships.exclude(team__entra_group__in=groups)
    teams = [
        list(pair)
        for pair in lost_teams.order_by("team_id").values_list("team_id", "part")
    ]
    if reason is Reason.RIGHTS and not lost_roles and not teams:
        return None
    return AccessLoss.objects.create(
        user=user,
        reason=reason,
        at=now,
        roles=lost_roles,
        groups=sorted(set(user.groups) - set(groups)),
        teams=teams,
        released=released,
    )


def _turn(
    having_roles: QuerySet[RoleHeld, Any],
    known_for: timedelta,
    now: datetime,
    *,
    most: int,
) -> list[User]:
    """People of these roles who are overdue, and early ones up to this round's even share of all of them.

    A thousand who signed in during one minute would all be due at one moment otherwise, and most of them late.
    """
    people = User.objects.filter(pk__in=having_roles)
    again = Q(doubt__times=1, doubt__asked_at__gt=now - ASKED_AGAIN)
    resting = again | Q(doubt__times__gt=1, doubt__asked_at__gt=now - known_for)
    share = ceil(people.count() * EVERY / known_for)
    asked = people.filter(Q(groups_known_at=None) | Q(groups_known_at__lte=now - EVERY))
    oldest = asked.exclude(resting).order_by(
        F("groups_known_at").asc(nulls_first=True), "pk"
    )[:most]
    return [
        user
        for place, user in enumerate(oldest)
        if place < share or _deadline(user, known_for) <= now
    ]


def _deadline(user: User, known_for: timedelta) -> datetime:
    """When this person should have been asked about; before everybody else where they never were."""
    return (
        user.groups_known_at + known_for
        if user.groups_known_at
        else datetime.min.replace(tzinfo=UTC)
    )
