"""What all groups of a scrape share, so that it is read once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.models import Cluster
from portal.metrics.families import Family, Labels


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The time of a scrape, and the clusters that the portal looks after then."""

    now: datetime
    clusters: Sequence[Cluster]

    def by_cluster(
        self, name: str, words: str, value: Callable[[Cluster], float | None]
    ) -> Family:
        """A metric with a sample for each cluster; None is nothing to tell of one."""
        values = ((one.name, value(one)) for one in self.clusters)
        known: dict[Labels, float] = {
            (cluster,): found for cluster, found in values if found is not None
        }
        return Family(name=name, words=words, labels=["cluster"], samples=known)
