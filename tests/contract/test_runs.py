"""Runs through the portal's public API on the cluster under test: one node, four that wait for it, logs, a stop."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from fleet.models import Flavor
from policy.document import Thresholds
from tests import factories
from tests.calling import Caller
from tests.contract import live
from tests.contract.raw import eventually
from tests.contract.test_main_job import GPU, POD, QUEUE, Team, take_jobs, team, trouble
from tests.workloads.conftest import is_read, watching, worker_pass
from workloads.runs.planning.abilities import learn

pytestmark = pytest.mark.slow

__all__ = ["team"]
# What a first pull of the image and a start on a real node may take.
SECONDS = 120.0
IMAGE = "registry.k8s.io/e2e-test-images/busybox:1.36.1-1"
AMOUNTS = {"image": IMAGE, "launcher": "none", "cpus": 1, "memory": 1}
SINGLE = {
    **AMOUNTS,
    "program": ["sh", "-c", "echo begins; sleep 8; echo ends"],
    "gpus": 2,
}
FOUR = {
    **AMOUNTS,
    "program": ["sh", "-c", "echo begins; sleep 3600"],
    "gpus": 1,
    "nodes": 4,
    "grace": 1,
}


@dataclass
class Runner:
    """A member of the team with a token, and the worker that does what there is to do."""

    team: Team
    caller: Caller

    @classmethod
    def of(cls, team: Team) -> "Runner":
        """Ada, whose team holds four GPUs in a queue that takes jobs."""
        ada: User = factories.person("Ada Okafor")
        factories.join(team.row.team, ada)
        flavor = Flavor.objects.get(cluster=team.tenancy.cluster)
        factories.policy(
            Thresholds(automatic_gpus=4, automatic_usd=Decimal(5_000)),
            now=timezone.now() - timedelta(seconds=1),
        )
        factories.allocation(ada, team.row, flavor, gpus=4)
        take_jobs(team)
        learn(now=timezone.now())
        return cls(team, Caller(ada))

    def asked(self, template: str, values: dict[str, Any]) -> dict[str, Any]:
        """A submission; skips where the cluster lacks what the template needs."""
        [place] = self.caller.get("places/").json()["results"]
        lacks = next(
            one["missing"] for one in place["templates"] if one["slug"] == template
        )
        if lacks:
            pytest.skip(f"{template}: {lacks}")
        return {
            "tenancy": place["tenancy"],
            "template": template,
            "title": template,
            "flavor": place["flavors"][0]["flavor"],
            "values": values,
        }

    def submit(self, template: str, values: dict[str, Any]) -> dict[str, Any]:
        """Preview it, then send it twice with one key: it is one run, and what was shown."""
        asked, key = self.asked(template, values), f"live-{template}"
        shown = self.caller.post("runs/preview/", asked, key=key).json()
        assert shown["is_possible"], shown
        made, again = (
            self.caller.post("runs/", asked, key=key).json() for _ in range(2)
        )
        assert made["id"] == again["id"]
        assert made["manifests"] == shown["manifests"]
        return dict(made)

    def seen(self, run: dict[str, Any]) -> dict[str, Any]:
        """The run as the API tells it after a pass of the worker."""
        worker_pass()
        return dict(self.caller.get(f"runs/{run['id']}/").json())

    def pods(self, run: dict[str, Any]) -> list[dict[str, Any]]:
        """Its pods as an administrator sees them."""
        selector = f"quartermaster.io/run={run['name']}"
        return list(
            self.team.admin.list(
                POD, self.team.tenancy.namespace, label_selector=selector
            )
        )

    def until_runs(self, run: dict[str, Any]) -> None:
        """Wait until it runs; skips where no real node takes its pods, which the sandbox's do."""
        try:
            eventually(lambda: self.seen(run)["state"] == "running", seconds=SECONDS)
        except AssertionError:
            said = "; ".join(map(trouble, self.pods(run))) or "there is none"
            assert live.kubeconfig() is not None, f"{said}; {self.seen(run)}"
            pytest.skip(f"its pods do not run here: {said}")

    def has_lines(self, run: dict[str, Any], pod: str) -> bool:
        """Whether the API tells lines of a pod's log; it has none before it has started."""
        return bool(
            self.caller.get(f"runs/{run['id']}/logs/?pod={pod}").json().get("lines")
        )

    def gpus_used(self) -> list[str]:
        """GPUs that the team's queue uses, by flavor."""
        queue = self.team.admin.get(QUEUE, self.team.tenancy.namespace) or {}
        flavors = queue["status"].get("flavorsUsage", [])
        return [
            str(one["total"])
            for flavor in flavors
            for one in flavor["resources"]
            if one["name"] == GPU
        ]


@pytest.fixture
def runner(transactional_db: None, team: Team) -> Iterator[Runner]:
    """Ada, while the cluster is watched."""
    made = Runner.of(team)
    with watching():
        eventually(is_read)
        yield made


@pytest.mark.timeout(600)
def test_a_run_over_four_nodes_waits_for_one_starts_when_it_ends_and_is_stopped(
    runner: Runner,
) -> None:
    single = runner.submit("single-node", SINGLE)
    eventually(lambda: runner.seen(single)["state"] != "submitted")
    four = runner.submit("pytorch", FOUR)
    eventually(lambda: (runner.seen(four)["why"] or {}).get("position") == 0)
    found = runner.seen(four)
    assert (found["state"], found["why"]["outlook"]) == ("waiting", "wait"), found
    assert "number 1 of 1 in the line" in found["why"]["line"]
    runner.until_runs(single)
    [pod] = [one["name"] for one in runner.seen(single)["pods"]]
    eventually(partial(runner.has_lines, single, pod))
    eventually(lambda: runner.seen(single)["state"] == "finished", seconds=SECONDS)
    runner.until_runs(four)
    pods = runner.seen(four)["pods"]
    assert [one["number"] for one in pods] == [0, 1, 2, 3]
    for one in pods:
        eventually(partial(runner.has_lines, four, one["name"]))
    assert runner.caller.post(f"runs/{four['id']}/stop/").status_code == 200
    eventually(lambda: runner.seen(four)["state"] == "stopped", seconds=SECONDS)
    assert runner.pods(four) == []
    eventually(lambda: all(one == "0" for one in runner.gpus_used()))
