"""What Teams Workflows and Slack take, and how they refuse the rest."""

from typing import Any

ADAPTIVE = "application/vnd.microsoft.card.adaptive"
LARGEST_CARD = 28 * 1024
MOST_BLOCKS = 50
MOST_FIELDS = 10
LONGEST = {"header": 150, "section": 3000, "field": 2000, "button": 75}


def teams_title(body: Any) -> str | None:
    """Return the first text of an Adaptive Card in its envelope, None for what is no such thing."""
    try:
        (attachment,) = body["attachments"]
        card = attachment["content"]
        fits = body["type"] == "message" and attachment["contentType"] == ADAPTIVE
        fits = (
            fits
            and card["type"] == "AdaptiveCard"
            and card["version"] in ("1.0", "1.2", "1.4", "1.5")
        )
        # A card in a channel has nobody who could take an Action.Submit or Action.Execute.
        fits = fits and all(
            action["type"] == "Action.OpenUrl" for action in card.get("actions", [])
        )
        return str(card["body"][0]["text"]) if fits else None
    except (KeyError, TypeError, ValueError, IndexError):
        return None


def slack_title(body: Any) -> str | None:
    """Return the fallback text of a message in Block Kit, None when Slack would say `invalid_blocks`."""
    try:
        blocks = body["blocks"]
        fits = 0 < len(blocks) <= MOST_BLOCKS and all(
            _block_fits(block) for block in blocks
        )
        return str(body["text"]) if fits else None
    except (KeyError, TypeError):
        return None


def _block_fits(block: dict[str, Any]) -> bool:
    kind = block["type"]
    if kind in ("header", "section") and "text" in block:
        text = block["text"]
        right = (
            text["type"] == "plain_text"
            if kind == "header"
            else text["type"] in ("plain_text", "mrkdwn")
        )
        return right and 0 < len(text["text"]) <= LONGEST[kind]
    if kind == "section":
        fields = block["fields"]
        return 0 < len(fields) <= MOST_FIELDS and all(
            0 < len(one["text"]) <= LONGEST["field"] for one in fields
        )
    if kind == "actions":
        return all(
            one["type"] == "button" and len(one["text"]["text"]) <= LONGEST["button"]
            for one in block["elements"]
        )
    return kind in ("divider", "context")
