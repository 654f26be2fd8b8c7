"""The inbox as a page: plain HTML that needs no script."""

import json
from collections.abc import Iterable
from html import escape
from typing import Any

from starlette.responses import HTMLResponse

STYLE = """
:root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}
body{margin:0 auto;max-width:52rem;padding:1.5rem}
h1{font-size:1.375rem}
article{border-top:1px solid #8886;padding:1rem 0}
h2{margin:0;font-size:1rem}
p{margin:.125rem 0;opacity:.8}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.5rem 0 0}
"""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
WAYS = {
    "smtp": "E-mail",
    "teams": "Teams",
    "slack": "Slack",
    "webhook": "Webhook",
}


def inbox(messages: Iterable[dict[str, Any]]) -> HTMLResponse:
    """Return the page with every message, the newest first."""
    rows = "".join(_row(message) for message in messages)
    return _page("Inbox of the sandbox", rows or "<p>Nothing has arrived yet.</p>")


def mail(message: dict[str, Any]) -> HTMLResponse:
    """Return a mail's HTML as a mail program shows it."""
    return HTMLResponse(
        message.get("html") or escape(str(message.get("text", ""))), headers=HEADERS
    )


def _row(message: dict[str, Any]) -> str:
    to = ", ".join(message.get("to", [])) or "the channel"
    about = f"{WAYS[message['way']]} to {to}, {message['at']}"
    if message["way"] == "smtp":
        text = str(message["text"])
        about += f' · <a href="/messages/{message["number"]}/html">as HTML</a>'
    else:
        text = json.dumps(message["body"], indent=1, ensure_ascii=False)
    return f"<article><h2>{escape(message['title'])}</h2><p>{about}</p><pre>{escape(text)}</pre></article>"


def _page(title: str, body: str) -> HTMLResponse:
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
        f"<body><main><h1>{title}</h1>{body}</main></body></html>",
        headers=HEADERS,
    )
