"""Which priorities a tenancy's pods may have, and that none of them evicts what others were granted."""

from typing import Any

import pytest

from connectors.kubernetes import Ref
from provisioning.clusters import observe as look
from provisioning.desired.manifests import PRIORITIES, fleet_objects, tenancy_objects
from provisioning.desired.priorities import (
    SYSTEM_PRIORITIES,
    closed,
    highest_by_purpose,
    permitted,
    title_of,
)
from provisioning.drift.adopting import refusal
from tests.provisioning.conftest import Place
from tests.provisioning.specs import sample

CLASS: Ref = ("scheduling.k8s.io/v1", "PriorityClass")


@pytest.mark.parametrize("environment", ["dev", "test", "production"])
@pytest.mark.parametrize("purpose", ["training", "inference", "development"])
def test_production_alone_serves_people_and_training_with_a_date_is_for_training_clusters(
    environment: str, purpose: str
) -> None:
    open_ones = permitted(highest_by_purpose(environment=environment, purpose=purpose))
    assert ("production-inference" in open_ones) == (environment == "production")
    assert ("scheduled-training" in open_ones) == (
        "production" in environment or purpose == "training"
    )
    assert {"exploratory", "best-effort"} <= {*open_ones}


@pytest.mark.parametrize(
    ("value", "words"),
    [(100_000, "Scheduled training"), (0, "Best effort"), (7, "7"), (-1, "-1")],
)
def test_a_priority_is_called_as_on_forms_and_one_that_is_not_ours_by_its_value(
    value: int, words: str
) -> None:
    assert title_of(value) == words


@pytest.mark.parametrize("highest", PRIORITIES)
def test_what_is_not_open_is_closed_and_the_systems_own_always_are(
    highest: str,
) -> None:
    assert {*closed(highest)} | {*permitted(highest)} == {
        *PRIORITIES,
        *SYSTEM_PRIORITIES,
    }
    assert not {*closed(highest)} & {*permitted(highest)}
    assert {*SYSTEM_PRIORITIES} <= {*closed(highest)}


def test_no_priority_lets_the_scheduler_push_others_out() -> None:
    classes = [
        one
        for one in fleet_objects(cohort="lab", flavors=[])
        if one["kind"] == "PriorityClass"
    ]
    assert {one["preemptionPolicy"] for one in classes} == {"Never"}


def test_closed_priorities_have_room_for_no_pod_even_while_the_team_leaves() -> None:
    for changes in ({}, {"access": False, "stop": "HoldAndDrain"}):
        found = [
            one
            for one in tenancy_objects(sample(**changes))
            if one["metadata"]["name"] == "team-priorities"
        ]
        assert [one["spec"]["hard"] for one in found] == [{"pods": "0"}]


def test_a_quota_of_priorities_is_never_taken_over() -> None:
    field: dict[str, Any] = {"path": "spec.hard.pods", "wanted": "0", "live": "10"}
    assert refusal("ResourceQuota", [field], name="team-quota") == ""
    assert "never taken over" in refusal(
        "ResourceQuota", [field], name="team-priorities"
    )


def test_a_class_that_still_preempts_is_made_anew(place: Place) -> None:
    look.look_at(place.cluster.pk, now=place.now)
    found = place.kubernetes.get(CLASS, "production-inference") or {}
    place.kubernetes.delete(CLASS, "production-inference")
    kept = {
        name: found[name] for name in ("apiVersion", "kind", "value", "description")
    }
    marks = {"name": "production-inference", "labels": found["metadata"]["labels"]}
    place.kubernetes.create(
        {**kept, "metadata": marks, "preemptionPolicy": "PreemptLowerPriority"}
    )
    place.later(minutes=1)
    assert look.look_at(place.cluster.pk, now=place.now)
    assert (place.kubernetes.get(CLASS, "production-inference") or {})[
        "preemptionPolicy"
    ] == "Never"
    place.later(minutes=1)
    before = place.kubernetes.writes
    assert look.look_at(place.cluster.pk, now=place.now)
    assert place.kubernetes.writes == before
