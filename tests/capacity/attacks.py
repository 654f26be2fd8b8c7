"""An attack on every constraint of capacity, past every action; see tests/constraints.py."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from capacity.models import (
    FamilyQuota,
    Meter,
    NodePool,
    QuotaIncrease,
    Reading,
    Reservation,
    ReservationDay,
    Subscription,
    VmSize,
)
from tests.capacity import model_attacks as models
from tests.capacity import orphan_attacks as orphans
from tests.capacity import price_attacks as prices
from tests.scene import NOW

Attack = Callable[[Any], object]


def subscription(**fields: Any) -> Subscription:
    """A subscription that was never read."""
    usual: dict[str, Any] = {"id": "one", "next_look_at": NOW}
    return Subscription.objects.get_or_create(id="one", defaults=usual | fields)[0]


def size(**fields: Any) -> VmSize:
    """A size with a GPU."""
    usual = {"region": "eastus", "name": "NC24", "family": "NC", "vcpus": 24, "gpus": 1}
    rest = {"subscription": subscription(), "is_reservable": True, "seen_at": NOW}
    return VmSize.objects.create(**usual | rest | fields)


def quota(**fields: Any) -> FamilyQuota:
    """A quota of which nothing is used."""
    usual = {"region": "eastus", "name": "NC", "title": "NC", "limit": 192, "used": 0}
    return FamilyQuota.objects.create(
        **usual | {"subscription": subscription(), "seen_at": NOW} | fields
    )


def pool(w: Any, **fields: Any) -> NodePool:
    """A pool without an autoscaler."""
    usual = {"name": "a100", "vm_size": "NC24", "nodes": 1, "seen_at": NOW}
    return NodePool.objects.create(cluster=w.scene.flavor.cluster, **usual | fields)


def meter(**fields: Any) -> Meter:
    """A limit that is far."""
    usual = {
        "key": "quota:one/eastus/nc",
        "title": "NC",
        "unit": "vCPUs",
        "limit": 192,
        "used": 0,
    }
    return Meter.objects.create(**usual | {"seen_at": NOW} | fields)


def reservation(w: Any, **fields: Any) -> Reservation:
    """Two machines that are being reserved for a team, without nodes."""
    usual: dict[str, Any] = {
        "team": w.scene.team,
        "subscription": "one",
        "resource_group": "gpu",
        "region": "eastus",
        "vm_size": "NC24",
        "gpus_each": 1,
        "machines": 2,
        "usd_per_hour_each": Decimal("3.67"),
        "generation": 1,
        "created_at": NOW,
        "requeue_at": NOW,
    }
    return Reservation.objects.create(**usual | fields)


def reservation_day(w: Any, **fields: Any) -> ReservationDay:
    """One look at two machines, both in use."""
    usual = {
        "day": NOW.date(),
        "looks": 1,
        "held_sum": 2,
        "used_sum": 2,
        "most": 2,
        "last_at": NOW,
    }
    of = fields.pop("reservation", None) or reservation(w)
    return ReservationDay.objects.create(reservation=of, **usual | fields)


def two_looks_at_a_day(w: Any) -> None:
    """The same day of a reservation twice."""
    first = reservation_day(w)
    reservation_day(w, reservation=first.reservation)


def increase(w: Any, **fields: Any) -> QuotaIncrease:
    """A request for more quota that is not sent."""
    usual: dict[str, Any] = {
        "subscription": "one",
        "region": "eastus",
        "family": "NC",
        "title": "NC",
        "limit": 384,
        "limit_before": 192,
        "reason": "Training.",
        "asked_by": w.scene.priya,
        "asked_at": NOW,
        "requeue_at": NOW,
    }
    return QuotaIncrease.objects.create(**usual | fields)


def moved(row: Any, **fields: Any) -> None:
    """A row changed past its actions."""
    type(row).objects.filter(pk=row.pk).update(**fields)


SENT = {"state": "sent", "azure_id": "a", "sent_at": NOW}
RELEASED = {"state": "released", "machines": 0, "released_at": NOW}
NAMED: Mapping[str, Attack] = {
    **models.NAMED,
    **orphans.NAMED,
    **prices.NAMED,
    "a_subscription_is_away_for_a_reason": lambda w: moved(
        subscription(), reachable=False, failures=1
    ),
    "rights_were_checked_at_a_moment": lambda w: moved(
        subscription(), missing_rights={}
    ),
    "a_size_is_in_a_region_once": lambda w: [size(), size()],
    "a_size_has_a_vcpu": lambda w: size(vcpus=0),
    "a_quota_is_of_a_region_once": lambda w: [quota(), quota()],
    "a_pool_is_in_a_cluster_once": lambda w: [pool(w), pool(w)],
    "an_autoscaler_has_both_ends": lambda w: pool(w, max_nodes=4),
    "a_meter_tells_known_stages": lambda w: meter(told_stage=61),
    "a_meter_is_read_once_an_hour": lambda w: Reading.objects.bulk_create(
        [Reading(meter=one, at=NOW, limit=1, used=1) for one in [meter()] * 2]
    ),
    "a_parked_reservation_is_worked_on_by_nobody": lambda w: reservation(
        w, parked_at=NOW, lease_until=NOW
    ),
    "a_reservation_observes_what_was_wanted": lambda w: reservation(
        w, observed_generation=2
    ),
    "a_team_reserves_nodes_in_a_zone_once": lambda w: [
        reservation(w, flavor=w.scene.flavor) for _ in "ab"
    ],
    "a_team_reserves_a_size_in_a_zone_once": lambda w: [reservation(w) for _ in "ab"],
    "a_reservation_is_in_a_known_state": lambda w: reservation(
        w, state="asleep", machines=0
    ),
    "a_reservation_that_is_wanted_has_machines": lambda w: reservation(w, machines=0),
    "a_reservation_says_since_when": lambda w: reservation(w, state="reserved"),
    "what_is_released_holds_nothing": lambda w: reservation(w, **RELEASED, held=1),
    "a_refusal_says_why": lambda w: reservation(w, refused_generation=1),
    "no_more_is_used_than_is_reserved": lambda w: reservation(w, held=1, used=2),
    "a_reservation_never_earns_money": lambda w: reservation(w, usd_per_hour_each=-1),
    "a_day_of_a_reservation_is_counted_once": two_looks_at_a_day,
    "a_day_uses_no_more_than_is_reserved": lambda w: reservation_day(w, used_sum=3),
    "a_day_is_over_at_some_of_its_looks": lambda w: reservation_day(w, over=2),
    "a_parked_quotaincrease_is_worked_on_by_nobody": lambda w: increase(
        w, parked_at=NOW, lease_until=NOW
    ),
    "one_increase_of_a_quota_is_open": lambda w: [
        increase(w),
        increase(w, family="nc", **SENT),
    ],
    "an_increase_is_in_a_known_state": lambda w: increase(
        w, state="lost", answered_at=NOW
    ),
    "an_increase_asks_for_more": lambda w: increase(w, limit=192),
    "an_increase_has_a_reason": lambda w: increase(w, reason=""),
    "an_increase_that_was_sent_has_a_number": lambda w: increase(w, state="sent"),
    "an_increase_is_open_until_it_is_answered": lambda w: increase(w, answered_at=NOW),
    "an_increase_is_refused_for_a_reason": lambda w: increase(
        w, state="refused", answered_at=NOW
    ),
}
UNIQUE: Mapping[str, Attack] = {
    **prices.UNIQUE,
    "capacity.Meter.key": lambda w: [meter(), meter()],
}
ALSO: Mapping[str, Attack] = {
    **orphans.ALSO,
    **prices.ALSO,
    "a pool with more nodes at least than at most": lambda w: pool(
        w, min_nodes=5, max_nodes=4
    ),
    "rights checked at a moment, and none known": lambda w: moved(
        subscription(), rights_checked_at=NOW
    ),
    "a released reservation that is reserved once more": lambda w: moved(
        reservation(w, **RELEASED), state="pending", machines=1, released_at=None
    ),
    "a released reservation with an operation under way": lambda w: reservation(
        w, **RELEASED, operation={"step": "release"}
    ),
    "a refusal of what nobody wanted yet": lambda w: reservation(
        w, refused_generation=2, refusal="x"
    ),
    "an increase that is answered and has no end": lambda w: increase(
        w, **SENT | {"state": "granted"}
    ),
    "an increase that was sent without a moment": lambda w: increase(
        w, state="sent", azure_id="a"
    ),
    "an increase that failed for no reason": lambda w: increase(
        w, state="failed", answered_at=NOW
    ),
    "a granted increase that is sent again": lambda w: moved(
        increase(w, **SENT | {"state": "granted", "answered_at": NOW}),
        state="sent",
        answered_at=None,
    ),
    "an increase withdrawn after it was sent": lambda w: moved(
        increase(w, **SENT), state="withdrawn", answered_at=NOW
    ),
    "an increase granted that was never sent": lambda w: moved(
        increase(w), **SENT | {"state": "granted", "answered_at": NOW}
    ),
}
