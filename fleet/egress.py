"""Ways out of a cluster for teams' pods: ranges of addresses and ports. Pure.

Nothing leads to what hands out a node's identity, and into private ranges only what says so and is small: an endpoint,
never a network. A range that contains those is opened without them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from fleet.names import DNS_LABEL, fits

MAX_EGRESS_RULES = 20
MAX_RANGES = 50
MAX_PORTS = 10
# An endpoint in a private range has at most this many addresses: /28, or /124.
ENDPOINT_BITS = 4
Network = IPv4Network | IPv6Network

# Never reached, whatever a rule says: metadata services and the wire server hand out what a node may do.
CLOSED: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in ("169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32", "127.0.0.0/8", "fe80::/10",
                 "fd00:ec2::254/128", "::1/128")
)  # fmt: skip
# Where nodes, pods and services of clusters live, and other networks of the company.
PRIVATE: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
)


class EgressRefused(ValueError):
    """Not a way out that teams can have; the text says why."""


@dataclass(frozen=True, kw_only=True)
class EgressRule:
    """Addresses that every team's pods of a cluster may reach, on these TCP ports.

    `inside` says that they are endpoints in a private range.
    """

    name: str
    cidrs: tuple[str, ...]
    ports: tuple[int, ...] = (443,)
    inside: bool = False

    def __post_init__(self) -> None:
        if not fits(DNS_LABEL, self.name):
            raise EgressRefused(f"{self.name!r} cannot be a rule's name: small letters, digits, hyphens.")
        if type(self.inside) is not bool:
            raise EgressRefused(f"{self.inside!r} is not yes or no.")
        if not 1 <= len(self.cidrs) <= MAX_RANGES:
            raise EgressRefused(f"{self.name} needs 1 to {MAX_RANGES} ranges of addresses.")
        if not 1 <= len(self.ports) <= MAX_PORTS or len(set(self.ports)) != len(self.ports):
            raise EgressRefused(f"{self.name} needs 1 to {MAX_PORTS} ports, each once.")
        if any(type(port) is not int or not 1 <= port <= 65_535 for port in self.ports):
            raise EgressRefused(f"{self.name}: a port is a number from 1 to 65535.")
        for cidr in self.cidrs:
            _check_range(self.name, cidr, inside=self.inside)
        if len(set(self.cidrs)) != len(self.cidrs):
            raise EgressRefused(f"{self.name} names something twice.")

    def blocks(self) -> list[dict[str, Any]]:
        """Each range as a network policy writes it, without what is never reached."""
        return [_block(network_of(cidr)) for cidr in self.cidrs]

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "EgressRule":
        """A rule as `to_json` gives it; raises EgressRefused for anything else."""
        try:
            lists = {name: tuple(_listed(stored[name])) for name in ("cidrs", "ports") if name in stored}
            return cls(**{**stored, **lists})
        except EgressRefused:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise EgressRefused("A way out has a name, ranges of addresses, and ports.") from error

    def to_json(self) -> dict[str, Any]:
        """The rule as it is stored."""
        lists = {name: list(getattr(self, name)) for name in ("cidrs", "ports")}
        return asdict(self) | lists


def egress_from(stored: object) -> tuple[EgressRule, ...]:
    """Ways out as they are stored, by name, each once; raises EgressRefused."""
    if not isinstance(stored, Iterable) or isinstance(stored, str | Mapping):
        raise EgressRefused("Ways out are a list.")
    found = tuple(sorted(map(EgressRule.from_json, stored), key=lambda rule: rule.name))
    if len({rule.name for rule in found}) != len(found) or len(found) > MAX_EGRESS_RULES:
        raise EgressRefused(f"A cluster has up to {MAX_EGRESS_RULES} ways out, each named once.")
    return found


def network_of(cidr: object) -> Network:
    """The range that a text names; raises EgressRefused for one that is none, or has bits behind its prefix."""
    if not isinstance(cidr, str) or "/" not in cidr:
        raise EgressRefused(f"{cidr!r} is not a range such as 203.0.113.0/24.")
    try:
        return ip_network(cidr)
    except ValueError as error:
        raise EgressRefused(f"{cidr!r} is not a range such as 203.0.113.0/24.") from error


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
        raise EgressRefused(f"{cidr} is a network, not an endpoint: use /{smallest} or smaller.")


def _contains(outer: Network, inner: Network) -> bool:
    if isinstance(outer, IPv4Network) and isinstance(inner, IPv4Network):
        return inner.subnet_of(outer)
    return isinstance(outer, IPv6Network) and isinstance(inner, IPv6Network) and inner.subnet_of(outer)


def _block(network: Network) -> dict[str, Any]:
    closed = [str(one) for one in (*PRIVATE, *CLOSED) if _contains(network, one) and one != network]
    # One that lies in another that is left out need not be named.
    rest = [
        text
        for text in closed
        if not any(_contains(network_of(o), network_of(text)) for o in closed if o != text)
    ]
    return {"cidr": str(network), **({"except": sorted(rest)} if rest else {})}
