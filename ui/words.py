"""Icons, states, moments, money, people: the small words inside a line."""

import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache

from django import template
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ui import formats
from ui.parts import Event, Person

register = template.Library()
Context = dict[str, object]

# Hebrew, Arabic and their neighbours, with the spaces and signs between their words.
_LETTER = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
FROM_RIGHT_TO_LEFT = re.compile(f"({_LETTER}(?:[\\w ’'.-]*{_LETTER})?[0-9]*)")

STATE_ICONS = {
    "waiting": "hourglass",
    "moving": "loader-circle",
    "good": "circle-check",
    "ending": "sunset",
    "bad": "circle-x",
    "past": "archive",
}
MARKS = {
    "ok": ("good", "check", "Fine"),
    "allowed": ("past", "info", "Allowed"),
    "no": ("bad", "x", "Not allowed"),
    "note": ("waiting", "triangle-alert", "Note"),
    "not_now": ("bad", "x", "Cannot be granted now"),
}


@register.simple_tag
def icon(name: str, label: str = "", large: bool = False) -> SafeString:
    """An icon of the sprite; hidden from readers unless it has a `label` of its own."""
    spoken = (
        format_html('role="img" aria-label="{}"', label)
        if label
        else SafeString('aria-hidden="true"')
    )
    kind = "icon icon--large" if large else "icon"
    return format_html(
        '<svg class="{}" {}><use href="{}#{}"></use></svg>',
        kind,
        spoken,
        static("icons.svg"),
        name,
    )


@register.simple_tag
def state_icon(tone: str) -> SafeString:
    """The icon of a tone: hourglass for waiting, check for good, and so on."""
    return icon(STATE_ICONS.get(tone, "circle"))


@register.simple_tag
def state_badge(tone: str, word: str, events: Sequence[Event] = ()) -> SafeString:
    """Icon and word in the tone's hue; with `events` a click opens them."""
    return _badge_with(tone, word, events) if events else _badge(tone, word)


# A list has the same few in all of its lines. By type, too: what is escaped already is another text.
@lru_cache(maxsize=256, typed=True)
def _badge(tone: str, word: str) -> SafeString:
    return _badge_with(tone, word, ())


def _badge_with(tone: str, word: str, events: Sequence[Event]) -> SafeString:
    return render_to_string(
        "parts/badge.html", {"tone": tone, "word": word, "events": events}
    )


@register.inclusion_tag("parts/rule_mark.html")
def rule_mark(mark: str) -> Context:
    """✓ ✕ ! i of a rule, or of a request that cannot be granted now: a key of MARKS, spoken as a word."""
    tone, name, label = MARKS[mark]
    return {"tone": tone, "name": name, "label": label}


@register.simple_tag
def when(at: datetime | str | None, now: datetime | None = None) -> str:
    """A moment as `<time>`, exact on hover, in the current time zone; a string is shown as it is."""
    if not isinstance(at, datetime):
        return at or ""
    local = timezone.localtime(at)
    text = formats.moment(local, timezone.localtime(now or timezone.now()))
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local.isoformat(),
        formats.exactly(local),
        text,
    )


@register.simple_tag
def ago(at: datetime, now: datetime | None = None) -> str:
    """A moment as "8 s ago" or "in 3 days" in a `<time>`, exact on hover; in a browser it goes on (times.js)."""
    local = timezone.localtime(at)
    now = now or timezone.now()
    return format_html(
        '<time datetime="{}" title="{}" data-ago="{}">{}</time>',
        local.isoformat(),
        formats.exactly(local),
        "ahead" if at > now else "past",
        formats.relative(at, now),
    )


@register.simple_tag
def money(
    amount: Decimal | float | str | None,
    period: str = "",
    formula: str = "",
    priced_on: str = "",
) -> str:
    """USD with its period; formula and price date on hover. None reads "no price"."""
    if amount is None:
        return "no price"
    hover = ", ".join(
        part
        for part in (formula, f"prices of {priced_on}" if priced_on else "")
        if part
    )
    title = format_html(' title="{}"', hover) if hover else ""
    tail = (
        format_html(' <span class="money__period">{}</span>', period) if period else ""
    )
    return format_html(
        '<span class="money"{}>{}{}</span>', title, formats.dollars(amount), tail
    )


@register.filter
def number(value: float | Decimal | None) -> str:
    """1234 → "1,234"; None is an en dash."""
    return "–" if value is None else formats.number(value)


@register.filter
def isolate(text: object) -> SafeString:
    """A sentence of the portal with the names in it that are written from right to left: each keeps to itself.

    Without that, such a name takes the signs beside it along, or, at the beginning, turns the whole sentence round.
    """
    if isinstance(text, SafeString):
        return text
    pieces = FROM_RIGHT_TO_LEFT.split(str(text))
    # A pattern that is caught stands at every second place.
    marked = (
        format_html("<bdi>{}</bdi>", piece) if at % 2 else piece
        for at, piece in enumerate(pieces)
    )
    return format_html_join("", "{}", ((piece,) for piece in marked))


@register.inclusion_tag("parts/person.html")
def person_chip(person: Person) -> Context:
    """Who, with role; `away_until` and `stand_in` are said when they are there."""
    names = str(person["name"]).split()
    initials = person.get("initials") or "".join(
        name[0] for name in (names[:1] + names[-1:])[: len(names)]
    )
    return {"person": person, "initials": initials.upper()}


@register.inclusion_tag("parts/copy_id.html")
def copy_id(value: str, label: str = "id") -> Context:
    """An identifier in full with a button that copies it."""
    return {"value": value, "label": label}
