"""What the API server fills in for pods, pod templates and jobs."""

from collections.abc import Mapping
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.quantities import is_zero

DEFAULT_ACCOUNT = "default"
GRACE_SECONDS = 30
FILE_MODE = 0o644
TOLERATION_SECONDS = 300
TOKEN_SECONDS = 3607
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
NODE_TROUBLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
PROBE = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
VOLUME_SOURCES = ("configMap", "secret", "projected", "downwardAPI")


def _fill(target: dict[str, Any], values: dict[str, Any]) -> None:
    for name, value in values.items():
        if target.get(name) is None:
            target[name] = value


def default_pod(obj: dict[str, Any]) -> None:
    """Fill in a Pod in place; requests are copied from limits."""
    spec = obj.setdefault("spec", {})
    default_pod_spec(spec)
    _fill(spec, {"enableServiceLinks": True})
    for container in [*items(spec, "containers"), *items(spec, "initContainers")]:
        resources = container["resources"]
        if part(resources, "limits"):
            requests = part(resources, "requests")
            _fill(requests, part(resources, "limits"))
            resources["requests"] = requests
    state = obj.setdefault("status", {})
    _fill(state, {"phase": "Pending", "qosClass": qos_class(spec)})


def default_pod_spec(spec: dict[str, Any]) -> None:
    """Fill in the spec of a pod or of a pod template in place."""
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    _fill(
        spec,
        {
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
        },
    )
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name) is False:
            del spec[name]
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in [*items(spec, "containers"), *items(spec, "initContainers")]:
        _default_container(container)
    for volume in items(spec, "volumes"):
        _default_volume(volume)


def _default_container(container: dict[str, Any]) -> None:
    _fill(
        container,
        {
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": pull_policy(str(container.get("image") or "")),
        },
    )
    for flag in ("stdin", "stdinOnce", "tty"):
        if container.get(flag) is False:
            del container[flag]
    for port in items(container, "ports"):
        _fill(port, {"protocol": "TCP"})
    for variable in items(container, "env"):
        if variable.get("value") == "":
            del variable["value"]
        reference = part(part(variable, "valueFrom"), "fieldRef")
        if reference:
            _fill(reference, {"apiVersion": "v1"})
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name) is not None:
            _fill(container[name], PROBE)
            if part(container[name], "httpGet"):
                _fill(container[name]["httpGet"], {"path": "/", "scheme": "HTTP"})


def _default_volume(volume: dict[str, Any]) -> None:
    if not set(volume) - {"name"}:
        volume["emptyDir"] = {}
    for source in VOLUME_SOURCES:
        if volume.get(source) is not None:
            _fill(volume[source], {"defaultMode": FILE_MODE})
    if volume.get("hostPath") is not None:
        _fill(volume["hostPath"], {"type": ""})


def pull_policy(image: str) -> str:
    """Always for an image without a tag or with ``latest``, else IfNotPresent."""
    name = image.rpartition("/")[2]
    tagged = "@" in name or (":" in name and not name.endswith(":latest"))
    return "IfNotPresent" if tagged else "Always"


def qos_class(spec: dict[str, Any]) -> str:
    """The quality of service class that cpu and memory of all containers give a pod."""
    guaranteed, any_given = True, False
    for container in [*items(spec, "containers"), *items(spec, "initContainers")]:
        resources = part(container, "resources")
        limits, requests = part(resources, "limits"), part(resources, "requests")
        for name in ("cpu", "memory"):
            limit, request = limits.get(name), requests.get(name)
            any_given = any_given or not (is_zero(limit) and is_zero(request))
            if is_zero(limit) or (request is not None and request != limit):
                guaranteed = False
    if not any_given:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def admit_pod(
    obj: dict[str, Any],
    account: Mapping[str, Any],
    *,
    token_volume: str,
    priority: int = 0,
    preemption: str = "PreemptLowerPriority",
) -> None:
    """Do in place what admission adds to a new Pod after its LimitRanges: account, token, tolerations, priority."""
    spec = obj["spec"]
    spec["serviceAccountName"] = spec["serviceAccount"] = account["metadata"]["name"]
    # The pod has the last word on the token, then its account; without either it is mounted.
    asked = spec.get(
        "automountServiceAccountToken", account.get("automountServiceAccountToken")
    )
    if asked is not False:
        _mount_token(spec, token_volume)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [
            dict(secret) for secret in account["imagePullSecrets"]
        ]
    tolerated = {one.get("key") for one in items(spec, "tolerations")}
    added = [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": TOLERATION_SECONDS,
        }
        for key in NODE_TROUBLE
        if key not in tolerated and None not in tolerated
    ]
    if added:
        spec["tolerations"] = [*items(spec, "tolerations"), *added]
    _fill(spec, {"priority": priority, "preemptionPolicy": preemption})
    # LimitRanges may have given it amounts since it was defaulted.
    obj.setdefault("status", {})["qosClass"] = qos_class(spec)


def _mount_token(spec: dict[str, Any], volume: str) -> None:
    added = False
    for container in [*items(spec, "containers"), *items(spec, "initContainers")]:
        mounts = items(container, "volumeMounts")
        if all(mount.get("mountPath") != TOKEN_PATH for mount in mounts):
            mount = {"name": volume, "readOnly": True, "mountPath": TOKEN_PATH}
            container["volumeMounts"] = [*mounts, mount]
            added = True
    if not added:
        return
    reference = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources: list[dict[str, Any]] = [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {
            "configMap": {
                "name": "kube-root-ca.crt",
                "items": [{"key": "ca.crt", "path": "ca.crt"}],
            }
        },
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": reference}]}},
    ]
    projected = {"sources": sources, "defaultMode": FILE_MODE}
    spec["volumes"] = [
        *items(spec, "volumes"),
        {"name": volume, "projected": projected},
    ]


def default_job(obj: dict[str, Any], uid: str) -> None:
    """Fill in a Job in place; with a uid it also gets its selector and the labels that go with it."""
    spec = obj.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    replacement = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    _fill(
        spec,
        {
            "parallelism": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "manualSelector": False,
            "podReplacementPolicy": replacement,
        },
    )
    template = spec.setdefault("template", {})
    default_pod_spec(template.setdefault("spec", {}))
    if uid and not spec["manualSelector"] and not spec.get("selector"):
        _select(obj, template, uid)
    obj.setdefault("status", {})


def _select(obj: dict[str, Any], template: dict[str, Any], uid: str) -> None:
    meta, name = obj.setdefault("metadata", {}), obj.get("metadata", {}).get("name", "")
    labels = {"controller-uid": uid, "job-name": name}
    labels |= {f"batch.kubernetes.io/{key}": value for key, value in labels.items()}
    below = template.setdefault("metadata", {})
    below["labels"] = {**part(below, "labels"), **labels}
    # A Job without labels of its own shares those of its template.
    if not meta.get("labels"):
        meta["labels"] = dict(below["labels"])
    obj["spec"]["selector"] = {
        "matchLabels": {"batch.kubernetes.io/controller-uid": uid}
    }
