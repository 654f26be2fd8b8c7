"""Applications of Entra ID that act as a team's pipelines."""

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import ExpressionWrapper, F, Q
from django.utils import timezone

from accounts.identities.guids import GUID
from accounts.roles import Permission
from accounts.teams import Membership, Team
from accounts.tokens.models import TEAM_SCOPE_CHOICES, TEAM_SCOPES, ApiToken
from web.rows import Row

if TYPE_CHECKING:
    from accounts.models import User


def _acts(now: datetime) -> Q:
    return Q(parent=None) | Q(parent__in=ApiToken.objects.usable(now))


class IdentityQuerySet(models.QuerySet["Identity"]):
    """Ways to look at identities."""

    def live(self) -> "IdentityQuerySet":
        """Those that nobody has removed."""
        return self.filter(removed_at=None)

    def acting(self, now: datetime) -> "IdentityQuerySet":
        """Those of them that act now: what a token named does so no longer than that token works."""
        return self.live().filter(_acts(now))

    def over(self, now: datetime) -> "IdentityQuerySet":
        """Those of them that never act again, as the token that named them was revoked or has expired."""
        ended = Q(parent__revoked_at__isnull=False) | Q(parent__expires_at__lte=now)
        return self.live().filter(ended)

    def with_acts(self, now: datetime) -> "IdentityQuerySet":
        """With whether each acts, unless it was removed, as `acts`."""
        acts = ExpressionWrapper(_acts(now), output_field=models.BooleanField())
        return self.annotate(acts=acts)

    def of_team(self, team: Team) -> "IdentityQuerySet":
        """Those that act for this team."""
        return self.filter(team=team.pk)

    def of_application(self, *, object_id: str, client_id: str) -> "IdentityQuerySet":
        """Those that name an application by either of its ids."""
        ids = Q(object_id=object_id)
        # Entra ID writes the client id into the token as the application has it; what is no GUID is nobody's.
        if GUID.fullmatch(client_id):
            ids |= Q(client_id=client_id)
        return self.filter(ids)

    def removable_by(self, user: "User") -> "IdentityQuerySet":
        """Those of teams that this person leads; everybody's for who looks after access."""
        if user.may(Permission.MANAGE_ACCESS):
            return self
        led = user.memberships.filter(part=Membership.Part.LEAD).values("team")
        return self.filter(team__in=led)

    def named(self, text: str) -> "IdentityQuerySet":
        """Those that are called so, in part, or that have this object id or client id."""
        found = Q(name__icontains=text)
        if GUID.fullmatch(text):
            found |= Q(object_id=UUID(text)) | Q(client_id=UUID(text))
        return self.filter(found)


class Identity(Row):
    """An application of Entra ID that acts as its team's pipelines; it has no secret that the portal would know.

    Both ids stand in its access tokens: the client id is the application's, the object id that of its service
    principal.
    """

    team = models.ForeignKey(Team, models.PROTECT, related_name="identities")
    name = models.CharField(max_length=60)
    client_id = models.UUIDField(db_index=True)
    object_id = models.UUIDField()
    scope = models.CharField(max_length=10, choices=TEAM_SCOPE_CHOICES)
    # Who named it: it stays when they leave the team.
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+"
    )
    # The personal token with which it was named over the API: a token that is revoked takes it along.
    parent = models.ForeignKey(
        "accounts.ApiToken", models.PROTECT, null=True, related_name="identities"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)

    objects = IdentityQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["object_id"],
                condition=Q(removed_at=None),
                name="an_application_acts_for_one_team_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(scope__in=list(TEAM_SCOPES)),
                name="an_identity_reads_or_runs",
            ),
            models.CheckConstraint(
                condition=~Q(client_id=F("object_id")),
                name="an_identity_has_two_ids",
            ),
        ]

    def __str__(self) -> str:
        return self.name
