"""B5: the approver's queue with 2,500 of 10,000 requests waiting, beside ColdFront's list of allocation requests."""

from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from approvals.models import Request
from approvals.requests.listing import MOST_IN_QUEUE
from bench import coldfront, rig, seed
from bench.calls import Page
from bench.results import Better, Goal, Measured

REQUESTS, WAITING = 10_000, 2_500
PAIRS, CALLS = 5, 11
TIMES_FASTER, MOST_QUERIES = 100, 12


def measure(on: rig.Rig) -> Measured:
    """Both pages, signed in, through gunicorn on one PostgreSQL, in turns."""
    now = timezone.now()
    among = seed.crowd(now)
    seed.requests(among, count=REQUESTS, waiting=WAITING, now=now)
    rig.settle(on)
    if (found := Request.objects.awaiting(among.lead, now).count()) != WAITING:
        raise RuntimeError(
            f"{found} requests wait instead of {WAITING}: bench/seed.py no longer fits."
        )
    client = signed_in(among.lead)
    with (
        rig.portal(on) as port,
        coldfront.started(on, requests=REQUESTS, waiting=WAITING) as peer,
    ):
        ours, theirs = queue(client, port), peer.queue(waiting=WAITING)
        ours.median(CALLS)
        theirs.median(rig.WORKERS)
        # Theirs takes seconds: one call is one figure. Ours takes the middle of some.
        pairs = [(ours.median(CALLS), theirs.seconds()) for _ in range(PAIRS)]
    return Measured(
        what=f"approver's queue, {WAITING:,} of {REQUESTS:,} waiting; peer: ColdFront {coldfront.VERSION}",
        portal=[1000 * ours for ours, _ in pairs],
        peer=[1000 * theirs for _, theirs in pairs],
        unit="ms",
        better=Better.PEER_OVER_PORTAL,
        least=TIMES_FASTER,
        others=[Goal("queries", queries(client), most=MOST_QUERIES)],
    )


def signed_in(user: User) -> Client:
    """A browser with this person's session."""
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(user)
    return client


def queue(client: Client, port: int) -> Page:
    """The portal's queue, which counts only with the rows and the number of all that wait."""
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    return Page(
        port,
        reverse("approvals"),
        {"Cookie": f"{settings.SESSION_COOKIE_NAME}={cookie}"},
        lambda body: (
            body.count('href="/approvals/') >= MOST_IN_QUEUE and f"{WAITING}" in body
        ),
    )


def queries(client: Client) -> int:
    """How many queries the whole page takes, session and frame included."""
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(reverse("approvals"))
    if answer.status_code != 200:
        raise RuntimeError(f"The queue answered {answer.status_code}.")
    return len(captured)
