"""The policy as it was, is and may become: versions that are never changed, and drafts."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q

from policy.document import Policy, policy_from, to_json


class PolicyVersionQuerySet(models.QuerySet["PolicyVersion"]):
    """Ways to look at versions."""

    def standing(self) -> "PolicyVersionQuerySet":
        """Those that nobody cancelled before they came into force."""
        return self.filter(cancellation=None)

    def sooner_than_outer(self) -> "PolicyVersionQuerySet":
        """Of these, those of a higher number that come before the version of an outer row, which so never comes."""
        return self.filter(
            number__gt=OuterRef("number"), active_from__lt=OuterRef("active_from")
        )

    def to_come(self, now: datetime) -> "PolicyVersionQuerySet":
        """Of these, those that come into force after now where there are no others, the first of them first."""
        later = self.filter(active_from__gt=now)
        return later.exclude(Exists(self.sooner_than_outer())).order_by("active_from")


class PolicyVersion(models.Model):
    """A policy in force from a moment on, proposed by one person and activated by another; never changed.

    One that is `shipped` came with an upgrade, where nobody had put another one in force than the first.
    """

    number = models.PositiveIntegerField(unique=True)
    document = models.JSONField()
    active_from = models.DateTimeField()
    why = models.CharField(max_length=200)
    proposed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    activated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    shipped = models.BooleanField(default=False, db_default=False)

    objects = PolicyVersionQuerySet.as_manager()

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.CheckConstraint(
                condition=Q(number=1)
                | Q(shipped=True, proposed_by=None, activated_by=None)
                | Q(proposed_by__isnull=False, activated_by__isnull=False)
                & ~Q(proposed_by=F("activated_by")),
                name="two_people_put_a_policy_in_force",
            ),
        ]

    def __str__(self) -> str:
        return f"Policy {self.number}"

    @property
    def before(self) -> "PolicyVersion | None":
        """The one that is in force until this one comes; None for the first."""
        rows = PolicyVersion.objects.standing().filter(
            number__lt=self.number, active_from__lte=self.active_from
        )
        return rows.order_by("-number").first()

    @property
    def instead_of(self) -> "models.QuerySet[PolicyVersion]":
        """Those that were to come later and never do, because this one has a higher number."""
        return PolicyVersion.objects.standing().filter(
            number__lt=self.number, active_from__gt=self.active_from
        )

    @property
    def never_comes(self) -> bool:
        """Whether one of a higher number was put in force before its own day, or somebody cancelled it."""
        sooner = PolicyVersion.objects.standing().filter(
            number__gt=self.number, active_from__lt=self.active_from
        )
        return hasattr(self, "cancellation") or sooner.exists()

    @property
    def policy(self) -> Policy:
        """The document as a value; read anew each time."""
        return policy_from(self.document)

    @property
    def whole(self) -> dict[str, Any]:
        """The document with every limit that is in force, also those that it was written before."""
        return to_json(self.policy)


class PolicyCancellation(models.Model):
    """That a version which was to come does not; never changed. One person is enough to leave things as they are."""

    version = models.OneToOneField(
        PolicyVersion, models.PROTECT, related_name="cancellation"
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    at = models.DateTimeField()
    why = models.CharField(max_length=200)

    def __str__(self) -> str:
        return f"cancellation of {self.version}"


class PolicyDraftQuerySet(models.QuerySet["PolicyDraft"]):
    """Ways to look at drafts."""

    def waiting_for(self, user: Any) -> "PolicyDraftQuerySet":
        """Those that somebody else has asked others to put in force."""
        return self.filter(closed_at=None, handed_in_at__isnull=False).exclude(
            author=user
        )


class PolicyDraft(models.Model):
    """A policy that is being written, made from a version; its author never activates it. `version` is its ETag.

    From `handed_in_at` on it waits for somebody else to put it in force; who changes it, hands it in anew.
    """

    base = models.ForeignKey(PolicyVersion, models.PROTECT, related_name="+")
    document = models.JSONField()
    why = models.CharField(max_length=200, blank=True)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+"
    )
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    handed_in_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    became = models.OneToOneField(
        PolicyVersion, models.PROTECT, null=True, related_name="+"
    )

    objects = PolicyDraftQuerySet.as_manager()

    class Meta:
        ordering = ["-updated_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(became=None) | Q(closed_at__isnull=False),
                name="a_draft_in_force_is_closed",
            ),
        ]

    def __str__(self) -> str:
        return f"draft {self.pk}"

    @property
    def policy(self) -> Policy:
        """The document as a value; read anew each time."""
        return policy_from(self.document)
