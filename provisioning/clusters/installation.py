"""Which portal this is: a mark that its objects on clusters carry, so that two portals never take each other's."""

from functools import cache

from django.db import models


class Installation(models.Model):
    """One row, made with the database: eight letters and digits that no other portal has."""

    mark = models.CharField(max_length=16)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(id=1), name="there_is_one_installation"
            ),
        ]

    def __str__(self) -> str:
        return self.mark


@cache
def mark() -> str:
    """This portal's mark; read once per process, for it never changes."""
    return Installation.objects.get(pk=1).mark
