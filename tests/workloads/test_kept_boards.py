"""What was explained of a team's work is kept until something has changed, and not a view longer."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from accounts.roles import Permission, Role
from allocations.models import Allocation
from allocations.use.models import Leftover, StoppedWork
from approvals.models import Request
from approvals.requests import actions as approvals
from fleet.models import Cluster, Flavor
from provisioning.clusters import health
from provisioning.models import Tenancy
from tests import factories
from tests.faults.running import ROOT, environment
from tests.services.redis import Redis
from tests.workloads.copying import Copying
from web.counters import Breaker
from workloads import kept_boards
from workloads.board import TeamWork, work_of_team
from workloads.explanations import Action
from workloads.gathering import Explained, explained
from workloads.listing import Work
from workloads.models import Feed, FeedRevision
from workloads.team_context import context_of
from workloads.views import LINES

GPU = "nvidia.com/gpu"
CREATED, RECORDINGS = "2026-11-23T08:00:00Z", ROOT / "tests" / "recordings"
Object = dict[str, Any]
Conditions = dict[str, tuple[str, str]]


EMPTY = Explained(work=[], left_out=0, histories={}, until=None)


@dataclass
class Marked:
    """Work of a team, known by its mark."""

    team: Any
    sees_all: bool = False
    mark: str = "m"


@dataclass
class Scene:
    """A team's namespace on a cluster whose copies the test writes."""

    copying: Copying
    tenancy: Tenancy
    ada: User

    def board(self, now: datetime | None = None, *, by: User | None = None) -> TeamWork:
        """What a view shows."""
        return work_of_team(
            self.tenancy.team, by=by or self.ada, now=now or timezone.now()
        )

    def line(
        self, now: datetime | None = None, *, name: str = "bert", by: User | None = None
    ) -> Work:
        """One line of it."""
        return next(one for one in self.board(now, by=by).work if one.key.name == name)

    def anew(self, now: datetime, *, by: User | None = None) -> list[Work]:
        """What is explained where nothing is kept."""
        sees_all = (by or self.ada).may(Permission.SEE_ALL_TEAMS)
        known = context_of(self.tenancy.team, sees_all=sees_all, now=now)
        return list(explained(known, now=now).work)

    def workload(
        self, name: str = "bert", *, gpus: int = 2, more: Conditions | None = None
    ) -> Object:
        """A Workload of the team that waits for quota."""
        message = (
            f"insufficient unused quota for {GPU} in flavor a100, {gpus} more needed"
        )
        return workload(
            name, self.tenancy.namespace, gpus=gpus, message=message, more=more
        )


def workload(
    name: str,
    namespace: str,
    *,
    gpus: int = 2,
    message: str = "",
    more: Conditions | None = None,
) -> Object:
    """A Workload that has no quota, unless further conditions say so: status, and since when."""
    waits = {"QuotaReserved": ("False", "2026-11-23T08:05:00Z")}
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": "Pending",
            "message": message,
            "lastTransitionTime": at,
        }
        for kind, (status, at) in (waits | (more or {})).items()
    ]
    return {
        "kind": "Workload",
        "metadata": {
            "name": f"job-{name}",
            "namespace": namespace,
            "uid": f"w-{name}",
            "creationTimestamp": CREATED,
            "ownerReferences": [
                {"kind": "Job", "name": name, "uid": f"j-{name}", "controller": True}
            ],
        },
        "spec": {
            "queueName": "default",
            "podSets": [
                {"name": "main", "count": 1, "template": {"spec": pod_spec(gpus)}}
            ],
        },
        "status": {"conditions": conditions},
    }


def pod_spec(gpus: int, node: str = "") -> Object:
    """A pod of one container."""
    containers = [{"name": "it", "resources": {"limits": {GPU: str(gpus)}}}]
    return {"containers": containers} | ({"nodeName": node} if node else {})


def pod(
    namespace: str, *, node: str = "a100-0", gpus: int = 2, phase: str = "Running"
) -> Object:
    """A pod on a node."""
    meta = {
        "name": "p",
        "namespace": namespace,
        "uid": "p",
        "creationTimestamp": CREATED,
    }
    return {
        "kind": "Pod",
        "metadata": meta,
        "spec": pod_spec(gpus, node),
        "status": {"phase": phase},
    }


def node(**spec: Any) -> Object:
    """A node of the flavor with eight GPUs."""
    ready = {
        "type": "Ready",
        "status": "True",
        "lastHeartbeatTime": str(timezone.now()),
    }
    return {
        "kind": "Node",
        "metadata": {"name": "a100-0", "labels": {"accelerator": "a100"}},
        "spec": spec,
        "status": {"allocatable": {GPU: "8"}, "conditions": [ready]},
    }


def cluster_queue(name: str, **spec: Any) -> Object:
    """A ClusterQueue with four GPUs of the flavor."""
    flavors = [{"name": "a100", "resources": [{"name": GPU, "nominalQuota": "4"}]}]
    groups = [{"coveredResources": [GPU], "flavors": flavors}]
    return {
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {"resourceGroups": groups, **spec},
    }


def local_queue(namespace: str, queue: str, **spec: Any) -> Object:
    """A LocalQueue."""
    meta = {"name": "default", "namespace": namespace}
    return {
        "kind": "LocalQueue",
        "metadata": meta,
        "spec": {"clusterQueue": queue, **spec},
    }


def event(namespace: str, message: str) -> Object:
    """What the Job controller says of the job."""
    return {
        "kind": "Event",
        "metadata": {
            "name": "bert.1",
            "namespace": namespace,
            "creationTimestamp": CREATED,
        },
        "involvedObject": {"kind": "Job", "name": "bert"},
        "type": "Warning",
        "reason": "FailedCreate",
        "message": message,
    }


@pytest.fixture(autouse=True)
def nothing_at_hand() -> Iterator[None]:
    """What another test explained is not at hand in this one."""
    kept_boards.at_hand.clear()
    yield
    kept_boards.at_hand.clear()


@pytest.fixture
def scene(db: None) -> Scene:
    """A team with four GPUs, all of whose queue and one waiting job are copied."""
    return made()


def made() -> Scene:
    ada = factories.person("Ada Okafor")
    team = factories.team("Vision", by=ada)
    factories.join(team, ada)
    tenancy = factories.tenancy(team, factories.cluster("training"))
    factories.flavor(tenancy.cluster, "a100", node_labels={"accelerator": "a100"})
    found = Scene(Copying(tenancy.cluster), tenancy, ada)
    namespace = tenancy.namespace
    found.copying.begin(
        node(),
        cluster_queue(namespace),
        local_queue(namespace, namespace),
        found.workload(),
    )
    return found


def copies_read(scene: Scene, now: datetime | None = None) -> bool:
    """Whether a view reads copies."""
    with CaptureQueriesContext(connection) as asked:
        scene.board(now)
    return any("workloads_clusterobject" in one["sql"] for one in asked)


def test_a_view_of_what_has_not_changed_reads_no_copy_and_says_the_same(
    scene: Scene,
) -> None:
    now = timezone.now()
    first = list(scene.board(now).work)
    assert not copies_read(scene)
    assert list(scene.board(now).work) == first == scene.anew(now)


@pytest.mark.slow
def test_a_page_shows_fifty_lines_and_leads_to_the_others(
    scene: Scene, client: Client
) -> None:
    scene.copying.list(
        "Workload", [scene.workload(f"bert-{number:02}") for number in range(LINES + 3)]
    )
    client.force_login(scene.ada)
    work = reverse("work", args=[scene.tenancy.team.slug])
    first = shown_at(client, f"{work}?show=waiting")
    assert f"1 to {LINES} of {LINES + 3}" in first
    assert 'href="?show=waiting&amp;page=2"' in first
    second = shown_at(client, f"{work}?show=waiting&page=2")
    assert f"{LINES + 1} to {LINES + 3} of {LINES + 3}" in second
    assert 'href="?show=waiting&amp;page=1"' in second
    pages = [set(re.findall(r"bert-\d\d(?=<)", page)) for page in (first, second)]
    assert [len(names) for names in pages] == [LINES, 3]
    assert len(pages[0] | pages[1]) == LINES + 3
    # What ended meanwhile takes the last page away: whoever was there sees what is the last one now.
    assert f"of {LINES + 3}" in shown_at(client, f"{work}?page=9")
    scene.copying.list("Workload", [scene.workload("bert-00")])
    assert "of 1<" not in shown_at(client, f"{work}?page=2")


def shown_at(client: Client, address: str) -> str:
    """A page's HTML."""
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_every_sort_of_change_is_seen_by_the_next_view(scene: Scene) -> None:
    own, copying = scene.tenancy.namespace, scene.copying
    # An object of each kind, and what the line says of it.
    copying.put(scene.workload(gpus=3))
    assert "3 × A100" in scene.line().why.what
    copying.put(cluster_queue(own, stopPolicy="Hold"))
    assert scene.line().why.code == "queue_stopped"
    copying.put(cluster_queue(own))
    copying.put(local_queue(own, own, stopPolicy="Hold"))
    assert "the team's queue" in scene.line().why.what
    copying.put(local_queue(own, own))
    assert scene.line().why.code == "quota_full"
    admitted = {"Admitted": ("True", CREATED), "QuotaReserved": ("True", CREATED)}
    copying.put(scene.workload(more=admitted))
    copying.put(event(own, "exceeded quota: gpus"))
    assert scene.line().why.code == "namespace_quota"
    copying.delete(event(own, "exceeded quota: gpus"))
    assert scene.line().why.code == "no_pods"
    started = pod(own)
    started["metadata"]["labels"] = {"kueue.x-k8s.io/workload": "job-bert"}
    copying.put(started)
    assert scene.line().state == "starting"
    job = {
        "kind": "Job",
        "metadata": {
            "name": "late",
            "namespace": own,
            "uid": "j-late",
            "creationTimestamp": CREATED,
        },
        "spec": {"suspend": True},
    }
    copying.put(job)
    assert scene.line(name="late").why.code == "no_queue"
    copying.delete(job)
    copying.list("Workload", [])
    assert [one.key.kind for one in scene.board().work] == ["Pod"]


def test_a_controller_of_queues_that_is_away_is_told_of_what_waits_until_it_is_back(
    scene: Scene,
) -> None:
    scene.copying.put(scene.workload())
    assert scene.line().why.code == "quota_full"
    cluster, away_since = scene.tenancy.cluster, timezone.now()
    away = health.dated(health.kueue_controller({}), [], away_since)
    Cluster.objects.filter(pk=cluster.pk).update(reachable=True, parts=away)
    why = scene.line().why
    assert (why.code, why.since) == ("queues_down", away_since)
    Cluster.objects.filter(pk=cluster.pk).update(parts=[])
    assert scene.line().why.code == "quota_full"


def test_a_priority_that_the_cluster_does_not_have_is_named(scene: Scene) -> None:
    """Kueue makes no Workload for such a job, and says nothing of it."""
    labels = {
        "kueue.x-k8s.io/queue-name": "default",
        "kueue.x-k8s.io/priority-class": "urgent",
    }
    metadata = {
        "name": "late",
        "namespace": scene.tenancy.namespace,
        "uid": "j-late",
        "creationTimestamp": CREATED,
        "labels": labels,
    }
    scene.copying.put({"kind": "Job", "metadata": metadata, "spec": {"suspend": True}})
    assert scene.line(name="late").why.code == "not_queued"
    mine = Cluster.objects.filter(pk=scene.tenancy.cluster.pk)
    mine.update(queue_priorities=["best-effort", "exploratory"])
    why = scene.line(name="late").why
    assert why.code == "unknown_priority"
    assert "It names the priority urgent" in why.what
    mine.update(queue_priorities=["urgent"])
    assert scene.line(name="late").why.code == "not_queued"


def test_a_request_for_more_that_waits_is_named_until_it_is_answered(
    scene: Scene,
) -> None:
    scene.copying.put(scene.workload())
    assert "Or ask for" in scene.line().why.do
    request = factories.request(
        scene.ada, scene.tenancy, Flavor.objects.get(), gpus=8, days=90
    )
    assert request.state == "waiting"
    why = scene.line().why
    assert "Your team's request for 8 more waits for platform leads." in why.do
    assert why.step is not None
    assert (why.step.action, why.step.data) == (
        Action.OPEN_REQUEST,
        {"request": request.pk},
    )
    # What an earlier step has left of it.
    Request.objects.filter(pk=request.pk).update(cut_to=5)
    assert "Your team's request for 5 more waits" in scene.line().why.do
    approvals.withdraw(request.pk, by=scene.ada, now=timezone.now())
    assert "Or ask for" in scene.line().why.do


def test_all_that_was_asked_for_counts_where_several_requests_wait(
    scene: Scene,
) -> None:
    large = scene.workload()
    large["status"]["conditions"][0]["message"] = (
        "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor a100, previously "
        "considered podsets requests (0) + current podset request (16) > maximum capacity (4)"
    )
    scene.copying.put(large)
    assert scene.line().why.code == "larger_than_quota"
    for gpus in (8, 4):
        factories.request(
            scene.ada, scene.tenancy, Flavor.objects.get(), gpus=gpus, days=90
        )
        advice = scene.line().why.do
        assert ("ask for 4 more than that" in advice) is (gpus == 8)


def test_what_the_portal_stopped_is_not_somebody_s_doing(scene: Scene) -> None:
    inactive = scene.workload()
    inactive["spec"]["active"] = False
    scene.copying.put(inactive)
    assert scene.line().why.code == "stopped_by_person"
    held = factories.allocation(scene.ada, scene.tenancy, Flavor.objects.get(), gpus=2)
    now = timezone.now()
    usual: dict[str, Any] = {"tenancy": scene.tenancy, "gpus": 2}
    left = Leftover.objects.create(
        allocation=held, flavor=Flavor.objects.get(), since=now, look_at=now, **usual
    )
    StoppedWork.objects.create(
        leftover=left,
        uid="w-bert",
        name="job-bert",
        job="Job bert",
        asked_at=now,
        **usual,
    )
    # The copy changes once the cluster was told, which is after this was written down.
    inactive["metadata"]["resourceVersion"] = "9"
    inactive["status"]["conditions"][0]["reason"] = "Deactivated"
    scene.copying.put(inactive)
    why = scene.line().why
    assert why.code == "stopped_by_portal"
    assert "Your team holds 4 × A100 now" in why.what
    own = scene.tenancy.namespace
    scene.copying.put(cluster_queue(own, resourceGroups=[]))
    assert "your team no longer holds the 2 × A100" in scene.line().why.what


def test_what_others_take_of_a_node_is_seen_and_their_other_changes_make_nothing_anew(
    scene: Scene,
) -> None:
    flavor = Flavor.objects.get()
    factories.allocation(scene.ada, scene.tenancy, flavor, gpus=2)
    other = factories.tenancy(on=scene.tenancy.cluster)
    copying = scene.copying
    copying.put(pod(other.namespace, node="", gpus=6, phase="Pending"))
    step = scene.line().why.step
    assert step is not None
    assert step.label == "Use 2 × A100 on Training: free now"
    copying.put(pod(other.namespace, gpus=7))
    step = scene.line().why.step
    assert step is None or "free now" not in step.label
    assert not copies_read(scene)
    with_conditions = pod(other.namespace, gpus=7)
    with_conditions["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    copying.put(with_conditions)
    copying.put(workload("theirs", other.namespace))
    copying.put(cluster_queue(other.namespace, stopPolicy="Hold"))
    copying.put(event(other.namespace, "exceeded quota"))
    assert not copies_read(scene)
    copying.delete(with_conditions)
    step = scene.line().why.step
    assert step is not None
    assert "free now" in step.label
    copying.put(node(unschedulable=True))
    step = scene.line().why.step
    assert step is None or "free now" not in step.label


def test_gpus_that_are_free_are_called_by_the_flavor_of_their_own_cluster(
    scene: Scene,
) -> None:
    """A flavor's name is its cluster's own: another one may call slices of the same GPU so."""
    factories.allocation(scene.ada, scene.tenancy, Flavor.objects.get(), gpus=2)
    cut = factories.tenancy(scene.tenancy.team, factories.cluster("cut"))
    slices = factories.flavor(
        cut.cluster, "a100", resource="nvidia.com/mig-1g.10gb", gpus_per_node=7
    )
    factories.allocation(scene.ada, cut, slices, gpus=1)
    Copying(cut.cluster).begin()
    step = scene.line().why.step
    assert step is not None
    assert step.label == "Use 2 × A100 on Training: free now"


def test_what_is_said_again_without_a_change_makes_nothing_anew(scene: Scene) -> None:
    scene.board()
    scene.copying.hear()
    scene.copying.put(node())
    again = scene.workload()
    again["metadata"]["resourceVersion"] = "99"
    scene.copying.put(again)
    assert not copies_read(scene)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "queue"),
    [
        ("10f-preemption-and-stop", "qm-alpha"),
        ("10f-preemption-and-stop", "qm-t-alpha"),
        ("34a-borrow-reclaim", "qm-t-alpha"),
    ],
)
def test_after_each_recorded_change_a_view_says_what_it_would_say_anew(
    db: None, name: str, queue: str
) -> None:
    # Under its own name the queue is nobody's, and under the other one it is its team's.
    text = (RECORDINGS / f"{name}.json").read_text().replace('"qm-alpha"', f'"{queue}"')
    cluster = factories.cluster("training")
    factories.flavor(cluster, "a100")
    scenes, copying = [], Copying(cluster)
    for namespace in ("qm-t-alpha", "qm-t-beta"):
        tenancy = factories.tenancy(on=cluster)
        Tenancy.objects.filter(pk=tenancy.pk).update(namespace=namespace)
        tenancy.refresh_from_db()
        factories.join(tenancy.team, tenancy.team.created_by)
        scenes.append(Scene(copying, tenancy, tenancy.team.created_by))
    copying.begin()
    now, changes = datetime.fromisoformat("2026-11-22T20:00:00Z"), 0
    Feed.objects.update(heard_at=now)
    for found in changed(json.loads(text)):
        copying.put(found)
        Feed.objects.update(heard_at=now)
        changes += 1
        for scene in scenes:
            assert list(scene.board(now).work) == scene.anew(now), found["metadata"]
    assert changes > 15


def changed(steps: list[Any]) -> Iterator[Object]:
    """Every object of the recording that is copied, whenever it was answered otherwise than before."""
    seen = dict[tuple[str, str, str], Object]()
    for step in steps:
        for found in objects(step["response"].get("body")):
            meta = found["metadata"]
            key = (found["kind"], str(meta.get("namespace")), meta["name"])
            if seen.get(key) != found:
                seen[key] = found
                yield found


def objects(found: Any) -> Iterator[Object]:
    if isinstance(found, dict):
        if found.get("kind") in (
            "Workload",
            "Job",
            "Pod",
            "ClusterQueue",
            "LocalQueue",
            "Node",
        ):
            if found.get("metadata", {}).get("name"):
                yield found
        else:
            for value in found.values():
                yield from objects(value)
    elif isinstance(found, list):
        for value in found:
            yield from objects(value)


@pytest.mark.slow
def test_what_the_portal_itself_knows_is_part_of_it(scene: Scene) -> None:
    def changed_by(change: Any) -> bool:
        scene.board()
        assert not copies_read(scene)
        change()
        return copies_read(scene)

    flavor = Flavor.objects.get()
    assert changed_by(
        lambda: factories.allocation(scene.ada, scene.tenancy, flavor, gpus=1)
    )
    assert changed_by(lambda: Allocation.objects.update(gpus=2))
    assert changed_by(lambda: Flavor.objects.update(product="A100 80 GB"))
    assert changed_by(lambda: Flavor.objects.update(gpus_total=16))
    assert changed_by(
        lambda: factories.tenancy(
            scene.tenancy.team, scene.tenancy.cluster, environment="test"
        )
    )
    later = timezone.now() + timedelta(days=3)
    leaves = {
        "stage": "leaving",
        "stop": "Hold",
        "leaves_at": later,
        "is_protected": False,
    }
    assert changed_by(
        lambda: Tenancy.objects.filter(pk=scene.tenancy.pk).update(**leaves)
    )
    assert changed_by(
        lambda: Feed.objects.filter(kind="Pod").update(silent_since=timezone.now())
    )
    assert changed_by(scene.copying.hear)
    assert not changed_by(scene.copying.hear)


def test_a_silent_cluster_is_silent_since_then_although_no_copy_changes(
    scene: Scene,
) -> None:
    now = timezone.now()
    assert scene.line(now).why.code == "quota_full"
    later = now + timedelta(minutes=5)
    silent = scene.line(later)
    assert silent.why.code == "cluster_silent"
    assert (
        silent.why.since
        == scene.board(later).clusters[0].silent_since
        == min(feed.heard_at for feed in Feed.objects.all() if feed.heard_at)
    )
    scene.copying.hear()
    assert scene.line().why.code == "quota_full"


def test_the_time_alone_makes_an_answer_another_one(scene: Scene) -> None:
    now = datetime.fromisoformat(CREATED) + timedelta(seconds=10)
    Feed.objects.update(heard_at=now)
    job = {
        "kind": "Job",
        "metadata": {
            "name": "fresh",
            "namespace": scene.tenancy.namespace,
            "uid": "f",
            "creationTimestamp": CREATED,
            "labels": {"kueue.x-k8s.io/queue-name": "default"},
        },
        "spec": {"suspend": True},
    }
    scene.copying.put(job)
    Feed.objects.update(heard_at=now)
    assert scene.line(now, name="fresh").why.code == "just_created"
    assert not copies_read(scene, now + timedelta(seconds=19))
    assert (
        scene.line(now + timedelta(seconds=20), name="fresh").why.code == "not_queued"
    )


def test_an_estimate_moves_on_with_the_time_and_nothing_is_read_for_it(
    scene: Scene,
) -> None:
    for number in range(20):
        reserved = {
            "QuotaReserved": (
                "True",
                f"2026-11-23T{10 + number // 4}:{number % 4}0:00Z",
            )
        }
        scene.copying.put(scene.workload(f"before-{number}", more=reserved))
    now = datetime.fromisoformat(CREATED) + timedelta(minutes=30)
    Feed.objects.update(heard_at=now)
    first, hour = scene.line(now), now + timedelta(hours=1)
    assert first.why.estimate is not None
    assert first.why.estimate.samples == 20
    Feed.objects.update(heard_at=hour)
    assert not copies_read(scene, hour)
    second = scene.line(hour)
    assert second.why.estimate is not None
    assert first.why.estimate.median - second.why.estimate.median == timedelta(hours=1)
    assert second.why.when != first.why.when
    assert second in scene.anew(hour)


def test_who_may_see_all_teams_has_answers_of_their_own(scene: Scene) -> None:
    auditor = factories.person("", Role.AUDITOR)
    victim = scene.workload(
        more={"Preempted": ("True", CREATED), "Evicted": ("True", CREATED)}
    )
    scene.copying.put(victim)
    for by in (scene.ada, auditor, scene.ada, auditor):
        now = timezone.now()
        assert list(scene.board(now, by=by).work) == scene.anew(now, by=by)
    assert (
        cache.get(f"work:{scene.tenancy.team_id}:0")[0]
        != cache.get(f"work:{scene.tenancy.team_id}:1")[0]
    )


def test_copies_of_an_earlier_version_have_no_revision_and_are_never_kept(
    scene: Scene,
) -> None:
    FeedRevision.objects.filter(feed__kind="Pod").delete()
    scene.board()
    assert copies_read(scene)


def test_a_change_that_was_taken_back_leaves_the_revision(scene: Scene) -> None:
    before = list(
        FeedRevision.objects.order_by("pk").values_list("revision", flat=True)
    )
    other = replace(scene.copying, feeds={**scene.copying.feeds})
    for feed in other.feeds.values():
        feed.holder = "another watcher"
    with pytest.raises(Exception, match=r"^$"):
        other.put(scene.workload(gpus=3))
    assert (
        list(FeedRevision.objects.order_by("pk").values_list("revision", flat=True))
        == before
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "found",
    [
        "nonsense",
        ["mark"],
        ["mark", "{", []],
        ["mark", "{}", []],
        ["mark", "{}", [1]],
        None,
    ],
)
def test_what_lies_in_the_cache_and_is_not_ours_is_made_anew(
    scene: Scene, found: Any
) -> None:
    now = timezone.now()
    key = f"work:{scene.tenancy.team_id}:0"
    scene.board(now)
    mark = cache.get(key)[0]
    cache.set(key, [mark, *found[1:]] if isinstance(found, list) else found)
    kept_boards.at_hand.clear()
    assert list(scene.board(now).work) == scene.anew(now)
    assert not copies_read(scene)


def test_without_the_shared_cache_a_process_explains_what_it_has_not_at_hand(
    scene: Scene, own_redis: Redis, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_boards, "breaker", Breaker())
    settings.CACHES = {
        "default": settings.CACHES["default"] | {"LOCATION": own_redis.url()}
    }
    scene.board()
    assert not copies_read(scene)
    own_redis.kill()
    assert not copies_read(scene)
    scene.copying.put(scene.workload(gpus=3))
    now = timezone.now()
    assert copies_read(scene, now)
    assert list(scene.board(now).work) == scene.anew(now)
    kept_boards.at_hand.clear()
    assert copies_read(scene)


def test_a_process_has_so_many_boards_at_hand_and_no_more() -> None:
    for number in range(kept_boards.MOST_AT_HAND + 1):
        keep(number)
    assert 0 < len(kept_boards.at_hand) <= kept_boards.MOST_AT_HAND


def test_a_change_of_one_team_leaves_the_boards_of_the_others_at_hand() -> None:
    for number in range(kept_boards.MOST_AT_HAND):
        keep(number)
    keep(0, mark="another")
    assert len(kept_boards.at_hand) == kept_boards.MOST_AT_HAND


def keep(number: int, *, mark: str = "m") -> None:
    """Have the work of a team explained, and kept: a team of no other test, for what is kept for all stays."""
    known = Marked(type("Team", (), {"pk": 1_000_000 + number}), mark=mark)
    kept_boards.kept(known, now=timezone.now(), make=lambda: EMPTY)  # type: ignore[arg-type]


@pytest.mark.usefixtures("redis")
def test_of_many_that_look_at_once_one_explains() -> None:
    entered, go, made_by = threading.Barrier(8), threading.Event(), list[int]()

    def make(number: int) -> Explained:
        made_by.append(number)
        go.wait(10)
        return EMPTY

    def look(number: int) -> None:
        entered.wait(10)
        known = Marked(type("Team", (), {"pk": 1}))
        kept_boards.kept(known, now=timezone.now(), make=lambda: make(number))  # type: ignore[arg-type]

    looking = [threading.Thread(target=look, args=(number,)) for number in range(8)]
    for one in looking:
        one.start()
    go.set()
    for one in looking:
        one.join()
    assert len(made_by) == 1


LOOK = """
import json, sys
from django.utils import timezone
from accounts.models import Team, User
from workloads.board import work_of_team
team, by = Team.objects.get(), User.objects.get(name="Ada Okafor")
for line in sys.stdin:
    board = work_of_team(team, by=by, now=timezone.now())
    print(json.dumps([one.why.what for one in board.work]), flush=True)
"""


@pytest.mark.slow
def test_another_process_sees_each_change_at_its_next_view_and_shares_what_was_explained(
    transactional_db: None, tmp_path: Path
) -> None:
    scene = made()
    with other_process(tmp_path) as seen_there:
        for gpus in (2, 3, 4):
            scene.copying.put(scene.workload(gpus=gpus))
            assert f"{gpus} × A100" in seen_there()[0]
            assert not copies_read(scene)
            assert [scene.line().why.what] == seen_there()


@contextmanager
def other_process(folder: Path) -> Iterator[Callable[[], list[str]]]:
    """A process of its own, and what a view in it says."""
    with subprocess.Popen(
        [sys.executable, "manage.py", "shell", "-v0", "-c", LOOK],
        cwd=ROOT,
        env=environment(folder, kubeconfigs=folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as other:
        stdin, stdout = other.stdin, other.stdout
        assert stdin is not None
        assert stdout is not None

        def seen_there() -> list[str]:
            stdin.write("look\n")
            found: list[str] = json.loads(stdout.readline())
            return found

        yield seen_there
