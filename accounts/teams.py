"""Teams, their projects and members, and the querysets that show a person only what is theirs."""

from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower

from accounts.roles import Permission
from web.rows import Row

if TYPE_CHECKING:
    from accounts.models import User

M = TypeVar("M", bound=models.Model)


class TeamScopedQuerySet(models.QuerySet[M]):
    """Rows that belong to a team; `team_path` names the way from the row to its team's id."""

    team_path: ClassVar[str] = "team_id"

    def visible_to(self, user: Any) -> Self:
        """Only rows of teams this person may see; a stranger's row looks like a missing one."""
        if not user.is_authenticated:
            return self.none()
        if user.may(Permission.SEE_ALL_TEAMS):
            return self
        return self.filter(**{f"{self.team_path}__in": user.team_ids})

    def of_member(self, user: Any) -> Self:
        """Only rows of teams this person belongs to, whatever else they may see."""
        # A subquery, so that a page about the person's own teams need not read which they are.
        return self.filter(
            **{f"{self.team_path}__in": user.memberships.values("team_id")}
        )

    def locked(self) -> Self:
        """These rows alone, locked until the transaction ends; rows that merely point at them may still be written."""
        return self.select_for_update(of=("self",), no_key=True)


class TeamQuerySet(TeamScopedQuerySet["Team"]):
    """Teams themselves are scoped by their own id."""

    team_path = "id"


class Team(Row):
    """People with one Entra group and one cost centre: the tenant."""

    class Tier(models.TextChoices):
        STANDARD = "standard", "Standard"
        TRUSTED = "trusted", "Trusted"
        RESTRICTED = "restricted", "Restricted"

    name = models.CharField(max_length=60)
    slug = models.SlugField(max_length=40, unique=True)
    entra_group = models.UUIDField()
    entra_group_name = models.CharField(max_length=256)
    cost_centre = models.CharField(max_length=20)
    tier = models.CharField(max_length=10, choices=Tier.choices, default=Tier.STANDARD)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+"
    )
    # Who answers for the team; null while that is who brought it on board.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    # From when a confirmed departure takes it off the platform; nothing new is granted to it meanwhile.
    leaves_platform_at = models.DateTimeField(null=True)

    objects = TeamQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(Lower("name"), name="team_names_are_unique"),
            # Always so. A plain unique column is a key for row locks: who changes it and has yet to record it would
            # wait for everybody whose rows point at the team, and they for the audit chain.
            models.UniqueConstraint(
                fields=["entra_group"],
                condition=models.Q(entra_group__isnull=False),
                name="a_group_is_of_one_team",
            ),
            models.CheckConstraint(
                condition=models.Q(slug__regex=r"^[a-z]([a-z0-9-]*[a-z0-9])?$"),
                name="a_team_slug_is_a_dns_label",
            ),
            models.CheckConstraint(
                condition=models.Q(tier__in=["standard", "trusted", "restricted"]),
                name="a_known_tier",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def accountable_id(self) -> int:
        """The key of who answers for the team."""
        return self.owner_id or self.created_by_id

    @property
    def accountable(self) -> "User":
        """Who answers for the team: its owner, else who brought it on board."""
        return self.owner or self.created_by


class Project(models.Model):
    """A piece of a team's work that its cost is put under."""

    team = models.ForeignKey(Team, models.PROTECT, related_name="projects")
    slug = models.SlugField(max_length=40)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "slug"], name="a_team_names_a_project_once"
            ),
            models.CheckConstraint(
                condition=models.Q(slug__regex=r"^[a-z]([a-z0-9-]*[a-z0-9])?$"),
                name="a_project_slug_is_a_dns_label",
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class MembershipQuerySet(models.QuerySet["Membership"]):
    """Ways to look at places in teams."""

    def of_people(self) -> "MembershipQuerySet":
        """Those of people, without the account that a team's pipelines act as."""
        return self.filter(user__pipelines_of=None)


class Membership(Row):
    """A person's place in a team, taken over from its Entra group; or that of the account of its pipelines."""

    class Part(models.TextChoices):
        MEMBER = "member", "Member"
        LEAD = "lead", "Team lead"

    team = models.ForeignKey(Team, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships"
    )
    part = models.CharField(max_length=10, choices=Part.choices, default=Part.MEMBER)
    since = models.DateTimeField(auto_now_add=True)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "user"], name="a_person_is_in_a_team_once"
            ),
            models.CheckConstraint(
                condition=models.Q(part__in=["member", "lead"]), name="a_known_part"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.team_id}"
