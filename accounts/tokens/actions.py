"""What changes about tokens for the API: made, revoked, suspended with the access of their person."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from accounts.directory.models import AccessLoss
from accounts.identities.ending import ended_identities, record_removed
from accounts.models import ApiToken, Identity, Membership, Team, User
from accounts.roles import Permission
from accounts.tokens.models import SCOPES, TEAM_SCOPES
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record
from web.names import checked_name
from web.refusals import BadInput, Conflict, NoRight

LONGEST_TOKEN_DAYS = 365
MOST_TOKENS = 20
NOT_A_LEAD = "The team’s leads make and revoke its tokens."
NOT_FOR_EYES = "The team’s leads, and platform leads, see its tokens."


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
    Raises BadInput naming the field, Conflict for one token too many, NoRight for what the parent may not make.
    """
    token, secret = _made(user, name, scope, days, parent=parent, now=now)
    _record_made(token, days, actor=user.as_actor())
    return token, secret


@transaction.atomic
def create_team_token(
    *,
    team: Team,
    name: str,
    scope: str,
    days: int,
    by: User,
    now: datetime,
    parent: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """Create a token that acts as the team's pipelines and stays when who made it leaves; with its secret.

    It reads what the team's members read and runs training in the team's name; it asks for nothing and decides
    nothing, so that nobody decides what they asked for by it. Promises and errors otherwise as `create_token`, NoRight
    for who does not lead the team, and Conflict for one that leaves the platform.
    """
    # Who is being taken out of the team at this moment is waited for.
    User.objects.select_for_update(no_key=True).get(pk=by.pk)
    if not by.leads(team):
        raise NoRight(NOT_A_LEAD, code="not_a_lead")
    if scope not in TEAM_SCOPES:
        raise BadInput(
            "A team’s token reads, or reads and runs training. Ask and decide with one of your own.",
            code="not_for_a_team",
            field="scope",
        )
    account = pipelines_of(team)
    token, secret = _made(
        account, name, scope, days, parent=parent, now=now, created_by=by
    )
    _record_made(token, days, actor=by.as_actor(), team=team)
    return token, secret


def check_may_see(user: User, team: Team) -> None:
    """Let those pass who may see which tokens a team has; raises NoRight for everybody else."""
    if not (user.may(Permission.MANAGE_ACCESS) or user.leads(team)):
        raise NoRight(NOT_FOR_EYES, code="not_a_lead")


def pipelines_of(team: Team) -> User:
    """The account that the team's tokens and identities act as, made with the first; it locks the team's row.

    Raises Conflict for a team that leaves the platform: nothing new acts for it.
    """
    locked = Team.objects.locked().get(pk=team.pk)
    if locked.leaves_platform_at is not None:
        raise Conflict(
            f"{locked.name} leaves the platform: nothing new acts for it.",
            code="is_leaving",
        )
    name = pipelines_name(locked.name)
    account, _ = User.objects.get_or_create(
        pipelines_of=locked,
        defaults={"tid": settings.ENV.entra_tenant_id, "name": name, "username": name},
    )
    Membership.objects.get_or_create(team=locked, user=account)
    return account


def rename_pipelines(team: Team) -> None:
    """Call the account of a team's pipelines by the team's new name; inside the transaction that renames it."""
    name = pipelines_name(team.name)
    User.objects.filter(pipelines_of=team).update(name=name, username=name)


def pipelines_name(team_name: str) -> str:
    """What the account of a team's pipelines is called wherever it says who started a run."""
    return f"{team_name} (pipelines)"


def _made(
    user: User,
    name: str,
    scope: str,
    days: int,
    *,
    parent: ApiToken | None,
    now: datetime,
    created_by: User | None = None,
) -> tuple[ApiToken, str]:
    """A new token of this account and its secret, not recorded yet."""
    if not 1 <= days <= LONGEST_TOKEN_DAYS:
        raise BadInput(
            f"A token lives 1 to {LONGEST_TOKEN_DAYS} days.",
            code="out_of_range",
            field="days",
        )
    name = checked_name(name, field="name")
    # Two that are made at once count each other, and one that is made while its person's access ends is not made.
    owner = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if owner.is_blocked or not owner.is_active:
        raise NoRight(
            "This account is disabled. Ask your administrator.", code="account_disabled"
        )
    if user.tokens.usable(now).count() >= MOST_TOKENS:
        whose = "You have" if created_by is None else "The team has"
        raise Conflict(
            f"{whose} {MOST_TOKENS} tokens. Revoke one first.", code="too_many"
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
        created_by=created_by,
    )
    if parent is not None:
        _descend(token, parent, now=now)
    token.save(force_insert=True)
    return token, secret


def _record_made(
    token: ApiToken, days: int, *, actor: Actor, team: Team | None = None
) -> None:
    """Append the event of a new token, which is last."""
    record(
        Kind.TOKEN_CREATED,
        actor=actor,
        subject=("token", token.prefix),
        team_id=team.pk if team else None,
        name=token.name,
        scope=token.scope,
        days=days,
        parent=token.parent.prefix if token.parent else None,
        of_team=team.name if team else None,
    )


def _descend(token: ApiToken, parent: ApiToken, *, now: datetime) -> None:
    """Make a token the child of another; its lock lets nobody revoke that one in between."""
    current = locked_maker(parent, now=now)
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


def locked_maker(parent: ApiToken, *, now: datetime) -> ApiToken:
    """The token that makes something, which nobody revokes in between; raises NoRight for one that works no more."""
    locked = ApiToken.objects.usable(now).select_for_update(of=("self",), no_key=True)
    current = locked.filter(pk=parent.pk).first()
    if current is None:
        raise NoRight(
            "The token that would make this one is revoked or has expired.",
            code="token_over",
        )
    return current


@transaction.atomic
def revoke_token(token: ApiToken, *, by: User | Actor, now: datetime) -> None:
    """End a token with every token and identity that it made at once; ending them again changes nothing.

    Raises NoRight for a person whose it is not, who leads no team whose it is and who does not look after access.
    """
    if (
        isinstance(by, User)
        and not ApiToken.objects.revocable_by(by).filter(pk=token.pk).exists()
    ):
        raise NoRight(
            "People revoke their own tokens, leads those of their team, platform leads everybody's.",
            code="not_your_token",
        )
    _revoke([token], actor=by if isinstance(by, Actor) else by.as_actor(), now=now)


def revoke_team_tokens(team: Team, *, actor: Actor, now: datetime) -> None:
    """End every token of a team's pipelines, when it has left; inside the caller's transaction, after its locks."""
    tokens = ApiToken.objects.of_team(team).filter(revoked_at=None)
    _revoke(list(tokens.order_by("pk")), actor=actor, now=now)


def _revoke(tokens: Iterable[ApiToken], *, actor: Actor, now: datetime) -> None:
    """End these tokens with all that descend from them, identities too, and then record each."""
    ended = [(each, one) for one in tokens for each in _end_tokens([one], now=now)]
    named = Identity.objects.filter(parent__in=[each.pk for each, _ in ended])
    removed = ended_identities(named, now=now)
    for each, first in ended:
        record(
            Kind.TOKEN_REVOKED,
            actor=actor,
            subject=("token", each.prefix),
            team_id=each.user.pipelines_of_id,
            name=each.name,
            of_team=each.user.pipelines_of.name if each.user.pipelines_of else None,
            with_token=first.prefix if each.pk != first.pk else None,
        )
    record_removed(removed, actor=actor)


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
