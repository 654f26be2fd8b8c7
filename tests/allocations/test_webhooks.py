"""What webhooks are told about allocations."""

from datetime import datetime
from typing import Any

import pytest

from allocations.actions import begin_charging
from allocations.ends.actions import expire, give_back
from allocations.ends.reminders import remind
from allocations.models import Allocation
from fleet.models import Cluster
from notices.channels.events import WebhookEvent
from notices.models import Channel
from tests.calling import Caller
from tests.scene import DAY, HOUR, NOW, Scene
from tests.subscribed import last, subscribe, told

ENDED = WebhookEvent.ALLOCATION_ENDED


def shown(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


@pytest.fixture
def held(scene: Scene, settings: Any) -> Allocation:
    request = scene.ask(2, days=10)
    subscribe(settings)
    return Allocation.objects.get(hold=request.hold_id)


def test_what_is_granted_where_the_team_is_costs_at_once_and_is_told_so(
    scene: Scene, settings: Any
) -> None:
    subscribe(settings)
    request = scene.ask(2)
    assert told() == ["request.approved", "allocation.ready"]
    data, _ = last(WebhookEvent.ALLOCATION_READY)
    assert data["id"] == Allocation.objects.get(hold=request.hold_id).pk
    assert data["charged_from"] == data["starts_at"] == shown(NOW)


def test_what_cannot_be_told_to_its_cluster_yet_is_ready_once_it_is(
    scene: Scene, settings: Any
) -> None:
    Cluster.objects.update(reachable=False)
    subscribe(settings)
    request = scene.ask(2)
    held = Allocation.objects.get(hold=request.hold_id)
    assert (told(), held.charged_from) == (["request.approved"], None)
    assert begin_charging(held, now=NOW + HOUR)
    assert told()[1:] == ["allocation.ready"]
    assert last(WebhookEvent.ALLOCATION_READY)[0]["charged_from"] == shown(NOW + HOUR)


def test_what_ends_soon_and_ends_is_told_each_time(held: Allocation) -> None:
    assert held.remind_at is not None
    assert remind(held.pk, now=held.remind_at)
    assert told() == ["allocation.ending"]
    assert last(WebhookEvent.ALLOCATION_ENDING)[0]["ended_at"] is None
    held.refresh_from_db()
    assert expire(held.pk, now=held.kept_until)
    assert told()[1:] == ["allocation.ended"]
    data, link = last(ENDED)
    assert link == f"/teams/{held.team.slug}/"
    assert (data["id"], data["gpus"], data["end_reason"], data["part_of"]) == (
        held.pk,
        2,
        "expired",
        None,
    )


def test_every_field_says_what_the_api_says(scene: Scene, held: Allocation) -> None:
    give_back(held.pk, gpus=None, by=scene.ada, now=NOW + HOUR)
    data, _ = last(ENDED)
    shown = Caller(scene.priya).get(f"allocations/{held.pk}/").json()
    assert data == {name: shown[name] for name in data}
    assert data["end_reason"] == "returned"


def test_a_part_that_goes_back_is_told_as_a_part(
    scene: Scene, held: Allocation
) -> None:
    rest = give_back(held.pk, gpus=1, by=scene.ada, now=NOW + DAY)
    assert rest is not None
    data, _ = last(ENDED)
    assert told() == ["allocation.ended"]
    assert (data["part_of"], data["gpus"], data["what"]) == (held.pk, 1, "1 × A100")
    assert data["team"] == {"slug": held.team.slug, "name": held.team.name}


def test_a_webhook_that_wants_none_of_it_is_told_nothing(
    scene: Scene, held: Allocation
) -> None:
    Channel.objects.update(events=["run.ended"])
    give_back(held.pk, gpus=None, by=scene.ada, now=NOW + HOUR)
    assert told() == []
