"""Templates of runs as they were, are and were taken back: versions that are never changed."""

from functools import lru_cache
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q

from workloads.templates.document import read, template_of
from workloads.templates.library import Template


class TemplateVersionQuerySet(models.QuerySet["TemplateVersion"]):
    """Ways to look at versions."""

    def newest(self) -> "TemplateVersionQuerySet":
        """The version of each template that counts."""
        later = TemplateVersion.objects.filter(
            slug=OuterRef("slug"), number__gt=OuterRef("number")
        )
        return self.filter(~Exists(later))


class TemplateVersion(models.Model):
    """A template from a moment on; the one of the highest number counts. Taken back is a version of its own.

    One with the slug of a shipped template takes its place.
    """

    slug = models.CharField(max_length=40)
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=60)
    # YAML, because the order of its parameters is that of the form, and JSON in PostgreSQL keeps none.
    text = models.TextField()
    is_offered = models.BooleanField(default=True)
    why = models.CharField(max_length=200, blank=True, default="")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    at = models.DateTimeField()

    objects: ClassVar = TemplateVersionQuerySet.as_manager()

    class Meta:
        ordering = ["slug", "-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["slug", "number"], name="one_template_version_per_number"
            ),
            models.CheckConstraint(
                condition=Q(number__gte=1), name="a_template_version_counts_from_one"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.slug} {self.number}"

    @property
    def template(self) -> Template:
        """The template; raises DocumentRefused where the product takes its document no longer."""
        return _template_of(self.text, self.number)


# Every place of a run asks for all templates, and reading one takes milliseconds: a version is read once per process.
@lru_cache(maxsize=256)
def _template_of(text: str, number: int) -> Template:
    return template_of(read(text), version=number)
