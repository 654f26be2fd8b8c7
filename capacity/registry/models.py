"""The access of each team to the container registry."""

from django.db import models
from django.db.models import F, Q

from accounts.models import Team
from accounts.teams import TeamScopedQuerySet
from reconciling.models import Reconciled, ReconciledQuerySet
from web.rows import Row


# Each of the two has a type of manager of its own; the one that is made here has the methods of both.
class RegistryAccessQuerySet(  # type: ignore[override]
    ReconciledQuerySet["RegistryAccess"], TeamScopedQuerySet["RegistryAccess"]
):
    """Ways to look at accesses."""

    def unfinished(self) -> "RegistryAccessQuerySet":
        """Those that are wanted, and those of which something may still be there."""
        return self.filter(Q(is_wanted=True) | Q(granted_group__isnull=False))


class RegistryAccess(Row, Reconciled):
    """Whether the Entra group of a team is to have access to a registry, and which group has it as of now.

    `group` is the one that is to have the role, `granted_group` the one that has it as far as Azure was told, None for
    none; `granted_at` is since when Azure has what is wanted.
    """

    team = models.ForeignKey(Team, models.CASCADE, related_name="registry_accesses")
    registry = models.CharField(max_length=300)
    is_wanted = models.BooleanField(default=True)
    group = models.UUIDField()
    granted_group = models.UUIDField(null=True)
    # As Azure said last: its address, and whether it gives rights on repositories or on all of it.
    login_server = models.CharField(max_length=120, blank=True, default="")
    is_by_repository = models.BooleanField(default=False)
    message = models.CharField(max_length=600, blank=True, default="")
    created_at = models.DateTimeField()
    granted_at = models.DateTimeField(null=True)

    objects = RegistryAccessQuerySet.as_manager()

    class Meta(Reconciled.Meta):
        ordering = ["id"]
        constraints = [
            *Reconciled.Meta.constraints,
            models.UniqueConstraint(
                fields=["team", "registry"], name="a_team_has_one_access_to_a_registry"
            ),
            models.CheckConstraint(
                condition=Q(granted_at=None)
                | (
                    Q(
                        is_wanted=True,
                        granted_group__isnull=False,
                        granted_group=F("group"),
                    )
                    & ~Q(login_server="")
                ),
                name="an_access_that_was_granted_is_of_a_group",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.team_id} at {self.registry}"

    @property
    def is_true(self) -> bool:
        """Whether Azure has what is wanted."""
        return self.observed_generation == self.generation

    @property
    def repositories(self) -> str:
        """Where the team's images are: "acr.azurecr.io/vision/"; empty before the registry was seen."""
        return f"{self.login_server}/{self.team.slug}/" if self.login_server else ""

    @property
    def sentence(self) -> str:
        """What the team's group may do, as pages and the API say it."""
        if self.granted_at is None:
            return (
                self.message or "Your group gets access to the registry within minutes."
            )
        if self.is_by_repository:
            return f"Your group can pull from and push to {self.repositories}"
        # A right to push would be one to push over every other team's images.
        return f"Your group can pull from {self.login_server}. Platform leads push to {self.repositories} for you."
