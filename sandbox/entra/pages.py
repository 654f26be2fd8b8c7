"""The sign-in pages: plain HTML that needs no script, no picture and no other file."""

from collections.abc import Iterable
from html import escape

from starlette.responses import HTMLResponse

from sandbox.world import Person

STYLE = """
:root{color-scheme:light dark;
--page:#f3f4f6;--card:#fff;--text:#1b1f24;--soft:#57606a;--line:#8c959f;--ink:#0b57d0}
@media(prefers-color-scheme:dark){:root{--page:#0f1216;--card:#1a1f26;--text:#e8ebef;--soft:#a8b1bb;
--line:#6b7580;--ink:#8ab4f8}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.5rem;background:var(--page);
color:var(--text);font:1rem/1.5 system-ui,sans-serif}
main{width:100%;max-width:27rem;padding:2rem;background:var(--card);border-radius:.75rem;
box-shadow:0 1px 3px #0003,0 8px 24px #0001}
h1{margin:0 0 .25rem;font-size:1.375rem;line-height:1.3}
p{margin:0 0 1.25rem;color:var(--soft)}
ul{list-style:none;margin:0 0 1rem;padding:0;display:grid;gap:.5rem}
button{width:100%;min-height:3rem;padding:.5rem .875rem;text-align:left;
font:inherit;color:inherit;background:none;
border:1px solid var(--line);border-radius:.5rem;cursor:pointer}
button:hover{border-color:var(--ink)}
button:focus-visible,a:focus-visible,summary:focus-visible{outline:3px solid var(--ink);outline-offset:2px}
button strong{display:block;font-weight:600}
button span{color:var(--soft);font-size:.875rem}
button.quiet{border:0;min-height:2.75rem;text-align:center;color:var(--ink)}
summary{padding:.625rem 0;color:var(--ink);cursor:pointer}
.refused{padding:.75rem 1rem;border-left:4px solid #d1242f;
background:#d1242f14;color:var(--text);overflow-wrap:anywhere}
"""
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; "
    "form-action 'self' http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:*"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def sign_in(
    people: Iterable[Person], first: Person | None, refusal: str = "", status: int = 200
) -> HTMLResponse:
    """Return the page that asks who you are; with `first`, the others are folded away."""
    others = "".join(_choice(person) for person in people if person is not first)
    if first is None:
        choices = f"<ul>{others}</ul>"
    else:
        choices = f"<ul>{_choice(first)}</ul><details><summary>Somebody else</summary><ul>{others}</ul></details>"
    body = (
        "<h1>Sign in</h1><p>Sandbox directory. Choose who you are; no password is needed.</p>"
        f'{_alert(refusal)}<form method="post">{choices}'
        '<button class="quiet" name="cancel" value="1">Cancel</button></form>'
    )
    return _page("Sign in", body, status)


def refused(refusal: str) -> HTMLResponse:
    """Return the page for requests that must not be sent back to where they came from."""
    return _page(
        "Cannot sign in",
        f"<h1>Sorry, but we’re having trouble signing you in.</h1>{_alert(refusal)}",
        400,
    )


def signed_out() -> HTMLResponse:
    """Return the page after signing out with nowhere to go."""
    return _page(
        "Signed out",
        "<h1>You signed out of your account</h1><p>Close this window when done.</p>",
        200,
    )


def _choice(person: Person) -> str:
    name, detail = escape(person.name), escape(f"{person.title} · {person.mail}")
    return (
        f'<li><button name="person" value="{escape(person.oid)}">'
        f"<strong>{name}</strong><span>{detail}</span></button></li>"
    )


def _alert(text: str) -> str:
    return f'<p class="refused" role="alert">{escape(text)}</p>' if text else ""


def _page(title: str, body: str, status: int) -> HTMLResponse:
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>'
        f'{escape(title)}</title><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main>"
    )
    return HTMLResponse(f"{head}{body}</main></body></html>", status, HEADERS)
