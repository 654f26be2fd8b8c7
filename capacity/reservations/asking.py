"""What Azure would say to an ask, told before anything is sent: by its sizes and quotas as they were read last."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accounts.models import Team
from capacity.chain.sharing import GrowingNodes, machines_left
from capacity.connection import is_connected
from capacity.metering.keys import QuotaKey
from capacity.models import VmSize
from capacity.reservations.places import quota_place, size_in, subscription_of
from capacity.subscriptions.pools import Catalogue, quota_names, quota_words
from fleet.models import Flavor
from provisioning.desired.isolation import flavors_of_team
from ui.amounts import gpus
from web.refusals import BadInput

MAX_NAMED = 6


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Machines of a size in a region; `nodes_for` is the key of a kind of GPU, empty for capacity without nodes."""

    region: str
    vm_size: str
    zone: str = ""
    nodes_for: str = ""


def check(asked: Asked, team: Team) -> None:
    """Raise BadInput at the field that Azure would refuse; without a connection to Azure a person finds that out."""
    if not is_connected():
        return
    flavor = _flavor(asked, team)
    size = _size(asked, subscription_of(flavor))
    if asked.zone and asked.zone not in size.zones:
        raise BadInput(_zones(size), code="not_in_zone", field="zone")
    if flavor is not None and flavor.gpus_per_node != size.gpus:
        raise BadInput(
            f"A node of {flavor.words} has {gpus(flavor.gpus_per_node)}, and {size.name} has {size.gpus}. "
            "Choose a size with as many.",
            code="other_nodes",
            field="vm_size",
        )


def quota_left(spec: Mapping[str, Any]) -> tuple[int, str] | None:
    """How many machines more fit the quota that has the least left now, and what that is called; None for not known."""
    if not is_connected():
        return None
    place = quota_place(spec)
    known = Catalogue.at([place])
    size = known.size(place, spec["vm_size"])
    if size is None:
        return None
    nodes = known.nodes_for(spec.get("nodes_for", ""))
    names = quota_names(size, is_spot=False)
    found = (
        (_left(known, QuotaKey(*place, name), size, nodes), quota_words(name, size))
        for name in names
    )
    return min(
        ((left, words) for left, words in found if left is not None), default=None
    )


def _left(
    known: Catalogue, key: QuotaKey, size: VmSize, nodes: GrowingNodes | None
) -> int | None:
    """How many machines more fit a quota, where some nodes are made of them; None for a quota that was not read."""
    row = known.quotas.get(key)
    if row is None:
        return None
    left, each = row.limit - row.used - known.promised(key), size.vcpus
    if nodes is None or key not in nodes.quotas:
        return max(0, left // each)
    carried = known.nodes_to_come(nodes)
    return max(
        0,
        machines_left(left + carried, each=each, carried=carried, per_node=nodes.vcpus),
    )


def reservable_sizes() -> frozenset[str]:
    """The sizes that can be reserved in some region, as Azure writes them; empty where nothing was read."""
    if not is_connected():
        return frozenset()
    rows = VmSize.objects.filter(is_reservable=True, restriction="")
    return frozenset(rows.values_list("name", flat=True))


def _flavor(asked: Asked, team: Team) -> Flavor | None:
    """The kind of GPU that nodes are made for, which has to be open to the team and in the region."""
    if not asked.nodes_for:
        return None
    rows = flavors_of_team(team).select_related("cluster").exclude(cluster__azure_id="")
    found = rows.of_key(asked.nodes_for).first()
    if found is None or found.is_spot:
        raise BadInput(
            "Choose a kind of GPU of the list.",
            code="no_such_flavor",
            field="nodes_for",
        )
    if found.cluster.region != asked.region:
        raise BadInput(
            f"{found.cluster.title} is in {found.cluster.region}: its nodes are made there.",
            code="other_region",
            field="region",
        )
    return found


def _size(asked: Asked, subscription: str) -> VmSize:
    size = size_in(subscription, asked.region, asked.vm_size)
    if size is not None and size.is_reservable and not size.restriction:
        return size
    here = VmSize.objects.filter(subscription=subscription, region=asked.region)
    if not here.exists():
        raise BadInput(
            f"The portal reads no sizes of {asked.region}: no cluster of the fleet is there.",
            code="region_not_read",
            field="region",
        )
    if size is None:
        words, code = f"Azure has no {asked.vm_size} in {asked.region}.", "no_such_size"
    elif size.restriction:
        words = f"Azure does not give {size.name} in {asked.region} to this subscription ({size.restriction})."
        code = "size_not_available"
    else:
        words, code = f"Azure reserves no {size.name} on demand.", "not_reservable"
    others = here.filter(is_reservable=True, restriction="").order_by("gpus", "name")
    named = ", ".join(others.values_list("name", flat=True)[:MAX_NAMED])
    raise BadInput(
        f"{words} It reserves there: {named or 'no size with GPUs'}.",
        code=code,
        field="vm_size",
    )


def _zones(size: VmSize) -> str:
    if not size.zones:
        return f"{size.name} is in no zone of {size.region}: leave the zone to Azure."
    *others, last = size.zones
    zones = f"zones {', '.join(others)} and {last}" if others else f"zone {last}"
    return f"{size.name} is in {zones} of {size.region}."
