"""B20: a team's work page with 2,000 Workloads, beside one that lists them from the cluster at each view."""

import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from kubernetes.client import ApiClient, Configuration, CustomObjectsApi

from accounts.models import User
from accounts.tokens.actions import create_token
from bench import rig
from bench.approver_queue import signed_in
from bench.calls import Page
from bench.explaining import (
    Copy,
    leading_to,
    named,
    recorded_queues,
    recorded_waits,
    renamed,
)
from bench.results import Better, Goal, Measured
from bench.training import GROUP, PLURAL, VERSION
from provisioning.models import Tenancy
from tests import factories
from workloads.explaining import UNKNOWN, explain
from workloads.models import ClusterObject, Feed, FeedRevision
from workloads.observed import Facts
from workloads.reading.work import workload_of
from workloads.views import LINES
from workloads.watching.kept import KINDS, copy_of
from workloads.watching.scopes import EVERYBODY

WORKLOADS, PAIRS, CALLS, BATCH = 2_000, 5, 5, 500
TIMES_FASTER, MOST_QUERIES = 10, 6
CHUNK = 500
# A page that says only this is fast.
SILENT = "has said nothing since"


def measure(on: rig.Rig) -> Measured:
    """2,000 Workloads of one team in five turns."""
    return measured(on, count=WORKLOADS, pairs=PAIRS)


def measured(on: rig.Rig, *, count: int, pairs: int) -> Measured:
    """The page with a session and the API's answer through gunicorn, and the list with its explanations, in turns."""
    person = factories.person("Ada Okafor")
    team = factories.team("Vision", by=person)
    factories.join(team, person)
    tenancy = factories.tenancy(team, factories.cluster("training"))
    factories.flavor(tenancy.cluster, "a100")
    workloads = work_in(tenancy, count)
    rig.settle(on)
    with rig.portal(on) as port, api_server(workloads) as client:
        page, api = (
            work_page(person, tenancy, port, count),
            work_call(person, tenancy, port, count),
        )
        listing = partial(
            list_and_explain, CustomObjectsApi(client), tenancy.namespace, count
        )
        for each in (page, api):
            listen()
            each.median(rig.WORKERS)
        listing()
        figures = []
        for _ in range(pairs):
            listen()
            figures.append((page.median(CALLS), timed(listing), api.median(CALLS)))
    asked = queries(person, tenancy)
    return Measured(
        what=f"work page of {count:,} Workloads; peer: a list call of the Kubernetes client, each explained",
        portal=[1000 * ours for ours, _, _ in figures],
        peer=[1000 * theirs for _, theirs, _ in figures],
        unit="ms",
        better=Better.PEER_OVER_PORTAL,
        least=TIMES_FASTER,
        others=[
            Goal("queries of the API's answer", asked["api"], most=MOST_QUERIES),
            Goal("queries of the page, session and frame included", asked["page"]),
            Goal(
                "queries of the page as it renews itself",
                asked["renewal"],
                most=MOST_QUERIES,
            ),
            Goal(
                f"the API's answer with all {count:,}, ratio",
                statistics.median(theirs for _, theirs, _ in figures)
                / statistics.median(everything for _, _, everything in figures),
            ),
        ],
    )


def work_in(tenancy: Tenancy, count: int) -> list[Copy]:
    """So many Workloads that wait in the team's namespace, each with its Job and an event, as a watcher copies them.

    Given back as the API server has them: whole, with what no page reads.
    """
    patterns, namespace = list(recorded_waits()), tenancy.namespace
    queue, team_queue = recorded_queues()
    workloads = [
        renamed(patterns[number % len(patterns)], number, namespace)
        for number in range(count)
    ]
    shared = [
        named(queue, namespace, ""),
        leading_to(named(team_queue, "default", namespace), namespace),
    ]
    objects = [*shared, *workloads, *map(job_of, workloads), *map(event_of, workloads)]
    now = timezone.now()
    ClusterObject.objects.bulk_create(
        (row_of(tenancy, one) for one in objects), batch_size=BATCH
    )
    feeds = Feed.objects.bulk_create(
        Feed(cluster=tenancy.cluster, kind=kind, listed_at=now, heard_at=now)
        for kind in KINDS
    )
    FeedRevision.objects.bulk_create(
        FeedRevision(feed=feed, scope=scope)
        for feed in feeds
        for scope in (EVERYBODY, namespace)
    )
    return workloads


def job_of(workload: Copy) -> Copy:
    """The Job that a Workload was made for, suspended as long as it waits."""
    meta = workload["metadata"]
    owner = meta["ownerReferences"][0]
    pods = workload["spec"]["podSets"][0]
    return {
        "kind": "Job",
        "metadata": {
            "name": owner["name"],
            "namespace": meta["namespace"],
            "uid": owner["uid"],
            "creationTimestamp": meta["creationTimestamp"],
            "labels": {
                "kueue.x-k8s.io/queue-name": workload["spec"].get(
                    "queueName", "default"
                )
            },
        },
        "spec": {
            "suspend": True,
            "parallelism": pods.get("count", 1),
            "template": {"spec": pods["template"]["spec"]},
        },
        "status": {},
    }


def event_of(workload: Copy) -> Copy:
    """What Kueue says of a Workload that it did not let in."""
    meta = workload["metadata"]
    conditions = workload["status"].get("conditions", ())
    return {
        "kind": "Event",
        "metadata": {
            "name": f"{meta['name']}.18a",
            "namespace": meta["namespace"],
            "uid": f"e-{meta['uid']}",
            "creationTimestamp": meta["creationTimestamp"],
        },
        "involvedObject": {
            "kind": "Workload",
            "name": meta["name"],
            "uid": meta["uid"],
        },
        "type": "Normal",
        "reason": "Pending",
        "message": conditions[0].get("message", "") if conditions else "",
        "lastTimestamp": meta["creationTimestamp"],
    }


def row_of(tenancy: Tenancy, found: Copy) -> ClusterObject:
    """An object as the watcher keeps it."""
    meta = found["metadata"]
    return ClusterObject(
        cluster=tenancy.cluster,
        kind=found["kind"],
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        body=copy_of(found),
    )


@contextmanager
def api_server(workloads: Sequence[Copy]) -> Iterator[ApiClient]:
    """The Kubernetes project's own client of a server that only lists these, from pages that are made beforehand.

    No API server answers sooner, so what the peer takes is the client's share and that of the explanations.
    """
    pages = [
        json.dumps(
            {
                "metadata": _following(number, len(workloads)),
                "items": workloads[number : number + CHUNK],
            }
        )
        for number in range(0, len(workloads), CHUNK)
    ]
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Pages, [page.encode() for page in pages])
    )
    # In a process of its own: it has the peer's processor else.
    process = multiprocessing.get_context("fork").Process(
        target=server.serve_forever, daemon=True
    )
    process.start()
    try:
        with ApiClient(
            Configuration(host=f"http://127.0.0.1:{server.server_port}")
        ) as client:
            yield client
    finally:
        process.kill()
        process.join()
        server.server_close()


def _following(start: int, count: int) -> dict[str, str]:
    return {"continue": str(start // CHUNK + 1) if start + CHUNK < count else ""}


class Pages(BaseHTTPRequestHandler):
    """Answers with the page that `continue` names."""

    protocol_version = "HTTP/1.1"

    def __init__(self, pages: Sequence[bytes], *connection: Any) -> None:
        self.pages = pages
        super().__init__(*connection)

    def do_GET(self) -> None:
        """A page of the list."""
        asked = parse_qs(urlsplit(self.path).query)
        body = self.pages[int(asked.get("continue", ["0"])[0] or 0)]
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


def listen() -> None:
    """What a watcher writes every few seconds: what was not heard of for half a minute counts as silent."""
    Feed.objects.update(heard_at=timezone.now())


def work_page(person: User, tenancy: Tenancy, port: int, count: int) -> Page:
    """What a member of the team sees in a browser, which counts only with the lines of a full page."""
    client = signed_in(person)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    return Page(
        port,
        reverse("work", args=[tenancy.team.slug]),
        {"Cookie": f"{settings.SESSION_COOKIE_NAME}={cookie}"},
        lambda body: f"1 to {LINES} of {count:,}" in body and SILENT not in body,
    )


def work_call(person: User, tenancy: Tenancy, port: int, count: int) -> Page:
    """What a script of the team gets, which counts only with all of it, and a reason for each."""
    return Page(
        port,
        f"/api/v1/work/{tenancy.team.slug}/",
        headers_of(person),
        lambda body: (
            body.count('"created_at"') == count
            and not any(
                f'"code":"{code}"' in body for code in (UNKNOWN, "cluster_silent")
            )
        ),
    )


def list_and_explain(api: CustomObjectsApi, namespace: str, count: int) -> None:
    """What a page without a copy would do at each view, for the Workloads alone: pages of 500, as kubectl asks."""
    found, following, now = 0, "", timezone.now()
    while True:
        answer: Any = api.list_namespaced_custom_object(
            GROUP, VERSION, namespace, PLURAL, limit=CHUNK, _continue=following
        )
        for one in answer["items"]:
            explain(Facts(workload=workload_of(one)), now=now)
            found += 1
        if not (following := answer["metadata"].get("continue", "")):
            break
    if found != count:
        raise RuntimeError(f"{found} of {count} Workloads were listed.")


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def queries(person: User, tenancy: Tenancy) -> dict[str, int]:
    """How many queries the API's answer, the page and its live part take."""
    slug, client = tenancy.team.slug, signed_in(person)
    api, page, token = (
        f"/api/v1/work/{slug}/",
        reverse("work", args=[slug]),
        headers_of(person),
    )
    calls: dict[str, Callable[[], Any]] = {
        "api": lambda: Client().get(api, headers=token),
        "page": lambda: client.get(page),
        "renewal": lambda: client.get(page, headers={"HX-Request": "true"}),
    }
    found = dict[str, int]()
    # That a token was used for the first time is written down once.
    Client().get("/api/v1/me/", headers=token)
    for name, call in calls.items():
        with CaptureQueriesContext(connection) as captured:
            answer = call()
        if answer.status_code != 200:
            raise RuntimeError(f"The {name} answered {answer.status_code}.")
        found[name] = len(captured)
    return found


def headers_of(person: User) -> dict[str, str]:
    """The headers of a script of theirs."""
    _, secret = create_token(
        user=person, name="bench", scope="read", days=1, now=timezone.now()
    )
    return {"Authorization": f"Bearer {secret}"}
