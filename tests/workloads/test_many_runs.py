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
from policy.document import Thresholds
from provisioning import reconcile
from provisioning.models import Tenancy
from tests import factories
from tests.services.process import wait_until
from tests.workloads.conftest import JOB, Watched, is_read, watching
from tests.workloads.test_runs import ASKED
from workloads.models import Run
from workloads.runs import actions, following, sending

pytestmark = pytest.mark.slow

TEAMS, EACH, GPUS = 4, 25, 6
QUEUE = ("kueue.x-k8s.io/v1beta2", "ClusterQueue")
QUICK = {
    "image": "registry.example.com/train:1",
    "program": ("sleep", "2"),
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


@pytest.mark.timeout(300)
def test_a_hundred_runs_at_once_all_run_once_and_share_fairly(
    watched: Watched, teams: list[tuple[User, Tenancy]]
) -> None:
    asked = replace(ASKED, values=QUICK, script=None)
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
    shares: list[list[int]] = []
    with watching(watched.kubernetes), ThreadPoolExecutor(1) as beside:
        wait_until(is_read, what="everything to be listed")
        sent = beside.submit(send_all)

        def over() -> bool:
            following.follow(
                now=timezone.now, gone=partial(following.check, now=timezone.now)
            )
            shares.append(held(watched, teams))
            return sent.done() and not Run.objects.live().exists()

        wait_until(over, what="all of them to end", seconds=240)
    sent.result()
    assert watched.kubernetes.names(JOB) == {run.name for run in submitted}
    assert Counter(Run.objects.values_list("state", flat=True)) == {
        "finished": TEAMS * EACH
    }
    assert len({run.name for run in submitted}) == TEAMS * EACH
    # While all of them wanted more, nobody had more than they are guaranteed.
    busy = [share for share in shares if all(share)]
    assert busy, shares
    assert max(max(share) for share in busy) <= GPUS
