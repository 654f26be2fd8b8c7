"""B1: fifty of 100,000 requests from the API, eight clients at a time, beside ColdFront's list of allocations."""

from functools import partial
from statistics import median

from django.utils import timezone

from accounts.tokens.actions import create_token
from bench import coldfront, rig, seed
from bench.calls import Page
from bench.readers import CLIENTS, per_second
from bench.results import Better, Goal, Measured

REQUESTS, LIMIT = 100_000, 50
PAIRS, SECONDS = 5, 6
TIMES_FASTER, LEAST_A_SECOND = 3, 100


def measure(on: rig.Rig) -> Measured:
    """Both lists and the portal's /healthz, which asks nothing of a database, in turns."""
    now = timezone.now()
    among = seed.crowd(now)
    seed.requests(among, count=REQUESTS, waiting=0, now=now)
    rig.settle(on)
    _, secret = create_token(
        user=among.lead, name="bench", scope="read", days=1, now=now
    )
    read = partial(per_second, seconds=SECONDS)
    with (
        rig.portal(on) as port,
        coldfront.started(on, requests=REQUESTS, waiting=0) as peer,
    ):
        ours, theirs, health = (
            [[requests_page(port, secret)]],
            [[peer.list()]],
            [[healthz(port)]],
        )
        for each in (ours, theirs):
            per_second(each * CLIENTS, seconds=1)
        turns = [
            (read(ours * CLIENTS), read(theirs * CLIENTS), read(health * CLIENTS))
            for _ in range(PAIRS)
        ]
    return Measured(
        what=f"API list, {LIMIT} of {REQUESTS:,}, {CLIENTS} clients; peer: ColdFront {coldfront.VERSION}'s, 25",
        portal=[ours for ours, _, _ in turns],
        peer=[theirs for _, theirs, _ in turns],
        unit="/s",
        better=Better.PORTAL_OVER_PEER,
        least=TIMES_FASTER,
        others=[
            Goal(
                "answers a second",
                median(ours for ours, _, _ in turns),
                least=LEAST_A_SECOND,
            ),
            Goal(
                "beside /healthz, ratio",
                median(ours / health for ours, _, health in turns),
            ),
        ],
    )


def requests_page(port: int, secret: str) -> Page:
    """The first page of the list, which counts only with all its rows."""
    return Page(
        port,
        f"/api/v1/requests/?limit={LIMIT}",
        {"Authorization": f"Bearer {secret}"},
        lambda body: body.count('"lapses_at":') == LIMIT,
    )


def healthz(port: int) -> Page:
    """What the web server answers at least."""
    return Page(port, "/healthz", {}, bool)
