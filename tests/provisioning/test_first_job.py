"""The first job runs as it stands wherever the team holds GPUs, and asks for nothing that is refused."""

import yaml

from provisioning.desired.first_job import Kind, as_yaml, first_job

TAINT = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
A100 = Kind(
    "a100",
    "nvidia.com/gpu",
    {"accelerator": "nvidia-a100"},
    [TAINT, {"key": "spot", "effect": "NoExecute"}],
)


def test_requests_equal_limits_and_name_one_gpu_of_its_kind() -> None:
    [container] = first_job("qm-vision", A100)["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_it_stands_in_the_teams_line_and_comes_onto_the_nodes_of_its_kind() -> None:
    job = first_job("qm-vision", A100)
    pod = job["spec"]["template"]["spec"]
    assert job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "default"}
    assert pod["nodeSelector"] == {"accelerator": "nvidia-a100"}
    assert pod["tolerations"] == [
        {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Exists", "effect": "NoExecute"},
    ]


def test_it_passes_the_restricted_pod_security_standard() -> None:
    pod = first_job("qm-vision", A100)["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False


def test_without_gpus_it_asks_for_none() -> None:
    pod = first_job("qm-vision", None)["spec"]["template"]["spec"]
    assert set(pod["containers"][0]["resources"]["limits"]) == {"cpu", "memory"}
    assert {"nodeSelector", "tolerations"}.isdisjoint(pod)


def test_what_is_pasted_is_what_was_made() -> None:
    for kind in (A100, None):
        job = first_job("qm-vision", kind)
        assert yaml.safe_load(as_yaml(job)) == job
        assert "&id" not in as_yaml(job)
