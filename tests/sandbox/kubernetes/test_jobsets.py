"""A JobSet of the sandbox: its pods start together or not at all, start anew together, and leave nothing behind."""

from typing import Any

import pytest
import yaml

from sandbox.kubernetes import Cluster
from tests.recordings.calling import call
from tests.sandbox.kubernetes.jobs import CLASS, GPU, QUEUE_NAME
from tests.sandbox.kubernetes.jobsets import JOBSETS, LABEL, TEAM, JobSetWorld, entry
from tests.sandbox.kubernetes.test_cluster import HEADERS, TOKENS, send
from tests.workloads.runs import WHERE

SKU = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
SHORT = {"test/run-for": "5"}
BROKEN = {"test/run-for": "5", "test/exit-code": "1"}


@pytest.fixture
def world() -> JobSetWorld:
    """A team with a queue of 32 GPUs on a cluster of 40."""
    return JobSetWorld()


def template_of(jobset: Any, number: int = 0) -> Any:
    return jobset["spec"]["replicatedJobs"][number]["template"]["spec"]["template"]


def child(world: JobSetWorld, name: str) -> Any:
    return world.send("GET", f"/apis/batch/v1/namespaces/{TEAM}/jobs/{name}")


def activate(world: JobSetWorld, name: str, *, active: bool) -> None:
    workload = world.workload(TEAM, name)["metadata"]["name"]
    world.change("workloads", workload, {"spec": {"active": active}}, TEAM)


def test_a_run_over_four_nodes_waits_starts_at_once_writes_ends_and_leaves_nothing(
    world: JobSetWorld,
) -> None:
    world.job(TEAM, "other", gpus=8, priority=WHERE.priority)
    world.pass_time()
    name = world.hand_in_run()
    why = f"insufficient unused quota for {GPU} in flavor a100, 8 more needed"
    words = f"couldn't assign flavors to pod set worker: {why}"
    assert world.said(TEAM, name) == ("False", "Pending", words)
    assert world.condition(name, "Suspended") == (
        "True",
        "SuspendedJobs",
        "jobset is suspended",
    )
    assert (
        len(world.pods(TEAM)),
        child(world, f"{name}-worker-0")["spec"]["suspend"],
    ) == (1, True)
    assert world.used_gpus() == "8"
    world.end(TEAM, "other")
    assert world.used_gpus() == "32"
    world.pass_time()
    pods = world.pods(TEAM)
    assert world.phases(TEAM) == ["Running"] * 4
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 4
    assert [pod["spec"]["hostname"] for pod in pods] == [
        f"{name}-worker-0-{n}" for n in range(4)
    ]
    assert {pod["spec"]["subdomain"] for pod in pods} == {name}
    assert world.said(TEAM, name, "PodsReady")[:2] == ("True", "Started")
    world.pass_time(30)
    for rank, pod in enumerate(pods):
        path = f"/api/v1/namespaces/{TEAM}/pods/{pod['metadata']['name']}/log"
        first, *rest = call(
            world.cluster.app, "GET", path, {}, HEADERS, b""
        ).text.splitlines()
        assert first.startswith(f"rank {rank} on a100-")
        assert rest[0].startswith("step 10  loss ")
    world.pass_time(31)
    assert world.condition(name, "Completed") == (
        "True",
        "AllJobsCompleted",
        "jobset completed successfully",
    )
    assert world.get_jobset(name)["status"]["terminalState"] == "Completed"
    assert world.said(TEAM, name, "Finished") == (
        "True",
        "Succeeded",
        "jobset completed successfully",
    )
    assert world.used_gpus() == "0"
    world.send(
        "DELETE",
        f"{JOBSETS}/namespaces/{TEAM}/jobsets/{name}?propagationPolicy=Background",
    )
    assert world.everything() == []


def test_a_run_deleted_while_it_runs_gives_its_gpus_back(world: JobSetWorld) -> None:
    name = world.hand_in_run()
    world.pass_time()
    world.send(
        "DELETE",
        f"{JOBSETS}/namespaces/{TEAM}/jobsets/{name}?propagationPolicy=Background",
    )
    assert (world.everything(), world.used_gpus()) == ([], "0")


def test_a_lost_node_starts_all_anew_and_counts_as_no_restart(
    world: JobSetWorld,
) -> None:
    name = world.hand_in_run()
    world.pass_time()
    before = {pod["metadata"]["name"] for pod in world.pods(TEAM)}
    node = world.pods(TEAM)[2]["spec"]["nodeName"]
    world.send("POST", "/sandbox/interruptions", {"node": node, "notice": 0})
    world.pass_time()
    world.pass_time()
    status = world.get_jobset(name)["status"]
    assert (status["restarts"], "restartsCountTowardsMax" in status) == (1, False)
    assert world.phases(TEAM) == ["Running"] * 4
    assert not before & {pod["metadata"]["name"] for pod in world.pods(TEAM)}
    assert {
        pod["metadata"]["labels"][f"{LABEL}restart-attempt"] for pod in world.pods(TEAM)
    } == {"1"}
    action, whose = (
        "RestartJobSetAndIgnoreMaxRestarts",
        f"(first failed job: {name}-worker-0)",
    )
    said = (
        f"{action}FailurePolicyAction",
        f"applying {action} failure policy action {whose}",
    )
    assert said in world.jobset_events(name)
    assert world.said(TEAM, name, "Admitted")[0] == "True"


def test_what_fails_starts_anew_as_often_as_it_may(world: JobSetWorld) -> None:
    world.hand_in(
        "bad", entry("w", annotations=BROKEN), failurePolicy={"maxRestarts": 1}
    )
    for seconds in (0.1, 5.1):
        world.pass_time(seconds)
    assert world.get_jobset("bad")["status"]["restartsCountTowardsMax"] == 1
    for seconds in (0.1, 5.1):
        world.pass_time(seconds)
    words = "jobset failed due to reaching max number of restarts (first failed job: bad-w-0)"
    assert world.condition("bad", "Failed") == ("True", "ReachedMaxRestarts", words)
    assert world.said(TEAM, "bad", "Finished") == ("True", "Failed", words)
    assert world.phases(TEAM) == ["Failed"] * 2
    assert world.used_gpus() == "0"


def test_without_a_policy_one_failed_job_fails_the_whole_and_stops_the_rest(
    world: JobSetWorld,
) -> None:
    world.hand_in("bad", entry("a"), entry("b", 1, annotations=BROKEN))
    world.pass_time()
    assert world.phases(TEAM) == ["Running"] * 3
    world.pass_time(5.1)
    words = "jobset failed due to one or more job failures (first failed job: bad-b-0)"
    assert world.condition("bad", "Failed") == ("True", "FailedJobs", words)
    assert world.phases(TEAM) == ["Failed"]


def test_a_rule_may_fail_the_whole_at_once(world: JobSetWorld) -> None:
    rule = {"name": "never", "action": "FailJobSet", "targetReplicatedJobs": ["w"]}
    world.hand_in(
        "bad",
        entry("w", annotations=BROKEN),
        failurePolicy={"maxRestarts": 9, "rules": [rule]},
    )
    for seconds in (0.1, 5.1):
        world.pass_time(seconds)
    assert world.condition("bad", "Failed")[1:] == (
        "FailJobSetFailurePolicyAction",
        "applying FailJobSet failure policy action (first failed job: bad-w-0)",
    )


def test_an_evicted_jobset_stops_and_comes_back_as_it_was(world: JobSetWorld) -> None:
    name = world.hand_in_run()
    asked = world.workload(TEAM, name)["spec"]["podSets"][0]["template"]
    world.pass_time()
    running = template_of(world.get_jobset(name))
    assert running["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "worker"
    activate(world, name, active=False)
    stopped = world.get_jobset(name)
    assert (stopped["spec"]["suspend"], template_of(stopped)) == (True, asked)
    assert child(world, f"{name}-worker-0")["spec"]["suspend"] is True
    assert (world.pods(TEAM), world.used_gpus()) == ([], "0")
    assert world.condition(name, "Suspended")[0] == "True"
    activate(world, name, active=True)
    world.pass_time()
    assert (world.phases(TEAM), world.used_gpus()) == (["Running"] * 4, "32")
    assert world.condition(name, "Suspended") == (
        "False",
        "ResumeJobs",
        "jobset is resumed",
    )


def test_only_the_jobset_has_a_workload_and_it_counts_all_its_pods(
    world: JobSetWorld,
) -> None:
    world.hand_in("many", entry("a", 1, 0), entry("b", 2, 4, replicas=3))
    [workload] = [one for one in world.everything() if one.startswith("WorkloadList")]
    assert workload.startswith("WorkloadList jobset-many-")
    found = world.workload(TEAM, "many")
    assert [(one["name"], one["count"]) for one in found["spec"]["podSets"]] == [
        ("a", 1),
        ("b", 6),
    ]
    assert world.used_gpus() == "24"
    world.pass_time()
    assert len(world.pods(TEAM)) == 7


def test_children_wait_with_a_jobset_whose_priority_nobody_knows(
    world: JobSetWorld,
) -> None:
    labels = {QUEUE_NAME: "default", CLASS: "urgent"}
    own = {**entry("w", 1)["template"], "metadata": {"labels": labels}}
    metadata = {"name": "lost", "labels": labels}
    body = {
        "metadata": metadata,
        "spec": {"replicatedJobs": [{**entry("w", 1), "template": own}]},
    }
    world.send("POST", f"{JOBSETS}/namespaces/{TEAM}/jobsets", body)
    world.make("workloadpriorityclasses", "other", {"value": 1})
    assert child(world, "lost-w-0")["spec"]["suspend"] is True
    assert [one for one in world.everything() if one.startswith("WorkloadList")] == []
    world.make("workloadpriorityclasses", "urgent", {"value": 5000})
    world.pass_time()
    assert world.phases(TEAM) == ["Running"]


def test_children_bear_the_labels_by_which_others_find_them(world: JobSetWorld) -> None:
    world.hand_in("many", entry("a", 1), entry("b", 1, replicas=2))
    labels = child(world, "many-b-1")["metadata"]["labels"]
    uid = world.get_jobset("many")["metadata"]["uid"]
    known = {
        key.removeprefix(LABEL): value
        for key, value in labels.items()
        if key.startswith(LABEL)
    }
    assert len(known.pop("job-key")) == 40
    assert known == {
        "jobset-name": "many",
        "jobset-uid": uid,
        "replicatedjob-name": "b",
        "replicatedjob-replicas": "2",
        "global-replicas": "3",
        "job-index": "1",
        "job-global-index": "2",
        "group-name": "default",
        "group-replicas": "3",
        "job-group-index": "2",
        "restart-attempt": "0",
    }
    service = world.send("GET", f"/api/v1/namespaces/{TEAM}/services/many")
    assert (service["spec"]["clusterIP"], service["spec"]["selector"]) == (
        "None",
        {f"{LABEL}jobset-name": "many"},
    )


def test_an_entry_may_decide_the_success_of_the_whole(world: JobSetWorld) -> None:
    policy = {"operator": "Any", "targetReplicatedJobs": ["leader"]}
    world.hand_in(
        "led",
        entry("leader", 1, annotations=SHORT),
        entry("worker"),
        successPolicy=policy,
    )
    for seconds in (0.1, 5.1):
        world.pass_time(seconds)
    assert world.condition("led", "Completed")[0] == "True"
    assert world.phases(TEAM) == ["Succeeded"]


def test_entries_start_one_after_the_other_if_that_was_asked_for(
    world: JobSetWorld,
) -> None:
    world.hand_in(
        "ordered",
        entry("a", 1),
        entry("b", 1),
        startupPolicy={"startupPolicyOrder": "InOrder"},
    )
    assert [
        pod["metadata"]["labels"][f"{LABEL}replicatedjob-name"]
        for pod in world.pods(TEAM)
    ] == ["a"]
    assert world.condition("ordered", "StartupPolicyInProgress")[0] == "True"
    world.pass_time()
    world.pass_time()
    assert world.phases(TEAM) == ["Running"] * 2
    assert world.condition("ordered", "StartupPolicyInProgress")[0] == "False"
    assert world.condition("ordered", "StartupPolicyCompleted")[0] == "True"


def test_an_entry_waits_for_those_that_it_depends_on(world: JobSetWorld) -> None:
    data = entry("data", 1, annotations=SHORT)
    train = entry("train", 1, dependsOn=[{"name": "data", "status": "Complete"}])
    world.hand_in("chain", data, train)
    world.pass_time()
    assert len(world.pods(TEAM)) == 1
    for seconds in (5.1, 0.1):
        world.pass_time(seconds)
    assert sorted(world.phases(TEAM)) == ["Running", "Succeeded"]
    assert world.workload(TEAM, "chain")["status"]["reclaimablePods"] == [
        {"count": 1, "name": "data"}
    ]


def test_what_is_over_goes_after_its_time_also_after_a_new_start(
    world: JobSetWorld,
) -> None:
    world.hand_in("short", entry("w", annotations=SHORT), ttlSecondsAfterFinished=3600)
    for seconds in (0.1, 5.1):
        world.pass_time(seconds)
    assert world.cluster.controllers.jobsets.next_due == pytest.approx(
        world.time + 3600, abs=2
    )
    world.cluster.restore(world.cluster.snapshot())
    world.pass_time(0)
    world.pass_time(3000)
    assert "JobSetList short" in world.everything()
    world.pass_time(700)
    assert world.everything() == []


def test_jobs_beyond_the_namespace_quota_are_made_when_there_is_room(
    world: JobSetWorld,
) -> None:
    path = f"/api/v1/namespaces/{TEAM}/resourcequotas"
    world.send(
        "POST",
        path,
        {"metadata": {"name": "few"}, "spec": {"hard": {"count/jobs.batch": "1"}}},
    )
    world.hand_in("two", entry("w", 1, replicas=2))
    assert [one for one in world.everything() if one.startswith("JobList")] == [
        "JobList two-w-0"
    ]
    assert "JobCreationFailed" in {reason for reason, _ in world.jobset_events("two")}
    world.send("PATCH", f"{path}/few", {"spec": {"hard": {"count/jobs.batch": "2"}}})
    world.pass_time()
    assert world.phases(TEAM) == ["Running"] * 2


def test_without_a_queue_it_is_left_alone_and_runs(world: JobSetWorld) -> None:
    world.send("POST", "/api/v1/namespaces", {"metadata": {"name": "free"}})
    body = {
        "metadata": {"name": "plain"},
        "spec": {"replicatedJobs": [entry("w", 1, 0, pod={"tolerations": [SKU]})]},
    }
    made = world.send("POST", f"{JOBSETS}/namespaces/free/jobsets", body)
    assert "suspend" not in made["spec"]
    world.pass_time()
    assert (world.phases("free"), world.workload("free", "plain")) == (
        ["Running"],
        None,
    )


def test_what_another_controller_manages_is_left_alone(world: JobSetWorld) -> None:
    world.hand_in("far", entry("w", 1), managedBy="kueue.x-k8s.io/multikueue")
    world.pass_time()
    assert [
        one for one in world.everything() if one.startswith(("JobList", "ServiceList"))
    ] == []


@pytest.mark.parametrize(
    ("spec", "code", "words"),
    [
        (
            {"successPolicy": {"operator": "Most"}},
            422,
            'Unsupported value: "Most": supported values: "All", "Any"',
        ),
        ({"ttlSecondsAfterFinished": -1}, 422, "should be greater than or equal to 0"),
        (
            {"replicatedJobs": [{"name": "w"}]},
            422,
            "spec.replicatedJobs[0].template: Required value",
        ),
        (
            {
                "failurePolicy": {
                    "rules": [
                        {
                            "name": "a",
                            "action": "RestartJobSet",
                            "onJobFailureReasons": ["Bad"],
                        }
                    ]
                }
            },
            403,
            "invalid job failure reason 'Bad' in failure policy is not a recognized job failure reason",
        ),
        (
            {"successPolicy": {"operator": "All", "targetReplicatedJobs": ["x"]}},
            403,
            "invalid replicatedJob name 'x' does not appear in .spec.ReplicatedJobs",
        ),
        (
            {"replicatedJobs": [entry("w" * 60)]},
            403,
            "job names generated for this JobSet will exceed 63 characters",
        ),
        (
            {"failurePolicy": {"rules": [{"name": "a", "action": "RestartJob"}]}},
            403,
            "the sandbox restarts a whole",
        ),
    ],
)
def test_what_is_wrong_is_refused(
    world: JobSetWorld, spec: dict[str, Any], code: int, words: str
) -> None:
    body = {
        "metadata": {"name": "wrong"},
        "spec": {"replicatedJobs": [entry("w")], **spec},
    }
    answer = send(world.cluster, "POST", f"{JOBSETS}/namespaces/{TEAM}/jobsets", body)
    assert (answer.status, words in answer.json()["message"]) == (code, True), (
        answer.text
    )


def test_what_runs_keeps_its_jobs_and_its_policies(world: JobSetWorld) -> None:
    world.hand_in("fixed", entry("w", 1))
    path = f"{JOBSETS}/namespaces/{TEAM}/jobsets/fixed"
    merge = {**HEADERS, "content-type": "application/merge-patch+json"}
    for change, code, words in (
        (
            b'{"spec": {"replicatedJobs": []}}',
            403,
            "spec.replicatedJobs: Invalid value",
        ),
        (
            b'{"spec": {"successPolicy": {"operator": "Any"}}}',
            422,
            "spec.successPolicy: Invalid value",
        ),
    ):
        answer = call(world.cluster.app, "PATCH", path, {}, merge, change)
        assert (answer.status, words in answer.json()["message"]) == (code, True), (
            answer.text
        )


def test_its_own_webhook_fills_in_what_was_left_out(world: JobSetWorld) -> None:
    spec = world.hand_in("plain", entry("w", 1))["spec"]
    assert spec["successPolicy"] == {"operator": "All"}
    assert spec["startupPolicy"] == {"startupPolicyOrder": "AnyOrder"}
    assert spec["network"] == {
        "enableDNSHostnames": True,
        "publishNotReadyAddresses": True,
    }
    assert spec["replicatedJobs"][0]["template"]["spec"]["completionMode"] == "Indexed"


def test_a_cluster_without_jobset_knows_nothing_of_it() -> None:
    cluster = Cluster("dev", tokens=TOKENS)
    groups = [one["name"] for one in send(cluster, "GET", "/apis").json()["groups"]]
    assert groups.count("jobset.x-k8s.io") == 1
    [resource, status] = send(cluster, "GET", JOBSETS).json()["resources"]
    assert (resource["name"], resource["namespaced"], status["name"]) == (
        "jobsets",
        True,
        "jobsets/status",
    )
    send(cluster, "POST", "/sandbox/jobset", {"served": False})
    assert [
        send(cluster, "GET", path).status for path in (JOBSETS, f"{JOBSETS}/jobsets")
    ] == [404, 404]


def test_kueues_settings_name_what_it_queues() -> None:
    path = "/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config"
    data = send(Cluster("dev", tokens=TOKENS), "GET", path).json()["data"]
    settings = yaml.safe_load(data["controller_manager_config.yaml"])
    assert {"batch/job", "jobset.x-k8s.io/jobset"} <= set(
        settings["integrations"]["frameworks"]
    )
