"""How much of Azure's quotas is left from when on, beside all that is granted and booked of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allocations.bookings.levels import Change, Level, combined, levels
from allocations.models import Allocation
from allocations.schedule import Provisioner
from capacity.chain.sharing import GrowingNodes
from capacity.connection import home_subscription, is_connected
from capacity.metering.keys import QuotaKey
from capacity.reservations.places import quota_place
from capacity.subscriptions.pools import Catalogue, place_of, quota_names, quota_words
from fleet.models import Flavor

Levels = tuple[Level, ...]


@dataclass(frozen=True)
class Room:
    """How many machines of a size fit a quota from when on; the quota is the subject of a sentence."""

    quota: str
    levels: Levels


def rooms_of(spec: Mapping[str, Any], *, now: datetime) -> list[Room]:
    """How many machines that are asked for fit each quota from when on; none where nothing was read. Seven queries."""
    if not is_connected():
        return []
    place = quota_place(spec)
    known = Catalogue.at([place])
    size = known.size(place, spec["vm_size"])
    if size is None:
        return []
    keys = [QuotaKey(*place, name) for name in quota_names(size, is_spot=False)]
    return [
        Room(quota_words(key.family, size), combined([left], by=lambda vcpus: vcpus[0] // size.vcpus))
        for key, left in vcpus_left(known, keys, now=now).items()
    ]


def totals_of(flavor: Flavor, *, now: datetime) -> Levels:
    """How many GPUs of a kind can be had from when on, with what others are promised of its quotas.

    Six queries in Azure, none elsewhere.
    """
    known = Catalogue.of([flavor.cluster]) if flavor.azure_nodes is not None else None
    nodes = known.nodes_of(flavor) if known is not None else None
    left = vcpus_left(known, nodes.quotas, now=now, but=nodes.pool) if known and nodes else {}
    if nodes is None or not left:
        return (Level(now, flavor.gpus_total),)
    standing, each = nodes.standing, nodes.vcpus
    return combined(
        left.values(),
        by=lambda vcpus: flavor.obtainable_with(standing + max(0, min(vcpus)) // each),
    )


def vcpus_left(
    known: Catalogue, keys: Iterable[QuotaKey], *, now: datetime, but: int = 0
) -> dict[QuotaKey, Levels]:
    """vCPUs of quotas that are left from now on, but for what the nodes of one pool take; two queries.

    They are below zero where more is promised than there is. A quota that was not read is left out.
    """
    gpus, machines = _gpus(known, now), list(_machines(known))
    found = {}
    for key in keys:
        if (row := known.quotas.get(key)) is not None:
            sharing = (one for one in known.nodes if key in one.quotas and one.pool != but)
            reserved = [change for names, change in machines if key in names]
            parts = (
                (Level(now, row.limit - row.used),),
                levels(-known.reserved_to_come(key), reserved, now=now),
                *(_of_nodes(one, gpus) for one in sharing),
            )
            found[key] = combined(parts, by=sum)
    return found


def _gpus(known: Catalogue, now: datetime) -> Mapping[int, Levels]:
    """GPUs of each kind that are allocated from when on."""
    changes: dict[int, list[Change]] = defaultdict(list)
    rows = Allocation.objects.granted().filter(flavor__in=[one.pk for one in known.flavors])
    for flavor, begun, starts, ends, gpus in rows.values_list(
        "flavor", "begun_at", "starts_at", "kept_until", "gpus"
    ):
        changes[flavor] += _while_held(gpus, begun, starts, ends)
    return {one.pk: levels(one.allocated, changes[one.pk], now=now) for one in known.flavors}


def _while_held(amount: int, begun: datetime | None, starts: datetime, ends: datetime) -> Sequence[Change]:
    """How much more is taken when a booking begins, and how much less when it or what is held ends."""
    end = Change(ends, -amount)
    return [end] if begun is not None else [Change(starts, amount), end]


def _of_nodes(nodes: GrowingNodes, gpus: Mapping[int, Levels]) -> Levels:
    kinds = [*nodes.kinds]
    return combined(
        [gpus[one] for one in kinds],
        by=lambda amounts: -nodes.vcpus_to_come(dict(zip(kinds, amounts, strict=True))),
    )


def _machines(known: Catalogue) -> Iterator[tuple[frozenset[QuotaKey], Change]]:
    """vCPUs of reservations that are booked or end, each with the quotas that they are of."""
    clusters = {one.key: place_of(one.cluster) for one in known.flavors}
    rows = Allocation.objects.granted().filter(provisioner=Provisioner.AZURE)
    for spec, count, begun, starts, ends in rows.values_list(
        "spec", "count", "begun_at", "starts_at", "kept_until"
    ):
        nodes_for = spec.get("nodes_for", "")
        subscription, _ = (clusters.get(nodes_for) or ("", "")) if nodes_for else (home_subscription(), "")
        place = (subscription, spec["region"])
        size = known.size(place, spec["vm_size"])
        if size is not None:
            names = frozenset(QuotaKey(*place, one) for one in quota_names(size, is_spot=False))
            for at, vcpus in _while_held(count * size.vcpus, begun, starts, ends):
                yield names, Change(at, -vcpus)
