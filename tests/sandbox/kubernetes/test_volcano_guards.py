"""Policies over what is Volcano's: nobody uses a queue but that of their own namespace, or a GPU past Volcano."""

from typing import Any

import pytest

from tests.sandbox.kubernetes.volcanoes import GPU, SCHEDULING, TEAM, VolcanoWorld

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
OURS = {"quartermaster.io/tenancy": "a"}
HAS_GPUS = (
    "object.spec.containers.exists(c, has(c.resources) && has(c.resources.limits) && "
    "c.resources.limits.exists(name, name.startsWith('nvidia.com/')))"
)
VOLCANOS = "has(object.spec.schedulerName) && object.spec.schedulerName == 'volcano'"
GROUPED = (
    "has(object.metadata.annotations) && ('scheduling.k8s.io/group-name' in object.metadata.annotations || "
    "'scheduling.volcano.sh/queue-name' in object.metadata.annotations && "
    "object.metadata.annotations['scheduling.volcano.sh/queue-name'] == namespaceObject.metadata.name)"
)


def rule(group: str, version: str, resource: str, *operations: str) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations or ("CREATE", "UPDATE")),
        "resources": [resource],
    }


def guard(
    world: VolcanoWorld,
    name: str,
    rules: list[dict[str, Any]],
    *validations: Any,
    **spec: Any,
) -> None:
    selector = {
        "matchExpressions": [{"key": "quartermaster.io/tenancy", "operator": "Exists"}]
    }
    whole = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules, "namespaceSelector": selector},
        "validations": [
            {"expression": one, "message": message, "reason": "Forbidden"}
            for one, message in validations
        ],
        **spec,
    }
    body = {"metadata": {"name": name}, "spec": whole}
    world.send("POST", f"{ADMISSION}/validatingadmissionpolicies", body)
    binding = {"policyName": name, "validationActions": ["Deny"]}
    path = f"{ADMISSION}/validatingadmissionpolicybindings"
    world.send("POST", path, {"metadata": {"name": name}, "spec": binding})


@pytest.fixture(params=["namespaceObject.metadata.name", "object.metadata.namespace"])
def world(request: pytest.FixtureRequest) -> VolcanoWorld:
    """Two tenancies and a namespace that is none, behind a policy for queues and one for GPUs."""
    world = VolcanoWorld()
    for name in (TEAM, "other"):
        world.queue(name)
        world.send(
            "PATCH", f"/api/v1/namespaces/{name}", {"metadata": {"labels": OURS}}
        )
    world.namespace("free")
    rules = [
        rule("batch.volcano.sh", "v1alpha1", "jobs"),
        rule("scheduling.volcano.sh", "v1beta1", "podgroups"),
    ]
    own = (f"object.spec.queue == {request.param}", "another queue")
    guard(world, "queues", rules, own)
    guard(
        world,
        "gpus",
        [rule("", "v1", "pods", "CREATE")],
        (VOLCANOS, "past Volcano"),
        (GROUPED, "without a queue"),
        matchConditions=[{"name": "gpus", "expression": HAS_GPUS}],
    )
    return world


def pod_body(name: str, gpus: int = 1, **spec: Any) -> dict[str, Any]:
    limits = {GPU: str(gpus)} if gpus else {"cpu": "1"}
    container = {"name": "main", "image": "train:1", "resources": {"limits": limits}}
    annotations = spec.pop("annotations", {})
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def test_a_job_in_its_own_queue_runs(world: VolcanoWorld) -> None:
    world.job("train")
    world.pass_time()
    assert world.phase("train") == "Running"


@pytest.mark.parametrize("queue", ["other", "default"])
def test_a_job_in_another_queue_is_denied(world: VolcanoWorld, queue: str) -> None:
    status, message = world.refused(
        "POST", world.jobs(), world.job_body("train", queue=queue)
    )
    said = "ValidatingAdmissionPolicy 'queues' with binding 'queues' denied request: another queue"
    assert (status, message) == (
        403,
        f'jobs.batch.volcano.sh "train" is forbidden: {said}',
    )


def test_a_job_that_names_no_queue_is_denied_as_one_in_the_default_queue(
    world: VolcanoWorld,
) -> None:
    body = world.job_body("train")
    del body["spec"]["queue"]
    assert world.refused("POST", world.jobs(), body)[0] == 403


def test_a_namespace_that_is_no_tenancy_may_use_any_queue(world: VolcanoWorld) -> None:
    world.job("train", namespace="free", queue="other")
    world.pass_time()
    assert world.phase("train", "free") == "Running"


def test_a_group_in_another_queue_is_denied(world: VolcanoWorld) -> None:
    path = f"/apis/{SCHEDULING}/namespaces/{TEAM}/podgroups"
    body = {"apiVersion": SCHEDULING, "kind": "PodGroup", "metadata": {"name": "g"}}
    assert world.refused("POST", path, {**body, "spec": {"queue": "other"}})[0] == 403
    world.send("POST", path, {**body, "spec": {"queue": TEAM}})
    assert world.refused("PATCH", f"{path}/g", {"spec": {"queue": "other"}})[0] == 403


def test_a_pod_with_gpus_does_not_go_past_volcano(world: VolcanoWorld) -> None:
    path = f"/api/v1/namespaces/{TEAM}/pods"
    status, message = world.refused("POST", path, pod_body("p"))
    assert (status, message.rpartition(": ")[2]) == (403, "past Volcano")
    assert world.refused("POST", path, pod_body("p", schedulerName="volcano"))[
        1
    ].endswith("without a queue")
    named = {"scheduling.volcano.sh/queue-name": TEAM}
    other = {"scheduling.volcano.sh/queue-name": "other"}
    denied = pod_body("p", schedulerName="volcano", annotations=other)
    assert world.refused("POST", path, denied)[1].endswith("without a queue")
    world.send("POST", path, pod_body("p", schedulerName="volcano", annotations=named))
    world.send("POST", path, pod_body("cpu", gpus=0))
    world.pass_time()
    assert world.phases()["p"] == "Running"


def test_the_jobs_of_kubernetes_get_no_gpus_past_volcano(world: VolcanoWorld) -> None:
    template = {"spec": pod_body("x")["spec"]}
    body = {"metadata": {"name": "plain"}, "spec": {"template": template}}
    world.send("POST", f"/apis/batch/v1/namespaces/{TEAM}/jobs", body)
    told = [
        message
        for _, reason, message in world.events("Job")
        if reason == "FailedCreate"
    ]
    assert told
    assert told[0].endswith("past Volcano")
    assert world.pods() == []
