"""Cost centres that somebody answers for: a team spends by itself only on one that is confirmed."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Lower


class CostCentreQuerySet(models.QuerySet["CostCentre"]):
    """Ways to look at cost centres."""

    def confirmed(self) -> "CostCentreQuerySet":
        """Those that stand on the list."""
        return self.filter(confirmed_at__isnull=False)


class CostCentre(models.Model):
    """Where costs go. `owner` answers for it; until it is confirmed, people decide what teams spend on it."""

    code = models.CharField(max_length=20)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="cost_centres"
    )
    created_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True)
    # Empty for those that were in use before there was a list.
    confirmed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )

    objects = CostCentreQuerySet.as_manager()

    class Meta:
        ordering = ["code"]
        constraints = [
            models.UniqueConstraint(Lower("code"), name="a_cost_centre_is_listed_once"),
            models.CheckConstraint(
                condition=Q(confirmed_by=None) | Q(confirmed_at__isnull=False),
                name="who_confirmed_a_cost_centre_did_so_at_a_moment",
            ),
        ]

    def __str__(self) -> str:
        return self.code


def is_confirmed(code: str) -> Any:
    """Whether a team's cost centre is confirmed, as a condition; `code` names the column that holds it."""
    return Exists(
        CostCentre.objects.confirmed().filter(code__iexact=OuterRef(code)).order_by()
    )


def unconfirmed_words(code: str) -> str:
    """What it means for a team that nobody has confirmed its cost centre."""
    return f"Nobody has confirmed {code} yet: until then people decide whatever the team asks for that costs."


def unconfirmed(code: str) -> str:
    """The cost centre of this code when nobody has confirmed it, listed or not; else nothing."""
    return (
        ""
        if CostCentre.objects.confirmed().filter(code__iexact=code).exists()
        else code
    )
