"""What works of a cluster and what does not, part by part, each with its sentence."""

from typing import Any

import pytest
from django.test import Client

from accounts.roles import Role
from fleet.models import Cluster
from fleet.presenting import health as badge
from provisioning.clusters.health import (
    after_failure,
    api_server,
    kueue_controller,
    nodes,
    silent,
)
from provisioning.clusters.observe import look_at
from provisioning.desired.priorities import PRIORITIES
from tests import factories
from tests.calling import Caller
from tests.provisioning.conftest import Place

pytestmark = pytest.mark.django_db
PARTS = ("API server", "Kueue", "Kueue's settings", "Webhooks", "Nodes")
WEBHOOK = (
    'Internal error occurred: failed calling webhook "mclusterqueue.kb.io": failed to call webhook: '
    "connection refused"
)


def look(place: Place) -> Cluster:
    look_at(place.cluster.pk, now=place.now)
    return Cluster.objects.get(pk=place.cluster.pk)


def states(cluster: Cluster) -> dict[str, str]:
    return {part["part"]: part["state"] for part in cluster.parts}


def without_kueue(place: Place) -> None:
    """Kueue's only controller is gone."""
    place.kubernetes.write("POST", "/sandbox/kueue", {"served": False})


def with_kueue(place: Place) -> None:
    """It is back."""
    place.kubernetes.write("POST", "/sandbox/kueue", {"served": True})


def test_a_cluster_whose_parts_all_work_is_good(place: Place) -> None:
    found = look(place)
    assert states(found) == dict.fromkeys(PARTS, "good")
    assert (found.health, badge(found)) == ("good", ("good", "Answers"))


@pytest.mark.slow
def test_a_cluster_whose_kueue_is_down_is_not_good_though_it_answers(
    place: Place, client: Client
) -> None:
    look(place)
    without_kueue(place)
    found = look(place)
    assert states(found) == {
        **dict.fromkeys(PARTS, "good"),
        "Kueue": "bad",
        "Webhooks": "bad",
    }
    assert (found.reachable, found.health, badge(found)) == (
        True,
        "bad",
        ("bad", "Kueue is down"),
    )
    client.force_login(place.ada)
    page = client.get("/clusters/training/").content.decode()
    assert "nothing that waits in a queue starts" in page
    shown = (
        Caller(factories.person("Priya", Role.PLATFORM_LEAD))
        .get("clusters/training/")
        .json()
    )
    assert shown["health"] == "bad"
    assert {part["name"] for part in shown["parts"] if part["health"] == "bad"} == {
        "Kueue",
        "Webhooks",
    }


def test_since_when_a_part_is_as_it_is_holds_over_looks_until_it_changes(
    place: Place,
) -> None:
    seen_first = place.time
    look(place)
    place.later(minutes=1)
    without_kueue(place)
    assert look(place).queues_down_since == place.time
    went_down = place.time
    place.later(minutes=1)
    found = look(place)
    assert {one.part: one.since for one in found.seen_parts} == {
        **dict.fromkeys(PARTS, seen_first),
        "Kueue": went_down,
        "Webhooks": went_down,
    }
    assert found.queues_down_since == went_down
    with_kueue(place)
    assert look(place).queues_down_since is None


def test_the_priorities_that_queues_know_are_kept_where_they_may_be_listed(
    place: Place,
) -> None:
    assert look(place).queue_priorities == sorted(PRIORITIES)
    place.kubernetes.fail("workloadpriorityclasses$", method="GET", status=403)
    found = look(place)
    assert (found.reachable, found.queue_priorities) == (True, None)


def test_a_new_cluster_that_answers_and_refuses_a_write_is_not_said_to_be_silent(
    place: Place, client: Client
) -> None:
    place.kubernetes.fail(
        where="kueue.x-k8s.io/v1beta2/cohorts",
        method="PATCH",
        times=100,
        status=500,
        body=failure(WEBHOOK),
    )
    found = look(place)
    assert found.reachable is False
    assert states(found) == {**dict.fromkeys(PARTS, "good"), "Webhooks": "bad"}
    assert found.version
    assert found.last_contact_at == place.time
    assert badge(found) == ("bad", "Cannot be written to")
    client.force_login(place.ada)
    page = client.get("/clusters/training/").content.decode()
    assert "It answers, but not to everything" in page
    assert "never answered" not in page


def failure(message: str) -> str:
    return (
        '{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "InternalError", "code": 500, '
        '"message": ' + '"' + message.replace('"', '\\"') + '"}'
    )


def test_a_cluster_that_does_not_answer_says_so_of_its_api_server_alone(
    place: Place,
) -> None:
    place.kubernetes.fail(times=100, status=503)
    assert states(look(place)) == {"API server": "bad"}


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"availableReplicas": 2}, "good"),
        ({"readyReplicas": 1}, "good"),
        ({"replicas": 1, "unavailableReplicas": 1}, "bad"),
        ({"availableReplicas": 0, "readyReplicas": 1}, "bad"),
        ({}, "bad"),
    ],
)
def test_kueue_is_there_when_one_of_its_controllers_is(
    status: dict[str, Any], state: str
) -> None:
    assert {part["state"] for part in kueue_controller({"status": status})} == {state}


def test_what_the_portal_may_not_see_is_not_called_bad() -> None:
    assert [part["state"] for part in kueue_controller(None)] == ["waiting"]


def test_nodes_of_which_none_is_ready_are_bad() -> None:
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    lost = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    assert nodes([ready, lost]) == {
        "part": "Nodes",
        "state": "good",
        "words": "1 of 2 are ready.",
    }
    assert nodes([lost])["state"] == nodes([])["state"] == "bad"


def test_a_failure_says_of_a_webhook_only_what_it_knows() -> None:
    seen = [api_server("v1.36.2")]
    assert after_failure([], "refused") == silent()
    assert after_failure(seen, "403 Forbidden") == seen
    assert [part["state"] for part in after_failure(seen, WEBHOOK)] == ["good", "bad"]
