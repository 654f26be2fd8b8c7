"""Pod Security refuses and warns in the words of the admission plug-in, by the labels of the namespace."""

from typing import Any

import pytest

from sandbox.kubernetes.pod_security import refusal, warning

SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def namespace(**levels: str) -> dict[str, Any]:
    labels = {
        f"pod-security.kubernetes.io/{mode.replace('_', '-')}": level
        for mode, level in levels.items()
    }
    return {"metadata": {"name": "team", "labels": labels}}


def pod(
    *names: str, security: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    containers = [
        {"name": name, "securityContext": security or {}} for name in names or ("c",)
    ]
    return {"containers": containers, **spec}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (pod(), ""),
        (
            pod(hostNetwork=True, hostPID=True),
            "host namespaces (hostNetwork=true, hostPID=true)",
        ),
        (
            pod(volumes=[{"name": "root", "hostPath": {"path": "/"}}]),
            'hostPath volumes (volume "root")',
        ),
        (
            pod(volumes=[{"name": "a", "hostPath": {}}, {"name": "b", "hostPath": {}}]),
            'hostPath volumes (volumes "a", "b")',
        ),
        (
            {
                "containers": [
                    {"name": "c", "ports": [{"hostPort": 80}, {"containerPort": 1}]}
                ]
            },
            'hostPort (container "c" uses hostPort 80)',
        ),
        (
            pod("a", "b", security={"privileged": True}),
            'privileged (containers "a", "b" must not set securityContext.privileged=true)',
        ),
        (
            pod(
                security={"capabilities": {"add": ["SYS_ADMIN", "NET_ADMIN", "CHOWN"]}}
            ),
            (
                'non-default capabilities (container "c" must not include "NET_ADMIN", "SYS_ADMIN" in '
                "securityContext.capabilities.add)"
            ),
        ),
        (
            pod(hostIPC=True, security={"privileged": True}),
            'host namespaces (hostIPC=true), privileged (container "c" must not set securityContext.privileged=true)',
        ),
    ],
)
def test_baseline_refuses_what_reaches_the_node(
    spec: dict[str, Any], words: str
) -> None:
    expected = f'violates PodSecurity "baseline:latest": {words}' if words else ""
    assert refusal(namespace(enforce="baseline"), spec) == expected
    assert (
        refusal(namespace(), spec)
        == refusal(namespace(enforce="privileged"), spec)
        == ""
    )


def test_restricted_asks_every_container_and_takes_what_the_pod_says_for_all() -> None:
    asks = namespace(enforce="restricted", enforce_version="v1.36")
    assert refusal(asks, pod(security=SAFE)) == ""
    for_all = {name: SAFE[name] for name in ("runAsNonRoot", "seccompProfile")}
    own = {name: SAFE[name] for name in ("allowPrivilegeEscalation", "capabilities")}
    assert refusal(asks, pod(security=own, securityContext=for_all)) == ""
    root = pod(security=SAFE | {"runAsUser": 0}, volumes=[{"name": "v", "nfs": {}}])
    assert refusal(asks, root) == (
        'violates PodSecurity "restricted:v1.36": restricted volume types (volume "v" uses restricted volume type '
        '"nfs"), runAsUser=0 (container "c" must not set securityContext.runAsUser=0)'
    )
    not_all = pod(
        security=SAFE | {"capabilities": {"drop": ["CHOWN"], "add": ["SYS_TIME"]}}
    )
    assert (
        'capabilities.drop=["ALL"]; container "c" must not include "SYS_TIME"'
        in refusal(asks, not_all)
    )
    overruled = pod(security=SAFE | {"runAsNonRoot": False}, securityContext=for_all)
    assert "runAsNonRoot != true" in refusal(asks, overruled)


def test_a_warning_is_a_header_and_refuses_nothing() -> None:
    warns = namespace(warn="baseline")
    assert refusal(warns, pod(hostNetwork=True)) == ""
    assert warning(warns, pod(hostNetwork=True)) == (
        '299 - "would violate PodSecurity \\"baseline:latest\\": host namespaces (hostNetwork=true)"'
    )
    assert warning(warns, pod()) == ""
