"""How far what the copies tell of a cluster can be trusted."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.models import Cluster
from ui.amounts import moment
from workloads.models import Feed
from workloads.watching.kept import kinds_of

# A watch ends every ten seconds at the latest, and says so: what is older is not being watched.
FRESH = timedelta(seconds=30)
# How long the copy of one watch may be behind another's, and behind what the portal has just written itself.
COPIES_LAG = timedelta(seconds=3)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """How far what is told of a cluster can be trusted: since when it is silent, or that nobody has looked yet."""

    cluster: Cluster
    heard_at: datetime | None
    silent_since: datetime | None
    message: str

    @property
    def is_known(self) -> bool:
        """Whether everything that is copied has been read at least once."""
        return self.heard_at is not None

    @property
    def is_listened_to(self) -> bool:
        """Whether what is copied is how things are now."""
        return self.is_known and self.silent_since is None

    def silence(self, now: datetime) -> str:
        """Since when the cluster is silent, as the beginning of a sentence; empty where it is not."""
        if self.silent_since is None:
            return ""
        return f"{self.cluster.title} has said nothing since {moment(self.silent_since, now)}"


def seen_of(cluster: Cluster, now: datetime) -> Seen:
    """How far what is told of a cluster can be trusted; one query."""
    return seen_in({cluster.pk: cluster}, Feed.objects.filter(cluster=cluster), now)[
        cluster.pk
    ]


def seen_in(
    clusters: Mapping[int, Cluster], feeds: Iterable[Feed], now: datetime
) -> dict[int, Seen]:
    """The same of several, from all their feeds."""
    by_cluster = defaultdict[int, list[Feed]](list)
    for feed in feeds:
        by_cluster[feed.cluster_id].append(feed)
    return {pk: _seen(cluster, by_cluster[pk], now) for pk, cluster in clusters.items()}


def _seen(cluster: Cluster, feeds: Sequence[Feed], now: datetime) -> Seen:
    """The oldest of what is known: one kind that is not read makes the whole as old as it."""
    heard = [feed.heard_at for feed in feeds if feed.listed_at and feed.heard_at]
    oldest = min(heard) if len(heard) == len(kinds_of(cluster.queueing)) else None
    silent = [feed for feed in feeds if feed.silent_since]
    first = min(silent, key=lambda feed: feed.silent_since or now, default=None)
    since = first.silent_since if first else None
    if since is None and oldest is not None and now - oldest > FRESH:
        since = oldest
    return Seen(
        cluster=cluster,
        heard_at=oldest,
        silent_since=min(filter(None, (since, oldest))) if since else None,
        message=first.message if first else "",
    )
