"""Who may talk to a tenancy's pods and to whom they may talk: nobody, then what is named here. Pure."""

from collections.abc import Mapping
from typing import Any

from fleet.egress import EgressRule
from fleet.services import SharedService
from provisioning.objects import Manifest, placed
from provisioning.spec import TenancySpec

DNS_PORTS = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
NOTEBOOK_PORT, HUB_PORT = 8888, 8081
BOTH = ["Ingress", "Egress"]


def policies(spec: TenancySpec) -> list[Manifest]:
    """Deny everything, allow the own namespace and names, then hub, services and ways out, if there are any."""
    found = [
        _policy(spec, "default-deny", policyTypes=BOTH),
        _policy(spec, "allow-own-and-dns", policyTypes=BOTH, **_own_namespace_and_dns()),
    ]
    if spec.jupyterhub_namespace:
        found.append(_jupyterhub(spec))
    if spec.services:
        rules = [_to_service(service) for service in spec.services]
        found.append(_policy(spec, "allow-shared-services", policyTypes=["Egress"], egress=rules))
    if spec.egress:
        outside = [_to_outside(rule) for rule in spec.egress]
        found.append(_policy(spec, "allow-outside", policyTypes=["Egress"], egress=outside))
    return found


def _policy(spec: TenancySpec, name: str, *, of: Mapping[str, str] | None = None, **rules: Any) -> Manifest:
    """A policy for all pods of the namespace, or for those `of` these labels."""
    pods = {"matchLabels": dict(of)} if of else {}
    return placed(spec, "networking.k8s.io/v1", "NetworkPolicy", name, spec={"podSelector": pods, **rules})


def _pods_in(namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """One peer: pods with these labels in this one namespace, by the label that only the API server can set."""
    return {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "podSelector": {"matchLabels": dict(labels)},
    }


def _own_namespace_and_dns() -> dict[str, Any]:
    # NodeLocal DNSCache and the LocalDNS of AKS answer on link-local host addresses that no pod selector matches;
    # the metadata service, which hands out the node's identity, lives there too and stays shut.
    local_dns = {"ipBlock": {"cidr": "169.254.0.0/16", "except": ["169.254.169.254/32"]}}
    return {
        "ingress": [{"from": [{"podSelector": {}}]}],
        "egress": [
            {"to": [{"podSelector": {}}]},
            {"to": [_pods_in("kube-system", {"k8s-app": "kube-dns"})], "ports": DNS_PORTS},
            {"to": [local_dns], "ports": DNS_PORTS},
        ],
    }


def _jupyterhub(spec: TenancySpec) -> Manifest:
    """Hub and proxy live in another namespace: they call the notebook, and the notebook calls the hub's API.

    The labels are those of KubeSpawner and of the chart Zero to JupyterHub.
    """
    hub, proxy = (
        _pods_in(spec.jupyterhub_namespace, {"app": "jupyterhub", "component": component})
        for component in ("hub", "proxy")
    )
    return _policy(
        spec,
        "allow-jupyterhub",
        of={"component": "singleuser-server"},
        policyTypes=BOTH,
        ingress=[{"from": [hub, proxy], "ports": [{"port": NOTEBOOK_PORT, "protocol": "TCP"}]}],
        egress=[{"to": [hub], "ports": [{"port": HUB_PORT, "protocol": "TCP"}]}],
    )


def _to_outside(rule: EgressRule) -> dict[str, Any]:
    return {
        "to": [{"ipBlock": block} for block in rule.blocks()],
        "ports": [{"port": port, "protocol": "TCP"} for port in rule.ports],
    }


def _to_service(service: SharedService) -> dict[str, Any]:
    return {
        "to": [_pods_in(service.namespace, dict(service.labels))],
        "ports": [{"port": service.port, "protocol": "TCP"}],
    }
