"""A hundred runs at once by four teams: none is lost, none is sent twice, and each team has what it is guaranteed."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from functools import partial

import pytest
from django.db import connections
from django.utils import timezone

from accounts.models import User
from connectors.kubernetes import path
from policy.document import Thresholds
from provisioning import reconcile
from provisioning.models import Tenancy
from tests import factories
from tests.services.process import wait_until
from tests.workloads.conftest import JOB, POD, Watched, is_read, watching
from tests.workloads.test_runs import ASKED
from workloads.models import Run
from workloads.runs import actions, following, sending

pytestmark = pytest.mark.slow

TEAMS, EACH, GPUS = 4, 25, 6
QUEUE = ("kueue.x-k8s.io/v1beta2", "ClusterQueue")
UNTIL_ENDED = {
    "image": "registry.example.com/train:1",
    "program": ("sleep", "1d"),
    "launcher": "none",
    "gpus": 1,
    "cpus": 1,
    "memory": 1,
}


@pytest.fixture
def teams(watched: Watched) -> list[tuple[User, Tenancy]]:
    """Four teams that hold six GPUs each on one cluster, all of its 24."""
    a100 = watched.cluster.flavors.get(name="a100")
    a100.gpus_total = 2 + TEAMS * GPUS
    a100.save(update_fields=["gpus_total"])
    factories.policy(
        Thresholds(automatic_gpus=GPUS, automatic_usd=Decimal(5_000)),
        now=timezone.now(),
    )
    found = []
    for number in range(TEAMS):
        person = factories.person(f"Person {number} of many")
        team = factories.team(f"Many {number}", by=person)
        factories.join(team, person)
        tenancy = factories.tenancy(team, watched.cluster)
        factories.allocation(person, tenancy, a100, gpus=GPUS)
        reconcile.reconcile(tenancy.pk, now=timezone.now)
        tenancy.refresh_from_db()
        found.append((person, tenancy))
    return found


def send(run_id: int) -> None:
    """What a worker does that was told of a run."""
    try:
        sending.look_after(run_id, now=timezone.now)
    finally:
        connections.close_all()


def send_all() -> None:
    """Four workers, each told of every run, in orders of their own."""
    ids = list(Run.objects.due(timezone.now()).values_list("pk", flat=True))
    calls = [pk for _ in range(4) for pk in random.sample(ids, len(ids))]
    with ThreadPoolExecutor(4) as workers:
        list(workers.map(send, calls))


def held(watched: Watched, teams: list[tuple[User, Tenancy]]) -> list[int]:
    """GPUs that each team's queue uses, as the cluster itself says at one moment."""
    said = []
    for _, tenancy in teams:
        queue = watched.kubernetes.get(QUEUE, tenancy.namespace)
        assert queue is not None
        used = [
            int(one["total"])
            for flavor in queue["status"].get("flavorsUsage", [])
            for one in flavor["resources"]
            if one["name"] == "nvidia.com/gpu"
        ]
        said.append(sum(used))
    return said


def end_programs(watched: Watched) -> None:
    """Each program that runs ends well, as its node tells."""
    for pod in watched.kubernetes.all(POD):
        if pod.get("status", {}).get("phase") == "Running":
            where = path(POD, pod["metadata"]["namespace"], pod["metadata"]["name"])
            watched.kubernetes.write(
                "PATCH", f"{where}/status", {"status": {"phase": "Succeeded"}}
            )


@pytest.mark.timeout(600)
def test_a_hundred_runs_at_once_all_run_once_and_share_fairly(
    watched: Watched, teams: list[tuple[User, Tenancy]]
) -> None:
    asked = replace(ASKED, values=UNTIL_ENDED, script=None)
    submitted = [
        actions.submit(
            tenancy.pk,
            asked,
            by=person,
            key=f"{tenancy.pk}-{number}",
            now=timezone.now(),
        )
        for number in range(EACH)
        for person, tenancy in teams
    ]
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        send_all()
        # All of them want more now: what one had borrowed meanwhile is taken back for the others.
        wait_until(
            lambda: held(watched, teams) == [GPUS] * TEAMS,
            what="each team to have what it is guaranteed, and no more",
            seconds=240,
        )

        def over() -> bool:
            end_programs(watched)
            following.follow(
                now=timezone.now, gone=partial(following.check, now=timezone.now)
            )
            return not Run.objects.live().exists()

        wait_until(over, what="all of them to end", seconds=240)
    assert watched.kubernetes.names(JOB) == {run.name for run in submitted}
    assert Counter(Run.objects.values_list("state", flat=True)) == {
        "finished": TEAMS * EACH
    }
    assert len({run.name for run in submitted}) == TEAMS * EACH
