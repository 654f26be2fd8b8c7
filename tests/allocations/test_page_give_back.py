"""Giving back on the page: what would change, doing it, doing it twice, and what is refused."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from allocations.models import Allocation
from allocations.schedule import Provisioner
from fleet.models import Cluster
from notebooks.models import NotebookServer
from notebooks.servers.states import State, StopReason
from provisioning.models import Tenancy
from tests import factories
from tests.pages import parsed
from tests.scene import Scene
from ui.amounts import usd


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


def test_it_shows_the_effect_before_anything_is_done(
    page: Client, held: Allocation
) -> None:
    effect = page.get(address(held), {"gpus": "1"}).context["effect"]
    rows = {row["label"]: (row["before"], row["after"]) for row in effect.changes}
    assert rows["Quota, A100"] == ("2 GPUs", "1 GPU")
    assert rows["Cost a day"] == ("$48", "$24")
    assert usd(effect.freed_usd) == "$72"
    assert effect.rest == "1 × A100"
    assert live() == [2]


def test_one_that_stays_is_told_in_the_singular(page: Client, held: Allocation) -> None:
    shown = parsed(page.get(address(held), {"gpus": "1"}).content.decode())
    assert "1 × A100 stays yours until" in shown.words


@pytest.mark.slow
@pytest.mark.parametrize(
    ("used", "when_over", "said"),
    [
        (0, "stop", "No work in qm-vision-main"),
        (1, "stop", "None of it has to stop."),
        (
            2,
            "finish",
            "That is 1 GPU too much. It may finish, while nobody else wants the GPUs.",
        ),
        (2, "stop", "That is 1 GPU too much. What is too much is stopped at once"),
        (2, "drain", "That is 1 GPU too much. What still runs on "),
    ],
)
def test_it_says_what_becomes_of_work_that_runs_there(
    page: Client, held: Allocation, used: int, when_over: str, said: str
) -> None:
    Tenancy.objects.update(used={"a100": used}, used_at=timezone.now())
    Allocation.objects.update(
        when_over=when_over, drain_hours=2 if when_over == "drain" else 0
    )
    assert said in page.get(address(held), {"gpus": "1"}).context["effect"].in_use
    assert said in page.get(address(held), {"gpus": "1"}).content.decode()


def with_notebook(held: Allocation, scene: Scene) -> NotebookServer:
    """A notebook that runs on GPUs which were granted with it."""
    server = factories.notebook(
        scene.tenancy,
        scene.ada,
        flavor=scene.flavor,
        gpus=2,
        state=State.READY,
        ready_at=timezone.now(),
    )
    Allocation.objects.filter(pk=held.pk).update(
        notebook=server, provisioner=Provisioner.JUPYTERHUB
    )
    Tenancy.objects.update(used={"a100": 2}, used_at=timezone.now())
    return server


def test_it_names_the_notebook_that_is_stopped_with_its_own_gpus(
    page: Client, held: Allocation, scene: Scene
) -> None:
    factories.allocation(scene.ada, scene.tenancy, scene.flavor, gpus=2)
    server = with_notebook(held, scene)
    shown = page.get(address(held), {"gpus": "2"})
    assert "the notebook <bdi>Explore</bdi> of" in shown.content.decode()
    assert shown.context["effect"].in_use.startswith("No other work in qm-vision-main")
    page.post(address(held), {"gpus": "2", "token": "one"})
    server.refresh_from_db()
    assert (server.state, server.stop_reason) == (State.STOPPING, StopReason.END)


def test_a_notebook_is_not_said_to_stop_at_once_where_a_part_of_its_gpus_stays(
    page: Client, held: Allocation, scene: Scene
) -> None:
    server = with_notebook(held, scene)
    assert page.get(address(held), {"gpus": "1"}).context["effect"].stops is None
    page.post(address(held), {"gpus": "1", "token": "one"})
    server.refresh_from_db()
    assert server.state == State.READY


def test_on_a_cluster_that_git_delivers_to_no_work_is_stopped(
    page: Client, held: Allocation
) -> None:
    Tenancy.objects.update(used={"a100": 2}, used_at=timezone.now())
    Allocation.objects.update(when_over="stop")
    Cluster.objects.update(delivery="git")
    assert (
        "It may finish"
        in page.get(address(held), {"gpus": "2"}).context["effect"].in_use
    )


def test_where_nobody_has_looked_it_says_nothing_of_work(
    page: Client, held: Allocation
) -> None:
    assert page.get(address(held), {"gpus": "2"}).context["effect"].in_use == ""


def test_it_starts_with_all_of_it(page: Client, held: Allocation) -> None:
    said = page.get(address(held)).content.decode()
    assert "Give back 2 × A100" in said
    assert "Nothing of it stays." in said


def test_a_part_goes_back_and_the_rest_stays(page: Client, held: Allocation) -> None:
    response = page.post(address(held), {"gpus": "1", "token": "one"})
    assert (response.status_code, response["Location"]) == (302, "/teams/vision/")
    assert live() == [1]


def test_sending_it_twice_gives_back_once(page: Client, held: Allocation) -> None:
    answers = [
        page.post(address(held), {"gpus": "1", "token": "one"}) for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [302, 302]
    assert live() == [1]


def test_what_went_back_already_cannot_go_back_again(
    page: Client, held: Allocation
) -> None:
    page.post(address(held), {"gpus": "2", "token": "one"})
    response = page.post(address(held), {"gpus": "2", "token": "two"})
    assert response.status_code == 409
    assert "These GPUs are not held any more" in response.content.decode()


def test_work_on_what_is_borrowed_then_is_not_said_to_be_safe(
    page: Client, held: Allocation
) -> None:
    Cluster.objects.update(borrow_percent=100)
    Tenancy.objects.update(used={"a100": 2}, used_at=timezone.now())
    said = page.get(address(held), {"gpus": "1"}).context["effect"].in_use
    assert "1 of them is then borrowed: what runs there stops when" in said


def test_what_went_on_under_a_renewal_did_not_go_back(
    page: Client, held: Allocation
) -> None:
    Allocation.objects.update(
        ended_at=timezone.now(), end_reason=Allocation.End.RENEWED, ended_by="Ada"
    )
    said = page.get(address(held)).content.decode()
    assert "They went on under a renewal" in said
    assert f"/allocations/{held.pk}/renew" in said
    assert "went back to the pool" not in said


@pytest.mark.slow
@pytest.mark.parametrize("gpus", ["0", "-1", "1.5", "", "1 ", "１", "1e1"])
def test_it_refuses_a_number_that_is_none(
    page: Client, held: Allocation, gpus: str
) -> None:
    response = page.post(address(held), {"gpus": gpus, "token": "one"})
    assert response.status_code == 422
    assert 'href="#id_gpus"' in response.content.decode()
    assert live() == [2]


def test_it_refuses_more_than_is_held(page: Client, held: Allocation) -> None:
    response = page.post(address(held), {"gpus": "3", "token": "one"})
    assert response.status_code == 409
    assert "3 cannot be given back: 2 are held." in response.content.decode()


def test_it_says_before_it_is_sent_that_more_is_asked_than_is_held(
    page: Client, held: Allocation
) -> None:
    shown = parsed(page.get(address(held), {"gpus": "3"}).content.decode())
    by_id = {each.attrs.get("id"): each for each in shown.walk()}
    assert "3 cannot be given back: 2 are held." in by_id["effect"].words
    assert by_id["id_gpus"].attrs["aria-invalid"] == "true"


def test_it_refuses_fields_that_nobody_asked_for(
    page: Client, held: Allocation
) -> None:
    assert page.post(address(held), {"gpus": "1", "team": "nlp"}).status_code == 422


def test_a_strangers_holding_looks_like_a_missing_one(
    client: Client, scene: Scene, held: Allocation
) -> None:
    client.force_login(scene.mallory)
    answers: list[Any] = [
        client.get(address(held)),
        client.post(address(held), {"gpus": "1"}),
    ]
    assert [answer.status_code for answer in answers] == [404, 404]


def test_leadership_sees_but_does_not_give_back(
    client: Client, scene: Scene, held: Allocation
) -> None:
    client.force_login(scene.elena)
    assert client.post(address(held), {"gpus": "1"}).status_code == 403
    assert live() == [2]


def test_a_lead_says_why_and_the_page_speaks_of_the_team(
    client: Client, scene: Scene, held: Allocation
) -> None:
    client.force_login(scene.priya)
    shown = client.get(address(held), {"gpus": "1"}).content.decode()
    assert "Why you take it back" in shown
    assert "stays the team’s until" in " ".join(shown.split())
    whole = client.get(address(held), {"gpus": "2"}).content.decode()
    assert "Nothing of it stays. The team can ask again at any time." in whole
    silent = client.post(address(held), {"gpus": "1", "reason": ""})
    assert silent.status_code == 422
    assert "is told that you take it back" in silent.content.decode()
    done = client.post(address(held), {"gpus": "1", "reason": "A node is broken."})
    assert (done.status_code, live()) == (302, [1])


def test_a_member_is_asked_for_no_reason(page: Client, held: Allocation) -> None:
    assert "Why you take it back" not in page.get(address(held)).content.decode()
    answer = page.post(address(held), {"gpus": "1", "reason": "x"})
    assert answer.status_code == 422
