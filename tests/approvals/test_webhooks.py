"""What webhooks are told about requests."""

from typing import Any

import pytest

from allocations.models import Allocation
from approvals.decisions.actions import approve, reject
from approvals.requests.actions import lapse, withdraw
from notices.channels.events import WebhookEvent
from notices.models import Channel, Notice
from tests.calling import Caller
from tests.scene import DAY, NOW, REASON, Scene
from tests.subscribed import last, subscribe, told

WAITING, APPROVED = WebhookEvent.REQUEST_WAITING, WebhookEvent.REQUEST_APPROVED


@pytest.fixture
def robot(scene: Scene, settings: Any) -> Channel:
    return subscribe(settings)


def test_what_the_policy_approves_is_told_with_what_was_asked(
    scene: Scene, robot: Channel
) -> None:
    request = scene.ask(2)
    assert told() == ["request.approved", "allocation.ready"]
    data, link = last(APPROVED)
    assert link == f"/requests/{request.pk}/"
    assert data == {
        "id": request.pk,
        "team": {"slug": "vision", "name": "Vision"},
        "offering": "gpus",
        "name": "2 × A100",
        "place": scene.flavor.cluster.name,
        "cluster": scene.flavor.cluster.name,
        "flavor": "a100",
        "count": 2,
        "approved_count": 2,
        "gpus": 2,
        "usd": str(request.usd),
        "approved_usd": str(request.usd),
        "starts_at": None,
        "until": (NOW + 3 * DAY).isoformat().replace("+00:00", "Z"),
        "approved_until": (NOW + 3 * DAY).isoformat().replace("+00:00", "Z"),
        "purpose": "training",
        "state": "approved",
        "content_version": 1,
    }


def test_every_field_says_what_the_api_says(scene: Scene, robot: Channel) -> None:
    request = scene.ask(2)
    data, _ = last(APPROVED)
    shown = Caller(scene.priya).get(f"requests/{request.pk}/").json()
    assert data == {name: shown[name] for name in data}


def test_what_people_wrote_and_who_they_are_is_not_told(
    scene: Scene, robot: Channel
) -> None:
    request = scene.ask(5)
    reject(
        request.pk, by=scene.priya, expected_version=1, reason="Use the T4s.", now=NOW
    )
    said = str(list(Notice.objects.exclude(event=None).values("event", "message")))
    for words in (REASON, "T4s", scene.ada.name, scene.priya.name):
        assert words not in said


@pytest.mark.slow
@pytest.mark.parametrize("end", ["approved", "rejected", "withdrawn", "lapsed"])
def test_what_waits_is_told_and_then_what_became_of_it(
    scene: Scene, robot: Channel, end: str
) -> None:
    request = scene.ask(5)
    assert told() == ["request.waiting"]
    data, _ = last(WAITING)
    assert (data["state"], data["approved_count"]) == ("waiting", None)
    if end == "approved":
        approve(request.pk, by=scene.priya, expected_version=1, count=3, now=NOW)
    elif end == "rejected":
        reject(request.pk, by=scene.priya, expected_version=1, reason="No.", now=NOW)
    elif end == "withdrawn":
        withdraw(request.pk, by=scene.ada, now=NOW)
    else:
        assert lapse(request.pk, now=request.lapses)
    granted = ["allocation.ready"] if end == "approved" else []
    assert told() == ["request.waiting", f"request.{end}", *granted]
    data, _ = last(WebhookEvent(f"request.{end}"))
    assert data["state"] == end
    assert data["approved_count"] == (3 if end == "approved" else None)


def test_what_is_approved_for_less_costs_as_approved(
    scene: Scene, robot: Channel
) -> None:
    request = scene.ask(5, days=20)
    until = NOW + 5 * DAY
    approve(
        request.pk, by=scene.priya, expected_version=1, count=2, until=until, now=NOW
    )
    data, _ = last(APPROVED)
    assert (data["usd"], data["approved_usd"]) == ("2400.00", "240.00")


def test_what_is_refused_on_the_way_tells_nothing(scene: Scene, robot: Channel) -> None:
    """The event stands or falls with the transaction of what it tells of."""
    request = scene.ask(5)
    with pytest.raises(Exception, match="withdraw"):
        withdraw(request.pk, by=scene.mallory, now=NOW)
    assert told() == ["request.waiting"]
    assert not Allocation.objects.exists()
