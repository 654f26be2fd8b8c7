"""The copy follows the cluster: at once, past everything that ends a watch, kept by one watcher at a time."""

import json
import threading
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Cluster
from tests import factories
from tests.services.process import wait_until
from tests.workloads.conftest import JOB, Watched, is_read, watching
from workloads.models import ClusterObject, Feed
from workloads.watching import feeds, watcher
from workloads.watching.kept import KINDS


@pytest.mark.slow
def test_what_is_there_is_copied_and_what_happens_follows(watched: Watched) -> None:
    watched.job("first")
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        assert set(watched.copies("Job")) == {"first"}
        assert len(watched.copies("Node")) == 6
        assert watched.namespace in watched.copies("ClusterQueue")
        watched.job("second")
        wait_until(lambda: "second" in watched.copies("Job"), what="the second job")
        wait_until(lambda: len(watched.copies("Workload")) == 2, what="its workload")
        watched.kubernetes.delete(JOB, "first", watched.namespace)
        wait_until(
            lambda: set(watched.copies("Job")) == {"second"},
            what="the first job to be gone",
        )
    bodies = ClusterObject.objects.values_list("body", flat=True)
    assert "hunter2" not in json.dumps(list(bodies))


def test_work_in_nobodys_namespace_is_not_copied(watched: Watched) -> None:
    watched.kubernetes.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}}
    )
    watched.job("theirs", namespace="elsewhere")
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        watched.job("ours")
        wait_until(lambda: "ours" in watched.copies("Job"), what="the team's own job")
        assert set(watched.copies("Job")) == {"ours"}


@pytest.mark.slow
def test_a_version_that_was_forgotten_is_listed_anew_and_what_is_gone_goes(
    watched: Watched,
) -> None:
    watched.job("first")
    watched.job("second")
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        listed = Feed.objects.get(kind="Job").listed_at
        assert listed is not None
        watched.kubernetes.fail(where="jobs", status=503, body="{}", times=10_000)
        silent = Feed.objects.filter(kind="Job", silent_since__isnull=False)
        wait_until(silent.exists, what="the jobs to be silent")
        # Before it answers again the server has lost its caches: no watch can go on from before.
        watched.kubernetes.cluster.faults.clear()
        watched.kubernetes.fail(
            where="jobs", method="GET", status=503, body="{}", times=10_000
        )
        watched.kubernetes.delete(JOB, "second", watched.namespace)
        watched.job("third")
        watched.kubernetes.forget_versions()
        watched.kubernetes.cluster.faults.clear()
        wait_until(
            lambda: set(watched.copies("Job")) == {"first", "third"},
            what="the copy to be as the cluster is",
        )
        again = Feed.objects.get(kind="Job").listed_at
        assert again is not None
        assert again > listed


def test_a_team_that_comes_later_is_read_at_once_in_a_watch_that_goes_on(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Far longer than anything else here: nothing is found out by the next watch.
    monkeypatch.setattr(watcher, "SECONDS", 300)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        other = factories.tenancy(on=watched.cluster)
        watched.kubernetes.create(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": other.namespace},
            }
        )
        watched.job("theirs", namespace=other.namespace)
        wait_until(
            lambda: "theirs" in watched.copies("Job"), what="the other team's job"
        )


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_silent_since_then_and_no_longer_once_it_does(
    watched: Watched,
) -> None:
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        before = timezone.now()
        watched.kubernetes.fail(where="jobs", status=503, body="{}", times=10_000)
        rows = Feed.objects.filter(kind="Job", silent_since__isnull=False)
        wait_until(rows.exists, what="the jobs to be silent")
        feed = rows.get()
        assert feed.silent_since is not None
        assert feed.silent_since >= before
        assert feed.message.startswith("503")
        assert (
            not Feed.objects.exclude(kind="Job")
            .filter(silent_since__isnull=False)
            .exists()
        )
        watched.kubernetes.cluster.faults.clear()
        wait_until(lambda: not rows.exists(), what="the jobs to be heard")
        watched.job("late")
        wait_until(lambda: "late" in watched.copies("Job"), what="the job")


def test_a_cluster_without_the_right_to_watch_says_so(watched: Watched) -> None:
    role = ("rbac.authorization.k8s.io/v1", "ClusterRole")
    found = watched.kubernetes.get(role, "quartermaster-provisioner")
    assert found is not None
    rules = [rule for rule in found["rules"] if "jobs" not in rule["resources"]]
    watched.kubernetes.patch(role, "quartermaster-provisioner", None, {"rules": rules})
    with watching(watched.kubernetes):
        rows = Feed.objects.filter(kind="Job", silent_since__isnull=False)
        wait_until(rows.exists, what="the jobs to be silent")
        assert "forbidden" in rows.get().message


@pytest.mark.slow
def test_of_two_watchers_one_keeps_a_feed_and_the_other_takes_over(
    watched: Watched,
) -> None:
    with watching(watched.kubernetes) as first:
        wait_until(is_read, what="everything to be listed")
        holders = set(Feed.objects.values_list("holder", flat=True))
        assert len(holders) == 1
        with watching(watched.kubernetes):
            watched.job("while-both")
            wait_until(lambda: "while-both" in watched.copies("Job"), what="the job")
            assert set(Feed.objects.values_list("holder", flat=True)) == holders
            first.set()
            wait_until(
                lambda: (
                    not Feed.objects.filter(holder__in=holders).exists()
                    and Feed.objects.exclude(holder="").count() == len(KINDS)
                ),
                what="the other one to take over",
            )
            watched.job("after")
            wait_until(lambda: "after" in watched.copies("Job"), what="the next job")


@pytest.fixture
def feed(transactional_db: None) -> Feed:
    """A feed that `first` held until a minute ago, and `second` holds now."""
    cluster = factories.cluster(kubeconfig="some.yaml")
    then = timezone.now() - timedelta(minutes=1)
    Feed.objects.create(cluster=cluster, kind="Job")
    [taken] = feeds.take("first", now=then)
    taken.holder = "first"
    assert [one.pk for one in feeds.take("second", now=timezone.now())] == [taken.pk]
    return taken


def test_a_watcher_that_was_asleep_changes_nothing(feed: Feed) -> None:
    job = {"kind": "Job", "metadata": {"name": "late", "namespace": "team"}}
    names, now = frozenset({"team"}), timezone.now()
    with pytest.raises(feeds.FeedLost):
        feeds.change(feed, "ADDED", job, namespaces=names, now=now)
    with pytest.raises(feeds.FeedLost):
        feeds.replace(feed, [job], namespaces=names, now=now)
    with pytest.raises(feeds.FeedLost):
        feeds.heard(feed, now=now)
    feeds.silent(feed, "away", now=now)
    assert not ClusterObject.objects.exists()
    assert Feed.objects.get().silent_since is None
    assert feeds.hold("first", now=now) == set()


def test_what_is_no_longer_looked_at_is_forgotten(feed: Feed) -> None:
    ClusterObject.objects.create(
        cluster=feed.cluster, kind="Job", namespace="team", name="a", body={}
    )
    feeds.declare()
    assert Feed.objects.count() == len(KINDS)
    Cluster.objects.update(enabled=False)
    feeds.declare()
    assert (Feed.objects.count(), ClusterObject.objects.count()) == (0, 0)


def test_a_cluster_out_of_use_is_looked_at_as_long_as_somebody_is_there(
    feed: Feed,
) -> None:
    tenancy = factories.tenancy(factories.team("vision"), feed.cluster)
    Cluster.objects.update(enabled=False)
    feeds.declare()
    assert Feed.objects.count() == len(KINDS)
    factories.leave(tenancy, to="gone", at=timezone.now())
    feeds.declare()
    assert Feed.objects.count() == 0


def test_a_watcher_ends_when_it_is_told_to(watched: Watched) -> None:
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
    assert not Feed.objects.filter(lease_until__gt=timezone.now()).exists()
    assert not any(one.name.startswith("feed ") for one in threading.enumerate())
