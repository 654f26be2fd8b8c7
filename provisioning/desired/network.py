"""Who may talk to a tenancy's pods and to whom they may talk: nobody, then what is named here. Pure."""

from collections.abc import Mapping
from typing import Any

from fleet.egress import EgressRule
from fleet.services import SharedService
from provisioning.desired.objects import Manifest, placed
from provisioning.desired.spec import TenancySpec

# Cilium's own policies, which know names (https://docs.cilium.io/en/stable/security/policy/language/#dns-based).
BY_NAME = ("cilium.io/v2", "CiliumNetworkPolicy")
BY_NAME_POLICY = "allow-outside-names"
# No DNS answer leads there, whoever gives it: a denial of Cilium's comes before everything that is allowed. Of the
# link-local range only the metadata service: the node's own resolver lives there, too.
NEVER = (
    "169.254.169.254/32",
    "168.63.129.16/32",
    "100.100.100.200/32",
    "fd00:ec2::254/128",
)
DNS_PORTS = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
NOTEBOOK_PORT, HUB_PORT = 8888, 8081
BOTH = ["Ingress", "Egress"]


def policies(spec: TenancySpec) -> list[Manifest]:
    """Deny everything, allow the own namespace and names, then hub, services and ways out, if there are any."""
    found = [
        _policy(spec, "default-deny", policyTypes=BOTH),
        _policy(
            spec, "allow-own-and-dns", policyTypes=BOTH, **_own_namespace_and_dns()
        ),
    ]
    if spec.jupyterhub_namespace:
        found.append(_jupyterhub(spec))
    if spec.services:
        rules = [_to_service(service) for service in spec.services]
        found.append(
            _policy(spec, "allow-shared-services", policyTypes=["Egress"], egress=rules)
        )
    if spec.egress_by_range:
        outside = [_to_outside(rule) for rule in spec.egress_by_range]
        found.append(
            _policy(spec, "allow-outside", policyTypes=["Egress"], egress=outside)
        )
    if spec.egress_by_name:
        found.append(_by_name(spec))
    return found


def _policy(
    spec: TenancySpec, name: str, *, of: Mapping[str, str] | None = None, **rules: Any
) -> Manifest:
    """A policy for all pods of the namespace, or for those `of` these labels."""
    pods = {"matchLabels": dict(of)} if of else {}
    return placed(
        spec,
        "networking.k8s.io/v1",
        "NetworkPolicy",
        name,
        spec={"podSelector": pods, **rules},
    )


def _pods_in(namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """One peer: pods with these labels in this one namespace, by the label that only the API server can set."""
    return {
        "namespaceSelector": {
            "matchLabels": {"kubernetes.io/metadata.name": namespace}
        },
        "podSelector": {"matchLabels": dict(labels)},
    }


def _own_namespace_and_dns() -> dict[str, Any]:
    # NodeLocal DNSCache and the LocalDNS of AKS answer on link-local host addresses that no pod selector matches;
    # the metadata service, which hands out the node's identity, lives there too and stays shut.
    local_dns = {
        "ipBlock": {"cidr": "169.254.0.0/16", "except": ["169.254.169.254/32"]}
    }
    return {
        "ingress": [{"from": [{"podSelector": {}}]}],
        "egress": [
            {"to": [{"podSelector": {}}]},
            {
                "to": [_pods_in("kube-system", {"k8s-app": "kube-dns"})],
                "ports": DNS_PORTS,
            },
            {"to": [local_dns], "ports": DNS_PORTS},
        ],
    }


def _jupyterhub(spec: TenancySpec) -> Manifest:
    """Hub and proxy live in another namespace: they call the notebook, and the notebook calls the hub's API.

    The labels are those of KubeSpawner and of the chart Zero to JupyterHub.
    """
    hub, proxy = (
        _pods_in(
            spec.jupyterhub_namespace, {"app": "jupyterhub", "component": component}
        )
        for component in ("hub", "proxy")
    )
    return _policy(
        spec,
        "allow-jupyterhub",
        of={"component": "singleuser-server"},
        policyTypes=BOTH,
        ingress=[
            {
                "from": [hub, proxy],
                "ports": [{"port": NOTEBOOK_PORT, "protocol": "TCP"}],
            }
        ],
        egress=[{"to": [hub], "ports": [{"port": HUB_PORT, "protocol": "TCP"}]}],
    )


def _to_outside(rule: EgressRule) -> dict[str, Any]:
    return {
        "to": [{"ipBlock": block} for block in rule.blocks()],
        "ports": [{"port": port, "protocol": "TCP"} for port in rule.ports],
    }


def _by_name(spec: TenancySpec) -> Manifest:
    """Ways out to DNS names: look-ups go through Cilium's DNS proxy, which learns the addresses that are opened.

    What it allows adds to the network policies, as theirs do to each other: all names may still be looked up.
    """
    hosts = dict.fromkeys(host for rule in spec.egress_by_name for host in rule.names)
    cluster_dns = {
        "k8s:io.kubernetes.pod.namespace": "kube-system",
        "k8s:k8s-app": "kube-dns",
    }
    look_up = {
        "ports": [{"port": "53", "protocol": "ANY"}],
        "rules": {"dns": [_matching(host) for host in hosts]},
    }
    ways = [
        {
            "toFQDNs": [_matching(host) for host in rule.names],
            "toPorts": [
                {
                    "ports": [
                        {"port": str(port), "protocol": "TCP"} for port in rule.ports
                    ]
                }
            ],
        }
        for rule in spec.egress_by_name
    ]
    rules = {
        "endpointSelector": {},
        "egress": [
            {"toEndpoints": [{"matchLabels": cluster_dns}], "toPorts": [look_up]},
            *ways,
        ],
        "egressDeny": [{"toCIDR": list(NEVER)}],
    }
    return placed(spec, *BY_NAME, BY_NAME_POLICY, spec=rules)


def _matching(host: str) -> dict[str, str]:
    return {"matchPattern" if "*" in host else "matchName": host}


def _to_service(service: SharedService) -> dict[str, Any]:
    return {
        "to": [_pods_in(service.namespace, dict(service.labels))],
        "ports": [{"port": service.port, "protocol": "TCP"}],
    }
