"""Volcano's jobs in the sandbox: their pods start together, start anew together, and leave what Volcano leaves."""

from typing import Any

import pytest

from sandbox.kubernetes import Cluster
from tests.sandbox.kubernetes.test_cluster import TOKENS
from tests.sandbox.kubernetes.volcanoes import (
    BATCH,
    GPU,
    SCHEDULING,
    TEAM,
    VolcanoWorld,
)

RESTART = [{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}]


@pytest.fixture
def world() -> VolcanoWorld:
    """A team whose queue may hold all 16 GPUs."""
    world = VolcanoWorld()
    world.queue()
    return world


def phases_of(job: Any) -> list[str]:
    return [one["status"] for one in job["status"]["conditions"]]


def test_a_job_runs_and_ends_well(world: VolcanoWorld) -> None:
    world.job("train", seconds=30)
    group = world.group("train")
    assert group["spec"]["minMember"] == 2
    assert group["spec"]["minTaskMember"] == {"worker": 2}
    assert group["spec"]["queue"] == TEAM
    assert (
        group["spec"]["minResources"][GPU],
        group["spec"]["minResources"]["pods"],
    ) == ("8", "2")
    world.pass_time()
    assert world.phases() == {"train-worker-0": "Running", "train-worker-1": "Running"}
    assert (world.phase("train"), world.group("train")["status"]["phase"]) == (
        "Running",
        "Running",
    )
    assert world.group("train")["status"]["running"] == 2
    assert world.get_job("train")["status"]["taskStatusCount"] == {
        "worker": {"phase": {"Running": 2}}
    }

    world.pass_time(31)

    job = world.get_job("train")
    assert phases_of(job) == ["Pending", "Running", "Completed"]
    assert (job["status"]["succeeded"], job["status"]["version"]) == (2, 1)
    assert world.phases() == {
        "train-worker-0": "Succeeded",
        "train-worker-1": "Succeeded",
    }


def test_the_group_of_a_job_that_ended_is_gone(world: VolcanoWorld) -> None:
    world.job("train", seconds=5)
    world.pass_time()
    name = f"train-{world.get_job('train')['metadata']['uid']}"
    assert world.group("train")["metadata"]["name"] == name

    world.pass_time(6)

    assert (world.phase("train"), world.groups()) == ("Completed", [])
    assert world.get_queue()["status"] == {
        "allocated": {"cpu": "0", "memory": "0"},
        "state": "Open",
    }


def test_a_pod_knows_its_job_its_group_and_its_number(world: VolcanoWorld) -> None:
    world.job("train", plugins={"env": []})
    group = world.group("train")["metadata"]["name"]
    pod = world.pods()[1]
    labels = {
        "volcano.sh/job-name": "train",
        "volcano.sh/job-namespace": TEAM,
        "volcano.sh/queue-name": TEAM,
        "volcano.sh/task-index": "1",
        "volcano.sh/task-spec": "worker",
    }
    assert pod["metadata"]["name"] == "train-worker-1"
    assert pod["metadata"]["labels"] == labels
    annotations = pod["metadata"]["annotations"]
    assert annotations["scheduling.k8s.io/group-name"] == group
    assert annotations["volcano.sh/job-version"] == "0"
    assert pod["spec"]["schedulerName"] == "volcano"
    env = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
    assert (env["VC_TASK_INDEX"], env["VK_TASK_INDEX"]) == ("1", "1")
    owner = pod["metadata"]["ownerReferences"][0]
    assert (owner["apiVersion"], owner["kind"], owner["name"]) == (
        BATCH,
        "Job",
        "train",
    )


def test_the_svc_plugin_gives_pods_names_until_the_job_ends(
    world: VolcanoWorld,
) -> None:
    world.job("train", seconds=5, plugins={"svc": []})
    service = world.send("GET", f"/api/v1/namespaces/{TEAM}/services/train")
    assert service["spec"]["clusterIP"] == "None"
    assert "publishNotReadyAddresses" not in service["spec"]
    hosts = world.send("GET", f"/api/v1/namespaces/{TEAM}/configmaps/train-svc")["data"]
    assert hosts["VC_WORKER_HOSTS"] == "train-worker-0.train,train-worker-1.train"
    assert hosts["VC_WORKER_NUM"] == "2"
    pod = world.pods()[0]["spec"]
    assert (pod["hostname"], pod["subdomain"]) == ("train-worker-0", "train")
    assert world.get_job("train")["status"]["controlledResources"] == {
        "plugin-svc": "svc"
    }

    world.pass_time()
    world.pass_time(6)

    assert world.ask("GET", f"/api/v1/namespaces/{TEAM}/services/train").status == 404
    assert (
        world.ask(
            "GET", f"/apis/networking.k8s.io/v1/namespaces/{TEAM}/networkpolicies/train"
        ).status
        == 404
    )


def test_the_svc_plugin_takes_flags(world: VolcanoWorld) -> None:
    flags = ["--publish-not-ready-addresses", "--disable-network-policy=true"]
    world.job("train", plugins={"svc": flags}, task={"name": "my-task"})
    service = world.send("GET", f"/api/v1/namespaces/{TEAM}/services/train")
    assert service["spec"]["publishNotReadyAddresses"] is True
    policies = f"/apis/networking.k8s.io/v1/namespaces/{TEAM}/networkpolicies"
    assert world.ask("GET", f"{policies}/train").status == 404
    hosts = world.send("GET", f"/api/v1/namespaces/{TEAM}/configmaps/train-svc")["data"]
    assert hosts["my_task.host"] == "train-my-task-0.train\ntrain-my-task-1.train"


def test_a_group_needs_what_each_task_needs_before_what_only_fills_up(
    world: VolcanoWorld,
) -> None:
    body = world.job_body("train", workers=3, gpus=1)
    worker = body["spec"]["tasks"][0]
    container = {
        **worker["template"]["spec"]["containers"][0],
        "resources": {"limits": {GPU: "4"}},
    }
    leader = {"name": "leader", "replicas": 1, "minAvailable": 1}
    leader["template"] = {
        "spec": {**worker["template"]["spec"], "containers": [container]}
    }
    body["spec"] |= {
        "minAvailable": 3,
        "tasks": [{**worker, "minAvailable": 1}, leader],
    }
    world.send("POST", world.jobs(), body)
    assert world.group("train")["spec"]["minResources"][GPU] == "6"


def test_no_pod_is_made_before_the_group_may_have_any(world: VolcanoWorld) -> None:
    world.job("first", workers=2, gpus=8)
    world.job("second", workers=2, gpus=8)
    assert world.group("second")["status"]["phase"] == "Pending"
    assert set(world.phases()) == {"first-worker-0", "first-worker-1"}

    world.send("DELETE", f"{world.jobs()}/first")

    assert set(world.phases()) == {"second-worker-0", "second-worker-1"}


def test_without_a_policy_a_job_fails_once_all_its_pods_ended(
    world: VolcanoWorld,
) -> None:
    world.job("train", seconds=5, code=1)
    world.pass_time()
    world.pass_time(6)
    assert (world.phase("train"), world.get_job("train")["status"]["failed"]) == (
        "Failed",
        2,
    )


def test_a_job_starts_anew_as_often_as_it_may_and_then_fails(
    world: VolcanoWorld,
) -> None:
    world.job("train", seconds=5, code=1, policies=RESTART, maxRetry=2)
    world.pass_time()
    before = {pod["metadata"]["uid"] for pod in world.pods()}

    world.pass_time(6)

    job = world.get_job("train")
    assert (job["status"]["retryCount"], job["status"]["state"]["phase"]) == (
        1,
        "Pending",
    )
    assert not before & {pod["metadata"]["uid"] for pod in world.pods()}
    assert {
        pod["metadata"]["annotations"]["volcano.sh/job-version"] for pod in world.pods()
    } == {"2"}
    world.pass_time()
    world.pass_time(6)
    job = world.get_job("train")
    assert (job["status"]["state"]["phase"], job["status"]["retryCount"]) == (
        "Failed",
        2,
    )
    assert phases_of(job)[-2:] == ["Restarting", "Failed"]
    assert "Failed" in world.phases().values()
    assert world.groups() == []


def test_one_lost_pod_makes_all_start_anew(world: VolcanoWorld) -> None:
    world.job("train", policies=RESTART)
    world.pass_time()
    first = world.pods()[0]["metadata"]["uid"]

    world.send("DELETE", f"/api/v1/namespaces/{TEAM}/pods/train-worker-1")

    assert world.get_job("train")["status"]["retryCount"] == 1
    assert first not in {pod["metadata"]["uid"] for pod in world.pods()}
    world.pass_time()
    assert world.phase("train") == "Running"


def test_a_lost_node_makes_all_start_anew(world: VolcanoWorld) -> None:
    world.job("train", workers=2, gpus=8, policies=RESTART)
    world.pass_time()

    world.send(
        "POST", "/sandbox/interruptions", {"node": "n-1", "notice": 0, "back_after": 5}
    )
    world.pass_time(1)

    assert world.get_job("train")["status"]["retryCount"] == 1
    assert world.phase("train") == "Pending"
    world.pass_time(6)
    world.pass_time()
    assert world.phase("train") == "Running"


def test_the_end_of_one_task_may_end_the_job(world: VolcanoWorld) -> None:
    policies = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    helper = world.job_body("x", 1, 1)["spec"]["tasks"][0] | {"name": "helper"}
    body = world.job_body("train", 1, 1, seconds=5, policies=policies)
    body["spec"]["tasks"].append(helper)
    world.send("POST", world.jobs(), body)
    world.pass_time()
    assert world.phases() == {"train-helper-0": "Running", "train-worker-0": "Running"}

    world.pass_time(6)

    assert phases_of(world.get_job("train"))[-2:] == ["Completing", "Completed"]
    assert world.phases() == {"train-worker-0": "Succeeded"}


def test_a_policy_may_answer_a_code(world: VolcanoWorld) -> None:
    policies = [{"exitCode": 3, "action": "AbortJob"}]
    world.job("train", seconds=5, code=3, policies=policies)
    world.pass_time()
    world.pass_time(6)
    assert world.phase("train") == "Aborted"


@pytest.mark.parametrize(
    ("action", "phase"),
    [
        ("AbortJob", "Aborted"),
        ("TerminateJob", "Terminated"),
        ("CompleteJob", "Completed"),
    ],
)
def test_a_command_ends_a_job(world: VolcanoWorld, action: str, phase: str) -> None:
    world.job("train")
    world.pass_time()

    world.command("Job", "train", action, TEAM)

    assert (world.phase("train"), world.pods(), world.groups()) == (phase, [], [])


def test_an_aborted_job_goes_on_when_somebody_says_so(world: VolcanoWorld) -> None:
    world.job("train")
    world.command("Job", "train", "AbortJob", TEAM)
    world.command("Job", "train", "ResumeJob", TEAM)
    world.pass_time()
    assert world.phase("train") == "Running"


def test_a_job_that_ended_goes_some_time_after(world: VolcanoWorld) -> None:
    world.job("train", seconds=5, ttlSecondsAfterFinished=60)
    world.pass_time()
    world.pass_time(6)
    assert world.phase("train") == "Completed"
    world.pass_time(30)
    assert world.phase("train") == "Completed"

    world.pass_time(31)

    assert world.ask("GET", f"{world.jobs()}/train").status == 404
    assert world.pods() == []


def test_a_deleted_job_takes_all_that_it_made_with_it(world: VolcanoWorld) -> None:
    world.job("train", plugins={"svc": []})
    world.pass_time()

    world.send("DELETE", f"{world.jobs()}/train")

    assert (world.pods(), world.groups()) == ([], [])
    assert (
        world.ask("GET", f"/api/v1/namespaces/{TEAM}/configmaps/train-svc").status
        == 404
    )


def test_fewer_replicas_delete_pods_and_more_make_some(world: VolcanoWorld) -> None:
    world.job("train", workers=2, gpus=1)
    task = world.get_job("train")["spec"]["tasks"][0]
    path = f"{world.jobs()}/train"

    world.send(
        "PATCH",
        path,
        {
            "spec": {
                "minAvailable": 1,
                "tasks": [task | {"replicas": 1, "minAvailable": 1}],
            }
        },
    )
    world.pass_time()
    world.send(
        "PATCH", path, {"spec": {"tasks": [task | {"replicas": 3, "minAvailable": 1}]}}
    )
    world.pass_time()

    assert set(world.phases()) == {f"train-worker-{number}" for number in range(3)}
    assert world.group("train")["spec"]["minMember"] == 1


def test_a_task_waits_for_the_tasks_that_it_depends_on(world: VolcanoWorld) -> None:
    body = world.job_body("train", 1, 1, minAvailable=1)
    later = world.job_body("x", 1, 1)["spec"]["tasks"][0] | {
        "name": "later",
        "minAvailable": 0,
        "dependsOn": {"name": ["worker"]},
    }
    body["spec"]["tasks"].append(later)
    world.send("POST", world.jobs(), body)
    assert set(world.phases()) == {"train-worker-0"}

    world.pass_time()

    assert set(world.phases()) == {"train-later-0", "train-worker-0"}


def test_pods_that_are_refused_are_told_of_and_made_once_there_is_room(
    world: VolcanoWorld,
) -> None:
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}
    world.send("POST", f"/api/v1/namespaces/{TEAM}/resourcequotas", quota)

    world.job("train")

    told = [
        message
        for _, reason, message in world.events("Job")
        if reason == "FailedCreate"
    ]
    assert told
    assert told[0].startswith(
        "Error creating pods: [failed to create pod train-worker-1, err: "
    )
    world.send(
        "PATCH",
        f"/api/v1/namespaces/{TEAM}/resourcequotas/few",
        {"spec": {"hard": {"pods": "9"}}},
    )
    world.pass_time()
    assert world.phase("train") == "Running"


def test_a_job_that_starts_anew_in_a_closed_queue_waits_until_it_is_open(
    world: VolcanoWorld,
) -> None:
    world.job("train", policies=RESTART)
    world.pass_time()
    world.command("Queue", TEAM, "CloseQueue")

    world.send("DELETE", f"/api/v1/namespaces/{TEAM}/pods/train-worker-0")

    assert (world.phase("train"), world.pods(), world.groups()) == ("Pending", [], [])
    told = [
        message
        for _, reason, message in world.events("Job")
        if reason == "PodGroupError"
    ]
    assert told[0].startswith("Failed to create PodGroup, err: ")
    assert "can only submit PodGroup to queue with state `Open`" in told[0]
    world.command("Queue", TEAM, "OpenQueue")
    world.pass_time()
    assert world.phase("train") == "Running"


def test_what_a_plugin_cannot_make_is_told_of(world: VolcanoWorld) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"services": "0"}}}
    world.send("POST", f"/api/v1/namespaces/{TEAM}/resourcequotas", quota)

    world.job("train", plugins={"svc": []})

    told = [
        message for _, reason, message in world.events("Job") if reason == "PluginError"
    ]
    assert told[0].startswith("Execute plugin when job add failed, err: ")
    assert world.groups() == []


def test_so_many_pods_may_be_enough(world: VolcanoWorld) -> None:
    body = world.job_body("train", 1, 1, seconds=5, minSuccess=1)
    body["spec"]["tasks"].append(
        world.job_body("x", 1, 1)["spec"]["tasks"][0] | {"name": "server"}
    )
    world.send("POST", world.jobs(), body)
    world.pass_time()

    world.pass_time(6)

    assert world.phase("train") == "Completed"
    assert set(world.phases()) == {"train-worker-0"}


def test_too_few_good_ends_are_a_failure(world: VolcanoWorld) -> None:
    body = world.job_body("train", 1, 1, seconds=5)
    bad = world.job_body("x", 1, 1, seconds=5, code=1)["spec"]["tasks"][0] | {
        "name": "bad",
        "minAvailable": 0,
    }
    body["spec"]["tasks"].append(bad)
    world.send("POST", world.jobs(), body)
    world.send(
        "POST",
        world.jobs(),
        {
            **body,
            "metadata": {"name": "strict"},
            "spec": {**body["spec"], "minSuccess": 2},
        },
    )
    world.pass_time()
    world.pass_time(6)
    assert (world.phase("train"), world.phase("strict")) == ("Completed", "Failed")


def test_a_job_without_replicas_goes_on(world: VolcanoWorld) -> None:
    world.job("train", workers=1, gpus=1)
    world.pass_time()
    task = world.get_job("train")["spec"]["tasks"][0]
    none = {"minAvailable": 0, "tasks": [task | {"replicas": 0, "minAvailable": 0}]}
    world.send("PATCH", f"{world.jobs()}/train", {"spec": none})
    world.pass_time()
    assert (world.phase("train"), world.pods()) == ("Running", [])


def test_a_pod_is_ended_that_runs_for_longer_than_it_may(world: VolcanoWorld) -> None:
    world.job("train", workers=1, pod={"activeDeadlineSeconds": 10})
    world.pass_time()
    world.pass_time(11)
    status = world.pods()[0]["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert world.phase("train") == "Failed"


def test_jobs_go_on_where_they_were_after_a_new_start(world: VolcanoWorld) -> None:
    world.job("train", seconds=30)
    world.job("waits", workers=2, gpus=8)
    world.pass_time()

    again = VolcanoWorld()
    again.cluster = Cluster(
        "dev", tokens=TOKENS, state=world.cluster.snapshot(), queueing="volcano"
    )
    again.cluster.controllers.now = lambda: again.time
    again.cluster.controllers.resume()
    # The first reads of custom kinds fill the caches of a server that starts anew.
    for path in (world.jobs(), f"/apis/{SCHEDULING}/namespaces/{TEAM}/podgroups"):
        again.ask("GET", path)

    again.pass_time(31)
    again.pass_time()

    assert (again.phase("train"), again.phase("waits")) == ("Completed", "Running")


def test_a_namespace_goes_with_its_jobs(world: VolcanoWorld) -> None:
    world.job("train", policies=RESTART)
    world.pass_time()

    world.send("DELETE", f"/api/v1/namespaces/{TEAM}")
    for _ in range(3):
        world.cluster.controllers.terminate()

    assert world.ask("GET", f"/api/v1/namespaces/{TEAM}").status == 404
