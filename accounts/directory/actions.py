"""What a platform lead does about the directory: let take effect what it says, and give back what it took."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db import transaction

from accounts.actions import hold_groups
from accounts.directory.models import AccessLoss
from accounts.memberships import PartChange, record_parts, rejoin
from accounts.models import (
    ApiToken,
    DirectoryBrake,
    Doubt,
    RoleHeld,
    Team,
    User,
)
from accounts.roles import Permission, Role
from audit.events import Kind
from audit.log import record
from web.refusals import Conflict, NoRight


@transaction.atomic
def release(*, by: User, now: datetime) -> DirectoryBrake:
    """Let take effect what the directory says of the people in doubt now; others may stop it again.

    Raises NoRight for others than platform leads, Conflict while nothing is stopped.
    """
    _check_right(by)
    brake = (
        DirectoryBrake.objects.select_for_update(no_key=True).filter(answer="").first()
    )
    if brake is None:
        raise Conflict("The directory has not been stopped.", code="not_braked")
    brake.answer, brake.answered_at, brake.answered_by = (
        DirectoryBrake.Answer.RELEASED,
        now,
        by,
    )
    brake.save(update_fields=["answer", "answered_at", "answered_by"])
    released = Doubt.objects.unreleased().update(released_at=now)
    record(
        Kind.DIRECTORY_RELEASED,
        actor=by.as_actor(),
        subject=("directory-brake", brake.pk),
        reason=brake.reason,
        people=released,
    )
    return brake


@transaction.atomic
def restore(*, since: datetime, by: User, now: datetime) -> list[AccessLoss]:
    """Give everything back that the directory took from anybody since a moment: roles, teams, groups and tokens.

    The directory is asked about each of them before they can decide anything, and takes again what it says is lost.
    Raises NoRight for others than platform leads, Conflict when nothing was taken since.
    """
    _check_right(by)
    rows = AccessLoss.objects.restorable().filter(at__gte=since)
    concerned = User.objects.filter(pk__in=rows.order_by().values("user"))
    # In one order, so that two of these, or one and the directory's own looks, never wait for each other.
    list(
        concerned.select_for_update(no_key=True)
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    losses = list(rows.select_related("user").order_by("user_id", "pk"))
    if not losses:
        raise Conflict(
            "Nothing was taken since then, or it has come back.",
            code="nothing_to_restore",
        )
    teams = set(Team.objects.values_list("pk", flat=True))
    changes = [change for loss in losses for change in _give_back(loss, teams)]
    AccessLoss.objects.filter(pk__in=[loss.pk for loss in losses]).update(
        restored_at=now, restored_by=by
    )
    users = {loss.user_id for loss in losses}
    Doubt.objects.filter(user__in=users).delete()
    # Nobody decides by what came back before the directory has confirmed it.
    User.objects.filter(pk__in=users).update(groups_known_at=None)
    for loss in losses:
        record(
            Kind.ACCESS_RESTORED,
            actor=by.as_actor(),
            subject=("person", loss.user_id),
            name=loss.user.name,
            taken_at=loss.at,
            roles=loss.roles,
            groups=loss.groups,
            teams=[pk for pk, _ in loss.teams],
        )
    record_parts(changes, actor=by.as_actor())
    return losses


def _give_back(loss: AccessLoss, teams: set[int]) -> list[PartChange]:
    user = loss.user
    if loss.fallback and loss.roles:
        user.roles_held.filter(role=Role.DATA_SCIENTIST).delete()
    for role in loss.roles:
        RoleHeld.objects.get_or_create(user=user, role=role)
    hold_groups(user, _known(loss.groups), only=False)
    user = User.objects.get(pk=user.pk)
    kept = [pk for pk, _ in loss.teams if pk in teams]
    ApiToken.objects.filter(suspended_by=loss).update(suspended_by=None)
    # As it is now: somebody else may answer for a team meanwhile.
    return rejoin(user, Team.objects.filter(pk__in=kept))


def _known(groups: Iterable[str]) -> list[str]:
    return [str(UUID(group)) for group in groups]


def _check_right(by: User) -> None:
    if not by.may(Permission.MANAGE_ACCESS):
        raise NoRight(
            "Platform leads answer what the directory takes.",
            code="not_a_platform_lead",
        )
