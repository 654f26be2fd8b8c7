"""What a tenancy's pods can reach, and who reaches them, as people read it. Pure."""

from dataclasses import asdict, dataclass
from typing import Any

from fleet.egress import EgressRule
from provisioning.desired.network import BY_NAME_POLICY, HUB_PORT, NOTEBOOK_PORT
from provisioning.desired.spec import TenancySpec

CLOSED = (
    "Other teams’ pods and everything else in the cluster.",
    "The metadata service (169.254.169.254) and all that hands out what a node may do.",
    "Every address that is not named above, or that none of the names above leads to.",
)


@dataclass(frozen=True)
class Way:
    """One thing that pods reach: its name, where it is, on which ports, and in which policy that stands."""

    name: str
    where: str
    ports: tuple[int, ...]
    policy: str

    @property
    def ports_text(self) -> str:
        """The ports as a page says them."""
        return ", ".join(map(str, self.ports)) or "all"

    def to_json(self) -> dict[str, Any]:
        """The way as the API gives it."""
        return asdict(self) | {"ports": list(self.ports)}


def ways_out(spec: TenancySpec) -> list[Way]:
    """What the pods may call."""
    found = [
        Way(
            "your own pods", f"everything in {spec.namespace}", (), "allow-own-and-dns"
        ),
        Way(
            "names (DNS)",
            "the cluster’s DNS and the node’s own resolver",
            (53,),
            "allow-own-and-dns",
        ),
    ]
    if spec.jupyterhub_namespace:
        place = f"from notebooks, in {spec.jupyterhub_namespace}"
        found.append(Way("the notebook hub", place, (HUB_PORT,), "allow-jupyterhub"))
    for service in spec.services:
        labels = ", ".join(f"{key}={value}" for key, value in service.labels)
        where = f"pods with {labels} in {service.namespace}"
        found.append(Way(service.name, where, (service.port,), "allow-shared-services"))
    found += [
        Way(rule.name, _where(rule), rule.ports, "allow-outside")
        for rule in spec.egress_by_range
    ]
    found += [
        Way(rule.name, ", ".join(rule.names), rule.ports, BY_NAME_POLICY)
        for rule in spec.egress_by_name
    ]
    return found


def ways_in(spec: TenancySpec) -> list[Way]:
    """Who may call the pods."""
    found = [
        Way("your own pods", f"everything in {spec.namespace}", (), "allow-own-and-dns")
    ]
    if spec.jupyterhub_namespace:
        place = f"to notebooks, from {spec.jupyterhub_namespace}"
        found.append(
            Way(
                "the notebook hub and its proxy",
                place,
                (NOTEBOOK_PORT,),
                "allow-jupyterhub",
            )
        )
    return found


def _where(rule: EgressRule) -> str:
    return "; ".join(
        block["cidr"]
        + (f" but {', '.join(block['except'])}" if "except" in block else "")
        for block in rule.blocks()
    )
