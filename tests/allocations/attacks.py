"""An attack on every constraint of how holdings end, past every action; see tests/constraints.py."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.db import models
from django.db.models import F

from allocations.models import Allocation, Brake, Leftover, StoppedWork
from tests.scene import DAY, NOW

Attack = Callable[[Any], Any]
MINUTE = timedelta(minutes=1)


def held(w: Any) -> models.QuerySet[Allocation]:
    """One row that is held."""
    return Allocation.objects.filter(pk=w.allocation.pk)


def add(*rows: models.Model) -> None:
    """Insert past `save()`."""
    type(rows[0])._default_manager.bulk_create(rows)


def left(w: Any, **fields: Any) -> Leftover:
    """What is left of one row."""
    usual = {"gpus": 1, "since": NOW, "look_at": NOW}
    return Leftover(
        allocation=w.allocation,
        tenancy=w.scene.tenancy,
        flavor=w.scene.flavor,
        **(usual | fields),
    )


def stopped(w: Any, **fields: Any) -> None:
    """Two workloads that were told to stop."""
    add(left(w))
    usual = {
        "tenancy": w.scene.tenancy,
        "uid": "u",
        "name": "w",
        "job": "Job w",
        "gpus": 1,
        "asked_at": NOW,
    }
    row = Leftover.objects.get()
    add(
        StoppedWork(leftover=row, **(usual | fields)),
        StoppedWork(leftover=row, **(usual | {"uid": "v"} | fields)),
    )


def brake(**fields: Any) -> Brake:
    """Eleven ends that wait."""
    return Brake(clock=NOW, due=11, live=11, **fields)


NAMED: Mapping[str, Attack] = {
    "nothing_costs_before_it_starts": lambda w: held(w).update(
        charged_from=F("starts_at") - MINUTE
    ),
    "a_booking_has_nothing_yet": lambda w: held(w).update(
        begun_at=None, charged_from=F("starts_at")
    ),
    "an_allocation_never_earns_money": lambda w: held(w).update(usd_per_hour=-1),
    "an_allocation_has_a_known_provisioner": lambda w: held(w).update(
        provisioner="magic"
    ),
    "an_allocation_is_kept_until_its_end": lambda w: held(w).update(
        kept_until=F("until") - MINUTE
    ),
    "an_end_is_of_a_known_kind": lambda w: held(w).update(when_over="never"),
    "a_reminder_comes_before_the_end": lambda w: held(w).update(remind_at=F("until")),
    "a_leftover_is_of_a_gpu": lambda w: add(left(w, gpus=0)),
    "nothing_is_stopped_before_the_end": lambda w: add(left(w, stop_at=NOW - DAY)),
    "a_workload_is_stopped_once": lambda w: stopped(w, uid="u"),
    "work_stops_after_it_was_asked_to": lambda w: stopped(w, done_at=NOW - DAY),
    "one_brake_is_on_at_a_time": lambda w: add(brake(), brake()),
    "a_brake_is_answered_by_a_person": lambda w: add(
        brake(answer="confirmed", answered_at=NOW)
    ),
}
