"""What changes about people and teams."""

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q

from accounts.cost_centres.models import CostCentre
from accounts.memberships import join_teams, members_by_group, record_parts
from accounts.models import (
    GroupHeld,
    Project,
    RoleHeld,
    Team,
    User,
)
from accounts.roles import Permission, Role, roles_from
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.entra import Claims
from connectors.graph import Graph, Person
from web.refusals import BadInput, Conflict, NoRight

# It becomes a label's value on every object of the team, which begins and ends with a letter or digit.
COST_CENTRE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,18}[A-Za-z0-9])?")


def groups_from(claims: Claims, graph: Graph) -> list[str]:
    """The person's group object ids: from the token, or from Graph when there were too many for a token.

    Raises ConnectorError when Graph does not answer: sign-in then fails rather than guess at rights.
    """
    return (
        sorted(graph.groups_of(claims.oid))
        if claims.groups_overage
        else sorted(claims.groups)
    )


def object_ids(groups: Iterable[str]) -> list[str]:
    """The object ids among these, in small letters and sorted; a tenant may send names instead, which never count."""
    found = set()
    for group in groups:
        with suppress(ValueError):
            found.add(str(UUID(group)))
    return sorted(found)


@transaction.atomic
def take_over(
    claims: Claims, *, groups: Iterable[str], now: datetime, address: str = ""
) -> User:
    """Create or refresh the account of a person whose token was checked, with their roles and memberships.

    `address` is the directory's: a member's token names one only where the application was told to ask for it.
    """
    known = object_ids(groups)
    user = _account_of(
        claims.oid,
        tid=claims.tid,
        name=claims.name or claims.username or claims.oid,
        username=claims.username,
        email=address or claims.email,
        groups_known_at=now,
        signed_in_at=now,
    )
    hold_groups(user, known)
    wanted = roles_from(
        app_roles=claims.roles, groups=known, role_groups=settings.ENV.role_groups
    )
    user.roles_held.exclude(role__in=wanted).delete()
    for role in wanted:
        RoleHeld.objects.get_or_create(user=user, role=role)
    changes = join_teams(user, known, lead=Role.TEAM_LEAD in wanted)
    record_parts(changes, actor=PORTAL)
    return User.objects.get(pk=user.pk)


def _account_of(oid: str, **fields: Any) -> User:
    """The account of a person with these fields, made where there is none.

    `update_or_create` would lock it against everything that points at it: who tells this person something and has
    recorded it waits for them at the commit, and they for the audit chain.
    """
    user, is_new = User.objects.get_or_create(oid=oid, defaults=fields)
    if not is_new:
        for name, value in fields.items():
            setattr(user, name, value)
        user.save(update_fields=[*fields])
    return user


@transaction.atomic
def take_over_seat(
    person: Person, *, roles: Iterable[Role], groups: Iterable[str]
) -> User:
    """Make sure that somebody whose seat it is, as the directory says, has an account with the seat's role or group.

    Who never signed in gets one, so that notices reach them and they are the same person when they sign in. Nothing is
    taken from anybody here, and nobody can use the account without signing in.
    """
    user, is_new = User.objects.get_or_create(
        oid=person.oid,
        defaults={
            "tid": settings.ENV.entra_tenant_id,
            "name": (person.name or person.email or person.oid)[:200],
            "username": person.email[:200],
            "email": person.email,
        },
    )
    user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    held = set(user.roles_held.values_list("role", flat=True))
    given = [role for role in roles if role not in held]
    known = object_ids(groups)
    hold_groups(user, known, only=False)
    if is_new and not given:
        given = [Role.DATA_SCIENTIST]
    RoleHeld.objects.bulk_create(
        [RoleHeld(user=user, role=role) for role in given], ignore_conflicts=True
    )
    if is_new or given:
        record(
            Kind.SEAT_FILLED,
            actor=PORTAL,
            subject=("person", user.pk),
            name=user.name,
            roles=sorted(role.value for role in given),
            groups=known,
        )
    return user


@transaction.atomic
def signed_in(user: User) -> None:
    """Note in the audit log that somebody signed in."""
    record(
        Kind.SIGNED_IN,
        actor=user.as_actor(),
        subject=("person", user.pk),
        roles=sorted(user.roles),
    )


@transaction.atomic
def signed_out(user: User) -> None:
    """Note in the audit log that somebody signed out."""
    record(Kind.SIGNED_OUT, actor=user.as_actor(), subject=("person", user.pk))


def check_cost_centre(text: str) -> str:
    """The cost centre without blanks around it; raises BadInput for what cannot stand on a cluster's objects."""
    if not COST_CENTRE.fullmatch(text.strip()):
        raise BadInput(
            "Use up to 20 letters, digits and hyphens, beginning and ending with a letter or digit.",
            code="bad_cost_centre",
            field="cost_centre",
        )
    return text.strip()


def name_cost_centre(code: str, *, now: datetime) -> None:
    """List a cost centre that a team names, to be confirmed; another team may name the same one at this moment."""
    CostCentre.objects.bulk_create(
        [CostCentre(code=code, created_at=now)], ignore_conflicts=True
    )


def check_free(*, name: str, slug: str) -> None:
    """Refuse the name of a new team that another one bears, as its name or as its short name; raises Conflict."""
    taken = Q(name__iexact=name) | Q(slug=slug)
    if Team.objects.filter(taken).exists():
        raise Conflict(
            "There is a team of this name already. Choose another.",
            code="name_taken",
            field="name",
        )


@transaction.atomic
def create_team(
    *,
    name: str,
    slug: str,
    entra_group: str,
    entra_group_name: str,
    cost_centre: str,
    project: str,
    by: User,
) -> tuple[Team, Project]:
    """Create a team with its first project; who already signed in with its group is a member at once.

    Raises Conflict when the name, the slug or the group is taken, BadInput for a cost centre that cannot be one.
    """
    cost_centre = check_cost_centre(cost_centre)
    if Team.objects.filter(entra_group=entra_group).exists():
        raise Conflict(
            "This group has a team already. Ask its members.",
            code="group_taken",
            field="entra_group",
        )
    check_free(name=name, slug=slug)
    try:
        with transaction.atomic():
            team = Team.objects.create(
                name=name,
                slug=slug,
                entra_group=entra_group,
                entra_group_name=entra_group_name,
                cost_centre=cost_centre,
                created_by=by,
            )
    except IntegrityError as error:
        raise Conflict(
            "Somebody took this name or group a moment ago.",
            code="name_taken",
            field="name",
        ) from error
    team.refresh_from_db()
    name_cost_centre(cost_centre, now=team.created_at)
    first = Project.objects.create(team=team, slug=project)
    members = members_by_group(team)
    record(
        Kind.TEAM_CREATED,
        actor=by.as_actor(),
        subject=("team", team.pk),
        team_id=team.pk,
        name=name,
        entra_group=entra_group,
        cost_centre=cost_centre,
    )
    record_parts(members, actor=PORTAL)
    by.read_again()  # they are in one team more than the session read
    return team, first


def hold_groups(user: User, groups: Iterable[str], *, only: bool = True) -> None:
    """Make the groups that are kept of a person these object ids; with `only` False, add these to them."""
    wanted = {UUID(group) for group in groups}
    held = set(user.groups_held.values_list("group", flat=True))
    if only and held - wanted:
        user.groups_held.filter(group__in=held - wanted).delete()
    rows = [GroupHeld(user=user, group=group) for group in sorted(wanted - held)]
    GroupHeld.objects.bulk_create(rows, ignore_conflicts=True)
    user.__dict__.pop("groups", None)


@transaction.atomic
def set_tier(team: Team, tier: str, *, by: User, now: datetime) -> None:
    """Set how far a team is trusted by the policy; setting what is set changes nothing.

    Raises NoRight for everybody but platform leads, BadInput for what is no tier.
    """
    if not by.may(Permission.MANAGE_TIERS):
        raise NoRight(
            "Only platform leads set a team's tier.", code="not_a_platform_lead"
        )
    if tier not in Team.Tier.values:
        words = ", ".join(Team.Tier.values)
        raise BadInput(f"Choose one of: {words}.", code="unknown_tier", field="tier")
    locked = Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    before, team.tier = locked.tier, tier
    if before == tier:
        return
    Team.objects.filter(pk=team.pk).update(tier=tier)
    record(
        Kind.TIER_SET,
        actor=by.as_actor(),
        subject=("team", team.pk),
        team_id=team.pk,
        name=team.name,
        before=before,
        after=tier,
        at=now,
    )
