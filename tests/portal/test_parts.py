"""Every part renders what it promises, escaped and without anything the content policy forbids."""

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.template import engines
from django.test import RequestFactory, override_settings

from portal.gallery import page as gallery
from portal.templatetags.parts import register
from ui import drawing, formats

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def render(source: str, **context: Any) -> str:
    """A template's text with the tags loaded, as a page would have them."""
    return engines["django"].from_string("{% load parts %}" + source).render(context)


def gallery_page() -> str:
    """The whole gallery inside the frame."""
    context = {**gallery.samples(), **gallery.frame()}
    request = RequestFactory().get("/styleguide")
    return str(engines["django"].get_template("gallery.html").render(context, request))


class Checker(HTMLParser):
    """Collects what a strict content policy and readers would trip over."""

    void = frozenset({"meta", "link", "input", "br", "img", "hr"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.forbidden: list[str] = []
        self.refers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in self.void:
            self.open.append(tag)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        self.forbidden += [
            f"{tag} {name}"
            for name in given
            if name == "style" or name.startswith("on")
        ]
        if tag == "style" or (tag == "script" and "src" not in given):
            self.forbidden.append(tag)
        for name in (
            "aria-describedby",
            "aria-labelledby",
            "for",
            "commandfor",
            "aria-controls",
        ):
            self.refers += str(given.get(name) or "").split()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.void:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1:] == [tag], f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()


@pytest.fixture(autouse=True)
def _unhashed_files() -> Iterator[None]:
    storage = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    with override_settings(STORAGES={**settings.STORAGES, "staticfiles": storage}):
        yield


@pytest.fixture
def checked() -> tuple[Checker, str]:
    page = gallery_page()
    checker = Checker()
    checker.feed(page)
    return checker, page


def test_the_gallery_closes_every_element_it_opens(
    checked: tuple[Checker, str],
) -> None:
    assert checked[0].open == []


def test_the_gallery_has_nothing_inline(checked: tuple[Checker, str]) -> None:
    assert checked[0].forbidden == []


def test_ids_are_unique_and_every_reference_leads_somewhere(
    checked: tuple[Checker, str],
) -> None:
    checker, _ = checked
    assert len(checker.ids) == len(set(checker.ids))
    assert set(checker.refers) <= set(checker.ids)


def test_no_template_syntax_reaches_the_page(checked: tuple[Checker, str]) -> None:
    assert not re.search(r"\{[%#{]|[%#}]\}", checked[1])


def test_every_icon_used_is_in_the_sprite(checked: tuple[Checker, str]) -> None:
    sprite = (ROOT / "static/icons.svg").read_text()
    used = set(re.findall(r"icons[^\"]*\.svg#([\w-]+)", checked[1]))
    assert used
    assert used <= set(re.findall(r'<symbol id="([\w-]+)"', sprite))


def test_every_part_is_shown_in_the_gallery_and_documented() -> None:
    inner = {"rule_mark", "state_icon"}
    shown = "".join(
        path.read_text()
        for path in (ROOT / "templates").rglob("*.html")
        if "gallery" in str(path)
    )
    words = (ROOT / "docs/design-system.md").read_text()
    for name in set(register.tags):
        assert name in words, name
        assert (
            name in inner or re.search(r"{% " + name + r"\b", shown) or name in {"icon"}
        ), name


def test_typed_text_is_escaped_everywhere() -> None:
    bad = "<script>x</script>"

    page = (
        render(
            "{% state_badge 'good' bad %}{% figure bad bad bad bad %}{% problem bad %}{% copy_id bad %}",
            bad=bad,
        )
        + render(
            "{% panel bad %}{{ bad }}{% endpanel %}{% dialog 'd' bad %}{% enddialog %}",
            bad=bad,
        )
        + render(
            "{% money 1 bad formula=bad %}{% button bad key=bad %}{% when bad %}{% icon 'x' bad %}",
            bad=bad,
        )
        + render(
            "{% data_table bad cols rows %}",
            bad=bad,
            cols=[bad],
            rows=[{"cells": [bad]}],
        )
        + render(
            "{% verdict_strip v %}", v={"tone": "bad", "sentence": bad, "rules": []}
        )
    )

    assert "<script" not in page


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("1233.12", "$1,233"),
        ("3.674", "$3.67"),
        (4, "$4"),
        ("-9.5", "−$9.50"),
        (Decimal("9.999"), "$10.00"),
    ],
)
def test_money_shows_cents_only_below_ten_dollars(amount: Any, text: str) -> None:
    assert formats.dollars(amount) == text


def test_money_without_a_price_says_so() -> None:
    assert render("{% money none %}", none=None) == "no price"


def test_money_explains_itself_on_hover() -> None:
    html = render(
        "{% money 176 'a day' formula='2 × $3.67 × 24 h' priced_on='20 Nov 2026' %}"
    )

    assert 'title="2 × $3.67 × 24 h, prices of 20 Nov 2026"' in html


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (NOW + timedelta(days=7, hours=8, minutes=30), "Sat 28 Nov, 18:00 UTC"),
        (datetime(2027, 1, 4, 8, 0, tzinfo=UTC), "Mon 4 Jan 2027, 08:00 UTC"),
    ],
)
def test_a_moment_names_the_year_only_when_it_is_another(
    at: datetime, text: str
) -> None:
    assert f">{text}</time>" in render("{% when at now %}", at=at, now=NOW)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (8, "8 s ago"),
        (300, "5 min ago"),
        (7300, "2 h ago"),
        (3 * 86400, "3 days ago"),
        (-60, "in 1 min"),
    ],
)
def test_a_span_uses_one_unit(seconds: int, text: str) -> None:
    assert formats.relative(NOW - timedelta(seconds=seconds), NOW) == text


def test_a_capacity_bar_fills_its_frame_exactly() -> None:
    segments, over = drawing.capacity_segments(
        {"total": 24, "used": 11, "reserved": 5, "asked": 3, "blocked": 2}
    )

    assert [(s.kind, s.amount) for s in segments] == [
        ("used", 11),
        ("reserved", 5),
        ("asked", 3),
        ("free", 3),
        ("blocked", 2),
    ]
    assert sum(s.width for s in segments) == pytest.approx(100, abs=0.05)
    assert over == 0


def test_what_is_asked_for_is_free_until_it_is_granted() -> None:
    asked, _ = drawing.capacity_segments({"total": 24, "used": 8, "asked": 2})
    quiet, _ = drawing.capacity_segments({"total": 24, "used": 8})

    assert [(s.word, s.amount) for s in asked] == [
        ("Held", 8),
        ("Free, asked for", 2),
        ("Free, not asked for", 14),
    ]
    assert [(s.word, s.amount) for s in quiet] == [("Held", 8), ("Free", 16)]


def test_a_capacity_bar_says_what_is_asked_beyond_what_is_free() -> None:
    segments, over = drawing.capacity_segments({"total": 16, "used": 14, "asked": 6})

    assert over == 4
    assert max(s.x + s.width for s in segments) <= 100.01


def test_an_empty_pool_draws_nothing_wrong() -> None:
    segments, over = drawing.capacity_segments({"total": 0, "asked": 2})

    assert {s.width for s in segments} == {0.0}
    assert over == 2


def test_the_deciding_rule_comes_first() -> None:
    rules = [
        {"mark": "ok", "text": "first"},
        {"mark": "note", "text": "decides", "deciding": True},
    ]

    html = render(
        "{% verdict_strip v %}", v={"tone": "waiting", "sentence": "s", "rules": rules}
    )

    assert html.index("decides") < html.index("first")


def test_a_verdict_shows_the_deciding_rule_and_folds_the_others() -> None:
    rules = [{"mark": "note", "text": f"fails {n}", "deciding": True} for n in range(3)]
    rules += [
        {"mark": "no", "text": "forbids", "deciding": True},
        {"mark": "ok", "text": "holds"},
    ]

    html = render(
        "{% verdict_strip v %}", v={"tone": "bad", "sentence": "s", "rules": rules}
    )

    shown, folded = html.split("<details", 1)
    assert "forbids" in shown
    assert "fails 0" not in shown
    assert "3 more rules are not met · 1 is met" in folded


@pytest.mark.parametrize(
    ("met", "words"), [(1, "1 rule is met"), (17, "17 rules are met")]
)
def test_rules_that_are_all_met_are_called_rules(met: int, words: str) -> None:
    rules = [{"mark": "ok", "text": f"rule {number}"} for number in range(met)]

    html = render(
        "{% verdict_strip v %}", v={"tone": "good", "sentence": "s", "rules": rules}
    )

    assert f'<summary class="link">{words}</summary>' in html


def test_before_after_leaves_out_what_stays() -> None:
    html = render(
        "{% before_after rows %}", rows=[{"label": "Same", "before": 1, "after": 1}]
    )

    assert "Same" not in html
    assert "Nothing changes." in html


def test_a_checklist_is_folded_only_when_all_is_true() -> None:
    item = {"kind": "Namespace", "name": "n", "tone": "good", "word": "Ready"}

    assert '<details class="checklist">' in render(
        "{% object_checklist c %}", c={"title": "t", "items": [item]}
    )
    busy = render(
        "{% object_checklist c %}",
        c={"title": "t", "items": [item, {**item, "tone": "bad"}]},
    )
    assert " open>" in busy
    assert "1 of 2 ready, 1 failed" in busy


def test_a_field_ties_its_error_and_help_to_the_control() -> None:
    html = render(
        "{% error_summary form %}{% field form.gpus %}",
        form=gallery.samples()["refused"],
    )

    assert 'aria-describedby="again_gpus-help again_gpus-error"' in html
    assert 'aria-invalid="true"' in html
    assert 'href="#again_gpus"' in html


def test_the_phone_bar_holds_four_and_the_rest_is_under_more() -> None:
    rail = [{"label": str(n), "bar": n in (0, 2)} for n in range(7)]

    assert (
        render("{% for i in rail|bar_items %}{{ i.label }}{% endfor %}", rail=rail)
        == "02"
    )
    assert (
        render("{% for i in rail|more_items %}{{ i.label }}{% endfor %}", rail=rail)
        == "13456"
    )
    plain: list[dict[str, Any]] = [{"label": str(n)} for n in range(7)]
    assert (
        render("{% for i in rail|bar_items %}{{ i.label }}{% endfor %}", rail=plain)
        == "0123"
    )
    plain[5]["count"] = 3
    assert (
        render("{% for i in rail|bar_items %}{{ i.label }}{% endfor %}", rail=plain)
        == "0125"
    )


@pytest.mark.parametrize("code", [400, 403, 404, 409, 429, 500])
def test_an_error_page_needs_no_context(code: int) -> None:
    html = engines["django"].get_template(f"{code}.html").render({})

    assert '<h1 dir="auto">' in html
    assert "hanged" in html or "saved" in html or code == 404


def _luminance(colour: str) -> float:
    digits = colour if len(colour) == 6 else "".join(c * 2 for c in colour)
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    lights = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lights[0] + 0.05) / (lights[1] + 0.05)


TONES = ("waiting", "moving", "good", "ending", "bad", "past")
PAIRS = [
    *(
        (ink, surface)
        for ink in ("ink", "ink-2", "ink-3")
        for surface in ("page", "surface", "sunken", "hover")
    ),
    *(
        (tone, surface)
        for tone in TONES
        for surface in (f"{tone}-soft", "surface", "page")
    ),
    *(("ink", f"{tone}-soft") for tone in TONES),
    *(("accent", surface) for surface in ("page", "surface", "sunken", "accent-soft")),
    ("ink", "accent-soft"),
    ("ink-2", "accent-soft"),
    ("on-accent", "accent"),
    ("on-accent", "accent-hover"),
]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_stands_out_from_its_surface(theme: int) -> None:
    tokens = (ROOT / "frontend/css/tokens.css").read_text()
    pairs = re.findall(r"--([\w-]+): light-dark\(#(\w+), #(\w+)\)", tokens)
    colours = {name: (light, dark)[theme] for name, light, dark in pairs}

    weak = {
        pair: ratio
        for pair in PAIRS
        if (ratio := _contrast(colours[pair[0]], colours[pair[1]])) < 4.5
    }

    assert weak == {}
    assert (
        min(_contrast(colours["line-strong"], colours[s]) for s in ("page", "surface"))
        >= 3
    )


def test_only_the_tokens_name_a_colour() -> None:
    for sheet in (ROOT / "frontend/css").glob("*.css"):
        if sheet.name != "tokens.css":
            assert not re.search(
                r"#[0-9a-f]{3,8}\b(?![^{]*\{)|rgb\(|hsl\(|oklch\(", sheet.read_text()
            ), sheet.name


def test_vendored_files_are_the_ones_in_the_manifest() -> None:
    entries = json.loads((ROOT / "static/vendor/manifest.json").read_text())
    for entry in entries:
        assert (
            hashlib.sha256((ROOT / "static" / entry["file"]).read_bytes()).hexdigest()
            == entry["sha256"]
        )


def test_names_in_a_sentence_keep_to_themselves_and_nothing_becomes_markup() -> None:
    shown = engines["django"].from_string("{{ text|isolate }}")
    said = shown.render({"text": "דנה כהן asks for 4 × A100 <b>&"})
    assert said == "<bdi>דנה כהן</bdi> asks for 4 × A100 &lt;b&gt;&amp;"
    assert shown.render({"text": "Ada asks."}) == "Ada asks."
