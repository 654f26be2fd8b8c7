"""Feeds of a cluster as a watcher of the test's own keeps them, change by change, without a cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from fleet.models import Cluster
from workloads.models import Feed
from workloads.watching import feeds
from workloads.watching.kept import KINDS

Object = Mapping[str, Any]


@dataclass
class Copying:
    """Writes what a cluster said, as `workloads.watching.watcher` does."""

    cluster: Cluster
    feeds: dict[str, Feed] = field(default_factory=dict)

    def begin(self, *objects: Object) -> None:
        """List everything: these objects, and nothing else."""
        now = timezone.now()
        Feed.objects.bulk_create(
            Feed(cluster=self.cluster, kind=kind) for kind in KINDS
        )
        for feed in feeds.take("test", now=now):
            feed.holder = "test"
            self.feeds[feed.kind] = feed
        for kind in KINDS:
            self.list(kind, [one for one in objects if one["kind"] == kind])

    def list(self, kind: str, objects: Iterable[Object]) -> None:
        """List a kind anew."""
        names = feeds.namespaces_of(self.cluster.pk)
        feeds.replace(self.feeds[kind], objects, namespaces=names, now=timezone.now())

    def put(self, found: Object) -> None:
        """An object came or has changed."""
        self._change("MODIFIED", found)

    def delete(self, found: Object) -> None:
        """An object is gone."""
        self._change("DELETED", found)

    def hear(self) -> None:
        """Nothing has happened, and the cluster answers."""
        for feed in self.feeds.values():
            feeds.heard(feed, now=timezone.now())

    def _change(self, kind: str, found: Object) -> None:
        names = feeds.namespaces_of(self.cluster.pk)
        feeds.change(
            self.feeds[found["kind"]], kind, found, namespaces=names, now=timezone.now()
        )
