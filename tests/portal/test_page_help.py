"""Help inside the product: the guide as pages, found by name, linked from where people get stuck, and shipped."""

import re
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from portal.guide import (
    FOR_LEADS,
    FOR_TEAMS,
    PAGES,
    PICTURES,
    address_of,
    page_of,
    rendered,
)
from scripts.packages import ROOT
from tests import factories
from tests.pages import parsed

ANCHOR = re.compile(r"{% url 'help' %}#([a-z0-9-]+)")


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    """Signed in, without a role or a team."""
    client.force_login(factories.person("Ada Okafor"))
    return client


def test_the_guide_is_a_page_with_its_sections(reader: Client) -> None:
    page = reader.get("/help/").content.decode()
    assert "<h1" in page
    assert "Use your GPUs" in page
    assert '<h2 id="a-first-job">A first job</h2>' in page
    assert 'href="#a-first-job"' in page
    assert "<code>kueue.x-k8s.io/queue-name: default</code>" in page
    assert 'href="/help/"' in reader.get("/").content.decode()


@pytest.mark.parametrize("name", [name for name in PAGES if name])
def test_what_the_guide_leads_to_is_shown_too(reader: Client, name: str) -> None:
    answer = reader.get(address_of(name))
    assert answer.status_code == 200
    assert page_of(name).title in answer.content.decode()


def test_every_link_of_every_page_leads_somewhere(reader: Client) -> None:
    """No link is left to a file that only the repository has, and every anchor is on its page."""
    for name in PAGES:
        here = address_of(name)
        for href in re.findall(r'href="([^"]+)"', page_of(name).html):
            path, _, anchor = href.partition("#")
            assert path.startswith(("/", "https://")) or not path, href
            if anchor:
                shown = reader.get(path or here).content.decode()
                assert f'id="{anchor}"' in shown, href
    assert f'href="{address_of("tenancy")}"' in page_of("").html
    assert 'href="/api/docs/"' in page_of("").html


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_every_picture_and_link_of_a_page_answers(reader: Client, name: str) -> None:
    """The links among the other documents, too; each picture has a description."""
    document = parsed(reader.get(address_of(name)).content.decode())
    main = next(each for each in document.walk() if each.tag == "main")
    for element in main.walk():
        address = element.attrs.get("src" if element.tag == "img" else "href", "")
        if not address.startswith("/"):
            assert element.tag != "img"
            continue
        answer = reader.get(address)
        assert answer.status_code == 200, address
        if element.tag == "img":
            assert answer["Content-Type"] == "image/png"
            assert answer.content.startswith(b"\x89PNG")
            assert element.attrs["alt"]


def test_pictures_are_those_of_the_documents_and_no_other_file(reader: Client) -> None:
    shown = {
        src.rpartition("/")[2]
        for name in PAGES
        for src in re.findall(r'src="([^"]+)"', page_of(name).html)
    }
    assert shown == PICTURES
    for name in ("ask-2.png", "nothing.png", "..%2Fglossary.md", "..", "CHAIN.png"):
        assert reader.get(f"/help/images/{name}").status_code == 404
    assert Client().get("/help/images/chain.png").status_code == 302


def test_a_picture_that_the_product_does_not_have_is_its_description() -> None:
    page = rendered(
        "![A team's page](../images/team.png) ![Elsewhere](https://example.com/x.png)",
        path="how-to/capacity.md",
    )
    assert "<img" not in page.html
    assert "A team's page" in page.html
    assert "Elsewhere" in page.html


def test_what_is_not_shown_is_not_there(reader: Client) -> None:
    for name in ("nothing", "install", "readme"):
        assert reader.get(f"/help/{name}/").status_code == 404


def test_html_in_a_document_is_shown_and_not_run() -> None:
    page = rendered(
        "# T\n\n<script>alert(1)</script>\n\n[x](javascript:alert(1)) [y](../how-to/install.md) <b>z</b>",
        path="guide/README.md",
    )
    assert page.title == "T"
    assert "<script" not in page.html
    assert "<b>" not in page.html
    assert "&lt;script&gt;" in page.html
    assert (
        "<a" not in page.html
    )  # neither what runs something nor what only the repository has


def test_the_palette_finds_sections(reader: Client) -> None:
    found = reader.get(
        "/palette?q=queue wait", headers={"HX-Request": "true"}
    ).content.decode()
    assert 'href="/help/#queue-and-waiting"' in found
    assert (
        "/help/#"
        not in reader.get(
            "/palette?q=", headers={"HX-Request": "true"}
        ).content.decode()
    )


def test_pages_where_people_get_stuck_lead_to_the_section_that_helps(
    reader: Client,
) -> None:
    """Every anchor that a template names is a section of the guide."""
    anchors = {section.anchor for section in page_of("").sections}
    linked: dict[str, set[str]] = {}
    for template in (ROOT / "templates").rglob("*.html"):
        if found := set(ANCHOR.findall(template.read_text())):
            linked[template.relative_to(ROOT / "templates").as_posix()] = found
    assert {
        "approvals/request_new.html",
        "onboarding/use_panel.html",
        "onboarding/who.html",
    } <= set(linked)
    assert set().union(*linked.values()) <= anchors
    assert reverse("help") == "/help/"


def test_a_cluster_in_trouble_leads_to_what_is_to_be_done(reader: Client) -> None:
    there = factories.cluster(reachable=False, message="403 Forbidden")
    for address in ("/clusters/", reverse("cluster", args=[there.name])):
        page = reader.get(address).content.decode()
        assert f'href="{address_of("unreachable-cluster")}"' in page
    assert "For platform leads" in reader.get("/help/").content.decode()


def test_other_documents_stand_under_what_one_wants_to_do(reader: Client) -> None:
    """Each of them once, and none that is shown already."""
    groups = [*FOR_TEAMS.values(), *FOR_LEADS.values()]
    assert sum(map(len, groups)) == len(PAGES)
    assert max(map(len, groups)) <= 6
    page = parsed(reader.get(address_of("drift")).content.decode())
    more = next(
        each
        for each in page.walk()
        if each.tag == "nav" and each.attrs.get("aria-labelledby") == "more-help"
    )
    heads = [each.words for each in more.walk() if each.tag == "h3"]
    assert {*FOR_TEAMS, *FOR_LEADS} < {*heads}
    shown = [each.attrs["href"] for each in more.walk() if each.tag == "a"]
    assert sorted(shown) == sorted(
        [address_of(name) for name in PAGES if name != "drift"] + ["/api/docs/"]
    )


def test_the_image_ships_what_help_shows() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert "COPY docs docs" in (ROOT / "Dockerfile").read_text()
    pictures = (f"images/{name}" for name in PICTURES)
    for path in (*PAGES.values(), *pictures):
        file = Path("docs") / path
        assert (ROOT / file).is_file()
        assert any(
            f"!{part.as_posix()}" in ignored for part in (file, *file.parents)
        ), file
