"""How holdings end: kept longer without a gap, and work that outlives what is held, on the cluster."""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from scripts.expecting import expect

if TYPE_CHECKING:
    from scripts.main_job import MainJob

WORKLOAD = ("kueue.x-k8s.io/v1beta2", "Workload")
FLAVOR = "a100-80gb"


class Ending:
    """The steps, played by the people of the main job for its team."""

    def __init__(self, job: "MainJob") -> None:
        self.job = job
        self.renewed = ""

    def steps(self) -> Iterator[tuple[str, Callable[[], str | None]]]:
        """Every step in order, in words."""
        yield (
            "two A100 are kept 7 more days with one click; the cluster sees nothing of it",
            self.renew,
        )
        yield (
            "one of them goes back while all are used: the least important job stops, no other",
            self.outlive,
        )

    def renew(self) -> str:
        """The page of the team leads to it; the answer stands there before the button is pressed."""
        # What is granted from now on ends like this.
        self.rule("stop")
        ada, before = self.job.people["Ada"], self.job.queue()["metadata"]
        [held] = [row for row in self.held() if row["gpus"] == 2]
        page = ada.get("/teams/climate/")
        expect(
            f"/allocations/{held['id']}/renew" in page.text,
            "The team's page does not lead to the renewal.",
        )
        ada.get(f"/allocations/{held['id']}/renew")
        page = ada.press(
            "Keep", reason="It is not done yet, and nobody waits for these."
        )
        expect(
            "/requests/" in page.url and page.status == 200,
            f"It ended at {page.url} ({page.status}).",
        )
        number = int(page.url.rstrip("/").rsplit("/", 1)[1])
        made = self.get(f"/requests/{number}/")
        if made["state"] == "waiting":
            etag = self.job.call("Priya", "GET", f"/requests/{number}/").headers["ETag"]
            answer = self.job.call(
                "Priya",
                "POST",
                f"/requests/{number}/approve/",
                {},
                key="keep-1",
                etag=etag,
            )
            expect(answer.status_code == 200, answer.text)
            made = self.get(f"/requests/{number}/")
        expect(made["allocation"]["gpus"] == 2, str(made))
        self.renewed = made["allocation"]["reference"]
        self.rule("drain")
        after = self.job.queue()["metadata"]
        expect(
            after["generation"] == before["generation"],
            "The queue was changed by a renewal.",
        )
        steps = [step["what"] for step in made["allocation"]["next_steps"]]
        return f"request {number} goes on with what {made['renews']} held; ahead: {', '.join(steps)}"

    def outlive(self) -> str:
        """All that is held is used; one goes back, and Kueue is told to stop one job of three."""
        # What may go on with GPUs that others lend has no need to stop: here nothing is lent.
        answer = self.job.call(
            "Priya", "PATCH", "/clusters/training-eastus/", {"borrow_percent": 0}
        )
        expect(answer.status_code == 200, answer.text)
        # What changes around tenancies reaches them twice a minute.
        self.job.until(
            "nothing is lent",
            lambda: self.job.queued("borrowingLimit") == 0,
            seconds=60,
        )
        before = self.job.nominal()
        for name, gpus, priority in (
            ("training", before - 2, 1000),
            ("sweep", 1, 0),
            ("notebook", 1, 100),
        ):
            self.work(name, gpus, priority)
        [held] = [row for row in self.held() if row["reference"] == self.renewed]
        started = time.monotonic()
        answer = self.job.call(
            "Ada",
            "POST",
            f"/allocations/{held['id']}/give-back/",
            {"gpus": 1},
            key="over-1",
        )
        expect(answer.status_code == 200, answer.text)
        self.job.until(
            "one job has stopped", lambda: self.running() == ["notebook", "training"]
        )
        stopped = time.monotonic() - started
        self.job.until(
            "the room is gone, too",
            lambda: self.job.quota() == self.job.nominal() == before - 1,
        )
        expect(
            self.running() == ["notebook", "training"],
            "More was stopped than had to be.",
        )
        for name in ("training", "sweep", "notebook"):
            self.work(name, 0, 0)
        return f"{before} → {before - 1}: sweep stopped after {stopped:.1f} s; training and notebook run on"

    def rule(self, when_over: str) -> None:
        """Say what becomes of work that outlives what is held."""
        answer = self.job.call(
            "Priya", "PATCH", "/offerings/gpus/", {"when_over": when_over}
        )
        expect(
            answer.status_code == 200 and answer.json()["when_over"] == when_over,
            answer.text,
        )

    def held(self) -> list[dict[str, Any]]:
        """What the team holds."""
        rows: list[dict[str, Any]] = self.get("/allocations/?team=climate&held=true")[
            "results"
        ]
        return rows

    def get(self, path: str) -> dict[str, Any]:
        """What Ada is answered."""
        answer = self.job.call("Ada", "GET", path)
        expect(answer.status_code == 200, f"{path}: {answer.text[:300]}")
        found: dict[str, Any] = answer.json()
        return found

    def running(self) -> list[str]:
        """The jobs that hold GPUs; what has finished keeps its admission as a note."""
        found = self.job.cluster.list(WORKLOAD, self.job.namespace)
        said = [(one["metadata"]["name"], one.get("status") or {}) for one in found]
        return sorted(
            name
            for name, status in said
            if "admission" in status and not has_finished(status)
        )

    def work(self, name: str, gpus: int, priority: int) -> None:
        """Have the sandbox run something; 0 GPUs end it."""
        said = {
            "namespace": self.job.namespace,
            "flavor": FLAVOR,
            "gpus": gpus,
            "name": name,
            "priority": priority,
        }
        self.job.cluster._json("POST", "/sandbox/workloads", body=said)


def has_finished(status: dict[str, Any]) -> bool:
    """Whether a Workload is over, by its condition."""
    return any(
        one["type"] == "Finished" and one["status"] == "True"
        for one in status.get("conditions", [])
    )
