"""Giving back on the page: what would change, doing it, doing it twice, and what is refused."""

from typing import Any

import pytest
from django.test import Client

from allocations.models import Allocation
from tests import factories
from tests.scene import Scene


@pytest.fixture
def held(scene: Scene) -> Allocation:
    """Two GPUs of Vision for three days."""
    return factories.allocation(scene.ada, scene.tenancy, scene.flavor, gpus=2)


@pytest.fixture
def page(client: Client, scene: Scene) -> Client:
    """Ada's browser."""
    client.force_login(scene.ada)
    return client


def address(held: Allocation) -> str:
    """Where one gives it back."""
    return f"/allocations/{held.pk}/give-back"


def live() -> list[int]:
    """How many GPUs each live holding has."""
    return list(Allocation.objects.live().values_list("gpus", flat=True))


def test_it_shows_the_effect_before_anything_is_done(page: Client, held: Allocation) -> None:
    effect = page.get(address(held), {"gpus": "1"}).context["effect"]
    rows = {row["label"]: (row["before"], row["after"]) for row in effect.changes}
    assert rows["Quota, A100"] == ("2 GPUs", "1 GPU")
    assert rows["Cost a day"] == ("$48", "$24")
    assert effect.freed == "$72"
    assert effect.rest == "1 × A100"
    assert live() == [2]


def test_it_starts_with_all_of_it(page: Client, held: Allocation) -> None:
    said = page.get(address(held)).content.decode()
    assert "Give back 2 × A100" in said
    assert "Nothing of it stays." in said


def test_a_part_goes_back_and_the_rest_stays(page: Client, held: Allocation) -> None:
    response = page.post(address(held), {"gpus": "1", "token": "one"})
    assert (response.status_code, response["Location"]) == (302, "/teams/vision/")
    assert live() == [1]


def test_sending_it_twice_gives_back_once(page: Client, held: Allocation) -> None:
    answers = [page.post(address(held), {"gpus": "1", "token": "one"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [302, 302]
    assert live() == [1]


def test_what_went_back_already_cannot_go_back_again(page: Client, held: Allocation) -> None:
    page.post(address(held), {"gpus": "2", "token": "one"})
    response = page.post(address(held), {"gpus": "2", "token": "two"})
    assert response.status_code == 409
    assert "These GPUs are not held any more" in response.content.decode()


@pytest.mark.parametrize("gpus", ["0", "-1", "1.5", "", "1 ", "１", "1e1"])
def test_it_refuses_a_number_that_is_none(page: Client, held: Allocation, gpus: str) -> None:
    response = page.post(address(held), {"gpus": gpus, "token": "one"})
    assert response.status_code == 422
    assert 'href="#id_gpus"' in response.content.decode()
    assert live() == [2]


def test_it_refuses_more_than_is_held(page: Client, held: Allocation) -> None:
    response = page.post(address(held), {"gpus": "3", "token": "one"})
    assert response.status_code == 409
    assert "3 cannot be given back: 2 are held." in response.content.decode()


def test_it_refuses_fields_that_nobody_asked_for(page: Client, held: Allocation) -> None:
    assert page.post(address(held), {"gpus": "1", "team": "nlp"}).status_code == 422


def test_a_strangers_holding_looks_like_a_missing_one(client: Client, scene: Scene, held: Allocation) -> None:
    client.force_login(scene.mallory)
    answers: list[Any] = [client.get(address(held)), client.post(address(held), {"gpus": "1"})]
    assert [answer.status_code for answer in answers] == [404, 404]


def test_leadership_sees_but_does_not_give_back(client: Client, scene: Scene, held: Allocation) -> None:
    client.force_login(scene.elena)
    assert client.post(address(held), {"gpus": "1"}).status_code == 403
    assert live() == [2]
