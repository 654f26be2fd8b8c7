"""What is wrong with Cilium's network policies, as their definition (cilium.io/v2) has it."""

import re
from collections.abc import Iterator
from typing import Any

from sandbox.kubernetes.causes import (
    Cause,
    invalid_value,
    items,
    part,
    rule_broken,
    unsupported,
)

NAME, PATTERN = "^([-a-zA-Z0-9_]+[.]?)+$", "^([-a-zA-Z0-9_*]+[.]?)+$"
PORT = (
    "^(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{1,4})"
    "|([a-zA-Z0-9]-?)*[a-zA-Z](-?[a-zA-Z0-9])*$"
)
PROTOCOLS = ("TCP", "UDP", "SCTP", "ICMP", "ICMPv6", "VRRP", "IGMP", "ANY")
LONGEST, MOST_PORTS = 255, 40
SELECTORS = ("endpointSelector", "nodeSelector")
TRAFFIC = ("ingress", "ingressDeny", "egress", "egressDeny")


def validate_policy(obj: dict[str, Any]) -> list[Cause]:
    """Causes for the spec of a CiliumNetworkPolicy."""
    spec = part(obj, "spec")
    found = []
    if len([name for name in SELECTORS if name in spec]) != 1:
        found.append(
            rule_broken(
                "spec",
                '"spec" must validate one and only one schema (oneOf). Found none valid',
            )
        )
    if not any(name in spec for name in TRAFFIC):
        found.append(
            rule_broken("spec", '"spec" must validate at least one schema (anyOf)')
        )
    for way in ("egress", "egressDeny"):
        for index, rule in enumerate(items(spec, way)):
            found += _rule(rule, f"spec.{way}[{index}]")
    return found


def _rule(rule: dict[str, Any], path: str) -> Iterator[Cause]:
    for index, host in enumerate(items(rule, "toFQDNs")):
        yield from _host(host, f"{path}.toFQDNs[{index}]")
    for index, to in enumerate(items(rule, "toPorts")):
        where = f"{path}.toPorts[{index}]"
        ports = items(to, "ports")
        if len(ports) > MOST_PORTS:
            yield rule_broken(
                f"{where}.ports",
                f"{where}.ports in body should have at most {MOST_PORTS} items",
            )
        for number, port in enumerate(ports):
            yield from _port(port, f"{where}.ports[{number}]")
        for number, host in enumerate(items(part(to, "rules"), "dns")):
            yield from _host(host, f"{where}.rules.dns[{number}]")


def _host(host: dict[str, Any], path: str) -> Iterator[Cause]:
    for name, form in (("matchName", NAME), ("matchPattern", PATTERN)):
        value = host.get(name)
        if value is None:
            continue
        if len(value) > LONGEST:
            yield rule_broken(
                f"{path}.{name}",
                f"{path}.{name} in body should be at most {LONGEST} chars long",
            )
        if not re.fullmatch(form[1:-1], value):
            yield invalid_value(
                f"{path}.{name}", value, f"{path}.{name} in body should match '{form}'"
            )


def _port(port: dict[str, Any], path: str) -> Iterator[Cause]:
    value = str(port.get("port", ""))
    if not re.search(PORT, value):
        yield invalid_value(
            f"{path}.port", value, f"{path}.port in body should match '{PORT}'"
        )
    if port.get("protocol") is not None and port["protocol"] not in PROTOCOLS:
        yield unsupported(f"{path}.protocol", port["protocol"], PROTOCOLS)
