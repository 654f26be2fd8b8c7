"""What is wrong with network policies."""

import ipaddress
from typing import Any

from sandbox.kubernetes.causes import (
    Cause,
    forbidden_field,
    invalid_value,
    items,
    part,
    required,
    unsupported,
)
from sandbox.kubernetes.names import label_key, label_value

PROTOCOLS = ("SCTP", "TCP", "UDP")
POLICY_TYPES = ("Egress", "Ingress")
BAD_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
BAD_PORT = "must be between 1 and 65535, inclusive"
LARGEST_PORT = 65535

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def validate_network_policy(obj: dict[str, Any]) -> list[Cause]:
    """Causes for the spec of a NetworkPolicy."""
    spec = part(obj, "spec")
    found = _selector(part(spec, "podSelector"), "spec.podSelector")
    for rules, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(items(spec, rules)):
            path = f"spec.{rules}[{index}]"
            for number, port in enumerate(items(rule, "ports")):
                found += _port(port, f"{path}.ports[{number}]")
            for number, peer in enumerate(items(rule, peers)):
                found += _peer(peer, f"{path}.{peers}[{number}]")
    for index, name in enumerate(spec.get("policyTypes") or []):
        if name not in POLICY_TYPES:
            found.append(unsupported(f"spec.policyTypes[{index}]", name, POLICY_TYPES))
    return found


def _selector(selector: dict[str, Any], path: str) -> list[Cause]:
    found: list[Cause] = []
    for key, value in part(selector, "matchLabels").items():
        field = f"{path}.matchLabels"
        found += [invalid_value(field, key, text) for text in label_key(key)]
        found += [invalid_value(field, value, text) for text in label_value(str(value))]
    return found


def _port(port: dict[str, Any], path: str) -> list[Cause]:
    found: list[Cause] = []
    if port.get("protocol") not in (None, *PROTOCOLS):
        found.append(unsupported(f"{path}.protocol", port["protocol"], PROTOCOLS))
    number, end = port.get("port"), port.get("endPort")
    if isinstance(number, int):
        if not 1 <= number <= LARGEST_PORT:
            found.append(invalid_value(f"{path}.port", number, BAD_PORT))
        if isinstance(end, int) and end < number:
            text = "must be greater than or equal to `port`"
            found.append(invalid_value(f"{path}.endPort", end, text))
    return found


def _peer(peer: dict[str, Any], path: str) -> list[Cause]:
    given = [
        name
        for name in ("podSelector", "namespaceSelector", "ipBlock")
        if peer.get(name) is not None
    ]
    found: list[Cause] = []
    for name in given:
        if name == "ipBlock":
            found += _ip_block(part(peer, name), f"{path}.{name}")
        else:
            found += _selector(part(peer, name), f"{path}.{name}")
    if not given:
        found.append(required(path, "must specify a peer"))
    elif len(given) > 1 and "ipBlock" in given:
        found.append(
            forbidden_field(path, "may not specify both ipBlock and another peer")
        )
    return found


def _network(text: Any) -> Network | None:
    try:
        return (
            ipaddress.ip_network(str(text), strict=False) if "/" in str(text) else None
        )
    except ValueError:
        return None


def _ip_block(block: dict[str, Any], path: str) -> list[Cause]:
    cidr = block.get("cidr") or ""
    if not cidr:
        return [required(f"{path}.cidr")]
    network = _network(cidr)
    if network is None:
        return [invalid_value(f"{path}.cidr", cidr, BAD_CIDR)]
    found: list[Cause] = []
    for index, text in enumerate(block.get("except") or []):
        field, inner = f"{path}.except[{index}]", _network(text)
        if inner is None:
            found.append(invalid_value(field, text, BAD_CIDR))
        elif not _inside(inner, network):
            found.append(
                invalid_value(field, text, "must be a strict subset of `cidr`")
            )
    return found


def _inside(inner: Network, outer: Network) -> bool:
    if isinstance(inner, ipaddress.IPv4Network) and isinstance(
        outer, ipaddress.IPv4Network
    ):
        return inner != outer and inner.subnet_of(outer)
    if isinstance(inner, ipaddress.IPv6Network) and isinstance(
        outer, ipaddress.IPv6Network
    ):
        return inner != outer and inner.subnet_of(outer)
    return False
