"""Profiles of notebook servers: which there are, how far each has come, and what each was, version by version."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from notebooks.hubs.models import Hub, HubAccount, UnknownServer
from notebooks.profiles.document import Document, read
from notebooks.profiles.states import OFFERED, State
from notebooks.servers.models import IdleStop, NotebookServer

__all__ = [
    "Hub",
    "HubAccount",
    "IdleStop",
    "NotebookServer",
    "Profile",
    "ProfileVersion",
    "UnknownServer",
]


class ProfileQuerySet(models.QuerySet["Profile"]):
    """Ways to look at profiles."""

    def offered(self) -> "ProfileQuerySet":
        """Those that people can choose."""
        return self.filter(state__in=sorted(OFFERED))


class Profile(models.Model):
    """A notebook server's shape by its slug. What counts of it is the version `published`; later ones are drafts."""

    slug = models.CharField(max_length=40, unique=True)
    state = models.CharField(
        max_length=10,
        choices=[(each.value, each.words) for each in State],
        default=State.DRAFT,
    )
    # The number of the version that people get; None before the first.
    published = models.PositiveIntegerField(null=True)
    # Why it is deprecated or retired, and what people are offered instead.
    reason = models.CharField(max_length=200, blank=True, default="")
    successor = models.ForeignKey(
        "self", models.PROTECT, null=True, related_name="predecessors"
    )

    objects = ProfileQuerySet.as_manager()

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=[each.value for each in State]),
                name="a_profile_is_in_a_known_state",
            ),
            models.CheckConstraint(
                condition=Q(state=State.DRAFT, published=None)
                # What cannot be said of NULL counts as held.
                | Q(
                    state__in=sorted(OFFERED), published__isnull=False, published__gte=1
                )
                | Q(state=State.RETIRED),
                name="a_profile_is_offered_in_a_version",
            ),
            models.CheckConstraint(
                condition=~Q(state=State.DEPRECATED) | ~Q(reason=""),
                name="a_profile_is_deprecated_for_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(successor=None)
                | Q(state__in=[State.DEPRECATED, State.RETIRED]),
                name="only_a_profile_that_goes_has_a_successor",
            ),
            models.CheckConstraint(
                condition=Q(successor=None) | ~Q(successor=F("id")),
                name="no_profile_succeeds_itself",
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class ProfileVersion(models.Model):
    """What a profile was from a moment on; never changed."""

    profile = models.ForeignKey(Profile, models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=60)
    # YAML, because the order of its options is that of the form, and JSON in PostgreSQL keeps none.
    text = models.TextField()
    why = models.CharField(max_length=200, blank=True, default="")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    at = models.DateTimeField()

    objects: ClassVar = models.Manager["ProfileVersion"]()

    class Meta:
        ordering = ["profile", "-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["profile", "number"], name="one_profile_version_per_number"
            ),
            models.CheckConstraint(
                condition=Q(number__gte=1), name="a_profile_version_counts_from_one"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.profile_id} {self.number}"

    @property
    def document(self) -> Document:
        """What it says; raises DocumentRefused where the product takes its document no longer."""
        return read(self.text)
