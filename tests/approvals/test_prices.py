"""One price of a request that waits, on every page: or each with its day."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from allocations.budgets import money
from approvals.models import Request
from approvals.requests import prices
from approvals.requests.presenting import asks
from fleet.models import Flavor
from tests import factories
from tests.scene import DAY, Scene
from tests.scene import scene as make
from ui.amounts import day, usd

pytestmark = pytest.mark.django_db


@pytest.fixture
def scene() -> Scene:
    return make()


def shown(client: Client, by: User, path: str) -> str:
    client.force_login(by)
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def dearer(request: Request) -> Request:
    """The same request after the price of its GPUs was doubled."""
    assert request.flavor is not None
    price = request.flavor.price_per_gpu_hour * 2
    Flavor.objects.filter(pk=request.flavor.pk).update(price_per_gpu_hour=price)
    return Request.objects.select_related("team", "requester", "flavor__cluster").get(
        pk=request.pk
    )


def asked_before(scene: Scene, *, hours: int) -> Request:
    """A request of people for 4 GPUs for 30 days that has waited so long since it was asked for."""
    waits = scene.ask(4)
    assert waits.flavor is not None
    start = timezone.now() - timedelta(hours=hours)
    until = start + timedelta(days=30)
    asked = money.cost(
        gpus=waits.gpus, price=waits.flavor.price_per_gpu_hour, start=start, end=until
    )
    Request.objects.filter(pk=waits.pk).update(created_at=start, until=until, usd=asked)
    return Request.objects.select_related("team", "requester", "flavor__cluster").get(
        pk=waits.pk
    )


@pytest.mark.slow
def test_every_page_says_the_price_as_asked_and_the_one_of_now(
    client: Client, scene: Scene
) -> None:
    now = timezone.now()
    waits = dearer(
        factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=4, now=now - DAY)
    )
    found = prices.usd_now(waits, now=now)
    assert found is not None
    asked, of_now = usd(waits.usd), usd(found)
    assert asked != of_now
    as_asked = f"{asked} as asked on {day(waits.created_at, now)}"
    assert f"{as_asked}; {of_now} now" in shown(client, scene.priya, "/")
    page = shown(client, scene.ada, f"/requests/{waits.pk}/")
    assert f"for {as_asked}; {of_now} now." in page
    assert re.search(rf">\s*{re.escape(of_now)}\s*<", page)
    for path in ("/approvals/", "/requests/"):
        listed = shown(client, scene.priya, path)
        assert asked in listed
        assert f"as asked; {of_now} now" in listed
    assert of_now in shown(client, scene.priya, f"/approvals/{waits.pk}/")
    assert f"{as_asked}; {of_now} now" in asks(waits, now=now)


def test_a_price_that_is_still_the_same_stands_alone(scene: Scene) -> None:
    waits = scene.ask(4)
    assert prices.price_words(waits, now=waits.created_at) == f"{usd(waits.usd)} in all"
    assert f", for {usd(waits.usd)}." in asks(waits, now=waits.created_at)


@pytest.mark.slow
def test_hours_of_a_month_that_it_waits_are_no_other_price_on_any_page(
    client: Client, scene: Scene
) -> None:
    waits = asked_before(scene, hours=4)
    asked, found = usd(waits.usd), prices.usd_now(waits, now=timezone.now())
    assert found is not None
    of_now = usd(found)
    assert asked != of_now
    for path in (
        "/",
        "/approvals/",
        "/requests/",
        f"/requests/{waits.pk}/",
        f"/approvals/{waits.pk}/",
    ):
        # A rule of the policy holds what it would cost at this moment against its limit, to the dollar.
        page = re.sub(
            r'<ul class="rules.*?</ul>|<p class="note">(Still|No longer) asks for people.*?</p>',
            "",
            shown(client, scene.priya, path),
            flags=re.DOTALL,
        )
        assert asked in page, path
        assert of_now not in page, path
        assert not re.search(r"as asked on|as asked;|when it was asked for", page), path
    assert f", for {asked}." in asks(waits, now=timezone.now())


@pytest.mark.parametrize(
    ("now", "is_told"),
    [("99.01", False), ("99", True), ("100.99", False), ("101", True)],
)
def test_a_hundredth_of_the_price_is_the_least_that_is_told(
    now: str, is_told: bool
) -> None:
    assert prices.matters(Decimal(now), asked=Decimal(100)) is is_told


def test_what_reads_the_same_is_one_price_however_far_it_is_apart() -> None:
    assert not prices.matters(Decimal("10.40"), asked=Decimal("10.20"))
    assert prices.matters(Decimal(3), asked=Decimal(0))


def test_waiting_makes_it_cheaper_because_the_end_stays(scene: Scene) -> None:
    waits = scene.ask(4)
    later = waits.created_at + (waits.until - waits.created_at) / 2
    half = prices.usd_now(waits, now=later)
    assert half is not None
    assert abs(half * 2 - waits.usd) < 1
    assert prices.usd_now(waits, now=waits.until + timedelta(hours=1)) == 0


def test_what_does_not_wait_any_more_has_the_price_that_was_agreed(
    scene: Scene,
) -> None:
    granted = dearer(scene.ask(1))
    assert granted.state != "waiting"
    assert prices.usd_now(granted, now=granted.created_at) is None
