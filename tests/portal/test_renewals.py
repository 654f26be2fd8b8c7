"""What an open page fetches of itself anew: all that it selects, and nothing of the frame around it."""

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.pages import Element, parsed
from tests.portal.permission_matrix import Prober
from tests.portal.walk import pages
from tests.scene import Scene
from tests.scene import scene as make
from tests.world import world

pytestmark = pytest.mark.django_db
RENEWAL = {"HX-Request": "true"}


@pytest.fixture
def scene() -> Scene:
    return make()


def named(page: Element) -> set[str]:
    return {each.attrs["id"] for each in page.walk() if "id" in each.attrs}


def selected(part: Element) -> set[str]:
    """The ids that a live part takes out of an answer."""
    also = [
        each.split(":")[0] for each in part.attrs.get("hx-select-oob", "").split(",")
    ]
    return {
        name.strip().removeprefix("#")
        for name in [part.attrs["hx-select"], *also]
        if name
    }


def test_a_renewal_is_title_and_main_without_the_frames_queries(
    client: Client, scene: Scene
) -> None:
    client.force_login(scene.priya)
    client.get("/teams/vision/")
    with CaptureQueriesContext(connection) as whole:
        page = parsed(client.get("/teams/vision/").content.decode())
    with CaptureQueriesContext(connection) as renewed:
        renewal = parsed(client.get("/teams/vision/", headers=RENEWAL).content.decode())
    assert [each.tag for each in renewal.children] == ["head", "main"]
    titles = [
        [each.words for each in found.walk() if each.tag == "title"]
        for found in (page, renewal)
    ]
    assert titles[0] == titles[1] == ["Vision · Quartermaster"]
    assert len(renewed) < len(whole)
    assert {"rail", "palette"} <= named(page) - named(renewal)


@pytest.mark.parametrize("told", ["HX-Boosted", "HX-History-Restore-Request"])
def test_what_takes_the_place_of_the_whole_page_is_whole(
    client: Client, scene: Scene, told: str
) -> None:
    client.force_login(scene.ada)
    page = parsed(
        client.get("/teams/vision/", headers={**RENEWAL, told: "true"}).content.decode()
    )
    assert {"content", "rail", "palette"} <= named(page)


def test_what_was_done_is_still_told_by_the_page_that_comes_next(
    client: Client, scene: Scene
) -> None:
    client.force_login(scene.ada)
    client.post("/teams/vision/work/stop", {"work": "no such work"})
    assert (
        "message"
        not in client.get("/teams/vision/work", headers=RENEWAL).content.decode()
    )
    told = parsed(client.get("/teams/vision/work").content.decode())
    assert [each.words for each in told.walk() if "messages" in each.classes] != [""]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("role", ["member", "platform_lead"])
def test_every_live_part_finds_what_it_selects(role: str) -> None:
    prober = Prober(world())
    missing, tried = [], 0
    for path, page in pages(prober, role):
        for part in page.walk():
            if not {"hx-get", "hx-select"} <= part.attrs.keys():
                continue
            with transaction.atomic():
                answer = prober.pages[role].get(
                    part.attrs["hx-get"] or path, headers=RENEWAL
                )
                transaction.set_rollback(True)
            if answer.status_code != 200:
                # A preview of a form that nobody has filled in.
                continue
            tried += 1
            lost = selected(part) & named(page) - named(parsed(answer.content.decode()))
            missing += [
                f"{path}: {part.attrs['hx-get']} does not bring #{name}"
                for name in lost
            ]
    assert not missing, "\n".join(missing)
    assert tried >= 10
