"""Nobody gets a mail that a request waits for them once it does not: it is decided, changed, or with others."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from accounts.models import User
from approvals.conversation.actions import edit
from approvals.decisions.actions import approve, reject
from approvals.models import Request
from approvals.requests.actions import withdraw
from notices.models import Delivery, Notice, Preference
from tests.scene import NOW, Scene

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(minutes=2)


def unsent(person: User) -> list[str]:
    """What is still to be sent that asks somebody to decide."""
    asks = Delivery.objects.filter(
        notice__person=person, notice__kind="request_waiting", state="waiting"
    )
    return [delivery.notice.said.title for delivery in asks if delivery.notice]


def version(request: Request) -> int:
    return Request.objects.get(pk=request.pk).version


def approved(scene: Scene, request: Request) -> None:
    approve(request.pk, by=scene.priya, expected_version=version(request), now=LATER)


def rejected(scene: Scene, request: Request) -> None:
    reject(
        request.pk,
        by=scene.priya,
        expected_version=version(request),
        reason="No.",
        now=LATER,
    )


def withdrawn(scene: Scene, request: Request) -> None:
    withdraw(request.pk, by=scene.ada, now=LATER)


@pytest.mark.slow
@pytest.mark.parametrize("end", [approved, rejected, withdrawn])
def test_what_is_over_asks_nobody_any_more(scene: Scene, end: Any) -> None:
    request, other = scene.ask(3), scene.ask(4)
    assert len(unsent(scene.marcus)) == 2
    end(scene, request)
    [left] = unsent(scene.marcus)
    assert left.startswith("Vision asks for 4 × A100"), other


def test_a_step_that_is_over_asks_those_of_the_next_one_alone(scene: Scene) -> None:
    request = scene.ask(12)
    approved(scene, request)
    assert unsent(scene.marcus) == []
    assert len(unsent(scene.elena)) == 1


def test_what_was_changed_asks_for_what_it_is_now(scene: Scene) -> None:
    request = scene.ask(3)
    edit(request.pk, scene.wanted(5), by=scene.ada, expected_version=1, now=LATER)
    [said] = unsent(scene.marcus)
    assert said.startswith("Vision asks for 5 × A100")


def test_what_has_left_stays(scene: Scene) -> None:
    request = scene.ask(3)
    sent: datetime = LATER
    Delivery.objects.update(state="sent", sent_at=sent)
    approved(scene, request)
    assert Delivery.objects.filter(state="sent").exists()


def test_what_is_over_stands_in_no_daily_mail(scene: Scene) -> None:
    Preference.objects.create(
        person=scene.marcus, kind="request_waiting", pace="digest"
    )
    request, _ = scene.ask(3), scene.ask(4)
    waiting = Notice.objects.filter(person=scene.marcus, kind="request_waiting")
    assert waiting.count() == 2
    approved(scene, request)
    [left] = waiting
    assert left.said.title.startswith("Vision asks for 4 × A100")
