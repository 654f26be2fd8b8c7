"""B3: the last page of 100,000 requests from the API, beside the first page of the same list."""

import base64
import json
from urllib.parse import parse_qsl, urlencode

from django.utils import timezone

from accounts.tokens.actions import create_token
from approvals.models import Request
from bench import rig, seed
from bench.calls import Page, path_of
from bench.results import Better, Measured

REQUESTS, LIMIT = 100_000, 50
PAIRS, CALLS = 7, 41
MOST = 1.2


def measure(on: rig.Rig) -> Measured:
    """Both pages with a token that sees every team, through gunicorn, in turns."""
    now = timezone.now()
    among = seed.crowd(now)
    # All decided, so that both pages have rows of one kind.
    seed.requests(among, count=REQUESTS, waiting=0, now=now)
    rig.settle(on)
    _, secret = create_token(
        user=among.lead, name="bench", scope="read", days=1, now=now
    )
    headers = {"Authorization": f"Bearer {secret}"}
    with rig.portal(on) as port:
        first = Page(port, f"/api/v1/requests/?limit={LIMIT}", headers, _is_first)
        last = Page(
            port, path_of_last(json.loads(first.text())["next"]), headers, _is_last
        )
        first.median(CALLS)
        last.median(CALLS)
        pairs = [(last.median(CALLS), first.median(CALLS)) for _ in range(PAIRS)]
    return Measured(
        what=f"API list of {REQUESTS:,}, last page of {LIMIT}; peer: the first page",
        portal=[1000 * last for last, _ in pairs],
        peer=[1000 * first for _, first in pairs],
        unit="ms",
        better=Better.PORTAL_OVER_PEER,
        most=MOST,
    )


def path_of_last(following: str) -> str:
    """The last page's address: a `next` link of the list with its row replaced by the one before the last page.

    That is the link which a caller gets who follows `next` all the way, without the 2,000 calls.
    """
    before = Request.objects.order_by("created_at", "id")[LIMIT]
    path, _, query = path_of(following).partition("?")
    asked = dict(parse_qsl(query))
    field, backward, _, _ = json.loads(base64.urlsafe_b64decode(asked["cursor"]))
    place = [field, backward, before.created_at.isoformat(), before.pk]
    asked["cursor"] = base64.urlsafe_b64encode(json.dumps(place).encode()).decode()
    return f"{path}?{urlencode(asked)}"


def _is_first(body: str) -> bool:
    page = json.loads(body)
    return (
        page["previous"] is None
        and page["next"] is not None
        and len(page["results"]) == LIMIT
    )


def _is_last(body: str) -> bool:
    page = json.loads(body)
    return (
        page["previous"] is not None
        and page["next"] is None
        and len(page["results"]) == LIMIT
    )
