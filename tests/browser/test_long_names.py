"""Names and announcements without a space make no page wider than the screen."""

from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import Team
from accounts.tokens.actions import create_team_token, create_token
from approvals.models import Request
from fleet.models import Cluster
from tests import factories
from tests.browser.conftest import PHONE, Open, lines, overflow
from tests.scene import Scene

WIDEST = "W" * 60
PAGES = (
    "/",
    "/approvals/",
    "/approvals/{asked}/",
    "/requests/",
    "/requests/{asked}/",
    "/requests/{waits}/",
    "/requests/new",
    "/requests/new/notebook",
    "/requests/new/cluster",
    "/requests/new/reservation",
    "/requests/new/namespace",
    "/teams/",
    "/teams/vision/",
    "/teams/vision/budget",
    "/teams/vision/runs",
    "/teams/vision/runs/new",
    "/teams/vision/notebooks",
    "/teams/vision/work",
    "/templates",
    "/clusters/",
    "/clusters/training/",
    "/clusters/training/queue",
    "/audit/",
)


@pytest.mark.slow
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_a_name_without_a_space_fits_on_every_page(
    open_page: Open, scene: Scene, size: str
) -> None:
    Team.objects.filter(pk=scene.team.pk).update(name=WIDEST)
    Cluster.objects.update(announcement=f"https://status.example.com/?{'x' * 200}")
    # Where it runs is chosen of two, one of which has a long name, too.
    factories.make_true(scene.tenancy)
    factories.make_true(factories.tenancy(scene.team, project="w" * 30))
    factories.join(scene.team, scene.priya)
    granted = factories.request(scene.priya, scene.tenancy, scene.flavor)
    waits = factories.request(scene.priya, scene.tenancy, scene.flavor, gpus=8)
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8)
    assert Request.objects.get(pk=granted.pk).state == "approved"
    page = open_page(scene.priya, "/", size=size)
    wide = {}
    for path in PAGES:
        address = path.format(asked=asked.pk, waits=waits.pk)
        answer = page.goto(address)
        assert answer is not None
        assert answer.ok, address
        if (pixels := overflow(page)) > 0:
            wide[path] = pixels
    assert wide == {}


@pytest.mark.slow
def test_on_a_phone_a_long_name_pushes_nothing_of_the_queue_off_the_screen(
    open_page: Open, scene: Scene
) -> None:
    Team.objects.filter(pk=scene.team.pk).update(
        name="Language Lab " * 3 + "of all of Europe"
    )
    factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8)
    page = open_page(scene.priya, "/approvals/", size="phone")
    ends = page.locator(".table--queue tbody :is(th, td)").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().right)"
    )
    assert max(ends) <= PHONE["width"]


TABLES = (
    "/teams/",
    "/teams/vision/",
    "/teams/vision/tokens",
    "/teams/vision/budget",
    "/teams/vision/projects",
    "/requests/",
    "/approvals/",
    "/clusters/training/",
    "/clusters/versions",
    "/capacity/",
    "/capacity/utilisation",
    "/hubs",
    "/costs/",
    "/audit/",
    "/tokens/",
)


@pytest.mark.slow
@pytest.mark.parametrize("size", ["desk", "half"])
def test_a_name_without_a_space_pushes_no_column_out_of_its_table(
    open_page: Open, scene: Scene, size: str
) -> None:
    Team.objects.filter(pk=scene.team.pk).update(name=WIDEST)
    Cluster.objects.update(title=WIDEST)
    factories.make_true(scene.tenancy)
    factories.join(scene.team, scene.priya, lead=True)
    factories.request(scene.priya, scene.tenancy, scene.flavor)
    factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8)
    made: Any = {"name": WIDEST, "scope": "read", "days": 9, "now": timezone.now()}
    create_token(user=scene.priya, **made)
    create_team_token(team=scene.team, by=scene.priya, **made)
    page = open_page(scene.priya, "/", size=size)
    beyond, tables = {}, 0
    for path in TABLES:
        page.goto(path)
        boxes = page.locator(".table-wrap").evaluate_all(
            "all => all.map(one => one.scrollWidth - one.clientWidth)"
        )
        tables += len(boxes)
        if max(boxes, default=0) > 0:
            beyond[path] = boxes
    assert beyond == {}
    assert tables >= len(TABLES)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/teams/vision/", "/teams/vision/budget", "/runs/{}"])
def test_where_one_is_takes_one_line_on_a_phone(
    open_page: Open, scene: Scene, path: str
) -> None:
    Team.objects.filter(pk=scene.team.pk).update(
        name="Computer Vision and Perception Research, Northern Europe"
    )
    run = factories.run(scene.tenancy, scene.ada)
    page = open_page(scene.ada, path.format(run.pk), size="phone")
    assert lines(page.locator(".crumbs")) == 1


@pytest.mark.slow
def test_a_long_choice_is_cut_where_one_sees_it(open_page: Open, scene: Scene) -> None:
    page = open_page(scene.ada, "/requests/new", size="phone")
    for choice in page.locator("select.input").all():
        expect(choice).to_have_css("text-overflow", "ellipsis")
