"""The front door's memory: who brought which team on board, and how long it took until all was true."""

from django.conf import settings
from django.db import models

from accounts.models import Team
from accounts.teams import TeamScopedQuerySet
from approvals.models import Request
from provisioning.models import Tenancy


class OnboardingQuerySet(TeamScopedQuerySet["Onboarding"]):
    """Ways to look at onboardings."""


class Onboarding(models.Model):
    """One team's coming on board: the team, its first place on a cluster and its first ask, if it made one."""

    team = models.OneToOneField(Team, models.PROTECT, related_name="onboarding")
    tenancy = models.OneToOneField(Tenancy, models.PROTECT, related_name="onboarding")
    request = models.OneToOneField(
        Request, models.PROTECT, null=True, related_name="onboarding"
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    submitted_at = models.DateTimeField()

    objects = OnboardingQuerySet.as_manager()

    class Meta:
        ordering = ["-submitted_at", "-id"]

    def __str__(self) -> str:
        return str(self.team)

    @property
    def seconds(self) -> float | None:
        """Seconds from submitting to every object being true; None while that is not so."""
        since = self.tenancy.true_since
        return (
            (since - self.submitted_at).total_seconds()
            if since and self.tenancy.is_settled
            else None
        )
