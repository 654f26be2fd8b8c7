"""Ways out of a cluster for teams' pods: ranges of addresses or DNS names, and ports. Pure.

Nothing leads to what hands out a node's identity, and into private ranges only what says so and is small: an endpoint,
never a network. A range that contains those is opened without them. A name leads wherever its DNS answer does, and is
enforced where the cluster's network is Cilium.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from fleet.names import DNS_LABEL, fits

MAX_EGRESS_RULES = 20
MAX_RANGES = 50
MAX_NAMES = 50
MAX_PORTS = 10
# An endpoint in a private range has at most this many addresses: /28, or /124.
ENDPOINT_BITS = 4
LISTS = ("cidrs", "names", "ports")
Network = IPv4Network | IPv6Network

# Never reached, whatever a rule says: metadata services and the wire server hand out what a node may do.
CLOSED: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in (
        "169.254.0.0/16",
        "168.63.129.16/32",
        "100.100.100.200/32",
        "127.0.0.0/8",
        "fe80::/10",
        "fd00:ec2::254/128",
        "::1/128",
    )
)
# Where nodes, pods and services of clusters live, and other networks of the company.
PRIVATE: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "fc00::/7",
    )
)


# Small letters, as Cilium compares them. `*` stands for any characters of the first label alone: AKS takes no more, and
# a pattern in the middle of a name would cover names of others.
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_FIRST = r"[a-z0-9_*]([a-z0-9_*-]{0,61}[a-z0-9_*])?"
HOST = re.compile(rf"(?=.{{1,253}}\Z){_FIRST}(\.{_LABEL})+")
LONGEST_HOST = 253
# Names of metadata services; their addresses are shut by name, too (provisioning.desired.network).
CLOSED_NAMES = (
    "metadata.google.internal",
    "metadata.azure.internal",
    "instance-data.ec2.internal",
)
# Names inside of clusters and machines, which no policy by name is about.
INNER = ("local", "localhost", "svc", "arpa")
# Domains under which everybody chooses the address that a name has.
ANYBODYS = ("nip.io", "sslip.io", "xip.io", "traefik.me", "localtest.me", "lvh.me")


class EgressRefused(ValueError):
    """Not a way out that teams can have; the text says why."""


@dataclass(frozen=True, kw_only=True)
class EgressRule:
    """Addresses that every team's pods of a cluster may reach, on these TCP ports: ranges, or DNS names.

    `inside` says that ranges are endpoints in a private range.
    """

    name: str
    cidrs: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    ports: tuple[int, ...] = (443,)
    inside: bool = False

    def __post_init__(self) -> None:
        if not fits(DNS_LABEL, self.name):
            raise EgressRefused(
                f"{self.name!r} cannot be a rule's name: small letters, digits, hyphens."
            )
        if type(self.inside) is not bool:
            raise EgressRefused(f"{self.inside!r} is not yes or no.")
        self._check_places()
        if not 1 <= len(self.ports) <= MAX_PORTS or len(set(self.ports)) != len(
            self.ports
        ):
            raise EgressRefused(f"{self.name} needs 1 to {MAX_PORTS} ports, each once.")
        if any(type(port) is not int or not 1 <= port <= 65_535 for port in self.ports):
            raise EgressRefused(f"{self.name}: a port is a number from 1 to 65535.")
        for cidr in self.cidrs:
            _check_range(self.name, cidr, inside=self.inside)
        for host in self.names:
            _check_host(host)
        if any(len(set(places)) != len(places) for places in (self.cidrs, self.names)):
            raise EgressRefused(f"{self.name} names something twice.")

    def _check_places(self) -> None:
        if self.cidrs and self.names:
            raise EgressRefused(
                f"{self.name} has ranges of addresses (cidrs) and DNS names (names): make two ways out of it."
            )
        if self.names and self.inside:
            raise EgressRefused(
                f"{self.name}: inside is for ranges of addresses. Leave it out for names."
            )
        if (
            not 1 <= len(self.cidrs) <= MAX_RANGES
            and not 1 <= len(self.names) <= MAX_NAMES
        ):
            raise EgressRefused(
                f"{self.name} needs 1 to {MAX_RANGES} ranges of addresses (cidrs), or 1 to {MAX_NAMES} DNS names "
                "(names)."
            )

    def blocks(self) -> list[dict[str, Any]]:
        """Each range as a network policy writes it, without what is never reached."""
        return [_block(network_of(cidr)) for cidr in self.cidrs]

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "EgressRule":
        """A rule as `to_json` gives it; raises EgressRefused for anything else."""
        try:
            lists = {
                name: tuple(_listed(stored[name])) for name in LISTS if name in stored
            }
            return cls(**{**stored, **lists})
        except EgressRefused:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise EgressRefused(
                "A way out has a name, ranges of addresses (cidrs) or DNS names (names), and ports."
            ) from error

    def to_json(self) -> dict[str, Any]:
        """The rule as it is stored, without what it does not have."""
        ports = {"ports": list(self.ports)}
        if self.names:
            return {"name": self.name, "names": list(self.names), **ports}
        return {
            "name": self.name,
            "cidrs": list(self.cidrs),
            **ports,
            "inside": self.inside,
        }


def egress_from(stored: object) -> tuple[EgressRule, ...]:
    """Ways out as they are stored, by name, each once; raises EgressRefused."""
    if not isinstance(stored, Iterable) or isinstance(stored, str | Mapping):
        raise EgressRefused("Ways out are a list.")
    found = tuple(sorted(map(EgressRule.from_json, stored), key=lambda rule: rule.name))
    if (
        len({rule.name for rule in found}) != len(found)
        or len(found) > MAX_EGRESS_RULES
    ):
        raise EgressRefused(
            f"A cluster has up to {MAX_EGRESS_RULES} ways out, each named once."
        )
    return found


def network_of(cidr: object) -> Network:
    """The range that a text names; raises EgressRefused for one that is none, or has bits behind its prefix."""
    if not isinstance(cidr, str) or "/" not in cidr:
        raise EgressRefused(f"{cidr!r} is not a range such as 203.0.113.0/24.")
    try:
        return ip_network(cidr)
    except ValueError as error:
        raise EgressRefused(
            f"{cidr!r} is not a range such as 203.0.113.0/24."
        ) from error


def _listed(value: object) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise EgressRefused(f"{value!r} is not a list.")
    return list(value)


def _check_range(name: str, cidr: str, *, inside: bool) -> None:
    network = network_of(cidr)
    if any(_contains(closed, network) for closed in CLOSED):
        raise EgressRefused(f"{cidr} is never opened: it hands out what a node may do.")
    private = any(_contains(one, network) for one in PRIVATE)
    if private and not inside:
        raise EgressRefused(
            f"{cidr} is a private range: say that {name} is an endpoint inside (inside: true)."
        )
    if inside and not private:
        raise EgressRefused(f"{cidr} is not inside: leave inside out.")
    if inside and network.max_prefixlen - network.prefixlen > ENDPOINT_BITS:
        smallest = network.max_prefixlen - ENDPOINT_BITS
        raise EgressRefused(
            f"{cidr} is a network, not an endpoint: use /{smallest} or smaller."
        )


def _check_host(host: object) -> None:
    if (
        not isinstance(host, str)
        or not HOST.fullmatch(host)
        or "**" in host
        or host.count("*") > 1
    ):
        raise EgressRefused(
            f"{host!r} is not a DNS name such as huggingface.co or *.huggingface.co."
        )
    first, *rest = host.split(".")
    if not re.search("[a-z]", rest[-1]):
        raise EgressRefused(f"{host} is an address: name it as a range (cidrs).")
    if rest[-1] in INNER:
        raise EgressRefused(
            f"{host} is inside of a cluster: services there are shared by their labels."
        )
    if "*" in first and len(rest) < 2:
        raise EgressRefused(
            f"{host} is too wide: behind the * stand a domain and its top level at least."
        )
    if any(fnmatchcase(closed, host) for closed in CLOSED_NAMES):
        raise EgressRefused(f"{host} is never opened: it hands out what a node may do.")
    if any(host == one or host.endswith(f".{one}") for one in ANYBODYS):
        raise EgressRefused(
            f"{host} is never opened: everybody chooses the addresses that such names have."
        )


def _contains(outer: Network, inner: Network) -> bool:
    if isinstance(outer, IPv4Network) and isinstance(inner, IPv4Network):
        return inner.subnet_of(outer)
    return (
        isinstance(outer, IPv6Network)
        and isinstance(inner, IPv6Network)
        and inner.subnet_of(outer)
    )


def _block(network: Network) -> dict[str, Any]:
    closed = [
        str(one)
        for one in (*PRIVATE, *CLOSED)
        if _contains(network, one) and one != network
    ]
    # One that lies in another that is left out need not be named.
    rest = [
        text
        for text in closed
        if not any(
            _contains(network_of(o), network_of(text)) for o in closed if o != text
        )
    ]
    return {"cidr": str(network), **({"except": sorted(rest)} if rest else {})}
