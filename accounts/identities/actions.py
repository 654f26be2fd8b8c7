"""What changes about the identities of teams: named by a lead, removed."""

from datetime import datetime
from typing import NoReturn
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts.identities.ending import ended_identities, record_removed
from accounts.identities.guids import checked_guid
from accounts.identities.models import Identity
from accounts.models import ApiToken, Team, User
from accounts.tokens.actions import locked_maker, pipelines_of
from accounts.tokens.models import TEAM_SCOPES
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record
from web.names import checked_name
from web.refusals import BadInput, BadValues, Conflict, NoRight

MAX_IDENTITIES = 20
NOT_A_LEAD = "The team’s leads name the applications that act for it."


@transaction.atomic
def add_identity(
    *,
    team: Team,
    name: str,
    client_id: str,
    object_id: str,
    scope: str,
    by: User,
    now: datetime,
    parent: ApiToken | None = None,
) -> Identity:
    """Let an application of Entra ID act as the team's pipelines until it is removed, whoever leaves meanwhile.

    It may do what a token of the team may. One that a `parent` names over the API ends when that token is revoked, and
    gives its application free once that token is over.
    Raises BadInput naming the field; Conflict for one too many, for a team that leaves the platform, and for an
    application that acts for a team already, without a word about which; NoRight for who does not lead the team, and
    for a parent that works no more.
    """
    # Who is being taken out of the team at this moment is waited for.
    User.objects.select_for_update(no_key=True).get(pk=by.pk)
    check_may_add(by, team)
    name = checked_name(name, field="name")
    client, service_principal = _checked_ids(client_id, object_id)
    if scope not in TEAM_SCOPES:
        raise BadInput(
            "An identity of a team reads, or reads and runs training.",
            code="not_for_a_team",
            field="scope",
        )
    # Two that are named at once count each other.
    account = pipelines_of(team)
    User.objects.select_for_update(no_key=True).get(pk=account.pk)
    mine = Identity.objects.live().of_team(team)
    if mine.exclude(pk__in=Identity.objects.over(now)).count() >= MAX_IDENTITIES:
        raise Conflict(
            f"The team has {MAX_IDENTITIES} identities. Remove one first.",
            code="too_many",
        )
    identity = Identity(
        team=team,
        name=name,
        client_id=client,
        object_id=service_principal,
        scope=scope,
        created_by=by,
        created_at=now,
        parent=locked_maker(parent, now=now) if parent else None,
    )
    # What ended with its token gives its application free, whichever team had it.
    over = Identity.objects.over(now).filter(object_id=service_principal)
    ended = ended_identities(over, now=now)
    try:
        with transaction.atomic():
            identity.save(force_insert=True)
    except IntegrityError as error:
        _refuse_taken(identity, error)
    record_removed(ended, actor=PORTAL)
    record(
        Kind.IDENTITY_ADDED,
        actor=by.as_actor(),
        subject=("identity", identity.object_id),
        team_id=team.pk,
        name=identity.name,
        scope=identity.scope,
        client_id=str(identity.client_id),
    )
    return identity


def check_may_add(user: User, team: Team) -> None:
    """Let those pass who may let an application act for the team; raises NoRight for everybody else."""
    if not user.leads(team):
        raise NoRight(NOT_A_LEAD, code="not_a_lead")


@transaction.atomic
def remove_identity(identity: Identity, *, by: User, now: datetime) -> None:
    """Let an application act for its team no more, from this moment on; removing it again changes nothing.

    Raises NoRight for who neither leads its team nor looks after access.
    """
    if not Identity.objects.removable_by(by).filter(pk=identity.pk).exists():
        raise NoRight(
            "Leads remove identities of their team, platform leads everybody's.",
            code="not_your_identity",
        )
    ended = ended_identities(Identity.objects.filter(pk=identity.pk), now=now)
    record_removed(ended, actor=by.as_actor())


def remove_team_identities(team: Team, *, actor: Actor, now: datetime) -> None:
    """Let no application act for a team that has left; inside the caller's transaction, after its locks."""
    ended = ended_identities(Identity.objects.of_team(team), now=now)
    record_removed(ended, actor=actor)


def _checked_ids(client_id: str, object_id: str) -> tuple[UUID, UUID]:
    """Both ids of an application; raises BadInput naming what is at fault, both where both are."""
    found, problems = [], []
    for field, text in (("client_id", client_id), ("object_id", object_id)):
        try:
            found.append(checked_guid(text, field=field))
        except BadInput as problem:
            problems.append(problem)
    if problems:
        raise BadValues(problems)
    client, service_principal = found
    if str(client) == settings.ENV.entra_client_id.lower():
        raise BadInput(
            "This is the portal’s own client id. Give that of the application your pipeline signs in as.",
            code="is_the_portal",
            field="client_id",
        )
    if client == service_principal:
        raise BadInput(
            "This is the client id again. The object id stands beside it under Enterprise applications.",
            code="same_id_twice",
            field="object_id",
        )
    return client, service_principal


def _refuse_taken(identity: Identity, error: IntegrityError) -> NoReturn:
    """Say that the application acts for a team already: by which name where that is this team, else not for which."""
    others = Identity.objects.live().filter(object_id=identity.object_id)
    found = others.first()
    if found is None:
        raise error
    if found.team_id == identity.team_id:
        raise Conflict(
            f"The team has it already, as {found.name}. Remove that one first.",
            code="named_already",
            field="object_id",
        ) from error
    raise Conflict(
        "This application acts for a team already, and for one team only. Ask a platform lead.",
        code="acts_for_another_team",
        field="object_id",
    ) from error
