"""Tokens for the API, of people and of teams, and the memory that makes a repeated POST harmless."""

import hashlib
import secrets
from datetime import datetime
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.roles import Permission
from accounts.teams import Membership
from web.rows import Row

if TYPE_CHECKING:
    from accounts.models import Team, User

# From the narrowest to the widest.
SCOPES = ("read", "run", "ask", "write")
# What a team's token may do at most: nobody stands behind it who could ask, or decide what somebody asked.
TEAM_SCOPES = ("read", "run")


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    """Ways to look at tokens."""

    def usable(self, now: datetime) -> "ApiTokenQuerySet":
        """Neither revoked, suspended nor expired, and of a person whose account is active."""
        return self.filter(
            revoked_at=None, suspended_by=None, expires_at__gt=now, user__is_active=True
        )

    def revocable_by(self, user: "User") -> "ApiTokenQuerySet":
        """A person's own, those of teams they lead; everybody's for who looks after access: a leak cannot wait."""
        if user.may(Permission.MANAGE_ACCESS):
            return self
        led = user.memberships.filter(part=Membership.Part.LEAD).values("team")
        return self.filter(Q(user=user.pk) | Q(user__pipelines_of__in=led))

    def of_team(self, team: "Team") -> "ApiTokenQuerySet":
        """Those that act as this team's pipelines."""
        return self.filter(user__pipelines_of=team.pk)

    def named(self, text: str) -> "ApiTokenQuerySet":
        """Those whose person is called so, in part, or that begin so: "mira", "qm_1a2b3c4d" or a whole secret."""
        prefix = text.removeprefix("qm_").partition("_")[0]
        return self.filter(Q(user__name__icontains=text) | Q(prefix=prefix.rstrip("…")))


class ApiToken(Row):
    """A token of a person, or of a team's pipelines; only its SHA-256 is kept, the secret is shown once."""

    class Scope(models.TextChoices):
        READ = "read", "Read"
        RUN = "run", "Read and run training"
        ASK = "ask", "Read, ask and run work, never decide"
        WRITE = "write", "Read, ask, run work and decide"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens"
    )
    # Who made it, where it acts as a team's pipelines: it stays when they leave the team.
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    name = models.CharField(max_length=60)
    prefix = models.CharField(max_length=12, unique=True)
    digest = models.CharField(max_length=64, unique=True)
    scope = models.CharField(max_length=10, choices=Scope.choices)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    # The token that made this one: it lives no longer than that one, and ends with it.
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, related_name="children"
    )
    parent_expires_at = models.DateTimeField(null=True)
    # What the directory took together with it; it works again when that comes back.
    suspended_by = models.ForeignKey(
        "accounts.AccessLoss", models.PROTECT, null=True, related_name="tokens"
    )

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(scope__in=list(SCOPES)),
                name="a_known_scope",
            ),
            models.CheckConstraint(
                condition=models.Q(expires_at__gt=models.F("created_at")),
                name="a_token_ends_after_it_starts",
            ),
            models.CheckConstraint(
                condition=models.Q(parent=None, parent_expires_at=None)
                | models.Q(
                    parent__isnull=False,
                    parent_expires_at__isnull=False,
                    expires_at__lte=models.F("parent_expires_at"),
                ),
                name="a_token_outlives_no_token_that_made_it",
            ),
            models.CheckConstraint(
                condition=models.Q(parent=None) | ~models.Q(parent=models.F("id")),
                name="a_token_does_not_make_itself",
            ),
        ]

    def __str__(self) -> str:
        return f"qm_{self.prefix}…"

    @staticmethod
    def hash_of(secret: str) -> str:
        """SHA-256 in hexadecimal; the secret holds 256 random bits, so no slow hash is needed."""
        return hashlib.sha256(secret.encode()).hexdigest()

    @staticmethod
    def new_secret() -> tuple[str, str]:
        """A new (prefix, whole token); the prefix is for recognising it in a list."""
        prefix = secrets.token_hex(4)
        return prefix, f"qm_{prefix}_{secrets.token_urlsafe(32)}"


TEAM_SCOPE_CHOICES = [(one, ApiToken.Scope(one).label) for one in TEAM_SCOPES]


class Idempotency(models.Model):
    """The answer once given to a POST with an `Idempotency-Key`, given again to its repetition.

    One row per person, route and key; kept at least 24 hours (IETF draft-ietf-httpapi-idempotency-key-header-07).
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    route = models.CharField(max_length=120)
    key = models.CharField(max_length=255)
    body_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    location = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "route", "key"], name="one_row_per_idempotency_key"
            )
        ]

    def __str__(self) -> str:
        return f"{self.route} {self.key}"
