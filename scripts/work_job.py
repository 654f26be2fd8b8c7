"""What a team runs: three jobs handed in with kubectl's means, two that run and one that waits and says why."""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from scripts.expecting import expect

if TYPE_CHECKING:
    from scripts.main_job import MainJob

JOB = ("batch/v1", "Job")
NAMES = ("first", "second", "third")


class Working:
    """The steps, played by Ada for Climate, whose queue is guaranteed two GPUs and may borrow two."""

    def __init__(self, job: "MainJob") -> None:
        self.job = job

    def steps(self) -> Iterator[tuple[str, Callable[[], str | None]]]:
        """Every step in order, in words."""
        yield (
            "three jobs of two GPUs: two run, the third says why it waits",
            self.wait_in_line,
        )
        yield (
            "the first is deleted: the third runs by itself, and the page says so",
            self.run_next,
        )

    def wait_in_line(self) -> str:
        """Told by the API from the watched copy, with its place in the line."""
        for name in NAMES:
            self.job.cluster.create(self.manifest(name))
        want = {"first": "running", "second": "running", "third": "waiting"}
        self.job.until("two run and one waits", lambda: self.states() == want)
        # The Job is seen before the Workload that Kueue makes of it, and that before its place in the line.
        self.job.until(
            "the third is first in the line, and four are held", self.is_in_line
        )
        return str(self.third()["why"]["what"])

    def is_in_line(self) -> bool:
        """Whether all of it is told at once: two reads one after the other may see the cluster at two moments."""
        work = self.work()
        third = next(one for one in work["work"] if one["name"] == "third")
        why = third["why"]
        is_first = (why["outlook"], why["position"], third["held"]) == ("wait", 0, 0)
        return (
            is_first
            and "number 1 of 1 in the line" in why["line"]
            and work["held"] == 4
        )

    def run_next(self) -> str:
        """No call in between: what the cluster does is seen."""
        started = time.monotonic()
        self.job.cluster.delete(JOB, "first", self.job.namespace)
        self.job.until(
            "the third runs",
            lambda: self.states() == {"second": "running", "third": "running"},
        )
        seconds = time.monotonic() - started
        page = self.job.people["Ada"].get("/teams/climate/work").text
        expect("third" in page and "It runs." in page, "The page does not say it.")
        for name in NAMES[1:]:
            self.job.cluster.delete(JOB, name, self.job.namespace)
        self.job.until("nothing is left", lambda: not self.work()["work"])
        return f"{seconds:.1f} s after the deletion"

    def work(self) -> dict[str, Any]:
        """What the API says of the team's work."""
        found: dict[str, Any] = self.job.call("Ada", "GET", "/work/climate/").json()
        return found

    def third(self) -> dict[str, Any]:
        """The piece that waits, as the API says it."""
        return next(one for one in self.work()["work"] if one["name"] == "third")

    def states(self) -> dict[str, str]:
        """The state of each piece, by name."""
        return {one["name"]: one["state"] for one in self.work()["work"]}

    def manifest(self, name: str) -> dict[str, Any]:
        """A Job in the team's queue."""
        limits = {"nvidia.com/gpu": "2", "cpu": "1", "memory": "1Gi"}
        container = {
            "name": "train",
            "image": "registry.example.com/train:1",
            "resources": {"limits": limits},
        }
        return {
            "apiVersion": JOB[0],
            "kind": JOB[1],
            "metadata": {
                "name": name,
                "namespace": self.job.namespace,
                "labels": {"kueue.x-k8s.io/queue-name": "default"},
            },
            "spec": {
                "template": {
                    "spec": {"restartPolicy": "Never", "containers": [container]}
                }
            },
        }
