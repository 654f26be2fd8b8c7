"""A message as an Adaptive Card for Teams Workflows and in Block Kit for Slack. Pure."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from notices.rendering import MARKS, Entry

ADAPTIVE = "application/vnd.microsoft.card.adaptive"
SCHEMA = "http://adaptivecards.io/schemas/adaptive-card.json"
COLORS = {"ok": "Good", "no": "Attention", "note": "Warning", "allowed": "Default"}
LONGEST_HEADER = 150
LONGEST_SECTION = 3000
MOST_FIELDS = 10
# Teams takes 28 kB, envelope included.
LARGEST_CARD = 25_000
# What begins a link or an emphasis in Teams.
MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_["})
SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def teams(entry: Entry) -> dict[str, Any]:
    """The body that a Teams Workflows webhook takes; its one button opens the page."""
    said = entry.message
    body: list[dict[str, Any]] = [
        {
            "type": "TextBlock",
            "text": _plain(said.title),
            "size": "Medium",
            "weight": "Bolder",
            "wrap": True,
        },
        {"type": "TextBlock", "text": _plain(said.sentence), "wrap": True},
    ]
    body += [
        {
            "type": "TextBlock",
            "text": _plain(f"{MARKS[mark]} {text}{_limit(limit)}"),
            "color": COLORS[mark],
            "wrap": True,
            "spacing": "Small",
        }
        for mark, text, limit in said.rules
    ]
    if said.facts:
        facts = [
            {"title": _plain(label), "value": _plain(value)}
            for label, value in said.facts
        ]
        body.append({"type": "FactSet", "facts": facts})
    card = {
        "$schema": SCHEMA,
        "type": "AdaptiveCard",
        "version": "1.5",
        "body": body,
        "actions": [{"type": "Action.OpenUrl", "title": said.action, "url": entry.url}],
        "msteams": {"width": "Full"},
    }
    envelope = {
        "type": "message",
        "attachments": [{"contentType": ADAPTIVE, "contentUrl": None, "content": card}],
    }
    if len(json.dumps(envelope, ensure_ascii=False).encode()) > LARGEST_CARD and (
        said.rules or said.facts
    ):
        return teams(replace(entry, message=replace(said, rules=(), facts=())))
    return envelope


def slack(entry: Entry) -> dict[str, Any]:
    """The body that a Slack webhook takes; `text` is what a notification shows."""
    said = entry.message
    blocks: list[dict[str, Any]] = [
        {
            "type": "header",
            "text": {
                "type": "plain_text",
                "text": said.title[:LONGEST_HEADER],
                "emoji": False,
            },
        },
        *_sections([said.sentence]),
        *_sections(
            f"{MARKS[mark]} {text}{_limit(limit)}" for mark, text, limit in said.rules
        ),
    ]
    for start in range(0, len(said.facts), MOST_FIELDS):
        rows = said.facts[start : start + MOST_FIELDS]
        blocks.append(
            {
                "type": "section",
                "fields": [_verbatim(f"*{label}*\n{value}") for label, value in rows],
            }
        )
    button = {
        "type": "button",
        "text": {"type": "plain_text", "text": said.action, "emoji": False},
        "url": entry.url,
    }
    blocks.append({"type": "actions", "elements": [button]})
    return {"text": said.title.translate(SLACK), "blocks": blocks}


def _plain(text: str) -> str:
    """The text without a meaning to Teams: no links, no emphasis, no lists."""
    escaped = text.translate(MARKDOWN)
    return f"\\{escaped}" if escaped[:1] in ("-", "+", ">") else escaped


def _limit(limit: str) -> str:
    return f" ({limit})" if limit else ""


def _sections(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Lines of text in as few sections as they fit into."""
    packed = ""
    for line in lines:
        escaped = _cut(line, LONGEST_SECTION)
        if packed and len(packed) + 1 + len(escaped) > LONGEST_SECTION:
            yield _section(packed)
            packed = ""
        packed = f"{packed}\n{escaped}" if packed else escaped
    if packed:
        yield _section(packed)


def _section(escaped: str) -> dict[str, Any]:
    return {
        "type": "section",
        "text": {"type": "mrkdwn", "text": escaped, "verbatim": True},
    }


def _cut(text: str, most: int) -> str:
    """The text as Slack takes it, cut before it is too long, never inside an escape."""
    while len(escaped := text.translate(SLACK)) > most:
        text = text[: len(text) * most // len(escaped) - 1]
    return escaped


def _verbatim(text: str) -> dict[str, Any]:
    """Text in which only our own asterisks mean something: no mentions, no links made of words."""
    return {"type": "mrkdwn", "text": text.translate(SLACK), "verbatim": True}
