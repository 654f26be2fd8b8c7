"""Notebook profiles in a real browser: maintained by a platform lead, on a desk and on a phone, in both themes."""

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from fleet.models import Flavor
from notebooks.profile_desk import actions
from provisioning.models import Tenancy
from tests.browser.conftest import LOOKS, Open, overflow, violations
from tests.notebooks.documents import A100, CPU
from tests.scene import Scene

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_a_profile_is_written_published_and_deprecated(
    scene: Scene, open_page: Open, size: str, theme: str
) -> None:
    lead, flavor = scene.priya, Flavor.objects.get(pk=scene.flavor.pk)
    actions.save(CPU, by=lead, now=timezone.now())
    actions.publish("cpu", by=lead)
    text = A100.replace("flavor: a100", f"flavor: {flavor.name}").replace(
        "[vision, nlp]", f"[{scene.team.slug}]"
    )
    page = open_page(lead, "/profiles", size=size, theme=theme)
    looks_right(page)
    page.get_by_role("link", name="New profile").click()
    page.get_by_label("The profile as YAML").fill(text)
    looks_right(page)
    page.get_by_role("button", name="Save as a draft").click()
    expect(page.get_by_role("heading", name="What KubeSpawner gets")).to_be_visible()
    looks_right(page)
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("People can choose 1 × A100.")).to_be_visible()
    page.get_by_role("link", name="Deprecate or retire").click()
    page.get_by_label("Why").fill("Its image is old.")
    page.get_by_label("What to choose instead").select_option("cpu")
    looks_right(page)
    page.get_by_role("button", name="Deprecate").click()
    expect(page.get_by_text("People are offered")).to_be_visible()
    looks_right(page)


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_people_see_what_a_notebook_costs_and_whether_it_starts(
    scene: Scene, open_page: Open, size: str, theme: str
) -> None:
    lead, now = scene.priya, timezone.now()
    many = A100.replace("flavor: a100", f"flavor: {scene.flavor.name}").replace(
        "teams: [vision, nlp]\n", ""
    )
    for text in (
        CPU,
        many,
        f"{CPU}environments: [production]\n".replace("slug: cpu", "slug: served"),
    ):
        made = actions.save(text, by=lead, now=now)
        actions.publish(made.profile.slug, by=lead)
    actions.deprecate("cpu", by=lead, reason="Its image is old.", successor="a100-1")
    Tenancy.objects.filter(pk=scene.tenancy.pk).update(observed_generation=1)
    page = open_page(
        scene.ada, f"/teams/{scene.team.slug}/notebooks", size=size, theme=theme
    )
    expect(page.get_by_role("heading", name="1 × A100")).to_be_visible()
    looks_right(page)
    page.get_by_role("link", name="Ask for 1 GPU").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert "purpose=notebook" in page.url


def looks_right(page: Page) -> None:
    """Nothing is wrong for readers, and nothing is wider than the screen."""
    assert violations(page) == []
    assert overflow(page) <= 0
