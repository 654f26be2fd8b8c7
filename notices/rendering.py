"""A message as a mail: text and HTML that say the same. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from html import escape

from notices.message import LONGEST_TITLE, Message, one_line

MARKS = {"ok": "✓", "no": "✕", "note": "!", "allowed": "i"}
# A mail brings its looks along: programs that show mail load no style sheet.
FONT = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
# Programs that show mail in the dark paint it black under the words: no one grey is read on both.
SOFT = "opacity:0.7"
LINE = "border-top:1px solid #a9b0b6"
BUTTON = "display:inline-block;padding:10px 16px;border-radius:6px;background:#0b5c66;color:#ffffff"
CELL = "padding:6px 16px 6px 0;vertical-align:top"


@dataclass(frozen=True)
class Rendered:
    """A mail's subject, without line breaks, and its two bodies."""

    subject: str
    text: str
    html: str


@dataclass(frozen=True)
class Entry:
    """One message with the whole address of its page."""

    message: Message
    url: str


def mail(entry: Entry, *, settings_url: str) -> Rendered:
    """One message as a mail; `settings_url` is where its reader chooses what to be told."""
    return Rendered(
        subject=one_line(entry.message.title, LONGEST_TITLE),
        text=_text(entry) + _text_foot(settings_url),
        html=_document(_html(entry, heading="h1"), settings_url),
    )


def digest(entries: Sequence[Entry], *, day: date, settings_url: str) -> Rendered:
    """What happened on a day as one mail, in order of time."""
    count = f"{len(entries)} notice{'' if len(entries) == 1 else 's'}"
    return gathered(
        entries,
        title=f"{count}, {day:%a} {day.day} {day:%b}",
        settings_url=settings_url,
    )


def gathered(entries: Sequence[Entry], *, title: str, settings_url: str) -> Rendered:
    """Several messages as one mail under a title, in their order."""
    head = f'<h1 style="font-size:20px;margin:0 0 16px">{escape(title)}</h1>'
    parts = (
        f'<div style="{LINE};padding:16px 0">{_html(entry, heading="h2")}</div>'
        for entry in entries
    )
    return Rendered(
        subject=title,
        text="\n\n----\n\n".join(_text(entry) for entry in entries)
        + _text_foot(settings_url),
        html=_document(head + "".join(parts), settings_url),
    )


def _text(entry: Entry) -> str:
    said = entry.message
    lines = [said.title, "", said.sentence]
    if said.facts:
        lines += ["", *(f"{label}: {value}" for label, value in said.facts)]
    # What there is to do comes before the list of rules, which nobody has to read to its end.
    lines += ["", f"{said.action}: {entry.url}"]
    if said.rules:
        lines += [
            "",
            *(
                f"{MARKS[mark]} {text}{f' ({limit})' if limit else ''}"
                for mark, text, limit in said.rules
            ),
        ]
    return "\n".join(lines)


def _text_foot(settings_url: str) -> str:
    return f"\n\n-- \nQuartermaster. Choose what you are told: {settings_url}\n"


def _html(entry: Entry, *, heading: str) -> str:
    said = entry.message
    size = 20 if heading == "h1" else 16
    return (
        f'<{heading} style="font-size:{size}px;margin:0 0 8px">{escape(said.title)}</{heading}>'
        f'<p style="margin:0 0 16px">{escape(said.sentence)}</p>'
        f"{_rows(said.facts, soft=(SOFT, ''))}"
        f'<p style="margin:16px 0"><a href="{escape(entry.url)}" style="{BUTTON};text-decoration:none">'
        f"{escape(said.action)}</a></p>"
        f"{_rows([(f'{MARKS[mark]} {text}', limit) for mark, text, limit in said.rules], soft=('', SOFT))}"
    )


def _rows(rows: Sequence[tuple[str, str]], *, soft: tuple[str, str]) -> str:
    """Two columns; `soft` is how each one's words look: what stands out is what people look for."""
    if not rows:
        return ""
    cells = "".join(
        f'<tr><td style="{CELL};{soft[0]}">{escape(left)}</td><td style="{CELL};{soft[1]}">{escape(right)}</td></tr>'
        for left, right in rows
    )
    return f'<table role="presentation" style="border-collapse:collapse;margin:0 0 8px">{cells}</table>'


def _document(body: str, settings_url: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="color-scheme" content="light dark"><meta name="viewport" content="width=device-width"></head>'
        f'<body style="margin:0;padding:24px;{FONT};font-size:16px;line-height:1.5">'
        f'<div style="max-width:600px">{body}'
        f'<p style="{LINE};margin:24px 0 0;padding-top:12px;font-size:13px;{SOFT}">Quartermaster · '
        f'<a href="{escape(settings_url)}" style="{SOFT}">Choose what you are told</a></p></div></body></html>'
    )
