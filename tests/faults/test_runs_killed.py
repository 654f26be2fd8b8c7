"""Runs while workers, watchers, web servers and Redis die: sent once, right again within ten seconds, logs whole."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import requests
from django.conf import settings
from django.utils import timezone

from accounts.models import User
from provisioning import reconcile
from provisioning.clusters.observe import look_at
from provisioning.delivery import client_for
from provisioning.models import Tenancy
from reconciling import lease
from tests import factories
from tests.faults.calling import Caller, caller
from tests.faults.running import Portal
from tests.faults.tenancies import cluster_of
from tests.faults.test_watcher_killed import is_listed, watcher
from tests.faults.world import World
from tests.services.process import wait_until
from tests.services.redis import Redis
from tests.workloads.test_runs import ASKED
from workloads.models import Run
from workloads.runs import actions
from workloads.tasks import look_after_run

pytestmark = pytest.mark.slow

logger = logging.getLogger(__name__)
JOB, SCRIPT = ("batch/v1", "Job"), ("v1", "ConfigMap")
FLAVOR = "a100-80gb"
# Before the first object, between it and its script, after both; sent and not written down; deleted and not ended.
BEFORE, BETWEEN, AFTER, SENT, DELETED = (
    "run.write:1",
    "run.write:2",
    "run.write:3",
    "run.sent:1",
    "run.deleted:1",
)
MOST_SECONDS = 10.0


@dataclass
class Place:
    """A team that holds GPUs on the world's cluster, and may start runs at once."""

    world: World
    tenancy: Tenancy
    ada: User

    def submit(self, key: str, *, seconds: int = 600) -> Run:
        """A run of one GPU that lasts so long."""
        values = {
            **ASKED.values,
            "gpus": 1,
            "cpus": 1,
            "memory": 1,
            "launcher": "none",
            "program": ("sleep", str(seconds)),
        }
        asked = replace(ASKED, flavor=FLAVOR, values=values)
        return actions.submit(
            self.tenancy.pk, asked, by=self.ada, key=key, now=timezone.now()
        )

    def uid(self, ref: tuple[str, str], name: str) -> str | None:
        """Which object of this name stands on the cluster; None when none does."""
        with closing(self.world.admin()) as admin:
            found = admin.get(ref, name, self.tenancy.namespace)
        return str(found["metadata"]["uid"]) if found else None

    def standing(self, run: Run) -> tuple[str | None, str | None]:
        """The run's main object and what goes along with it."""
        return self.uid(JOB, run.name), self.uid(SCRIPT, f"{run.name}-script")

    def jobs(self) -> list[str]:
        """All jobs of the namespace."""
        with closing(self.world.admin()) as admin:
            return sorted(
                one["metadata"]["name"]
                for one in admin.list(JOB, self.tenancy.namespace)
            )


@pytest.fixture
def settle(
    transactional_db: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Place]]:
    """Make the place, once the installation under test has cleared the cluster."""
    monkeypatch.setattr(settings.ENV, "kubeconfig_dir", world.folder)
    made: list[Place] = []

    def make() -> Place:
        cluster = cluster_of(world)
        ada = factories.person("Ada Okafor")
        team = factories.team("Vision", by=ada)
        factories.join(team, ada)
        tenancy = factories.tenancy(team, cluster)
        factories.allocation(ada, tenancy, cluster.flavors.get(), gpus=2)
        assert look_at(cluster.pk, now=timezone.now)
        tenancy.refresh_from_db()
        reconcile.reconcile(tenancy.pk, now=timezone.now)
        tenancy.refresh_from_db()
        made.append(Place(world, tenancy, ada))
        return made[0]

    yield make
    for place in made:
        client_for(place.tenancy.cluster).close()


def die(portal: Portal, doomed: dict[str, Run]) -> None:
    """Let one worker die at each of these points, at work on the run that stands beside it."""
    workers = {
        point: portal.worker(queue=f"doomed-{point}", clock=False, failpoint=point)
        for point in doomed
    }
    for point, run in doomed.items():
        workers[point].wait_ready()
        look_after_run.apply_async(args=[run.pk], queue=f"doomed-{point}")
    for point, process in workers.items():
        wait_until(lambda p=process: p.has_ended, what=f"the worker to die at {point}")  # type: ignore[misc]
        assert process.popen.returncode == 137, process.log[-3000:]
        process.kill()


def are(runs: list[Run], *states: str) -> bool:
    """Whether all of these are in one of the states."""
    return Run.objects.filter(
        pk__in=[run.pk for run in runs], state__in=states
    ).count() == len(runs)


def test_a_worker_killed_at_any_point_of_a_sending_is_replaced_and_nothing_is_created_twice(
    portal: Portal, settle: Callable[[], Place]
) -> None:
    place = settle()
    doomed = {point: place.submit(point) for point in (BEFORE, BETWEEN, AFTER, SENT)}
    runs = [*doomed.values()]
    die(portal, doomed)
    left = {point: place.standing(run) for point, run in doomed.items()}
    assert {
        point: [one is not None for one in each] for point, each in left.items()
    } == {
        BEFORE: [False, False],
        BETWEEN: [True, False],
        AFTER: [True, True],
        SENT: [True, True],
    }
    assert are(runs, "submitted")
    portal.worker(wait=True)
    ready = time.monotonic()
    wait_until(
        lambda: are(runs, "waiting", "starting", "running"), what="all to be sent"
    )
    took = time.monotonic() - ready
    logger.info("%d runs sent %.1f s after a worker was there", len(runs), took)
    for point, run in doomed.items():
        now = place.standing(run)
        assert None not in now, point
        assert [
            (old, new)
            for old, new in zip(left[point], now, strict=True)
            if old not in (None, new)
        ] == []
    assert place.jobs() == sorted(run.name for run in runs)
    assert took <= MOST_SECONDS


def test_a_worker_killed_while_it_stops_a_run_is_replaced_and_nothing_is_left(
    portal: Portal, settle: Callable[[], Place]
) -> None:
    place = settle()
    run = place.submit("one")
    die(portal, {SENT: run})
    wait_until(
        lambda: Run.objects.due(timezone.now()).filter(pk=run.pk).exists(),
        what="the lease to end",
    )
    actions.stop(run.pk, by=place.ada, now=timezone.now())
    die(portal, {DELETED: run})
    assert not are([run], "stopped")
    portal.worker(wait=True)
    ready = time.monotonic()
    wait_until(lambda: are([run], "stopped"), what="the run to be stopped")
    took = time.monotonic() - ready
    assert place.standing(run) == (None, None)
    assert took <= MOST_SECONDS


def test_the_lease_of_a_dead_worker_ends_well_before_the_bar() -> None:
    # Sweep and send come after it, every two seconds at the latest.
    assert lease.SECONDS + 2 + 2 < MOST_SECONDS
    assert lease.SECONDS > lease.BEAT_SECONDS * 2


@pytest.mark.parametrize("trouble", ["emptied", "killed"])
def test_redis_lost_right_after_a_submission_delays_the_run_by_seconds(
    apart: Portal, settle: Callable[[], Place], own_redis: Redis, trouble: str
) -> None:
    place = settle()
    apart.web(workers=1)
    who = caller(place.ada, apart.url)
    values = {
        **ASKED.values,
        "gpus": 1,
        "cpus": 1,
        "memory": 1,
        "program": ["train.py"],
    }
    body = {
        "tenancy": place.tenancy.pk,
        "template": "single-node",
        "title": "Lost",
        "flavor": FLAVOR,
        "values": values,
        "script": ASKED.script,
    }
    answer = who.post("runs/", body, key="once")
    assert answer.status_code == 201, answer.text
    if trouble == "emptied":
        own_redis.flush()
    else:
        own_redis.kill()
        own_redis.start()
    apart.worker(wait=True)
    ready = time.monotonic()
    [run] = Run.objects.all()
    wait_until(
        lambda: are([run], "waiting", "starting", "running"), what="the run to be sent"
    )
    took = time.monotonic() - ready
    again = who.post("runs/", body, key="once")
    assert (again.status_code, again.json()["id"]) == (201, run.pk)
    assert place.jobs() == [run.name]
    assert took <= MOST_SECONDS


def test_a_watcher_killed_while_a_run_starts_is_replaced_and_the_run_is_right(
    portal: Portal, settle: Callable[[], Place]
) -> None:
    place = settle()
    portal.worker(wait=True)
    first = watcher(portal)
    wait_until(is_listed, what="everything to be listed")
    second = watcher(portal)
    wait_until(lambda: " ready" in second.log, what="the second watcher")
    run = place.submit("one")
    wait_until(lambda: place.jobs() == [run.name], what="the run to be on the cluster")
    first.kill()
    killed = time.monotonic()
    wait_until(lambda: are([run], "running"), what="the run to be seen running")
    took = time.monotonic() - killed
    logger.info("seen running %.1f s after the kill", took)
    found = Run.objects.get(pk=run.pk)
    assert found.started_at is not None
    assert not second.has_ended


def lines_of(
    who: Caller, run: Run, *, after: str, least: int
) -> Iterator[tuple[str, str]]:
    """Places and lines of a run's log as a browser gets them, until there are so many or the server is gone."""
    headers = {"Authorization": f"Bearer {who.secret}", "Accept": "text/event-stream"}
    headers |= {"Last-Event-ID": after} if after else {}
    where = f"{who.url}/api/v1/runs/{run.pk}/logs/?follow=true"
    with requests.get(where, headers=headers, stream=True, timeout=30) as answer:
        assert answer.ok, answer.text
        place, number = "", 0
        with suppress(requests.RequestException):
            for raw in answer.iter_lines(chunk_size=1, decode_unicode=True):
                name, _, said = raw.partition(": ")
                place = said if name == "id" else place
                if name == "data" and place:
                    yield place, said
                    place, number = "", number + 1
                    if number == least:
                        return


def talkative(run: Run) -> None:
    """Have the run's program write a line ten times a second."""
    manifests: list[dict[str, Any]] = run.manifests
    for one in manifests:
        if one["kind"] == "Job":
            notes = (
                one["spec"]["template"]
                .setdefault("metadata", {})
                .setdefault("annotations", {})
            )
            notes["test/log-every"] = "0.1"
    Run.objects.filter(pk=run.pk).update(manifests=manifests)


def test_a_log_whose_web_server_is_killed_goes_on_behind_the_last_line(
    portal: Portal, settle: Callable[[], Place], tmp_path: Path
) -> None:
    place = settle()
    run = place.submit("one")
    talkative(run)
    portal.worker(wait=True)
    watcher(portal)
    wait_until(lambda: are([run], "running"), what="the run to run")
    web = portal.web(workers=1)
    who = caller(place.ada, portal.url)
    seen: list[tuple[str, str]] = []
    for line in lines_of(who, run, after="", least=1_000):
        seen.append(line)
        if len(seen) == 10:
            web.kill()
    assert 10 <= len(seen) < 1_000
    portal.web(workers=1)
    back = Caller(portal.url, who.secret)
    seen += lines_of(back, run, after=seen[-1][0], least=20)
    with closing(place.world.admin()) as admin:
        [pod] = admin.list(("v1", "Pod"), place.tenancy.namespace)
        said = admin.log(
            place.tenancy.namespace, pod["metadata"]["name"], tail=None, follow=False
        )
        whole = [one.partition(" ")[2] for one in said if one]
    texts = [text for _, text in seen]
    start = whole.index(texts[0])
    assert texts == whole[start : start + len(texts)]
