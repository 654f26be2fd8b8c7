"""Moments are told and taken in UTC; the browser says what that is where the reader is."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from fleet.models import Cluster
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
@pytest.mark.parametrize(
    ("zone", "below"),
    [
        ("Asia/Kolkata", "Sat 2 Jan 2038, 00:00 where you are"),
        ("America/Phoenix", "Fri 1 Jan 2038, 11:30 where you are"),
        ("UTC", None),
    ],
)
def test_a_field_that_takes_a_moment_says_below_when_that_is_where_the_reader_is(
    open_page: Open, scene: Scene, zone: str, below: str | None
) -> None:
    page = open_page(scene.ada, "/requests/new", zone=zone)
    field = page.get_by_label("Until (UTC)")
    field.fill("2038-01-01T18:30")
    told = page.locator("#id_until-here")
    if below is None:
        expect(told).to_be_hidden()
        return
    expect(told).to_have_text(below)
    expect(field).to_have_accessible_description(re.compile(re.escape(below)))
    field.clear()
    expect(told).to_be_hidden()


@pytest.mark.slow
def test_the_hour_of_the_daily_mail_is_told_where_the_reader_is(
    open_page: Open, scene: Scene
) -> None:
    page = open_page(scene.ada, "/settings/notices/", zone="Asia/Tokyo")
    page.get_by_label("The daily mail comes at").select_option("20")
    expect(page.locator("#id_digest_hour-here")).to_have_text(
        "Today 05:00 where you are"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("zone", "says"),
    [
        ("Asia/Kolkata", "All times are in UTC. Your clock is 5 h 30 min ahead."),
        ("America/Phoenix", "All times are in UTC. Your clock is 7 h behind."),
        ("UTC", "All times are in UTC."),
    ],
)
def test_the_foot_of_each_page_says_how_far_the_clock_of_the_reader_is_from_its_times(
    open_page: Open, scene: Scene, zone: str, says: str
) -> None:
    page = open_page(scene.ada, "/", zone=zone)
    expect(page.locator("#clock")).to_have_text(says)


@pytest.mark.slow
def test_a_moment_of_an_event_stands_in_one_line(open_page: Open, scene: Scene) -> None:
    scene.ask()
    page = open_page(scene.priya, "/audit/")
    moment = page.locator(".table--events tbody tr > :last-child [dir]").first
    assert lines(moment) == 1


@pytest.mark.slow
def test_how_long_ago_something_was_goes_on_while_the_page_stays_open(
    open_page: Open, scene: Scene
) -> None:
    Cluster.objects.update(last_contact_at=timezone.now() - timedelta(seconds=50))
    page = open_page(scene.priya, "/")
    page.clock.install()
    page.goto("/clusters/")
    page.wait_for_load_state("load")
    contact = page.get_by_text("Last contact").first.locator("time")
    expect(contact).to_have_text(re.compile(r"^5\d s ago$"))
    page.clock.fast_forward("05:00")
    expect(contact).to_have_text("5 min ago")
    page.clock.fast_forward("02:00:00")
    expect(contact).to_have_text("2 h ago")
