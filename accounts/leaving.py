"""Keeping rights what the directory says between sign-ins: groups and app roles followed, leavers' access ended."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import F, Q, QuerySet

from accounts.actions import hold_groups, join_teams, object_ids, revoke_token
from accounts.app_roles import Assignments
from accounts.models import RoleHeld, User
from accounts.roles import DECIDING, HOLDERS, Role
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import PermanentError
from connectors.graph import Absence, Graph

# How often the clock asks for a round, and for how long an answer is good before it is asked for again.
EVERY = timedelta(seconds=30)
KNOWN_FOR = timedelta(minutes=4)
DECIDERS_KNOWN_FOR = timedelta(minutes=2)
MANAGERS_KNOWN_FOR = timedelta(hours=1)
DECIDERS = frozenset(role.value for permission in DECIDING for role in HOLDERS[permission])


def due(now: datetime, *, most: int) -> list[User]:
    """People with rights here of whom the directory has not been asked for a while, the most overdue first.

    Who decides is asked about more often; nobody waits longer because of them than the order of deadlines makes them.
    """
    deciders = RoleHeld.objects.filter(role__in=DECIDERS).values("user")
    others = RoleHeld.objects.exclude(user__in=deciders).values("user")
    found = [
        (user, known_for)
        for having_roles, known_for in ((deciders, DECIDERS_KNOWN_FOR), (others, KNOWN_FOR))
        for user in _turn(having_roles, known_for, now, most=most)
    ]
    found.sort(key=lambda pair: _deadline(*pair))
    return [user for user, _ in found[:most]]


def follow(user: User, *, graph: Graph, now: datetime, assignments: Assignments | None = None) -> None:
    """Ask the directory about one person, and make their access and their address what it says; raises ConnectorError.

    Who asks about several gives `assignments`, which are then listed once for all of them.
    """
    found = graph.person(str(user.oid))
    if found is None or not found.enabled:
        end_access(user.pk, now=now)
        return
    # Who has no address there keeps the one that their token named.
    if found.email and found.email != user.email:
        User.objects.filter(pk=user.pk).update(email=found.email)
    groups = graph.groups_of(str(user.oid))
    withdrawn = (assignments or Assignments(graph)).withdrawn(User.objects.get(pk=user.pk), groups)
    take_groups(user.pk, groups=groups, withdrawn=withdrawn, now=now)
    if user.managers_known_at is None or user.managers_known_at <= now - MANAGERS_KNOWN_FOR:
        follow_managers(user, graph=graph, now=now)


def follow_managers(user: User, *, graph: Graph, now: datetime) -> None:
    """Keep who is above a person, nearest first, without blocked accounts; raises ConnectorError.

    Where reading managers was not granted, there are none.
    """
    try:
        chain = [person for person in graph.manager_chain(str(user.oid)) if person.enabled]
    except PermanentError as error:
        if error.code != "forbidden":
            raise
        chain = []
    above = [person for person in chain if object_ids([person.oid]) and person.oid != str(user.oid)]
    User.objects.filter(pk=user.pk).update(
        managers=object_ids_in_order(person.oid for person in above),
        manager_names={person.oid.lower(): {"name": person.name, "email": person.email} for person in above},
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
    User.objects.filter(pk=user_id).update(is_away=absence.is_away, away_until=until, away_known_at=now)


@transaction.atomic
def take_groups(
    user_id: int, *, groups: Iterable[str], withdrawn: Collection[str] = (), now: datetime
) -> None:
    """Make teams, and the roles that groups give, what the directory says now; `withdrawn` roles are lost too.

    A role that was lost with a group is lost at once, though an app role may give it too: the next sign-in tells.
    """
    user = User.objects.select_for_update(no_key=True).get(pk=user_id)
    before, known = set(user.groups), object_ids(groups)
    user.groups_known_at = now
    user.save(update_fields=["groups_known_at"])
    if before == set(known) and not withdrawn:
        return
    hold_groups(user, known)
    by_group = settings.ENV.role_groups
    wanted = {by_group[oid] for oid in known if oid in by_group}
    lost = ({by_group[oid] for oid in before if oid in by_group} | set(withdrawn)) - wanted
    user.roles_held.filter(role__in=lost).delete()
    held = set(user.roles_held.values_list("role", flat=True))
    for role in wanted - held or ({Role.DATA_SCIENTIST.value} if not held else set()):
        RoleHeld.objects.create(user=user, role=role)
    join_teams(user, known, lead=Role.TEAM_LEAD in wanted | held)
    record(
        Kind.MEMBERS_SYNCED, actor=PORTAL, subject=("person", user.pk), name=user.name,
        left=sorted(before - set(known)), joined=sorted(set(known) - before), withdrawn=sorted(withdrawn),
    )  # fmt: skip


@transaction.atomic
def end_access(user_id: int, *, now: datetime) -> None:
    """End sessions, tokens, teams and roles of somebody whom the directory has blocked or lost.

    Signing in again, once the directory lets them, gives teams and roles back, but no token.
    """
    user = User.objects.select_for_update(no_key=True).get(pk=user_id)
    user.groups_known_at = now
    user.save(update_fields=["groups_known_at"])
    hold_groups(user, [])
    user.memberships.all().delete()
    user.roles_held.all().delete()
    for session in Session.objects.filter(expire_date__gt=now):
        if session.get_decoded().get(SESSION_KEY) == str(user.pk):
            session.delete()
    for token in user.tokens.filter(revoked_at=None):
        revoke_token(token, by=PORTAL, now=now)
    record(Kind.MEMBERS_SYNCED, actor=PORTAL, subject=("person", user.pk), name=user.name, account="blocked")


def _turn(
    having_roles: QuerySet[RoleHeld, Any], known_for: timedelta, now: datetime, *, most: int
) -> list[User]:
    """People of these roles who are overdue, and early ones up to this round's even share of all of them.

    A thousand who signed in during one minute would all be due at one moment otherwise, and most of them late.
    """
    people = User.objects.filter(pk__in=having_roles)
    share = ceil(people.count() * EVERY / known_for)
    asked = people.filter(Q(groups_known_at=None) | Q(groups_known_at__lte=now - EVERY))
    oldest = asked.order_by(F("groups_known_at").asc(nulls_first=True), "pk")[:most]
    return [user for place, user in enumerate(oldest) if place < share or _deadline(user, known_for) <= now]


def _deadline(user: User, known_for: timedelta) -> datetime:
    """When this person should have been asked about; before everybody else where they never were."""
    return user.groups_known_at + known_for if user.groups_known_at else datetime.min.replace(tzinfo=UTC)
