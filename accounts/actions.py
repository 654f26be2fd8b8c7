"""What changes about people, teams and tokens."""

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts.cost_centres.models import CostCentre
from accounts.directory.models import AccessLoss
from accounts.memberships import join_teams, members_by_group, record_parts
from accounts.models import (
    ApiToken,
    GroupHeld,
    Project,
    RoleHeld,
    Team,
    User,
)
from accounts.roles import Permission, Role, roles_from
from accounts.tokens.models import SCOPES
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record
from connectors.entra import Claims
from connectors.graph import Graph, Person
from web.names import checked_name
from web.refusals import BadInput, Conflict, NoRight

LONGEST_TOKEN_DAYS = 365
MOST_TOKENS = 20
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
    if (
        Team.objects.filter(name__iexact=name).exists()
        or Team.objects.filter(slug=slug).exists()
    ):
        raise Conflict(
            "There is a team of this name already. Choose another.",
            code="name_taken",
            field="name",
        )
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


@transaction.atomic
def create_token(
    *,
    user: User,
    name: str,
    scope: str,
    days: int,
    now: datetime,
    parent: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """Create a personal token; the second value is the secret, which cannot be shown again.

    One that a `parent` makes may do no more than that one, and ends with it.
    """
    if not 1 <= days <= LONGEST_TOKEN_DAYS:
        raise BadInput(
            f"A token lives 1 to {LONGEST_TOKEN_DAYS} days.",
            code="out_of_range",
            field="days",
        )
    name = checked_name(name, field="name")
    # Two that are made at once count each other.
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if user.tokens.usable(now).count() >= MOST_TOKENS:
        raise Conflict(
            f"You have {MOST_TOKENS} tokens. Revoke one first.", code="too_many"
        )
    prefix, secret = ApiToken.new_secret()
    token = ApiToken(
        user=user,
        name=name,
        prefix=prefix,
        digest=ApiToken.hash_of(secret),
        scope=scope,
        created_at=now,
        expires_at=now + timedelta(days=days),
    )
    if parent is not None:
        _descend(token, parent, now=now)
    token.save(force_insert=True)
    record(
        Kind.TOKEN_CREATED,
        actor=user.as_actor(),
        subject=("token", prefix),
        name=name,
        scope=scope,
        days=days,
        parent=parent.prefix if parent else None,
    )
    return token, secret


def _descend(token: ApiToken, parent: ApiToken, *, now: datetime) -> None:
    """Make a token the child of another; its lock lets nobody revoke that one in between."""
    locked = ApiToken.objects.usable(now).select_for_update(of=("self",), no_key=True)
    current = locked.filter(pk=parent.pk).first()
    if current is None:
        raise NoRight(
            "The token that would make this one is revoked or has expired.",
            code="token_over",
        )
    if SCOPES.index(token.scope) > SCOPES.index(current.scope):
        raise NoRight(
            "A token makes no token that may do more than itself.",
            code="wider_than_its_maker",
        )
    if token.expires_at - current.expires_at >= timedelta(days=1):
        raise BadInput(
            f"A token makes no token that outlives it: it ends on {current.expires_at:%Y-%m-%d}.",
            code="outlives_its_maker",
            field="days",
        )
    # Within the day of its parent's end it ends with that one.
    token.expires_at = min(token.expires_at, current.expires_at)
    token.parent, token.parent_expires_at = current, current.expires_at


@transaction.atomic
def revoke_token(token: ApiToken, *, by: User | Actor, now: datetime) -> None:
    """End a token and every token that it made at once; ending them again changes nothing.

    Raises NoRight for a person whose it is not and who does not look after access.
    """
    if isinstance(by, User) and not (
        token.user_id == by.pk or by.may(Permission.MANAGE_ACCESS)
    ):
        raise NoRight(
            "People revoke their own tokens, platform leads everybody's.",
            code="not_your_token",
        )
    actor = by if isinstance(by, Actor) else by.as_actor()
    ended = _end_tokens([token], now=now)
    for each in ended:
        maker = token.prefix if each.pk != token.pk else None
        record(
            Kind.TOKEN_REVOKED,
            actor=actor,
            subject=("token", each.prefix),
            name=each.name,
            with_token=maker,
        )


def _end_tokens(generation: list[ApiToken], *, now: datetime) -> list[ApiToken]:
    """Those that worked until now, of these and all that descend from them.

    A generation is locked before its children are looked for: what is being made by it is there by then, or finds its
    maker revoked.
    """
    ended: list[ApiToken] = []
    while generation:
        for token in generation:
            ended += [token] * ApiToken.objects.filter(
                pk=token.pk, revoked_at=None
            ).update(revoked_at=now)
        generation = list(ApiToken.objects.filter(parent__in=generation).order_by("pk"))
    return ended


def suspend_tokens(user: User, loss: AccessLoss) -> None:
    """Let none of a person's tokens work until what they lost comes back; inside the transaction of the loss."""
    for token in user.tokens.filter(revoked_at=None, suspended_by=None).order_by("pk"):
        ApiToken.objects.filter(pk=token.pk).update(suspended_by=loss)
        record(
            Kind.TOKEN_SUSPENDED,
            actor=PORTAL,
            subject=("token", token.prefix),
            name=token.name,
        )


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
