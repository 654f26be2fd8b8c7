"""What is read of reservations: days, grants, who runs on them. Asks neither Azure nor a cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Max

from accounts.models import Team, User
from allocations.models import Allocation
from capacity.models import MachinePrice, Orphan, Reservation, ReservationDay
from capacity.prices.listed import KEPT, by_size
from capacity.prices.shipped import VM_PRICES
from capacity.reservations.advice import Advice, Day, advice
from capacity.reservations.costs import Costs, DayCost, by_day
from capacity.reservations.naming import pool_name
from capacity.reservations.states import State
from catalogue.models import prices_of, setting_of
from catalogue.pricing import listed_prices
from catalogue.reservation import RESERVATION
from provisioning.models import Tenancy
from provisioning.pods import OVER
from workloads.models import ClusterObject
from workloads.reading.values import Object, gpus_of_pod, part, text

AGENT_POOL = "kubernetes.azure.com/agentpool"


@dataclass(frozen=True, kw_only=True)
class Use:
    """What one namespace runs on a reservation's nodes; `team` is None for those that the reader may not see."""

    team: Team | None
    namespace: str
    pods: int
    gpus: int


def days_of(rows: Sequence[Reservation]) -> Mapping[int, list[Day]]:
    """The days of some reservations, by the reservation's id; one query."""
    found: dict[int, list[Day]] = {one.pk: [] for one in rows}
    for one in ReservationDay.objects.filter(reservation__in=found).order_by("day"):
        found[one.reservation_id].append(one.as_day)
    return found


def costs_by_day(
    row: Reservation, days: Sequence[Day], now: datetime
) -> tuple[DayCost, ...]:
    """What each day of a reservation came to, until now or its release."""
    return by_day(
        days,
        usd_per_hour_each=row.usd_per_hour_each,
        begins=row.reserved_at,
        ends=row.released_at or now,
    )


def summed(days: Sequence[DayCost]) -> Costs:
    """What all of them come to."""
    return Costs(
        usd=sum((one.usd for one in days), Decimal(0)),
        idle_usd=sum((one.idle_usd for one in days), Decimal(0)),
    )


def until_of(rows: Sequence[Reservation]) -> Mapping[int, datetime]:
    """Until when the last grant of each is paid, by the reservation's id; one query."""
    live = Allocation.objects.live().filter(reservation__in=[one.pk for one in rows])
    return dict(live.order_by().values_list("reservation").annotate(last=Max("until")))


def waiting_of(rows: Sequence[Reservation]) -> frozenset[int]:
    """The refused ones of which something is granted that Azure has not made yet; no query where none is refused."""
    refused = frozenset(one.pk for one in rows if one.is_refused)
    return refused & waiting() if refused else refused


def waiting() -> frozenset[int]:
    """The reservations of which something is granted that Azure has not made yet, refused or not; one query."""
    rows = Allocation.objects.live().filter(
        reservation__isnull=False, charged_from=None
    )
    return frozenset(pk for pk in rows.values_list("reservation_id", flat=True) if pk)


def grants_of(row: Reservation) -> list[Allocation]:
    """What was granted of a reservation: what is held first, then what has ended, newest first; one query."""
    found = Allocation.objects.filter(reservation=row).select_related(
        "requester", "hold__request"
    )
    return sorted(found, key=lambda one: (one.ended_at is not None, -one.pk))


def advice_of(row: Reservation, days: Sequence[Day]) -> Advice | None:
    """What its use suggests; None for one that is not reserved."""
    if row.state != State.RESERVED:
        return None
    return advice(days, reserved=row.machines, usd_per_hour_each=row.usd_per_hour_each)


def uses_of(row: Reservation, by: User) -> list[Use]:
    """Which namespaces run on the nodes that are made of a reservation, most GPUs first; three queries at most.

    What teams run that the reader may not see is one line without a name.
    """
    if row.flavor is None:
        return []
    copies = ClusterObject.objects.filter(cluster=row.flavor.cluster_id)
    nodes = copies.filter(
        kind="Node", **{f"body__metadata__labels__{AGENT_POOL}": pool_name(row.pk)}
    )
    names = list(nodes.values_list("name", flat=True))
    if not names:
        return []
    pods = copies.filter(kind="Pod", body__spec__nodeName__in=names).values_list(
        "namespace", "body"
    )
    running: dict[str, list[Object]] = {}
    for namespace, body in pods:
        if text(part(body, "status"), "phase") not in OVER:
            running.setdefault(namespace, []).append(body)
    places = Tenancy.objects.filter(
        cluster=row.flavor.cluster_id, namespace__in=running
    ).select_related("team")
    seen = {one.namespace: one.team for one in places if by.sees_team(one.team_id)}
    named = [
        _use(seen[name], name, bodies)
        for name, bodies in running.items()
        if name in seen
    ]
    others = [
        body for name, bodies in running.items() if name not in seen for body in bodies
    ]
    named.sort(key=lambda one: (-one.gpus, -one.pods, one.namespace))
    return [*named, _use(None, "", others)] if others else named


def _use(team: Team | None, namespace: str, pods: Sequence[Object]) -> Use:
    gpus = sum(gpus_of_pod(part(one, "spec")) for one in pods)
    return Use(team=team, namespace=namespace, pods=len(pods), gpus=gpus)


@dataclass(frozen=True)
class OrphanPrices:
    """What a machine costs an hour, by the order of `catalogue.pricing`: also of sizes that are not sold here."""

    own: Mapping[str, Decimal]
    listed: Mapping[tuple[str, str], MachinePrice]
    shipped: Mapping[str, Decimal]

    def of(self, region: str, size: str) -> Decimal | None:
        """USD an hour of one machine; None where no price is known."""
        name = size.casefold()
        row = self.listed.get((region, name))
        if name in self.own:
            return self.own[name]
        usd = row.on_demand if row is not None else None
        return self.shipped.get(name) if usd is None else usd.quantize(KEPT)


def orphan_prices() -> OrphanPrices:
    """The prices of today; two queries."""
    setting = setting_of(RESERVATION)
    known = {**VM_PRICES, **prices_of(RESERVATION, setting)}
    return OrphanPrices(
        own={
            name.casefold(): usd
            for name, usd in known.items()
            if name in setting.prices
        },
        listed=by_size(listed_prices()),
        shipped={name.casefold(): usd for name, usd in known.items()},
    )


def usd_per_hour(row: Orphan, prices: OrphanPrices) -> Decimal | None:
    """What a difference costs an hour at the price of today; None where the price is not known."""
    if not row.name:
        return Decimal(0)
    price = prices.of(row.region, row.vm_size)
    return None if price is None else row.machines * price
