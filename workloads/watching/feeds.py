"""Who keeps which feed, and the copy that it keeps: only the watcher that holds a feed writes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import uuid4

from django.db import transaction
from django.db.models import Max, Min, QuerySet
from django.db.models.functions import Coalesce

from fleet.models import Cluster, Flavor
from provisioning.desired.kueue_form import as_first_seen
from provisioning.models import Tenancy
from workloads.models import ClusterObject, Feed, FeedRevision
from workloads.reading.values import Object, namespaced_name, part, text
from workloads.watching.kept import copy_of, in_form, is_kept, kinds_of
from workloads.watching.scopes import EVERYBODY, changed_scopes

LEASE = timedelta(seconds=6)
# Ten times what another watcher waits before it takes a feed over.
UNHELD_AFTER = 10 * LEASE
AT_ONCE = 500


class FeedLost(Exception):
    """Another watcher holds the feed by now."""


def declare() -> None:
    """A feed for each kind of each cluster that the portal looks at, and none for the others."""
    wanted = [one for one in Cluster.objects.looked_after() if one.is_observed]
    there = set(Feed.objects.values_list("cluster", "kind"))
    missing = [
        (one, kind)
        for one in wanted
        for kind in kinds_of(one.queueing)
        if (one.pk, kind) not in there
    ]
    if missing:
        # Another watcher may find out at the same moment.
        Feed.objects.bulk_create(
            [Feed(cluster=one, kind=kind) for one, kind in missing],
            ignore_conflicts=True,
        )
    gone = Feed.objects.exclude(cluster__in=wanted)
    if gone.exists():
        with transaction.atomic():
            ClusterObject.objects.exclude(cluster__in=wanted).delete()
            gone.delete()


def unwatched(*, now: datetime) -> tuple[bool, datetime | None]:
    """Whether no watcher keeps what one should by now, and since when; None where none ever has."""
    held = Feed.objects.aggregate(oldest=Min("lease_until"), newest=Max("lease_until"))
    if held["newest"] is None:
        clusters = Cluster.objects.looked_after()
        return any(one.is_observed for one in clusters), None
    is_late = held["oldest"] < now - UNHELD_AFTER
    return is_late, held["oldest"] if is_late else None


def take(holder: str, *, now: datetime) -> list[Feed]:
    """Take every feed that nobody holds."""
    taken = []
    for feed in Feed.objects.free(now).select_related("cluster"):
        mine = Feed.objects.free(now).filter(pk=feed.pk)
        if mine.update(holder=holder, lease_until=now + LEASE):
            taken.append(feed)
    return taken


def hold(holder: str, *, now: datetime) -> set[int]:
    """Hold on to what is held for another six seconds; the numbers of those feeds."""
    mine = Feed.objects.filter(holder=holder, lease_until__gt=now)
    mine.update(lease_until=now + LEASE)
    return set(
        Feed.objects.filter(holder=holder, lease_until__gt=now).values_list(
            "pk", flat=True
        )
    )


def let_go(holder: str, *, now: datetime) -> None:
    """Give everything back, so that another watcher need not wait; until when it was kept stays known."""
    Feed.objects.filter(holder=holder).update(lease_until=now)


def namespaces_of(cluster_id: int) -> frozenset[str]:
    """The namespaces of teams on a cluster, those that are leaving too."""
    rows = Tenancy.objects.present().filter(cluster=cluster_id)
    return frozenset(rows.values_list("namespace", flat=True))


def flavors_of(cluster: Cluster) -> dict[str, str]:
    """The flavor of each resource where no two have the same, as Volcano's queues count; none elsewhere."""
    if not cluster.has_volcano:
        return {}
    return dict(Flavor.objects.filter(cluster=cluster).values_list("resource", "name"))


def replace(
    feed: Feed, found: Iterable[Object], *, namespaces: frozenset[str], now: datetime
) -> None:
    """Make the copy of a kind what a list said; raises FeedLost."""
    flavor_of = flavors_of(feed.cluster)
    told = [
        one for each in found if is_kept(one := in_form(each, flavor_of), namespaces)
    ]
    with transaction.atomic():
        _said(feed, now=now, listed_at=now)
        _move(feed, {EVERYBODY, *namespaces})
        FeedRevision.objects.filter(feed=feed).exclude(
            scope__in={EVERYBODY, *namespaces}
        ).delete()
        there = ClusterObject.objects.filter(cluster=feed.cluster_id, kind=feed.kind)
        before = _before(there) if _renews_times(feed) else {}
        rows = [_row(feed, one, before) for one in told]
        listed = {(row.namespace, row.name) for row in rows}
        gone = [
            pk
            for pk, *key in there.values_list("pk", "namespace", "name")
            if tuple(key) not in listed
        ]
        for start in range(0, len(gone), AT_ONCE):
            ClusterObject.objects.filter(pk__in=gone[start : start + AT_ONCE]).delete()
        _put(rows)


def change(
    feed: Feed, kind: str, found: Object, *, namespaces: frozenset[str], now: datetime
) -> None:
    """Carry one change over; raises FeedLost."""
    found = in_form(found, flavors_of(feed.cluster))
    meta = part(found, "metadata")
    copies = ClusterObject.objects.filter(
        cluster=feed.cluster_id,
        kind=feed.kind,
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
    )
    with transaction.atomic():
        _said(feed, now=now)
        before = copies.values_list("body", flat=True).first()
        if kind == "DELETED":
            after = None
            copies.delete()
        elif kind in ("ADDED", "MODIFIED") and is_kept(found, namespaces):
            known = (
                {namespaced_name(found): before}
                if before is not None and _renews_times(feed)
                else {}
            )
            row = _row(feed, found, known)
            after = row.body
            if after != before:
                _put([row])
        else:
            return
        _move(feed, changed_scopes(before, after, namespaces))


def heard(feed: Feed, *, now: datetime) -> None:
    """The cluster answered, and nothing had happened; raises FeedLost."""
    _said(feed, now=now)


def silent(feed: Feed, message: str, *, now: datetime) -> None:
    """The cluster does not answer for this kind; since when is kept from the first time on."""
    # In one statement: a page between two would say that it is silent, and not why.
    Feed.objects.filter(pk=feed.pk, holder=feed.holder).update(
        silent_since=Coalesce("silent_since", now), message=message[:500]
    )


def _said(feed: Feed, *, now: datetime, **fields: object) -> None:
    """The cluster answered. The row stays locked to the end of the transaction: nobody takes the feed meanwhile."""
    fields |= {"heard_at": now, "silent_since": None, "message": ""}
    if not Feed.objects.filter(pk=feed.pk, holder=feed.holder).update(**fields):
        raise FeedLost


def _move(feed: Feed, scopes: Collection[str]) -> None:
    """Give scopes a new revision in the transaction of their copies, so that nobody reads one without the other."""
    rows = FeedRevision.objects.filter(feed=feed)
    there = (
        set(rows.filter(scope__in=scopes).values_list("scope", flat=True))
        if scopes
        else set()
    )
    if there:
        rows.filter(scope__in=there).update(revision=uuid4())
    FeedRevision.objects.bulk_create(
        [FeedRevision(feed=feed, scope=one) for one in scopes if one not in there]
    )


def _renews_times(feed: Feed) -> bool:
    """Whether the times in copies of this kind are those of the first sight: Volcano renews its own each minute."""
    return feed.cluster.has_volcano and feed.kind == "Workload"


def _before(copies: QuerySet[ClusterObject]) -> dict[tuple[str, str], Object]:
    return {
        (namespace, name): body
        for namespace, name, body in copies.values_list("namespace", "name", "body")
    }


def _row(
    feed: Feed, found: Object, before: Mapping[tuple[str, str], Object]
) -> ClusterObject:
    meta = part(found, "metadata")
    body = copy_of(found)
    known = before.get(namespaced_name(found))
    if known is not None and part(known, "metadata").get("uid") == meta.get("uid"):
        body = as_first_seen(body, known)
    return ClusterObject(
        cluster_id=feed.cluster_id,
        kind=feed.kind,
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        body=body,
    )


def _put(rows: Sequence[ClusterObject]) -> None:
    ClusterObject.objects.bulk_create(
        rows,
        batch_size=AT_ONCE,
        update_conflicts=True,
        unique_fields=["cluster", "namespace", "kind", "name"],
        update_fields=["body"],
    )
