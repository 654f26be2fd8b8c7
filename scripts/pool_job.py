"""A pool without a node: asked for, granted, and grown by the first job that needs it."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import yaml

from connectors.kubernetes import Cluster
from scripts.expecting import expect

if TYPE_CHECKING:
    from scripts.main_job import MainJob

CLUSTER, FLAVOR, TEAM = "dev-eastus", "h100-nvl-94gb", "speech"
JOB = ("batch/v1", "Job")


class Growing:
    """The steps, played by Mallory for a team of the demo; the job is handed in on the cluster itself."""

    def __init__(self, job: "MainJob") -> None:
        self.job = job
        self.cluster = Cluster.from_kubeconfig(
            job.demo.sandbox["kubernetes"][CLUSTER]["admin_kubeconfig"]
        )

    def steps(self) -> Iterator[tuple[str, Callable[[], str | None]]]:
        """Every step in order, in words."""
        yield "a pool at zero is asked for and grows", self.grow

    def grow(self) -> str:
        """Automatic though nothing is ready; the pool grows for the job, which runs, and the page says so."""
        before = self.flavor()
        expect(
            (before["ready"], before["can_grow_to"], before["free"]) == (0, 4, 4),
            f"It has {before}.",
        )
        self.ask()
        started = time.monotonic()
        manifest = self.first_job()
        self.cluster.create(manifest)
        self.job.until("the job has run", lambda: self.has_run(manifest), seconds=60)
        seconds = time.monotonic() - started
        self.job.until("one is ready", lambda: self.flavor()["ready"] == 1, seconds=60)
        after = self.flavor()
        expect(
            (after["gpus_total"], after["allocated"], after["free"]) == (4, 1, 3),
            f"It has {after}.",
        )
        page = self.job.people["Mallory"].get(f"/clusters/{CLUSTER}/").text
        expect("1 ready now, grows to 4" in page, "The cluster's page does not say it.")
        return f"granted with 0 of 4 ready, the job has run {seconds:.1f} s after it was handed in, 1 is ready"

    def ask(self) -> None:
        """One for an hour: told before sending that the pool grows, and granted at once."""
        until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        body = {
            "team": TEAM,
            "flavor": f"{CLUSTER}/{FLAVOR}",
            "gpus": 1,
            "until": until,
            "purpose": "training",
        }
        said = self.job.call("Mallory", "POST", "/requests/preview/", body).json()[
            "answer"
        ]
        expect(said["outcome"] == "automatic", f"It says {said}.")
        grows = "0 ready now: the pool grows to 4, usually within 1 minute."
        expect(said["sentence"].endswith(grows), said["sentence"])
        made = self.job.call("Mallory", "POST", "/requests/", body, key="pool-1")
        expect(made.status_code == 201 and made.json()["state"] != "waiting", made.text)
        number = made.json()["id"]
        self.job.until(
            "it is on the cluster",
            lambda: (
                self.job.call("Mallory", "GET", f"/requests/{number}/").json()["stage"]
                in ("active", "ending_soon")
            ),
        )

    def first_job(self) -> dict[str, Any]:
        """The Job of “Use it”, on the nodes of this kind."""
        [place] = [
            row
            for row in self.job.call(
                "Mallory", "GET", f"/tenancies/?team={TEAM}"
            ).json()["results"]
            if row["cluster"] == CLUSTER
        ]
        use = self.job.call("Mallory", "GET", f"/tenancies/{place['id']}/use/").json()
        [kind] = [row for row in use["held"] if row["flavor"] == FLAVOR]
        manifest: dict[str, Any] = yaml.safe_load(use["job"])
        pod = manifest["spec"]["template"]["spec"]
        pod |= {
            "nodeSelector": kind["node_selector"],
            "tolerations": kind["tolerations"],
        }
        expect(
            "the pool grows to 4" in kind["growing"],
            f"“Use it” says {kind['growing']}.",
        )
        return manifest

    def has_run(self, manifest: dict[str, Any]) -> bool:
        """Whether the Job has succeeded."""
        metadata = manifest["metadata"]
        found = self.cluster.get(JOB, metadata["name"], metadata["namespace"]) or {}
        return bool(found.get("status", {}).get("succeeded") == 1)

    def flavor(self) -> dict[str, Any]:
        """What the API says of the pool."""
        rows = self.job.call("Mallory", "GET", f"/flavors/?cluster={CLUSTER}").json()[
            "results"
        ]
        found: dict[str, Any] = next(row for row in rows if row["name"] == FLAVOR)
        return found
