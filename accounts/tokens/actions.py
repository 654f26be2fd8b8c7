"""What changes about tokens for the API: made, revoked, suspended with the access of their person."""

from datetime import datetime, timedelta

from django.db import transaction

from accounts.directory.models import AccessLoss
from accounts.models import ApiToken, User
from accounts.roles import Permission
from accounts.tokens.models import SCOPES
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record
from web.names import checked_name
from web.refusals import BadInput, Conflict, NoRight

LONGEST_TOKEN_DAYS = 365
MOST_TOKENS = 20


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
