"""How busy the GPUs of runs and notebooks are, since when they are idle, and what is said where nobody measures."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError
from django.utils import timezone

from accounts.roles import Role
from connectors.kubernetes import path
from fleet.clusters.actions import change_cluster
from fleet.models import Cluster
from notebooks.models import Hub, NotebookServer
from notebooks.profiles.idle import MEASURED_FOR
from tests import factories
from tests.calling import Caller
from tests.services.process import wait_until
from tests.workloads.conftest import POD, Watched, is_read, watching
from tests.workloads.test_runs import look_after, submit, until
from tests.workloads.test_runs_page import client, page
from web.refusals import BadInput
from workloads.gpu_use import busy as busy_words
from workloads.gpu_use import measuring
from workloads.gpu_use.measuring import measure, note_pods, write_down
from workloads.gpu_use.shares import Share, shares_of
from workloads.models import ClusterObject, GpuUse, PodUse, Run
from workloads.notebook_pages.shown import idle_of
from workloads.runs.pods import pods_of

SERVICE = "monitoring/prometheus-operated:9090"
RIGHT = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "quartermaster-metrics", "namespace": "monitoring"},
    "rules": [
        {
            "apiGroups": [""],
            "resources": ["services/proxy"],
            "resourceNames": ["prometheus-operated:9090"],
            "verbs": ["get"],
        }
    ],
}
HALF = Share(0.5, 0.5)
# Their average is below what counts as idle.
ONE_OF_EIGHT = (0.15, 0, 0, 0, 0, 0, 0, 0)
# Nothing is claimed of the whole of a run before minutes of it were measured.
NOTHING_YET = {
    "overall": "",
    "mean_share": None,
    "measured_seconds": 0,
    "peak_memory_gb": None,
}
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "quartermaster-metrics", "namespace": "monitoring"},
    "subjects": [
        {
            "kind": "User",
            "apiGroup": "rbac.authorization.k8s.io",
            "name": "quartermaster",
        }
    ],
    "roleRef": {
        "kind": "Role",
        "apiGroup": "rbac.authorization.k8s.io",
        "name": "quartermaster-metrics",
    },
}


@pytest.fixture
def copied(watched: Watched) -> Iterator[Watched]:
    """A cluster that is watched, whose Prometheus the portal may ask, and does not yet."""
    watched.kubernetes.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}}
    )
    watched.kubernetes.create(RIGHT)
    watched.kubernetes.create(BINDING)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        yield watched
    watched.kubernetes.cluster.has_prometheus = True


@pytest.fixture
def running(copied: Watched) -> Run:
    """A run there."""
    run = submit(copied)
    look_after(run)
    until(run, "running")
    return run


def measured(watched: Watched) -> None:
    Cluster.objects.filter(pk=watched.cluster.pk).update(prometheus=SERVICE)


def measured_at(at: datetime) -> None:
    """Every Prometheus is asked at a moment."""
    measure(now=lambda: at)


def busy(watched: Watched, run: Run, *shares: float) -> None:
    """The run's pod computes for this share of its time, or each of its GPUs does for one of these."""
    [pod] = pods_of(run)
    computes(watched, pod.name, *shares)


def computes(watched: Watched, pod: str, *shares: float) -> None:
    """A pod computes for this share of its time, or each of its GPUs does for one of these."""
    annotations = {
        "metadata": {"annotations": {"test/gpu-use": " ".join(map(str, shares))}}
    }
    watched.kubernetes.write("PATCH", path(POD, watched.namespace, pod), annotations)


def notebook(watched: Watched) -> NotebookServer:
    """A notebook with a GPU that has been ready for an hour, and the pod that KubeSpawner made for it."""
    earlier = timezone.now() - timedelta(hours=1)
    server = factories.notebook(
        watched.tenancy,
        watched.ada,
        created_at=earlier,
        ready_at=earlier,
        state="ready",
    )
    labels = {
        "hub.jupyter.org/username": server.username,
        "hub.jupyter.org/servername": server.name,
    }
    resources = {"limits": {"nvidia.com/gpu": "1", "cpu": "1", "memory": "1Gi"}}
    watched.kubernetes.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod_of(server),
                "namespace": watched.namespace,
                "labels": {"kueue.x-k8s.io/queue-name": "default", **labels},
            },
            "spec": {
                "containers": [
                    {"name": "notebook", "image": "lab:1", "resources": resources}
                ]
            },
        }
    )
    wait_until(
        lambda: (
            watched.copies("Pod").get(pod_of(server), {}).get("status", {}).get("phase")
            == "Running"
        ),
        what="its pod to run",
    )
    return server


def pod_of(server: NotebookServer) -> str:
    """The name of its pod."""
    return f"jupyter-{server.username}--{server.name}"


def told(watched: Watched, run: Run) -> dict[str, Any]:
    caller = Caller(watched.ada)
    one = caller.get(f"runs/{run.pk}/").json()["gpu_use"]
    [listed] = caller.get("runs/").json()["results"]
    assert listed["gpu_use"] == one
    found: dict[str, Any] = one
    return found


@pytest.mark.slow
def test_without_a_prometheus_it_says_that_it_does_not_know(
    watched: Watched, running: Run
) -> None:
    measure(now=timezone.now)
    assert told(watched, running) == {
        "share": None,
        "idle_since": None,
        "words": "Not known: the cluster has no Prometheus that the portal reads.",
        **NOTHING_YET,
    }
    assert (
        "Not known: the cluster has no Prometheus"
        in page(client(watched.ada).get(f"/runs/{running.pk}")).words
    )


@pytest.mark.slow
def test_busy_gpus_are_told_with_their_share(watched: Watched, running: Run) -> None:
    measured(watched)
    assert "has not measured its GPUs yet" in told(watched, running)["words"]
    measure(now=timezone.now)
    assert told(watched, running) == {
        "share": 0.87,
        "idle_since": None,
        "words": "87 % busy when last measured.",
        **NOTHING_YET,
    }


@pytest.mark.slow
def test_idle_gpus_are_told_since_when_on_page_and_list_until_they_compute(
    watched: Watched, running: Run
) -> None:
    measured(watched)
    busy(watched, running, 0)
    began = timezone.now() - timedelta(minutes=12)
    Run.objects.update(running_since=began)
    for minute in range(0, 13, 3):
        measured_at(began + timedelta(minutes=minute))
    found = told(watched, running)
    assert found["words"] == "Held but not busy: nothing computes on its GPUs."
    assert datetime.fromisoformat(found["idle_since"]) == began
    ada = client(watched.ada)
    shown = page(ada.get(f"/runs/{running.pk}")).words
    assert "Held but not busy" in shown
    assert "Stop it, and others can have them." in shown
    assert (
        "Running, GPUs idle" in page(ada.get(f"/teams/{watched.team.slug}/runs")).words
    )
    busy(watched, running, 0.5)
    measure(now=timezone.now)
    assert told(watched, running)["idle_since"] is None
    assert (
        "Running, GPUs idle"
        not in page(ada.get(f"/teams/{watched.team.slug}/runs")).words
    )


@pytest.mark.slow
def test_one_busy_gpu_among_many_keeps_run_and_pod_from_being_idle(
    watched: Watched, running: Run
) -> None:
    measured(watched)
    busy(watched, running, *ONE_OF_EIGHT)

    measure(now=timezone.now)

    assert told(watched, running)["words"] == "2 % busy when last measured."
    assert GpuUse.objects.get().idle_since is None
    assert PodUse.objects.get().idle_since is None


@pytest.mark.slow
def test_a_run_of_which_a_part_is_measured_is_not_idle(
    watched: Watched, running: Run
) -> None:
    [pod] = pods_of(running)
    other = ClusterObject.objects.get(kind="Pod", name=pod.name)
    other.pk, other.name = None, "on-a-node-without-exporter"
    other.save(force_insert=True)

    write_down(
        watched.cluster,
        {(watched.namespace, pod.name): Share(0, 0)},
        now=timezone.now(),
    )

    use = GpuUse.objects.get()
    assert (use.share, use.idle_since) == (0, None)
    measured(watched)
    assert (
        told(watched, running)["words"] == "0 % busy when last measured on 1 of 2 pods."
    )
    other.body["status"]["phase"] = "Succeeded"
    other.save()
    now = timezone.now()
    write_down(watched.cluster, {(watched.namespace, pod.name): Share(0, 0)}, now=now)
    assert GpuUse.objects.get().idle_since == now


@pytest.mark.slow
def test_a_run_that_runs_again_is_not_idle_since_before_that(
    watched: Watched, running: Run
) -> None:
    [pod] = pods_of(running)
    now = timezone.now()
    rests = {(watched.namespace, pod.name): Share(0, 0)}
    write_down(watched.cluster, rests, now=now)
    again = now + timedelta(minutes=2)
    Run.objects.update(running_since=again)

    write_down(watched.cluster, rests, now=now + timedelta(minutes=3))

    assert GpuUse.objects.get().idle_since == again


@pytest.mark.slow
def test_a_prometheus_that_is_silent_leaves_what_was_known_until_it_is_old(
    watched: Watched, running: Run
) -> None:
    measured(watched)
    measure(now=timezone.now)
    watched.kubernetes.cluster.has_prometheus = False
    measure(now=timezone.now)
    assert told(watched, running)["share"] == 0.87
    GpuUse.objects.update(measured_at=timezone.now() - 2 * MEASURED_FOR)
    assert (
        told(watched, running)["words"]
        == "Not known now: Prometheus has told nothing for minutes."
    )


def test_a_run_that_is_over_holds_nothing(watched: Watched, running: Run) -> None:
    measured(watched)
    measure(now=timezone.now)
    Run.objects.update(state="finished", ended_at=timezone.now(), running_since=None)
    assert told(watched, running) is None


@pytest.mark.slow
def test_work_that_nobody_submitted_here_is_measured_by_its_pods(
    copied: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied.job("by-hand", pods=2)
    copied.job("waits", gpus=2)
    wait_until(
        lambda: len(running_pods(copied, "by-hand")) == 2, what="both pods to run"
    )
    told_running(copied, "by-hand")
    first, second = running_pods(copied, "by-hand")

    def use() -> dict[str, Any] | None:
        work = Caller(copied.ada).get(f"work/{copied.team.slug}/").json()["work"]
        found: dict[str, dict[str, Any] | None] = {
            one["name"]: one["gpu_use"] for one in work
        }
        assert found["waits"] is None
        return found["by-hand"]

    def row() -> str:
        return page(client(copied.ada).get(f"/teams/{copied.team.slug}/work")).words

    assert use() == {
        "share": None,
        "idle_since": None,
        "words": "Not known: the cluster has no Prometheus that the portal reads.",
    }
    measured(copied)
    now = timezone.now() + timedelta(minutes=5)
    for pod in (first, second):
        computes(copied, pod, 0)
    measured_at(now - timedelta(minutes=4))
    computes(copied, first, 0.5)
    measured_at(now - timedelta(minutes=2))
    assert use() == {
        "share": 0.25,
        "idle_since": None,
        "words": "25 % busy when last measured.",
    }
    assert "Running, GPUs idle" not in row()
    computes(copied, first, 0)
    for minutes in (0, 3):
        measured_at(now + timedelta(minutes=minutes))
    idle = use()
    assert idle is not None
    assert idle["words"] == "Held but not busy: nothing computes on its GPUs."
    assert datetime.fromisoformat(idle["idle_since"]) == now
    # They were created a moment ago, and are idle since then at most.
    monkeypatch.setattr(busy_words, "HELD_IDLE", timedelta(0))
    PodUse.objects.update(idle_since=now - timedelta(minutes=11))
    assert "Running, GPUs idle" in row()
    assert "Held but not busy" in row()


@pytest.mark.slow
def test_work_of_which_a_part_is_measured_is_not_idle(copied: Watched) -> None:
    measured(copied)
    copied.job("by-hand", pods=2)
    wait_until(
        lambda: len(running_pods(copied, "by-hand")) == 2, what="both pods to run"
    )
    told_running(copied, "by-hand")
    first, second = running_pods(copied, "by-hand")
    now = timezone.now()
    rests = Share(0, 0)

    note_pods(copied.cluster, {(copied.namespace, first): rests}, now=now)
    assert use_of(copied, "by-hand") == {
        "share": 0,
        "idle_since": None,
        "words": "0 % busy when last measured on 1 of 2 pods.",
    }

    note_pods(
        copied.cluster,
        {(copied.namespace, pod): rests for pod in (first, second)},
        now=now,
    )
    both = use_of(copied, "by-hand")
    assert both is not None
    assert both["words"] == "Held but not busy: nothing computes on its GPUs."


@pytest.mark.slow
def test_a_pod_is_not_idle_since_before_it_was_created(copied: Watched) -> None:
    measured(copied)
    earlier = timezone.now() - timedelta(minutes=30)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-0",
            "namespace": copied.namespace,
            "labels": {"kueue.x-k8s.io/queue-name": "default"},
        },
        "spec": {
            "containers": [
                {
                    "name": "web",
                    "image": "web:1",
                    "resources": {
                        "limits": {"nvidia.com/gpu": "1", "cpu": "1", "memory": "1Gi"}
                    },
                }
            ]
        },
    }
    # One of its name was idle here before, and was measured until now.
    PodUse.objects.create(
        cluster=copied.cluster,
        namespace=copied.namespace,
        name="web-0",
        share=0,
        idle_since=earlier,
        measured_at=timezone.now() - timedelta(seconds=10),
    )
    copied.kubernetes.create(pod)
    wait_until(
        lambda: (
            copied.copies("Pod").get("web-0", {}).get("status", {}).get("phase")
            == "Running"
        ),
        what="it to run",
    )
    told_running(copied, "web-0")
    unmeasured = use_of(copied, "web-0")
    assert unmeasured is not None
    assert "has not measured its GPUs yet" in unmeasured["words"]

    computes(copied, "web-0", 0)
    measured_at(timezone.now() + timedelta(seconds=1))

    idle = use_of(copied, "web-0")
    created = copied.copies("Pod")["web-0"]["metadata"]["creationTimestamp"]
    assert idle is not None
    assert datetime.fromisoformat(idle["idle_since"]) == datetime.fromisoformat(created)


def told_running(watched: Watched, name: str) -> None:
    """Waits for the Workload's copy, which can come after its pods': each kind has a watch of its own."""

    def is_told() -> bool:
        work = Caller(watched.ada).get(f"work/{watched.team.slug}/").json()["work"]
        return [one["state"] for one in work if one["name"] == name] == ["running"]

    wait_until(is_told, what=f"{name} to be told as running")


def use_of(watched: Watched, name: str) -> dict[str, Any] | None:
    """How busy the GPUs of a piece of work are, as the API tells it."""
    work = Caller(watched.ada).get(f"work/{watched.team.slug}/").json()["work"]
    [found] = [one["gpu_use"] for one in work if one["name"] == name]
    told: dict[str, Any] | None = found
    return told


def test_what_is_not_measured_any_more_is_forgotten_and_other_namespaces_are_not_kept(
    copied: Watched,
) -> None:
    cluster, now = copied.cluster, timezone.now()
    note_pods(
        cluster, {(copied.namespace, "a"): HALF, ("kube-system", "b"): HALF}, now=now
    )
    assert [one.name for one in PodUse.objects.all()] == ["a"]
    note_pods(cluster, {(copied.namespace, "c"): HALF}, now=now + timedelta(hours=1))
    assert [one.name for one in PodUse.objects.all()] == ["c"]


def running_pods(watched: Watched, job: str) -> list[str]:
    """The names of a Job's pods that run, in order."""
    pods = watched.copies("Pod")
    return sorted(
        name
        for name, body in pods.items()
        if name.startswith(f"{job}-")
        and body.get("status", {}).get("phase") == "Running"
    )


@pytest.mark.slow
def test_a_notebook_whose_gpus_compute_is_not_idle_and_its_warning_is_taken_back(
    copied: Watched,
) -> None:
    measured(copied)
    working, resting = notebook(copied), notebook(copied)
    NotebookServer.objects.update(warned_at=timezone.now())
    computes(copied, pod_of(working), 0.4)
    computes(copied, pod_of(resting), 0)
    now = timezone.now()
    measured_at(now)
    for server in (working, resting):
        server.refresh_from_db()
    assert (working.gpu_busy_at, working.warned_at) == (now, None)
    assert idle_of(working) == now
    assert resting.gpu_busy_at is None
    assert resting.warned_at is not None
    assert resting.gpu_measured_since == resting.gpu_measured_at == now
    caller = Caller(copied.ada)
    told = caller.get(f"notebooks/{working.pk}/").json()
    assert told["gpu_busy_at"] == told["idle_since"]
    assert (
        "GPUs computed last"
        in page(client(copied.ada).get(f"/notebooks/{working.pk}")).words
    )
    assert (
        "GPUs computed last"
        not in page(client(copied.ada).get(f"/notebooks/{resting.pk}")).words
    )


def test_one_busy_gpu_among_many_counts_as_use(copied: Watched) -> None:
    measured(copied)
    server = notebook(copied)
    computes(copied, pod_of(server), *ONE_OF_EIGHT)
    now = timezone.now()

    measured_at(now)

    server.refresh_from_db()
    assert server.gpu_busy_at == now


@pytest.mark.slow
def test_a_notebook_that_nobody_measures_says_that_it_is_not_stopped_as_idle(
    copied: Watched,
) -> None:
    measured(copied)
    Hub.objects.create(
        cluster=copied.cluster,
        address="https://hub.example.com",
        token_file="hub",
        next_look_at=timezone.now(),
        reclaim="on",
        followed_since=timezone.now(),
        followed_at=timezone.now(),
    )
    server = notebook(copied)
    text = "{slug: explore, title: Explore, image: a.example.com/b:1, cpus: 1, memory: 4, idle_minutes: 60}"
    server.profile.versions.create(
        number=2, title="E", text=text, by=copied.ada, at=timezone.now()
    )
    NotebookServer.objects.update(profile_version=2)
    caller, person = Caller(copied.ada), client(copied.ada)
    sentence = "whether its GPUs compute"

    def shown() -> tuple[bool, bool, bool]:
        told = caller.get(f"notebooks/{server.pk}/").json()
        is_said = sentence in page(person.get(f"/notebooks/{server.pk}")).words
        return (
            is_said,
            told["idle_unknown_since"] is not None,
            told["stops_when_idle"] is not None,
        )

    copied.kubernetes.cluster.has_prometheus = False
    measure(now=timezone.now)
    assert shown() == (True, True, False)
    copied.kubernetes.cluster.has_prometheus = True
    measure(now=timezone.now)
    assert shown() == (False, False, True)
    Cluster.objects.update(prometheus="")
    NotebookServer.objects.update(gpu_measured_since=None, gpu_measured_at=None)
    assert shown() == (False, False, True)


@pytest.mark.slow
def test_a_round_that_ends_after_a_later_one_changes_nothing_of_work(
    copied: Watched, running: Run
) -> None:
    measured(copied)
    busy(copied, running, 0)
    later = timezone.now() + timedelta(minutes=1)
    measured_at(later)
    busy(copied, running, 0.5)

    measured_at(later - timedelta(seconds=30))

    run, pod = GpuUse.objects.get(), PodUse.objects.get()
    assert (run.measured_at, run.idle_since, run.share) == (later, later, 0)
    assert (pod.measured_at, pod.idle_since, pod.share) == (later, later, 0)


def test_a_round_that_ends_after_a_later_one_changes_nothing_of_a_notebook(
    copied: Watched,
) -> None:
    measured(copied)
    server = notebook(copied)
    computes(copied, pod_of(server), 0)
    later = timezone.now() + timedelta(minutes=1)
    measured_at(later)
    computes(copied, pod_of(server), 0.5)

    measured_at(later - timedelta(seconds=30))

    server.refresh_from_db()
    assert (server.gpu_measured_since, server.gpu_measured_at, server.gpu_busy_at) == (
        later,
        later,
        None,
    )


@pytest.mark.slow
def test_what_cannot_be_kept_of_one_cluster_ends_no_others_round(
    copied: Watched, running: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(copied)
    first = factories.cluster(
        "a-first",
        kubeconfig=copied.cluster.kubeconfig,
        context=copied.cluster.context,
        prometheus=SERVICE,
    )
    factories.tenancy(copied.team, first)
    write = measuring.write_down

    def broken(cluster: Cluster, *args: Any, **others: Any) -> None:
        if cluster.pk == first.pk:
            raise DatabaseError("A constraint is violated.")
        write(cluster, *args, **others)

    monkeypatch.setattr(measuring, "write_down", broken)
    began = timezone.now()
    moments = iter([began, began + timedelta(minutes=1)])

    with pytest.raises(ExceptionGroup):
        measure(now=lambda: next(moments))

    use = GpuUse.objects.get()
    assert (use.run, use.measured_at) == (running, began + timedelta(minutes=1))


def test_samples_are_of_the_pod_that_holds_the_gpu() -> None:
    exporter = {
        "namespace": "gpu-operator",
        "pod": "dcgm-1",
        "exported_namespace": "team",
        "exported_pod": "train",
    }
    samples: list[dict[str, Any]] = [
        {"metric": exporter | {"of": "average"}, "value": [1, "0.5"]},
        {"metric": exporter | {"of": "busiest"}, "value": [1, "0.75"]},
        {
            "metric": {"namespace": "team", "pod": "other", "of": "average"},
            "value": [1, "NaN"],
        },
        {
            "metric": {"namespace": "team", "pod": "third", "of": "average"},
            "value": [1, "1.2"],
        },
        {
            "metric": {"namespace": "team", "pod": "third", "of": "busiest"},
            "value": [1, "1.2"],
        },
        {"metric": {"namespace": "team", "of": "average"}, "value": [1, "1"]},
        {"metric": {"namespace": "team", "pod": "fourth", "of": "average"}},
    ]
    assert shares_of(samples) == {
        ("team", "train"): Share(0.5, 0.75),
        ("team", "third"): Share(1, 1),
    }


@pytest.mark.parametrize(
    "wrong",
    ["prometheus", "https://prometheus:9090", "monitoring/prometheus", "a/../b:9090"],
)
def test_a_service_is_named_as_one(watched: Watched, wrong: str) -> None:
    lead = factories.person("", Role.PLATFORM_LEAD)
    with pytest.raises(BadInput) as refused:
        change_cluster(watched.cluster.pk, values={"prometheus": wrong}, by=lead)
    assert refused.value.field == "prometheus"
    change_cluster(watched.cluster.pk, values={"prometheus": SERVICE}, by=lead)
    watched.cluster.refresh_from_db()
    assert watched.cluster.prometheus == SERVICE
