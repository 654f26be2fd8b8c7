"""The guide of docs/guide, and what it leads to, as parts of pages: Markdown in, HTML that is safe to show out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from django.conf import settings
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.text import slugify
from markdown_it import MarkdownIt
from markdown_it.token import Token

# What the product shows, under what somebody wants to do, by the last part of its address; the guide itself has none.
Group = Mapping[str, str]
FOR_TEAMS: Mapping[str, Group] = {
    "Get GPUs and keep them": {
        "": "guide/README.md",
        "decisions": "explanation/decisions.md",
        "ends": "explanation/ends.md",
        "tenancy": "reference/tenancy.md",
    },
    "Find out why work waits or fails": {
        "waiting": "explanation/waiting.md",
        "compare-versions": "how-to/compare-versions.md",
        "keep-service-levels": "how-to/keep-service-levels.md",
    },
    "See what is there and what it costs": {
        "quota-chain": "explanation/quota-chain.md",
        "capacity": "how-to/capacity.md",
        "costs": "how-to/report-costs.md",
    },
}
FOR_LEADS: Mapping[str, Group] = {
    "Add clusters and keep them well": {
        "add-a-cluster": "how-to/add-a-cluster.md",
        "add-a-flavor": "how-to/add-a-flavor.md",
        "maintain-a-cluster": "how-to/maintain-a-cluster.md",
        "unreachable-cluster": "how-to/unreachable-cluster.md",
        "drift": "how-to/drift.md",
        "watch-the-portal": "how-to/watch-the-portal.md",
    },
    "Choose what teams can have": {
        "run-the-catalogue": "how-to/run-the-catalogue.md",
        "templates": "how-to/keep-templates.md",
        "profiles": "how-to/maintain-profiles.md",
        "change-the-policy": "how-to/change-the-policy.md",
        "change-a-budget": "how-to/change-a-budget.md",
        "offboard-a-team": "how-to/offboard-a-team.md",
    },
    "Work with Azure": {
        "connect-azure": "how-to/connect-azure.md",
        "reserve-capacity": "how-to/reserve-capacity.md",
        "prices": "how-to/prices.md",
        "directory": "explanation/directory.md",
    },
    "Tell people and programs": {
        "notices": "how-to/notices.md",
        "webhooks": "how-to/start-automation-by-webhooks.md",
    },
}
PAGES: Group = {
    name: path
    for group in (*FOR_TEAMS.values(), *FOR_LEADS.values())
    for name, path in group.items()
}
# The pictures of these documents, by their names in docs/images.
PICTURES = frozenset({"capacity.png", "chain.png", "limit.png", "reservation.png"})
# What is shown elsewhere in the product.
ELSEWHERE: Mapping[str, str] = {"reference/api.md": "/api/docs/"}
SCROLLED = 'role="region" tabindex="0"'
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
OUTSIDE = re.compile(r"https?://|mailto:")


@dataclass(frozen=True)
class Section:
    """A heading of the second level, with its place on the page."""

    title: str
    anchor: str


@dataclass(frozen=True)
class Page:
    """A document: its title, its sections, and the text below the title."""

    title: str
    sections: tuple[Section, ...]
    html: SafeString


@lru_cache(maxsize=len(PAGES))
def page_of(name: str) -> Page:
    """A document as it is shown, read once per process; raises KeyError for one that is not."""
    path = PAGES[name]
    text = COMMENT.sub("", (Path(settings.BASE_DIR) / "docs" / path).read_text())
    return rendered(text, path=path)


def picture_of(name: str) -> bytes:
    """A picture of the documents as a PNG; raises KeyError for any other name."""
    if name not in PICTURES:
        raise KeyError(name)
    return (Path(settings.BASE_DIR) / "docs" / "images" / name).read_bytes()


def rendered(text: str, *, path: str) -> Page:
    """Markdown as a page: HTML in it is shown as text, links lead to what the product shows, or are none.

    A picture that the product does not have is its description.
    """
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    title, sections = "", []
    for token, inline in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type != "heading_open" or inline is None:
            continue
        words = _words(inline)
        token.attrSet("id", slugify(words))
        if token.tag == "h1":
            title = words
        elif token.tag == "h2":
            sections.append(Section(words, slugify(words)))
    body = list(_dressed(_without_title(tokens), path=path))
    html = markdown.renderer.render(body, markdown.options, {})
    # Markdown-it escapes all HTML that is not its own, and refuses addresses that run something.
    return Page(title, tuple(sections), SafeString(html))  # nosec B703


def _words(inline: Token) -> str:
    return "".join(
        child.content
        for child in inline.children or []
        if child.type in ("text", "code_inline")
    )


def _without_title(tokens: Sequence[Token]) -> list[Token]:
    """The page has its title as a heading already."""
    start = next((at for at, token in enumerate(tokens) if token.tag == "h1"), None)
    return list(tokens) if start is None else [*tokens[:start], *tokens[start + 3 :]]


def _dressed(tokens: Sequence[Token], *, path: str) -> Iterator[Token]:
    """The tokens as the product's own parts, with links that lead somewhere.

    Tables and blocks of code scroll by themselves, by keyboard too: no page is wider than a phone because of them.
    """
    for token in tokens:
        if token.type == "table_open":
            token.attrSet("class", "table")
            yield _html(f'<div class="table-wrap" {SCROLLED} aria-label="Table">\n')
            yield token
        elif token.type == "table_close":
            yield token
            yield _html("</div>\n")
        elif token.type in ("fence", "code_block"):
            code = escape(token.content)
            yield _html(
                f'<pre class="code" {SCROLLED} aria-label="Code"><code>{code}</code></pre>\n'
            )
        else:
            if token.type == "inline":
                token.children = list(_linked(token.children or [], path=path))
            yield token


def _html(text: str) -> Token:
    return Token("html_block", "", 0, content=text)


def _linked(children: Sequence[Token], *, path: str) -> Iterator[Token]:
    leads = False
    for child in children:
        if child.type == "image":
            yield _pictured(child, path=path)
            continue
        if child.type == "link_open":
            href = _href(str(child.attrGet("href") or ""), path=path)
            leads = bool(href)
            if not leads:
                continue
            child.attrSet("href", href)
            child.attrSet("class", "link")
        elif child.type == "link_close" and not leads:
            continue
        yield child


def _pictured(image: Token, *, path: str) -> Token:
    """The picture with its address in the product, or its description where the product does not have it."""
    folder, _, name = _file(str(image.attrGet("src") or ""), path=path).rpartition("/")
    if folder != "images" or name not in PICTURES:
        return Token("text", "", 0, content=image.content)
    image.attrSet("src", reverse("help-picture", args=[name]))
    return image


def _file(target: str, *, path: str) -> str:
    """The file below docs to which a document refers."""
    parts: list[str] = []
    for part in (PurePosixPath(path).parent / target).parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
    return "/".join(parts)


def _href(href: str, *, path: str) -> str:
    """Where a link of a document leads in the product; empty for what the product does not show."""
    if OUTSIDE.match(href) or href.startswith("#"):
        return href
    target, _, anchor = href.partition("#")
    found = _file(target, path=path)
    if found in ELSEWHERE:
        return ELSEWHERE[found]
    name = next((name for name, shown in PAGES.items() if shown == found), None)
    if name is None:
        return ""
    return address_of(name) + (f"#{anchor}" if anchor else "")


def address_of(name: str) -> str:
    """The address of a document in the product."""
    return reverse("help-page", args=[name]) if name else reverse("help")
