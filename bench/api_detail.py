"""B2: one of 100,000 requests with everything about it from the API, beside ColdFront's page of one allocation."""

import random
from collections.abc import Sequence
from functools import partial
from statistics import median

from django.utils import timezone

from accounts.tokens.actions import create_token
from approvals.models import Request
from approvals.states import State
from bench import coldfront, rig, seed
from bench.api_list import REQUESTS, healthz
from bench.calls import Page
from bench.readers import CLIENTS, per_second
from bench.results import Better, Goal, Measured

WAITING, EACH = 2_500, 200
PAIRS, SECONDS = 5, 6
LEAST = 1.0


def measure(on: rig.Rig) -> Measured:
    """Both pages and the portal's /healthz, in turns; half of the requests wait, the others are decided."""
    now = timezone.now()
    among = seed.crowd(now)
    seed.requests(among, count=REQUESTS, waiting=WAITING, now=now)
    rig.settle(on)
    dice = random.Random(1)
    _, secret = create_token(
        user=among.lead, name="bench", scope="read", days=1, now=now
    )
    read = partial(per_second, seconds=SECONDS)
    with (
        rig.portal(on) as port,
        coldfront.started(on, requests=REQUESTS, waiting=WAITING) as peer,
    ):
        ours = [
            [request_page(port, secret, pk) for pk in mixed(dice)]
            for _ in range(CLIENTS)
        ]
        theirs = [
            [peer.detail(pk) for pk in dice.sample(peer.allocations, 2 * EACH)]
            for _ in range(CLIENTS)
        ]
        for each in (ours, theirs):
            per_second(each, seconds=1)
        turns = [
            (read(ours), read(theirs), read([[healthz(port)]] * CLIENTS))
            for _ in range(PAIRS)
        ]
    return Measured(
        what=f"API detail of one of {REQUESTS:,}, {CLIENTS} clients; peer: ColdFront {coldfront.VERSION}'s",
        portal=[ours for ours, _, _ in turns],
        peer=[theirs for _, theirs, _ in turns],
        unit="/s",
        better=Better.PORTAL_OVER_PEER,
        least=LEAST,
        others=[
            Goal(
                "beside /healthz, ratio",
                median(ours / health for ours, _, health in turns),
            )
        ],
    )


def mixed(dice: random.Random) -> Sequence[int]:
    """Requests that wait and requests that are decided, as many of each, in any order."""
    waiting = list(Request.objects.waiting().values_list("pk", flat=True))
    decided = list(
        Request.objects.exclude(state=State.WAITING).values_list("pk", flat=True)
    )
    found = [*dice.sample(waiting, EACH), *dice.sample(decided, EACH)]
    dice.shuffle(found)
    return found


def request_page(port: int, secret: str, pk: int) -> Page:
    """One request."""
    return Page(
        port,
        f"/api/v1/requests/{pk}/",
        {"Authorization": f"Bearer {secret}"},
        lambda body: body.startswith(f'{{"id":{pk},'),
    )
