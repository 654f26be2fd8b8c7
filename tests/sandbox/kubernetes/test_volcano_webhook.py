"""Volcano's webhooks in the sandbox: what they fill in, and what they refuse in which words."""

from typing import Any

import pytest

from tests.sandbox.kubernetes.volcanoes import (
    BATCH,
    GPU,
    SCHEDULING,
    TEAM,
    VolcanoWorld,
)

QUEUES = f"/apis/{SCHEDULING}/queues"
GROUPS = f"/apis/{SCHEDULING}/namespaces/{TEAM}/podgroups"
FIXED = (
    "job updates may not change fields other than `minAvailable`, `maxRetry`, `tasks[*].replicas under spec`, "
    "`tasks[*].maxRetry under spec`"
)


@pytest.fixture
def world() -> VolcanoWorld:
    """A team with a queue of 16 GPUs."""
    world = VolcanoWorld()
    world.queue()
    return world


def said_by(webhook: str, text: str) -> tuple[int, str]:
    return 400, f'admission webhook "{webhook}.volcano.sh" denied the request: {text}'


def group_body(name: str = "g", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": SCHEDULING,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": spec,
    }


def close(world: VolcanoWorld, name: str = TEAM) -> None:
    world.send("PATCH", f"{QUEUES}/{name}/status", {"status": {"state": "Closed"}})


def test_a_queue_is_filled_in(world: VolcanoWorld) -> None:
    spec = world.send("POST", QUEUES, world.queue_body("q"))["spec"]
    assert (spec["weight"], spec["reclaimable"], spec["dequeueStrategy"]) == (
        1,
        True,
        "traverse",
    )
    assert world.get_queue("q")["status"]["state"] == "Open"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param(
            {"capability": {GPU: "4"}, "deserved": {GPU: "5"}},
            f'requestBody.spec.deserved.{GPU}: Invalid value: "5": '
            f"deserved[{GPU}]=5 must be <= capability[{GPU}]=4",
            id="deserves more than it may have",
        ),
        pytest.param(
            {"deserved": {"cpu": "1"}, "guarantee": {"resource": {"cpu": "2"}}},
            'requestBody.spec.deserved.cpu: Invalid value: "1": deserved[cpu]=1 must be >= guarantee[cpu]=2',
            id="is guaranteed more than it deserves",
        ),
        pytest.param(
            {"guarantee": {"resource": {"cpu": "2"}}},
            'requestBody.spec.deserved.cpu: Invalid value: "<nil>": deserved[cpu] must be >= guarantee[cpu]=2',
            id="is guaranteed what it does not deserve",
        ),
        pytest.param(
            {"capability": {"cpu": "-1"}},
            'requestBody.spec.capability.cpu: Invalid value: "-1": must be greater than or equal to 0',
            id="less than nothing",
        ),
        pytest.param(
            {"parent": "q"},
            "queue q cannot use itself as parent",
            id="its own parent",
        ),
        pytest.param(
            {"parent": "nobody"},
            'failed to get parent queue nobody of queue q: queue.scheduling.volcano.sh "nobody" not found',
            id="no such parent",
        ),
    ],
)
def test_a_queue_is_refused(
    world: VolcanoWorld, spec: dict[str, Any], said: str
) -> None:
    assert world.refused("POST", QUEUES, world.queue_body("q", **spec)) == said_by(
        "validatequeue", said
    )


def test_a_queue_is_judged_again_when_it_changes(world: VolcanoWorld) -> None:
    change = {"spec": {"capability": {GPU: "3"}}}
    said = f"deserved[{GPU}]=16 must be <= capability[{GPU}]=3"
    assert said in world.refused("PATCH", f"{QUEUES}/{TEAM}", change)[1]
    both = {"spec": {"capability": {GPU: "3"}, "deserved": {GPU: "3"}}}
    assert world.send("PATCH", f"{QUEUES}/{TEAM}", both)["spec"]["capability"] == {
        GPU: "3"
    }


def test_a_queue_with_pods_gets_no_children(world: VolcanoWorld) -> None:
    world.job("train")
    why = f"queue {TEAM} cannot be the parent queue of queue q because it has allocated Pods: 2"
    body = world.queue_body("q", parent=TEAM)
    assert world.refused("POST", QUEUES, body) == said_by("validatequeue", why)


def test_queues_are_five_deep_at_the_most(world: VolcanoWorld) -> None:
    above = TEAM
    for number in range(4):
        world.send("POST", QUEUES, world.queue_body(f"q{number}", parent=above))
        above = f"q{number}"
    why = "queue deep exceeds the maximum allowed depth of 5"
    body = world.queue_body("deep", parent=above)
    assert world.refused("POST", QUEUES, body) == said_by("validatequeue", why)


@pytest.mark.parametrize("name", ["default", "root"])
def test_the_first_queues_stay(world: VolcanoWorld, name: str) -> None:
    why = f"`{name}` queue can not be deleted"
    assert world.refused("DELETE", f"{QUEUES}/{name}") == said_by("validatequeue", why)
    assert world.refused("DELETE", QUEUES)[0] == 400
    assert world.get_queue()["metadata"]["name"] == TEAM


def test_a_queue_with_children_stays_and_goes_after_them(world: VolcanoWorld) -> None:
    for name in ("a", "b"):
        world.send("POST", QUEUES, world.queue_body(name, parent=TEAM))
    why = f"queue {TEAM} can not be deleted because it has 2 child queues: a, b"
    assert world.refused("DELETE", f"{QUEUES}/{TEAM}") == said_by("validatequeue", why)
    for name in ("a", "b", TEAM):
        world.send("DELETE", f"{QUEUES}/{name}")
    assert world.ask("GET", f"{QUEUES}/{TEAM}").status == 404


def test_a_queue_goes_even_while_it_is_open_and_in_use(world: VolcanoWorld) -> None:
    world.job("train")
    world.pass_time()
    world.send("DELETE", f"{QUEUES}/{TEAM}")
    world.pass_time()
    assert set(world.phases().values()) == {"Running"}


def test_a_job_is_filled_in(world: VolcanoWorld) -> None:
    body = world.job_body("train", 2, 1)
    del (
        body["spec"]["minAvailable"],
        body["spec"]["queue"],
        body["spec"]["tasks"][0]["name"],
    )
    spec = world.send("POST", world.jobs(), body)["spec"]
    assert (
        spec["queue"],
        spec["schedulerName"],
        spec["maxRetry"],
        spec["minAvailable"],
    ) == (
        "default",
        "volcano",
        3,
        2,
    )
    task = spec["tasks"][0]
    assert (task["name"], task["minAvailable"], task["maxRetry"]) == ("default0", 2, 3)


def test_plugins_that_need_names_of_pods_get_them(world: VolcanoWorld) -> None:
    spec = world.job("train", plugins={"pytorch": ["--master=worker"]})["spec"]
    assert spec["plugins"] == {"pytorch": ["--master=worker"], "svc": []}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"tasks": []}, "No task specified in job spec", id="no task"),
        pytest.param(
            {"queue": "nobody"},
            'unable to find job queue: queue.scheduling.volcano.sh "nobody" not found;',
            id="no such queue",
        ),
        pytest.param({"queue": "root"}, "can not submit job to root queue;", id="root"),
        pytest.param(
            {"minAvailable": 5},
            "job 'minAvailable' should not be greater than total replicas in tasks;",
            id="more than all",
        ),
        pytest.param(
            {"plugins": {"magic": []}},
            "unable to find job plugin: magic;",
            id="no such plugin",
        ),
    ],
)
def test_a_job_is_refused(
    world: VolcanoWorld, change: dict[str, Any], said: str
) -> None:
    body = world.job_body("train")
    body["spec"] |= change
    assert world.refused("POST", world.jobs(), body) == said_by("validatejob", said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            {"minAvailable": 3},
            "'minAvailable' is greater than 'replicas' in task: worker, job: train;",
            id="more than its replicas",
        ),
        pytest.param(
            {"name": "Worker"}, "a lowercase RFC 1123 label must consist of", id="name"
        ),
        pytest.param(
            {"template": {"spec": {"containers": [{"image": "i"}]}}},
            "spec.task[0].template.spec.containers[0].name: Required value",
            id="container",
        ),
        pytest.param(
            {"policies": [{"event": "PodFailed", "action": "Cheer"}]},
            'spec.tasks.policies: Invalid value: "Cheer": invalid policy action',
            id="action",
        ),
        pytest.param(
            {"policies": [{"action": "AbortJob"}]},
            "either event and exitCode should be specified",
            id="no event",
        ),
        pytest.param(
            {"policies": [{"event": "PodFailed", "exitCode": 1, "action": "AbortJob"}]},
            "must not specify event and exitCode simultaneously",
            id="event and code",
        ),
        pytest.param(
            {"policies": [{"event": "PodFailed", "action": "AbortJob"}] * 2},
            "duplicate event PodFailed  across different policy",
            id="an event twice",
        ),
        pytest.param(
            {"policies": [{"exitCode": 0, "action": "AbortJob"}]},
            "0 is not a valid error code",
            id="0",
        ),
        pytest.param(
            {"policies": [{"exitCode": 2, "action": "AbortJob"}] * 2},
            "duplicate exitCode 2",
            id="a code twice",
        ),
        pytest.param(
            {
                "policies": [
                    {"event": "*", "action": "AbortJob"},
                    {"event": "PodFailed", "action": "RestartJob"},
                ]
            },
            "if there's * here, no other policy should be here",
            id="all and one",
        ),
    ],
)
def test_a_task_is_refused(
    world: VolcanoWorld, change: dict[str, Any], said: str
) -> None:
    body = world.job_body("train")
    body["spec"]["tasks"][0] |= change
    status, message = world.refused("POST", world.jobs(), body)
    assert status == 400
    assert said in message


def test_two_tasks_of_a_name_are_refused(world: VolcanoWorld) -> None:
    body = world.job_body("train")
    body["spec"]["tasks"] *= 2
    assert world.refused("POST", world.jobs(), body) == said_by(
        "validatejob", "duplicated task name worker;"
    )


def test_a_closed_queue_takes_no_work(world: VolcanoWorld) -> None:
    close(world)
    why = f"can only submit job to queue with state `Open`, queue `{TEAM}` status is `Closed`;"
    assert world.refused("POST", world.jobs(), world.job_body("train")) == said_by(
        "validatejob", why
    )
    why = f"can only submit PodGroup to queue with state `Open`, queue `{TEAM}` status is `Closed`."
    assert world.refused("POST", GROUPS, group_body(queue=TEAM)) == said_by(
        "validatepodgroup", why
    )


def test_a_queue_with_children_takes_no_work(world: VolcanoWorld) -> None:
    world.send("POST", QUEUES, world.queue_body("below", parent=TEAM))
    why = f"can only submit job to leaf queue, queue `{TEAM}` has 1 child queues;"
    assert world.refused("POST", world.jobs(), world.job_body("train")) == said_by(
        "validatejob", why
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"queue": "default"}, FIXED, id="queue"),
        pytest.param({"schedulerName": "other"}, FIXED, id="scheduler"),
        pytest.param(
            {"tasks": []},
            "job 'minAvailable' must not be greater than total replicas",
            id="no tasks",
        ),
        pytest.param(
            {"minAvailable": 0, "tasks": []},
            "job updates may not add or remove tasks",
            id="no tasks needed",
        ),
    ],
)
def test_most_of_a_job_stays_as_it_is(
    world: VolcanoWorld, change: dict[str, Any], said: str
) -> None:
    world.job("train")
    found = world.refused("PATCH", f"{world.jobs()}/train", {"spec": change})
    assert found == said_by("validatejob", said)


def test_the_size_of_a_job_may_change_within_reason(world: VolcanoWorld) -> None:
    task = world.job("train", 2, 1)["spec"]["tasks"][0]
    path = f"{world.jobs()}/train"
    said = "'minAvailable' must be <= 'replicas' in task: worker"
    smaller = {"spec": {"tasks": [task | {"replicas": 1}]}}
    assert world.refused("PATCH", path, smaller) == said_by("validatejob", said)
    larger = {
        "spec": {
            "maxRetry": 9,
            "priorityClassName": "",
            "tasks": [task | {"replicas": 3}],
        }
    }
    assert world.send("PATCH", path, larger)["spec"]["tasks"][0]["replicas"] == 3
    labels = {"metadata": {"labels": {"a": "b"}}}
    assert world.send("PATCH", path, labels)["metadata"]["labels"] == {"a": "b"}


def test_a_group_is_put_into_the_queue_of_its_namespace(world: VolcanoWorld) -> None:
    assert world.send("POST", GROUPS, group_body("first"))["spec"]["queue"] == "default"
    note = {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": TEAM}}}
    world.send("PATCH", f"/api/v1/namespaces/{TEAM}", note)
    assert world.send("POST", GROUPS, group_body("second"))["spec"]["queue"] == TEAM
    world.send("POST", QUEUES, world.queue_body("other"))
    assert (
        world.send("POST", GROUPS, group_body("third", queue="other"))["spec"]["queue"]
        == "other"
    )


def test_a_group_of_no_queue_is_refused(world: VolcanoWorld) -> None:
    why = 'unable to find queue: queue.scheduling.volcano.sh "nobody" not found'
    assert world.refused("POST", GROUPS, group_body(queue="nobody")) == said_by(
        "validatepodgroup", why
    )


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        pytest.param(
            {"scheduling.k8s.io/group-name": "nobody"},
            f'failed to get PodGroup for pod <{TEAM}/p>: podgroups.scheduling.volcano.sh "nobody" not found',
            id="group",
        ),
        pytest.param(
            {"scheduling.volcano.sh/queue-name": "nobody"},
            'unable to find job queue: queues.scheduling.volcano.sh "nobody" not found;',
            id="queue",
        ),
        pytest.param(
            {"scheduling.volcano.sh/queue-name": "shut"},
            "can only submit job to queue with state `Open`, queue `shut` status is `Closed`;",
            id="closed queue",
        ),
    ],
)
def test_a_pod_of_volcano_is_refused(
    world: VolcanoWorld, annotations: dict[str, str], said: str
) -> None:
    world.send("POST", QUEUES, world.queue_body("shut"))
    close(world, "shut")
    spec = {"containers": [{"name": "c", "image": "i"}]}
    body = {
        "metadata": {"name": "p", "annotations": annotations},
        "spec": {**spec, "schedulerName": "volcano"},
    }
    path = f"/api/v1/namespaces/{TEAM}/pods"
    assert world.refused("POST", path, body) == said_by("validatepod", said)
    assert world.ask("POST", path, {**body, "spec": spec}).status == 201


def test_a_pod_of_a_closed_queues_group_is_refused(world: VolcanoWorld) -> None:
    world.send("POST", GROUPS, group_body(queue=TEAM))
    close(world)
    annotations = {"scheduling.k8s.io/group-name": "g"}
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulerName": "volcano"}
    body = {"metadata": {"name": "p", "annotations": annotations}, "spec": spec}
    why = f"queue `{TEAM}` status is `Closing`;;"
    text = f"failed :  can only submit job to queue with state `Open`, {why}"
    found = world.refused("POST", f"/api/v1/namespaces/{TEAM}/pods", body)
    assert found == said_by("validatepod", text)


def test_a_quantity_that_cannot_be_read_is_refused(world: VolcanoWorld) -> None:
    body = world.queue_body("q", capability={"cpu": "many"})
    assert world.refused("POST", QUEUES, body)[0] == 400


def test_a_job_of_another_version_is_none(world: VolcanoWorld) -> None:
    body = world.job_body("train") | {"apiVersion": "batch/v1"}
    assert world.ask("POST", world.jobs(), body).status == 400
    assert BATCH.startswith("batch.volcano.sh/")
