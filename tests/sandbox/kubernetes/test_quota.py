"""Quotas count and refuse as a real server did."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.kubernetes.defaults import apply_defaults
from sandbox.kubernetes.kinds import Kind, by_kind
from sandbox.kubernetes.quota import is_tracked, refusal, usage_of, used
from sandbox.kubernetes.validation import check_create

RECORDINGS = Path(__file__).parents[2] / "recordings"
Step = dict[str, Any]


def kind_of(api_version: str, name: str) -> Kind:
    kind = by_kind(api_version, name)
    assert kind is not None
    return kind


def steps() -> list[Step]:
    loaded: list[Step] = json.loads((RECORDINGS / "05-resourcequota.json").read_text())
    return loaded


class Namespace:
    """The quotas and objects of one namespace, kept as the server would."""

    def __init__(self) -> None:
        self.quotas: dict[str, dict[str, Any]] = {}
        self.objects: dict[str, tuple[Kind, dict[str, Any]]] = {}

    def settle(self) -> None:
        """Fill in the status of every quota."""
        for quota in self.quotas.values():
            hard = quota["spec"]["hard"]
            quota["status"] = {"hard": hard, "used": used(hard, self.objects.values())}

    def take(self, step: Step) -> None:
        """Do what a step of the recording did to the store."""
        body, answer = step["request"]["body"], step["response"]
        if step["request"]["method"] == "DELETE":
            self.objects.pop(step["request"]["path"].rpartition("/")[2])
            # The recording removed its Job here too, between two steps.
            self.objects.pop("j1")
        elif (
            isinstance(body, dict)
            and answer["status"] in {200, 201}
            and not step["request"].get("query", {}).get("dryRun")
        ):
            name, kind = (
                body["metadata"]["name"],
                kind_of(body["apiVersion"], body["kind"]),
            )
            if kind.kind == "ResourceQuota":
                self.quotas[name] = apply_defaults(kind, body)
            else:
                self.objects[name] = (kind, apply_defaults(kind, body))


def refusals_and_acceptances() -> list[Any]:
    found: list[Any] = []
    namespace = Namespace()
    for step in steps():
        namespace.settle()
        if step["request"]["method"] == "POST":
            quotas = json.loads(json.dumps(list(namespace.quotas.values())))
            found.append(pytest.param(step, quotas, id=f"{len(found)}-{step['name']}"))
        namespace.take(step)
    return found


@pytest.mark.parametrize(("step", "quotas"), refusals_and_acceptances())
def test_it_judges_a_new_object_as_the_server_did(
    step: Step, quotas: list[dict[str, Any]]
) -> None:
    body, answer = step["request"]["body"], step["response"]
    kind = kind_of(body["apiVersion"], body["kind"])
    filled = apply_defaults(kind, body)
    found = check_create(kind, filled) or refusal(kind, filled, quotas)
    if answer["status"] == 201:
        assert found is None
    else:
        assert found is not None
        assert (found.code, found.body) == (answer["status"], answer["body"])


def test_it_counts_what_is_used_as_the_server_did() -> None:
    namespace = Namespace()
    checked = 0
    for step in steps():
        namespace.settle()
        body = step["response"]["body"]
        # The status that followed a deletion was read before the server had counted again.
        if (
            step["request"]["method"] == "GET"
            and body.get("kind") == "ResourceQuota"
            and step["name"] != "status-after-delete"
        ):
            assert namespace.quotas["quartermaster"]["status"] == body["status"]
            checked += 1
        namespace.take(step)
    assert checked >= 3


def test_limits_of_extended_resources_are_never_used() -> None:
    assert not is_tracked("limits.nvidia.com/gpu")
    assert not is_tracked("nvidia.com/gpu")
    assert is_tracked("requests.nvidia.com/gpu")
    assert not is_tracked("count/widgets.example.com")


def test_a_pod_that_ended_counts_only_as_an_object() -> None:
    pod = kind_of("v1", "Pod")
    assert usage_of(pod, {"status": {"phase": "Succeeded"}}) == {"count/pods": "1"}


def test_the_larger_of_init_and_other_containers_counts() -> None:
    def container(cpu: str, **more: Any) -> dict[str, Any]:
        return {
            "name": "c",
            "resources": {"requests": {"cpu": cpu, "nvidia.com/gpu": "1"}},
            **more,
        }

    spec = {
        "containers": [container("1"), container("1")],
        "initContainers": [container("3")],
    }
    usage = usage_of(
        kind_of("v1", "Pod"), {"spec": {**spec, "overhead": {"cpu": "500m"}}}
    )
    assert usage == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "3500m",
        "requests.cpu": "3500m",
        "requests.nvidia.com/gpu": "2",
    }
    beside = {
        "containers": [container("1")],
        "initContainers": [container("1", restartPolicy="Always")],
    }
    assert usage_of(kind_of("v1", "Pod"), {"spec": beside})["cpu"] == "2"


def test_claims_count_their_size_for_their_class_and_growth_is_charged() -> None:
    claim = kind_of("v1", "PersistentVolumeClaim")

    def sized(size: str) -> dict[str, Any]:
        spec = {
            "storageClassName": "fast",
            "resources": {"requests": {"storage": size}},
        }
        return {"metadata": {"name": "home"}, "spec": spec}

    usage = usage_of(claim, sized("1Gi"))
    assert usage["fast.storageclass.storage.k8s.io/requests.storage"] == "1Gi"
    assert (usage["persistentvolumeclaims"], usage["count/persistentvolumeclaims"]) == (
        "1",
        "1",
    )
    hard = {"requests.storage": "2Gi", "persistentvolumeclaims": "1"}
    quota = {"metadata": {"name": "q"}, "spec": {"hard": hard}}
    quota["status"] = {"hard": hard, "used": used(hard, [(claim, sized("1Gi"))])}
    assert refusal(claim, sized("2Gi"), [quota], sized("1Gi")) is None
    found = refusal(claim, sized("3Gi"), [quota], sized("1Gi"))
    assert found is not None
    assert found.message.endswith(
        "exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=1Gi, limited: requests.storage=2Gi"
    )


def test_services_count_by_type() -> None:
    service = kind_of("v1", "Service")
    balanced = usage_of(service, {"spec": {"type": "LoadBalancer", "ports": [{}, {}]}})
    assert (
        balanced["services.loadbalancers"],
        balanced["services.nodeports"],
        balanced["services"],
    ) == (
        "1",
        "2",
        "1",
    )
    assert (
        usage_of(service, {"spec": {"type": "NodePort", "ports": [{}]}})[
            "services.nodeports"
        ]
        == "1"
    )
    assert "services.nodeports" not in usage_of(service, {"spec": {}})
