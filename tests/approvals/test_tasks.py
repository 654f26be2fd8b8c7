"""A request that nobody decides before its end lapses, and what it had set aside is free again."""

from datetime import timedelta
from decimal import Decimal

from django.test import Client
from django.utils import timezone

from approvals.models import Request
from approvals.requests.actions import lapse, withdraw
from approvals.tasks import lapse as lapse_all
from audit.models import Event
from tests import factories
from tests.scene import DAY, NOW, Scene, books, ledger


def test_a_request_nobody_decided_in_time_lapses_and_lets_its_money_go(
    scene: Scene,
) -> None:
    request = scene.ask(8)
    assert scene.held_usd() > 0
    assert lapse(request.pk, now=NOW + 3 * DAY)
    after = Request.objects.get(pk=request.pk)
    assert (after.state, after.decided_at, after.version) == (
        "lapsed",
        NOW + 3 * DAY,
        2,
    )
    assert books(scene.team) == ledger(scene.team) == {"2026-11": Decimal(0)}
    event = Event.objects.latest("seq")
    assert (event.kind, event.actor_name, event.team_id) == (
        "request.lapsed",
        "Quartermaster",
        scene.team.pk,
    )
    assert not lapse(request.pk, now=NOW + 3 * DAY)


def test_what_is_decided_or_still_has_time_does_not_lapse(scene: Scene) -> None:
    early, taken_back = scene.ask(8), scene.ask(8)
    withdraw(taken_back.pk, by=scene.ada, now=NOW)
    assert not lapse(early.pk, now=NOW + 3 * DAY - timedelta(seconds=1))
    assert not lapse(taken_back.pk, now=NOW + 3 * DAY)


def test_the_task_ends_exactly_those_whose_end_has_come(scene: Scene) -> None:
    now = timezone.now()
    over = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=3, days=4, now=now - 5 * DAY
    )
    waits = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=3, days=1, now=now
    )
    lapse_all()
    states = dict(Request.objects.values_list("pk", "state"))
    assert states == {over.pk: "lapsed", waits.pk: "waiting"}


def test_its_page_says_that_it_lapsed(scene: Scene, client: Client) -> None:
    request = scene.ask(8)
    lapse(request.pk, now=NOW + 3 * DAY)

    client.force_login(scene.ada)
    assert (
        "Nobody decided in time."
        in client.get(f"/requests/{request.pk}/").content.decode()
    )
