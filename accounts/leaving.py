"""Keeping rights what the directory says between sign-ins: groups followed, and leavers' access ended."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import transaction

from accounts.actions import join_teams, object_ids, revoke_token
from accounts.models import RoleHeld, User
from accounts.roles import Role
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.graph import Graph

KNOWN_FOR = timedelta(minutes=4)


def due(now: datetime, *, most: int) -> list[User]:
    """People with rights here of whom the directory has not been asked for a while, the longest ago first."""
    people = User.objects.filter(roles_held__isnull=False, groups_known_at__lte=now - KNOWN_FOR).distinct()
    return list(people.order_by("groups_known_at", "pk")[:most])


def follow(user: User, *, graph: Graph, now: datetime) -> None:
    """Ask the directory about one person, and make their access what it says; raises ConnectorError."""
    found = graph.person(str(user.oid))
    if found is None or not found.enabled:
        end_access(user.pk, now=now)
    else:
        take_groups(user.pk, groups=graph.groups_of(str(user.oid)), now=now)


@transaction.atomic
def take_groups(user_id: int, *, groups: Iterable[str], now: datetime) -> None:
    """Make teams, and the roles that groups give, what the directory says now.

    A role that was lost with a group is lost at once, though an app role may give it too: the next sign-in tells.
    """
    user = User.objects.select_for_update(no_key=True).get(pk=user_id)
    before, known = set(user.groups), object_ids(groups)
    user.groups, user.groups_known_at = known, now
    user.save(update_fields=["groups", "groups_known_at"])
    if before == set(known):
        return
    by_group = settings.ENV.role_groups
    wanted = {by_group[oid] for oid in known if oid in by_group}
    lost = {by_group[oid] for oid in before if oid in by_group} - wanted
    user.roles_held.filter(role__in=lost).delete()
    held = set(user.roles_held.values_list("role", flat=True))
    for role in wanted - held or ({Role.DATA_SCIENTIST.value} if not held else set()):
        RoleHeld.objects.create(user=user, role=role)
    join_teams(user, known, lead=Role.TEAM_LEAD in wanted | held)
    record(
        Kind.MEMBERS_SYNCED, actor=PORTAL, subject=("person", user.pk), name=user.name,
        left=sorted(before - set(known)), joined=sorted(set(known) - before),
    )  # fmt: skip


@transaction.atomic
def end_access(user_id: int, *, now: datetime) -> None:
    """End sessions, tokens, teams and roles of somebody whom the directory has blocked or lost.

    Signing in again, once the directory lets them, gives teams and roles back, but no token.
    """
    user = User.objects.select_for_update(no_key=True).get(pk=user_id)
    user.groups, user.groups_known_at = [], now
    user.save(update_fields=["groups", "groups_known_at"])
    user.memberships.all().delete()
    user.roles_held.all().delete()
    for session in Session.objects.filter(expire_date__gt=now):
        if session.get_decoded().get(SESSION_KEY) == str(user.pk):
            session.delete()
    for token in user.tokens.filter(revoked_at=None):
        revoke_token(token, by=PORTAL, now=now)
    record(Kind.MEMBERS_SYNCED, actor=PORTAL, subject=("person", user.pk), name=user.name, account="blocked")
