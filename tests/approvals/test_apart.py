"""A subscription of a team's own: chosen by a lead, made by a person, seen on the team's page until it is there."""

import pytest
from django.test import Client

from approvals.fulfilment import actions as fulfilment
from approvals.fulfilment import page as task_page
from approvals.shares import actions as apart
from audit.models import Event
from manual import actions as task_actions
from manual.models import Task
from notices.models import Notice
from provisioning.models import Tenancy
from tests.calling import Caller
from tests.scene import NOW, Scene
from web.refusals import Conflict, NoRight

NOTE = "Subscription vision-prod is there; its cluster is added."


def choose(scene: Scene, isolation: str, *, weight: int | None = None) -> Tenancy:
    return apart.set_shares(
        scene.tenancy.pk, by=scene.priya, isolation=isolation, weight=weight, now=NOW
    )


def task() -> Task:
    return Task.objects.described().latest("pk")


def team_page(client: Client) -> str:
    return client.get("/teams/vision/").content.decode()


def test_choosing_it_asks_a_person_and_saying_it_again_asks_nobody(
    scene: Scene,
) -> None:
    choose(scene, "subscription")
    choose(scene, "subscription", weight=3)
    made = task()
    assert (Task.objects.count(), made.kind, made.team, made.wanted_by) == (
        1,
        "set_apart",
        scene.team,
        scene.priya,
    )
    assert made.words == "Make a subscription for Vision"
    assert [row["title"] for row in task_page.to_do(scene.marcus)] == [
        "Make a subscription for Vision"
    ]


def test_a_level_that_the_fleet_does_not_have_asks_nobody(scene: Scene) -> None:
    with pytest.raises(Conflict):
        choose(scene, "cluster")
    with pytest.raises(NoRight):
        apart.set_shares(
            scene.tenancy.pk, by=scene.ada, isolation="subscription", now=NOW
        )
    assert not Task.objects.exists()


def test_choosing_another_level_drops_what_nobody_has_made(scene: Scene) -> None:
    choose(scene, "subscription")
    first = task()
    choose(scene, "namespace")
    assert Task.objects.get(pk=first.pk).state == "dropped"
    with pytest.raises(Conflict):
        fulfilment.finish(first.pk, by=scene.priya, note=NOTE, now=NOW)
    choose(scene, "subscription")
    assert (task().pk, task().state) == (first.pk + 1, "open")


def test_who_leaves_the_place_needs_none(scene: Scene) -> None:
    choose(scene, "subscription")
    for _ in range(2):
        apart.drop(scene.tenancy.pk, now=NOW)
    assert (task().state, task().version) == ("dropped", 2)


def test_it_is_taken_done_recorded_and_told_to_who_chose_it(scene: Scene) -> None:
    choose(scene, "subscription")
    task_actions.take(task().pk, to=scene.marcus, by=scene.priya, now=NOW)
    given = Notice.objects.get(kind="task_assigned")
    assert given.message["title"] == "For you: make a subscription for Vision"
    fulfilment.finish(task().pk, by=scene.marcus, note=NOTE, now=NOW)
    told = Notice.objects.get(kind="task_done")
    assert (told.person, told.link) == (scene.priya, "/teams/vision/")
    assert told.message["title"] == "The subscription for Vision is there"
    kinds = (
        Event.objects.about("tenancy", scene.tenancy.pk)
        .order_by("seq")
        .values_list("kind", flat=True)
    )
    assert list(kinds)[-2:] == ["task.assigned", "task.done"]


def test_what_cannot_be_made_says_so_and_lets_go_of_nothing(scene: Scene) -> None:
    scene.ask(2)
    held = scene.held_usd()
    choose(scene, "subscription")
    fulfilment.finish(
        task().pk, by=scene.marcus, note="No billing account.", failed=True, now=NOW
    )
    assert (task().state, scene.held_usd(), scene.allocated()) == ("failed", held, 2)
    told = Notice.objects.get(kind="task_done")
    assert (
        told.message["sentence"]
        == "Marcus Weber: No billing account. Choose another level for the team."
    )


@pytest.mark.slow
def test_the_team_sees_how_it_stands_and_leads_open_the_task(
    scene: Scene, client: Client
) -> None:
    client.force_login(scene.ada)
    assert "Own subscription asked for" not in team_page(client)
    choose(scene, "subscription")
    page = team_page(client)
    assert "Own subscription asked for" in page
    assert "The platform leads were asked to make it." in page
    assert f'href="/tasks/{task().pk}/"' not in page
    client.force_login(scene.priya)
    assert f'href="/tasks/{task().pk}/"' in team_page(client)
    fulfilment.finish(task().pk, by=scene.priya, note=NOTE, now=NOW)
    client.force_login(scene.ada)
    assert f"Priya Raman: {NOTE}" in team_page(client)


def test_the_page_of_the_task_says_what_to_do_and_done_leads_to_the_team(
    scene: Scene, client: Client
) -> None:
    choose(scene, "subscription")
    client.force_login(scene.priya)
    assert "Make a subscription for Vision" in client.get("/tasks/").content.decode()
    assert "Make a subscription for Vision" in client.get("/").content.decode()
    page = client.get(f"/tasks/{task().pk}/").content.decode()
    assert "Make an Azure subscription for Vision alone, billed to CC-" in page
    assert f'href="/tenancies/{scene.tenancy.pk}/shares"' in page
    done = client.post(
        f"/tasks/{task().pk}/", {"do": "done", "version": 1, "note": NOTE}
    )
    assert done["Location"] == "/teams/vision/"


def test_the_api_opens_it_shows_it_to_the_team_and_finishes_it(scene: Scene) -> None:
    lead = Caller(scene.priya)
    assert (
        lead.patch(
            f"tenancies/{scene.tenancy.pk}/shares/", {"isolation": "subscription"}
        ).status_code
        == 200
    )
    (told,) = Caller(scene.ada).get("tasks/").json()["results"]
    assert (told["kind"], told["request"], told["tenancy"]) == (
        "set_apart",
        None,
        scene.tenancy.pk,
    )
    assert (told["offering"], told["until"], told["team"]["slug"]) == (
        None,
        None,
        "vision",
    )
    assert Caller(scene.mallory).get(f"tasks/{told['id']}/").status_code == 404
    assert (
        lead.post(f"tasks/{told['id']}/done/", {"note": NOTE}).json()["state"] == "done"
    )
