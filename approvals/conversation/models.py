"""What people say about a request besides deciding it."""

from django.conf import settings
from django.db import models


class Comment(models.Model):
    """Something said about a request by somebody who sees it; append-only."""

    request = models.ForeignKey(
        "approvals.Request", models.PROTECT, related_name="comments"
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    text = models.TextField(max_length=2000)
    at = models.DateTimeField()

    class Meta:
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.request_id} comment"
