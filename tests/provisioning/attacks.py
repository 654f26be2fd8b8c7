"""Attacks on every constraint of drift, parking and the portal's mark, past every action; see tests/constraints.py."""

from collections.abc import Callable, Mapping
from typing import Any

from provisioning.models import Drift, Installation, Tenancy
from tests.scene import DAY, NOW

Attack = Callable[[Any], Any]


def drift(w: Any, **fields: Any) -> Drift:
    """The quota of the scene's team, changed."""
    usual = {
        "kind": "ResourceQuota",
        "name": "team-quota",
        "what": "changed",
        "since": NOW,
        "first_seen_at": NOW,
    }
    row = Drift(tenancy=w.scene.tenancy, **(usual | fields))
    Drift.objects.bulk_create([row])
    return row


def over(w: Any, **fields: Any) -> Drift:
    """The same, dealt with."""
    return drift(
        w, **({"state": "repaired", "ended_at": NOW, "ended_by": "the portal"} | fields)
    )


def change(row: Drift, **fields: Any) -> int:
    """Past the action; how many rows it took."""
    return Drift.objects.filter(pk=row.pk).update(**fields)


NAMED: Mapping[str, Attack] = {
    "an_object_drifts_once_at_a_time": lambda w: (drift(w), drift(w)),
    "a_known_kind_of_drift": lambda w: change(drift(w), what="odd"),
    "drift_that_is_over_was_ended_by_somebody": lambda w: change(
        drift(w), state="repaired", ended_at=NOW
    ),
    "what_is_left_alone_has_a_reason_and_an_end": lambda w: over(w, state="ignored"),
    "a_parked_tenancy_is_worked_on_by_nobody": lambda w: Tenancy.objects.filter(
        pk=w.scene.tenancy.pk
    ).update(parked_at=NOW, lease_until=NOW, slot=1),
    "a_parked_tenancy_is_not_true": lambda w: Tenancy.objects.filter(
        pk=w.scene.tenancy.pk
    ).update(parked_at=NOW, is_true=True),
    "there_is_one_installation": lambda w: Installation.objects.create(id=2, mark="b"),
    "a_repair_is_asked_for_by_somebody": lambda w: change(
        drift(w), repair_asked_at=NOW
    ),
}
ALSO: Mapping[str, Attack] = {
    "drift opened again beside another": lambda w: (
        drift(w),
        change(over(w), state="open", ended_at=None, ended_by=""),
    ),
    "drift that is open and over": lambda w: change(
        drift(w), ended_at=NOW, ended_by="x"
    ),
    "drift in no state there is": lambda w: change(over(w), state="forgotten"),
    "drift left alone without a reason": lambda w: change(
        over(w), state="ignored", ignored_until=NOW + DAY
    ),
    "drift left alone until before": lambda w: change(
        over(w), state="ignored", reason="x", ignored_until=NOW - DAY
    ),
    "drift put right and left alone": lambda w: change(
        over(w), ignored_until=NOW + DAY
    ),
    "a repair asked for at no time": lambda w: change(
        drift(w), repair_asked_by=w.scene.priya
    ),
}
