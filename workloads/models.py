"""The portal's copy of what runs on clusters: made anew at any time, and nothing is decided by it."""

from datetime import datetime
from typing import Any
from uuid import uuid4

from django.db import models
from django.db.models import Q

from fleet.models import Cluster
from web.rows import Row
from workloads.gpu_use.models import PodUse
from workloads.runs.models import Attempt, ClusterAbility, GpuUse, KeptLog, Run
from workloads.service_levels.models import ServiceDay, ServiceLevel
from workloads.template_desk.models import TemplateVersion

__all__ = [
    "Attempt",
    "ClusterAbility",
    "ClusterObject",
    "Feed",
    "FeedRevision",
    "GpuUse",
    "KeptLog",
    "PodUse",
    "Run",
    "ServiceDay",
    "ServiceLevel",
    "TemplateVersion",
]


class FeedQuerySet(models.QuerySet["Feed"]):
    """Ways to look at feeds."""

    def free(self, now: datetime) -> "FeedQuerySet":
        """Those that no watcher holds."""
        return self.filter(Q(lease_until=None) | Q(lease_until__lte=now))


class Feed(models.Model):
    """Which watcher keeps the copy of one kind of a cluster, and how old it is.

    A watcher that lost its lease changes nothing more: each of its writes asks for its name in `holder`.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="feeds")
    kind = models.CharField(max_length=40)
    holder = models.CharField(max_length=40, blank=True, default="")
    lease_until = models.DateTimeField(null=True)
    listed_at = models.DateTimeField(null=True)
    heard_at = models.DateTimeField(null=True)
    # Since when the cluster does not answer for this kind, and what it or the connection said.
    silent_since = models.DateTimeField(null=True)
    message = models.CharField(max_length=500, blank=True, default="")

    objects = FeedQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "kind"], name="one_feed_per_kind"
            ),
            models.CheckConstraint(
                condition=Q(lease_until=None) | ~Q(holder=""),
                name="a_held_feed_names_its_watcher",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} on {self.cluster_id}"


class FeedRevision(models.Model):
    """What a feed's copies are for one scope: another value after every change of theirs, never one that was before.

    A scope is a team's namespace, or empty for what explains work of everybody on the cluster.
    """

    feed = models.ForeignKey(Feed, models.CASCADE, related_name="revisions")
    scope = models.CharField(max_length=63, blank=True, default="")
    revision = models.UUIDField(default=uuid4)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["feed", "scope"], name="one_revision_per_scope"
            )
        ]

    def __str__(self) -> str:
        return f"{self.feed_id} {self.scope}"


class ClusterObject(Row):
    """An object as a cluster last said it, without what nobody here reads: no environment, no argument, no secret."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="+")
    kind = models.CharField(max_length=40)
    namespace = models.CharField(max_length=63, blank=True, default="")
    name = models.CharField(max_length=253)
    body: Any = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "namespace", "kind", "name"],
                name="one_copy_per_object",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
