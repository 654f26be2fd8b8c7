"""Sections, dialogs and the entries of the phone bar."""

from collections.abc import Sequence

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import slugify

from ui.parts import RailEntry
from ui.words import icon

register = template.Library()


@register.simple_block_tag
def panel(
    content: str, title: str, note: object = "", plain: bool = False, id: str = ""
) -> SafeString:
    """A titled section; `plain` has no border."""
    anchor = id or slugify(title)
    head = format_html('<h2 id="{}-title" dir="auto">{}</h2>', anchor, title)
    tail = format_html('<p class="panel__note">{}</p>', note) if note else ""
    kind = "panel panel--plain" if plain else "panel"
    return format_html(
        '<section class="{}" id="{}" aria-labelledby="{}-title"><div class="panel__head">{}{}</div>{}</section>',
        kind,
        anchor,
        anchor,
        head,
        tail,
        content,
    )


@register.simple_block_tag
def dialog(content: str, id: str, title: str) -> SafeString:
    """A dialog, opened by `{% button … opens=id %}`, closed by Escape, its cross or a click beside it."""
    return format_html(
        '<dialog class="dialog" id="{0}" aria-labelledby="{0}-title"><div class="dialog__head">'
        '<h2 id="{0}-title">{1}</h2><button type="button" class="button button--quiet button--icon" commandfor="{0}" '
        'command="close" aria-label="Close">{2}</button></div><div class="dialog__body">{3}</div></dialog>',
        id,
        title,
        icon("x"),
        content,
    )


@register.filter
def bar_items(rail: Sequence[RailEntry] | None) -> list[RailEntry]:
    """The at most four entries of the phone's bottom bar: those with `bar`, else the first four.

    Without `bar`, an entry with a count takes the fourth place: what waits must be in sight.
    """
    entries = list(rail or ())
    wanted = [item for item in entries if item.get("bar")] or entries
    waiting = [item for item in wanted[4:] if item.get("count")]
    return [*wanted[:3], *(waiting or wanted[3:])[:1]]


@register.filter
def more_items(rail: Sequence[RailEntry] | None) -> list[RailEntry]:
    """What does not fit into the phone's bottom bar."""
    shown = bar_items(rail)
    return [item for item in rail or () if item not in shown]
