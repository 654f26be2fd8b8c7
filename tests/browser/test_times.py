"""Moments are told in UTC, and by their hover where the reader is."""

import re

import pytest
from playwright.sync_api import expect

from tests import factories
from tests.browser.conftest import Open, lines
from tests.scene import Scene


@pytest.mark.slow
@pytest.mark.parametrize(
    ("zone", "ends"),
    [("Asia/Tokyo", r" UTC; .+ where you are$"), ("UTC", r" UTC$")],
)
def test_the_hover_of_a_moment_tells_it_where_the_reader_is(
    open_page: Open, scene: Scene, zone: str, ends: str
) -> None:
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=8)
    page = open_page(scene.ada, f"/requests/{asked.pk}/", zone=zone)
    page.wait_for_load_state("load")
    moment = page.locator(".facts time").first
    moment.hover()
    expect(moment).to_have_attribute("title", re.compile(ends))


@pytest.mark.slow
def test_a_moment_of_an_event_stands_in_one_line(open_page: Open, scene: Scene) -> None:
    scene.ask()
    page = open_page(scene.priya, "/audit/")
    moment = page.locator(".table--events tbody tr > :last-child [dir]").first
    assert lines(moment) == 1
