"""Help in a real browser: no document is wider than a phone, and its code and tables scroll by themselves."""

import pytest
from playwright.sync_api import Page

from portal.guide import PAGES, address_of, page_of
from tests.browser.conftest import PHONE, Open, arrives, overflow, violations
from tests.scene import Scene

pytestmark = pytest.mark.slow
SCROLLED = ".guide :is(pre, .table-wrap)"


@pytest.mark.parametrize("name", PAGES)
def test_no_document_is_wider_than_a_phone(
    scene: Scene, open_page: Open, name: str
) -> None:
    page = open_page(scene.ada, address_of(name), size="phone", theme="dark")
    arrives(page, page_of(name).title)
    assert overflow(page) == 0
    assert violations(page) == []
    assert max(right_ends(page, ".guide > *")) <= PHONE["width"]
    assert all(
        page.locator(".guide img").evaluate_all(
            "all => all.map(one => one.naturalWidth)"
        )
    )


def test_wide_code_is_one_box_that_scrolls(scene: Scene, open_page: Open) -> None:
    page = open_page(scene.ada, address_of("profiles"), size="phone")
    arrives(page, page_of("profiles").title)
    wider = page.locator(SCROLLED).evaluate_all(
        "all => all.map(one => one.scrollWidth > one.clientWidth)"
    )
    assert any(wider)
    inside = page.locator(".guide pre > code").evaluate_all(
        "all => all.map(one => getComputedStyle(one).backgroundColor)"
    )
    assert set(inside) == {"rgba(0, 0, 0, 0)"}


def right_ends(page: Page, selector: str) -> list[float]:
    """How far to the right each element reaches."""
    return list(
        page.locator(selector).evaluate_all(
            "all => all.map(one => one.getBoundingClientRect().right)"
        )
    )
