"""What changes about access to the registry: wanted for every team that is on the platform, and for no other."""

from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from accounts.models import Team, User
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record
from capacity.connection import is_connected
from capacity.registry.enqueue import enqueue_on_commit
from capacity.registry.models import RegistryAccess
from capacity.retrying import require_lead, retry_now
from provisioning.models import Tenancy
from provisioning.stages import Stage
from reconciling.sweeping import for_each
from web.refusals import Conflict

MAX_AT_ONCE = 200
# Of what is kept for a return, nobody of the team may use anything.
HAS_ACCESS = Q(stage__in=[Stage.HERE, Stage.LEAVING])
# Nobody has left a cluster that is written off: that has left them.
IS_LEFT_BY_TEAMS = Q(cluster__written_off_at=None)


def registry_id() -> str:
    """The resource id of the registry that teams get access to; empty for none."""
    return settings.ENV.azure_registry.lower() if is_connected() else ""


@transaction.atomic
def follow(team: Team, *, now: datetime) -> None:
    """Have the access of a team be what follows from its being on the platform and from its group of now.

    Whoever changes either calls it in the same transaction, before the audit chain is locked.
    """
    wanted = registry_id() if is_on_platform(team) else ""
    if wanted:
        row = RegistryAccess(
            team=team,
            registry=wanted,
            is_wanted=False,
            group=team.entra_group,
            created_at=now,
            requeue_at=now,
        )
        RegistryAccess.objects.bulk_create([row], ignore_conflicts=True)
    rows = RegistryAccess.objects.select_for_update(of=("self",), no_key=True).filter(
        team=team
    )
    locked = list(rows.order_by("pk"))
    # Who changes the group holds these rows, and was waited for.
    group = Team.objects.values_list("entra_group", flat=True).get(pk=team.pk)
    for access in locked:
        _want(access, group, access.registry == wanted, now=now)


def follow_all(*, now: datetime) -> None:
    """The same for the teams whose access is not what follows, such as those from before there was a registry.

    A team at which it fails keeps no other from it; raises the failures together at the end.
    """
    registry = registry_id()
    here = RegistryAccess.objects.filter(
        team=OuterRef("pk"),
        registry=registry,
        is_wanted=True,
        group=OuterRef("entra_group"),
    )
    elsewhere = RegistryAccess.objects.filter(
        team=OuterRef("pk"), is_wanted=True
    ).exclude(registry=registry)
    present = Tenancy.objects.filter(HAS_ACCESS, team=OuterRef("pk"))
    any_place = Tenancy.objects.filter(IS_LEFT_BY_TEAMS, team=OuterRef("pk"))
    on_platform = Exists(present) | ~Exists(any_place)
    teams = Team.objects.filter(Exists(elsewhere) | (Exists(here) & ~on_platform))
    if registry:
        teams = teams | Team.objects.filter(on_platform & ~Exists(here))
    for_each(teams.order_by("pk")[:MAX_AT_ONCE], partial(follow, now=now))


@transaction.atomic
def try_again(team: Team, *, by: User, now: datetime) -> RegistryAccess:
    """Have a worker try the team's access now, parked or not; harmless to repeat.

    Raises NoRight for others than platform leads, Conflict where the team has none to the registry.
    """
    require_lead(by)
    rows = RegistryAccess.objects.select_for_update(of=("self",), no_key=True)
    row = rows.filter(team=team, registry=registry_id(), is_wanted=True).first()
    if row is None:
        raise Conflict(
            "The team has no access to a registry to be tried.", code="no_registry"
        )
    row.team, was_parked = team, retry_now(row, now=now)
    append(Kind.REGISTRY_TRIED_AGAIN, row, actor=by.as_actor(), was_parked=was_parked)
    enqueue_on_commit(row.pk)
    return row


def is_on_platform(team: Team) -> bool:
    """Whether a team may work on a cluster, or was on none yet but what is written off."""
    places = Tenancy.objects.filter(IS_LEFT_BY_TEAMS, team=team)
    return places.filter(HAS_ACCESS).exists() or not places.exists()


@transaction.atomic
def granted(
    access_id: int, *, generation: int, login: str, by_repository: bool, now: datetime
) -> None:
    """Write down that the group of a team may use the registry, as a generation wanted."""
    row = _locked(access_id)
    if not row.is_wanted or row.generation != generation:
        return
    is_news = row.granted_at is None or row.is_by_repository != by_repository
    row.granted_group, row.login_server, row.is_by_repository = (
        row.group,
        login,
        by_repository,
    )
    row.granted_at = row.granted_at or now
    row.save(
        update_fields=[
            "granted_group",
            "login_server",
            "is_by_repository",
            "granted_at",
        ]
    )
    if is_news:
        append(Kind.REGISTRY_GRANTED, row)


@transaction.atomic
def withdrawn(access_id: int, *, generation: int) -> None:
    """Write down that no group of a team may use the registry any more."""
    row = _locked(access_id)
    if row.is_wanted or row.generation != generation or row.granted_group is None:
        return
    row.granted_group = None
    row.save(update_fields=["granted_group"])
    append(Kind.REGISTRY_WITHDRAWN, row)


def append(
    kind: Kind, access: RegistryAccess, *, actor: Actor = PORTAL, **details: Any
) -> None:
    """Record an event about an access."""
    record(
        kind,
        actor=actor,
        subject=("registry_access", access.pk),
        team_id=access.team_id,
        what=access.registry.rpartition("/")[2],
        **details,
    )


def _locked(access_id: int) -> RegistryAccess:
    rows = RegistryAccess.objects.select_for_update(
        of=("self",), no_key=True
    ).select_related("team")
    return rows.get(pk=access_id)


def _want(
    access: RegistryAccess, group: UUID, is_wanted: bool, *, now: datetime
) -> None:
    if access.is_wanted == is_wanted and (access.group == group or not is_wanted):
        return
    access.is_wanted, access.group = is_wanted, group
    access.granted_at, access.message = None, ""
    access.generation += 1
    fields = [
        "is_wanted",
        "group",
        "granted_at",
        "message",
        "generation",
        *access.retry(now=now),
    ]
    access.save(update_fields=fields)
    enqueue_on_commit(access.pk)
