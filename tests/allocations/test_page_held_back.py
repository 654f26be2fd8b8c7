"""Ends that were held back, by page and API: for platform leads, and answered once."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from allocations.ends import sweep as ending
from allocations.models import Allocation, Brake
from tests import factories
from tests.calling import Caller
from tests.scene import Scene

PAGE = "/allocations/held-back"


@pytest.fixture
def brake(scene: Scene) -> Brake:
    """Eleven holdings that are due."""
    row, now = (
        factories.allocation(scene.ada, scene.tenancy, scene.flavor, days=1),
        timezone.now(),
    )
    Allocation.objects.update(
        starts_at=now - timedelta(days=2), remind_at=None, until=now, kept_until=now
    )
    row.refresh_from_db()
    for _ in range(10):
        row.pk, row.hold = None, factories.hold(scene.team)
        row.save(force_insert=True)
    type(scene.flavor).objects.filter(pk=scene.flavor.pk).update(allocated=11)
    ending.sweep(now)
    return Brake.objects.get()


@pytest.mark.slow
def test_a_lead_sees_what_is_due_and_lets_it_end(
    client: Client, scene: Scene, brake: Brake
) -> None:
    client.force_login(scene.priya)
    said = client.get(PAGE).content.decode()
    assert "11 of 11 holdings would have ended at one moment" in said
    assert said.count("1 × A100") == 11
    assert (
        client.post(PAGE, {"do": "confirm", "brake": str(brake.pk)}).status_code == 302
    )
    assert ending.sweep(timezone.now()) == 11
    after = client.get(PAGE).content.decode()
    assert "Nothing is held back" in after
    assert "let them end, said Priya Raman" in after


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [{"do": "confirm"}, {"do": "all", "brake": "1"}, {"do": "confirm", "brake": "１"}],
)
def test_what_is_no_answer_changes_nothing(
    client: Client, scene: Scene, brake: Brake, body: dict[str, str]
) -> None:
    client.force_login(scene.priya)
    assert client.post(PAGE, body).status_code == 422
    assert Brake.objects.open().exists()


def test_who_comes_second_is_told(client: Client, scene: Scene, brake: Brake) -> None:
    ending.dismiss(brake.pk, by=scene.marcus, now=timezone.now())
    client.force_login(scene.priya)
    late = client.post(PAGE, {"do": "confirm", "brake": str(brake.pk)})
    assert late.status_code == 409
    assert "Somebody has answered this already" in late.content.decode()


def test_nobody_else_sees_or_answers_it(
    client: Client, scene: Scene, brake: Brake
) -> None:
    for person in (scene.ada, scene.elena):
        client.force_login(person)
        assert client.get(PAGE).status_code == 403
        assert (
            client.post(PAGE, {"do": "confirm", "brake": str(brake.pk)}).status_code
            == 403
        )
        assert Caller(person).get("expiry-brakes/").status_code == 403


def test_the_api_answers_it_once(scene: Scene, brake: Brake) -> None:
    priya = Caller(scene.priya)
    (row,) = priya.get("expiry-brakes/").json()["results"]
    assert (row["due"], row["live"], row["answer"]) == (11, 11, "")
    done = priya.post(f"expiry-brakes/{row['id']}/confirm/", {})
    assert (
        done.status_code,
        done.json()["answer"],
        done.json()["answered_by"]["name"],
    ) == (
        200,
        "confirmed",
        "Priya Raman",
    )
    late = priya.post(f"expiry-brakes/{row['id']}/dismiss/", {})
    assert (late.status_code, late.json()["code"]) == (409, "already_answered")
