"""Who: people as Entra ID knows them and the roles they hold, and the accounts of teams' pipelines."""

import uuid
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models

from accounts.roles import HOLDERS, Permission, Role
from audit.actors import Actor
from web.rows import Row

__all__ = [
    "AccessLoss",
    "ApiToken",
    "Contact",
    "CostCentre",
    "Delegation",
    "DirectoryBrake",
    "Doubt",
    "GroupHeld",
    "Idempotency",
    "Identity",
    "Membership",
    "Project",
    "RoleHeld",
    "SeatFill",
    "Team",
    "User",
]
# Who was said to be away this long ago, and not since, is not passed over for it.
AWAY_KNOWN_FOR = timedelta(hours=1)


class UserManager(BaseUserManager["User"]):
    """People are found by their object id; nobody is ever created with a password."""

    def get_by_natural_key(self, username: str | None) -> "User":
        """The person with this object id."""
        return self.get(oid=str(username))


class User(Row, AbstractBaseUser):
    """A person, keyed by tenant and object id; name and address are for display and may change."""

    tid = models.UUIDField()
    oid = models.UUIDField(unique=True, default=uuid.uuid4)
    name = models.CharField(max_length=200)
    username = models.CharField(max_length=200)
    email = models.CharField(max_length=254, blank=True)
    is_active = models.BooleanField(default=True)
    groups_known_at = models.DateTimeField(null=True)
    managers = models.JSONField(default=list)
    managers_known_at = models.DateTimeField(null=True)
    manager_names = models.JSONField(default=dict)
    is_away = models.BooleanField(default=False)
    away_until = models.DateTimeField(null=True)
    away_known_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # None for who is known from the directory alone, because a seat is theirs, and never signed in.
    signed_in_at = models.DateTimeField(null=True)
    # The team whose pipelines this account stands for: no person, it has no role and nobody signs in as it.
    pipelines_of = models.ForeignKey(
        "accounts.Team", models.PROTECT, null=True, related_name="pipelines"
    )

    USERNAME_FIELD = "oid"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects = UserManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tid", "oid"], name="one_account_per_person"
            ),
            models.CheckConstraint(
                condition=models.Q(is_away=True) | models.Q(away_until=None),
                name="only_who_is_away_comes_back",
            ),
            models.UniqueConstraint(
                fields=["pipelines_of"],
                condition=models.Q(pipelines_of__isnull=False),
                name="a_team_has_one_account_for_pipelines",
            ),
            models.CheckConstraint(
                condition=models.Q(pipelines_of=None) | models.Q(signed_in_at=None),
                name="nobody_signs_in_as_pipelines",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @cached_property
    def roles(self) -> frozenset[Role]:
        """The roles held now, read once per object."""
        return frozenset(Role(held.role) for held in self.roles_held.all())

    @cached_property
    def groups(self) -> list[str]:
        """The object ids of the Entra groups this person is in, nested ones too, sorted; read once per object."""
        return sorted(str(held.group) for held in self.groups_held.all())

    @cached_property
    def teams(self) -> tuple["Team", ...]:
        """The teams this person is a member of, by name, read once per object."""
        return tuple(Team.objects.of_member(self))

    def sees_team(self, team_id: int) -> bool:
        """Whether they may look at a team: as a member, or as who looks at all."""
        return team_id in self.team_ids or self.may(Permission.SEE_ALL_TEAMS)

    @property
    def may_onboard(self) -> bool:
        """Whether it is offered: who sees every team in order to look at them has none to bring on board."""
        return self.may(Permission.ONBOARD_ANY_GROUP) or not self.may(
            Permission.SEE_ALL_TEAMS
        )

    @cached_property
    def directory_silent_since(self) -> datetime | None:
        """Since when the directory has not answered, None while it does; read with the person by the session."""
        return Contact.objects.silent_since().first()

    # Whether a stand-in of somebody, as the session read it; None when nobody has looked.
    stands_in: bool | None = None
    # Whether somebody asks them to stand in; None outside of a session.
    is_invited: bool | None = None
    # Who lends them a seat, as a page of theirs read it; None when nobody has looked.
    lenders: "list[User] | None" = None

    @property
    def team_ids(self) -> frozenset[int]:
        """The keys of those teams."""
        return frozenset(team.pk for team in self.teams)

    def may(self, permission: Permission) -> bool:
        """Whether one of the roles held gives this permission."""
        return self.is_active and bool(HOLDERS[permission] & self.roles)

    def leads(self, team: "Team") -> bool:
        """Whether this person is a lead of the team now."""
        mine = self.memberships.filter(team=team, part=Membership.Part.LEAD)
        return self.is_active and mine.exists()

    @property
    def is_blocked(self) -> bool:
        """Whether the directory has blocked this person, who has no role left; a team's pipelines never had one."""
        return self.pipelines_of_id is None and not self.roles

    def is_out(self, now: datetime) -> bool:
        """Whether this person is out of office, as far as is known: who cannot be known about is at work."""
        known = (
            self.away_known_at is not None and self.away_known_at > now - AWAY_KNOWN_FOR
        )
        return (
            known
            and self.is_away
            and (self.away_until is None or now < self.away_until)
        )

    def read_again(self) -> None:
        """Forget what was read of this person, rights included; what is asked for next comes from the database."""
        self.refresh_from_db()
        for name in ("roles", "groups", "teams", "stands_in", "lenders"):
            self.__dict__.pop(name, None)

    @property
    def role_words(self) -> str:
        """The roles as a page says them, strongest first."""
        order = list(Role)[::-1]
        return (
            ", ".join(role.words for role in order if role in self.roles)
            or Role.DATA_SCIENTIST.words
        )

    @property
    def initials(self) -> str:
        """Two letters for the person chip."""
        words = self.name.split() or ["?"]
        return (words[0][:1] + (words[-1][:1] if len(words) > 1 else "")).upper()

    def as_actor(self) -> Actor:
        """This person, or these pipelines, as an audit event remembers them."""
        kind = "person" if self.pipelines_of_id is None else "pipelines"
        return Actor(kind, str(self.oid), self.name)

    def set_password(self, raw_password: Any) -> None:
        """Refused: people sign in with Entra ID only."""
        raise TypeError("People sign in with Entra ID; there are no passwords here.")


class RoleHeld(Row):
    """A role that a person's app roles and groups gave at their last sign-in, and that was not taken since."""

    user = models.ForeignKey(User, models.CASCADE, related_name="roles_held")
    role = models.CharField(
        max_length=30, choices=[(role.value, role.words) for role in Role]
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "role"], name="a_role_is_held_once"
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=[role.value for role in Role]),
                name="a_known_role_is_held",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role}"


class GroupHeld(Row):
    """An Entra group that a person was in, directly or through another, when the directory was last asked."""

    user = models.ForeignKey(User, models.CASCADE, related_name="groups_held")
    group = models.UUIDField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "group"], name="a_group_is_held_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.group}"


from accounts.contact import Contact  # noqa: E402
from accounts.cost_centres.models import CostCentre  # noqa: E402
from accounts.directory.models import AccessLoss, DirectoryBrake, Doubt  # noqa: E402
from accounts.directory.seat_fills import SeatFill  # noqa: E402
from accounts.stand_ins.models import Delegation  # noqa: E402
from accounts.teams import Membership, Project, Team  # noqa: E402
from accounts.tokens.models import ApiToken, Idempotency  # noqa: E402

from accounts.identities.models import Identity  # noqa: E402  # isort: skip
