"""From a tenancy's spec to its Kubernetes objects: dicts, never templates. Pure.

Kubernetes 1.36 and Kueue v1beta2. GPUs are limited by `requests.nvidia.com/gpu` only and never stand in a LimitRange.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from provisioning.spec import FlavorQuota, TenancySpec

Manifest = dict[str, Any]

DOMAIN = "quartermaster.io"
MANAGED_BY = {"app.kubernetes.io/managed-by": "quartermaster"}
TENANCY_LABEL = f"{DOMAIN}/tenancy"
GPU = "nvidia.com/gpu"
KUEUE = "kueue.x-k8s.io/v1beta2"
CPU_FLAVOR = "quartermaster-cpu"
TEAM_ROLE = "quartermaster-team-user"
PRIORITIES = {
    "production-inference": (1_000_000, "Serving people; never preempted by training."),
    "scheduled-training": (100_000, "Training with a date to meet."),
    "exploratory": (1_000, "Notebooks and experiments; may be preempted."),
    "best-effort": (0, "Runs when nothing else wants the GPU."),
}


def tenancy_objects(spec: TenancySpec) -> list[Manifest]:
    """The ten objects of a tenancy, in the order in which they can be created."""
    return [
        _namespace(spec),
        _quota(spec),
        _limits(spec),
        _object(spec, "v1", "ServiceAccount", "workload", automountServiceAccountToken=False),
        _team_binding(spec),
        _network(spec, "default-deny", policyTypes=["Ingress", "Egress"]),
        _network(spec, "allow-own-and-dns", **_own_namespace_and_dns()),
        _datasets(spec),
        _cluster_queue(spec),
        _object(spec, KUEUE, "LocalQueue", "default", spec={"clusterQueue": spec.namespace}),
    ]


def labels(spec: TenancySpec) -> dict[str, str]:
    """Labels that every object of a tenancy carries: ownership, and what cost is put under."""
    return MANAGED_BY | {
        TENANCY_LABEL: str(spec.tenancy),
        f"{DOMAIN}/team": spec.team,
        f"{DOMAIN}/project": spec.project,
        f"{DOMAIN}/cost-center": spec.cost_centre,
        f"{DOMAIN}/environment": spec.environment,
    }


def gibibytes(number: int) -> str:
    """GiB as a Kubernetes quantity in its canonical form: 1024 is `1Ti`; another form would look like drift."""
    return _canonical(number, 1024, ["Gi", "Ti", "Pi", "Ei"])


def count(number: int) -> str:
    """A number as a Kubernetes quantity in its canonical form: 1500 stays, but 2000 is `2k`."""
    return _canonical(number, 1000, ["", "k", "M", "G"])


def _canonical(number: int, base: int, suffixes: list[str]) -> str:
    if not number:
        return "0"
    while number % base == 0 and len(suffixes) > 1:
        number //= base
        suffixes = suffixes[1:]
    return f"{number}{suffixes[0]}"


def _object(
    spec: TenancySpec, /, api: str, kind: str, name: str, *, extra: dict[str, str] | None = None, **rest: Any
) -> Manifest:
    metadata = {"name": name, "namespace": spec.namespace, "labels": labels(spec) | (extra or {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def _namespace(spec: TenancySpec) -> Manifest:
    guards = {
        "kueue.x-k8s.io/managed": "true",
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/enforce-version": "latest",
        "pod-security.kubernetes.io/warn": "restricted",
        "pod-security.kubernetes.io/audit": "restricted",
    }
    namespace = _object(spec, "v1", "Namespace", spec.namespace, extra=guards)
    del namespace["metadata"]["namespace"]
    return namespace


def _quota(spec: TenancySpec) -> Manifest:
    # Kueue does not look at ResourceQuota: below nominal + borrowing, an admitted job would never get a pod.
    gpus = sum(flavor.gpus + flavor.borrow for flavor in spec.flavors)
    cpu = spec.base_cpu + sum((f.gpus + f.borrow) * f.cpu_per_gpu for f in spec.flavors)
    memory = spec.base_memory_gib + sum((f.gpus + f.borrow) * f.memory_gib_per_gpu for f in spec.flavors)
    hard = {
        "requests.cpu": count(cpu),
        "limits.cpu": count(cpu * 2),
        "requests.memory": gibibytes(memory),
        "limits.memory": gibibytes(memory * 2),
        f"requests.{GPU}": count(gpus),
        "pods": count(50 + 4 * gpus),
        "persistentvolumeclaims": "20",
        "requests.storage": "2Ti",
        "services.loadbalancers": "0",
        "services.nodeports": "0",
        "count/jobs.batch": "200",
        "count/secrets": "100",
    }
    return _object(spec, "v1", "ResourceQuota", "team-quota", spec={"hard": hard})


def _limits(spec: TenancySpec) -> Manifest:
    container = {
        "type": "Container",
        "default": {"cpu": "2", "memory": "4Gi"},
        "defaultRequest": {"cpu": "500m", "memory": "1Gi"},
    }
    claim = {"type": "PersistentVolumeClaim", "max": {"storage": "1Ti"}}
    return _object(spec, "v1", "LimitRange", "team-defaults", spec={"limits": [container, claim]})


def _team_binding(spec: TenancySpec) -> Manifest:
    rbac = "rbac.authorization.k8s.io"
    return _object(
        spec,
        f"{rbac}/v1",
        "RoleBinding",
        "team-users",
        roleRef={"apiGroup": rbac, "kind": "ClusterRole", "name": TEAM_ROLE},
        subjects=[{"apiGroup": rbac, "kind": "Group", "name": spec.entra_group}],
    )


def _network(spec: TenancySpec, name: str, **rules: Any) -> Manifest:
    return _object(spec, "networking.k8s.io/v1", "NetworkPolicy", name, spec={"podSelector": {}, **rules})


def _own_namespace_and_dns() -> dict[str, Any]:
    dns_ports = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
    dns = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    # NodeLocal DNSCache answers on a host address that no pod selector matches.
    node_local_dns = {"ipBlock": {"cidr": "169.254.20.0/24"}}
    return {
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [{"podSelector": {}}]}],
        "egress": [
            {"to": [{"podSelector": {}}]},
            {"to": [dns], "ports": dns_ports},
            {"to": [node_local_dns], "ports": dns_ports},
        ],
    }


def _datasets(spec: TenancySpec) -> Manifest:
    claim: dict[str, Any] = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "100Gi"}},
    }
    if spec.storage_class:
        claim["storageClassName"] = spec.storage_class
    return _object(spec, "v1", "PersistentVolumeClaim", "datasets", spec=claim)


def _cluster_queue(spec: TenancySpec) -> Manifest:
    queue = _object(spec, KUEUE, "ClusterQueue", spec.namespace)
    del queue["metadata"]["namespace"]
    flavors = [
        _flavor(CPU_FLAVOR, cpu=(spec.base_cpu, 0), memory=(spec.base_memory_gib, 0), gpus=(0, 0)),
        *(_flavor_quota(flavor) for flavor in spec.flavors),
    ]
    queue["spec"] = {
        "cohortName": spec.cohort,
        # null would select no namespace and {} every one; this selects the tenancy's own.
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": spec.namespace}},
        "queueingStrategy": "BestEffortFIFO",
        "resourceGroups": [{"coveredResources": ["cpu", "memory", GPU], "flavors": flavors}],
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        "stopPolicy": "None",
    }
    return queue


def _flavor_quota(flavor: FlavorQuota) -> dict[str, Any]:
    own, borrow = flavor.gpus, flavor.borrow
    return _flavor(
        flavor.name,
        cpu=(own * flavor.cpu_per_gpu, borrow * flavor.cpu_per_gpu),
        memory=(own * flavor.memory_gib_per_gpu, borrow * flavor.memory_gib_per_gpu),
        gpus=(own, borrow),
    )


def _flavor(
    name: str, *, cpu: tuple[int, int], memory: tuple[int, int], gpus: tuple[int, int]
) -> dict[str, Any]:
    """Each resource with what is guaranteed and what may be borrowed: without a limit, all of the cohort's would be."""
    amounts = {
        "cpu": [count(number) for number in cpu],
        "memory": [gibibytes(number) for number in memory],
        GPU: [count(number) for number in gpus],
    }
    resources = [
        {"name": resource, "nominalQuota": own, "borrowingLimit": borrow}
        for resource, (own, borrow) in amounts.items()
    ]
    return {"name": name, "resources": resources}


def fleet_objects(
    *, cohort: str, flavors: Iterable[tuple[str, dict[str, str], list[dict[str, str]]]]
) -> list[Manifest]:
    """What every tenancy of a cluster shares: the cohort, ResourceFlavors (name, node labels, taints), priorities."""
    found = [_cluster_wide(KUEUE, "Cohort", cohort), _cluster_wide(KUEUE, "ResourceFlavor", CPU_FLAVOR)]
    for name, node_labels, taints in flavors:
        spec: dict[str, Any] = {"nodeLabels": node_labels}
        if taints:
            spec |= {"nodeTaints": taints, "tolerations": [_toleration(taint) for taint in taints]}
        found.append(_cluster_wide(KUEUE, "ResourceFlavor", name, spec=spec))
    for name, (value, words) in PRIORITIES.items():
        found.append(_cluster_wide(KUEUE, "WorkloadPriorityClass", name, value=value, description=words))
    return found


def _toleration(taint: Mapping[str, str]) -> dict[str, str]:
    if not taint.get("value"):
        return {"key": taint["key"], "operator": "Exists", "effect": taint["effect"]}
    return {"key": taint["key"], "operator": "Equal", "value": taint["value"], "effect": taint["effect"]}


def _cluster_wide(api: str, kind: str, name: str, **rest: Any) -> Manifest:
    metadata = {"name": name, "labels": MANAGED_BY | {f"{DOMAIN}/scope": "cluster"}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}
