"""Runs by the public API alone: one node, then four that wait for it, with their places, logs and ends."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import requests

from scripts.expecting import expect

if TYPE_CHECKING:
    from scripts.main_job import MainJob

POD = ("v1", "Pod")
IMAGE = "registry.example.com/climate/train:1"
# It has to run long enough to be seen, and to end by itself soon.
SINGLE = {
    "image": IMAGE,
    "program": ["sleep", "8"],
    "launcher": "none",
    "gpus": 2,
    "cpus": 2,
    "memory": 8,
}
FOUR = {
    "image": IMAGE,
    "program": ["sleep", "3600"],
    "launcher": "none",
    "nodes": 4,
    "gpus": 1,
    "cpus": 1,
    "memory": 4,
    "grace": 1,
}


class Running:
    """The steps, played by Ada for Climate, whose queue is guaranteed two GPUs and may borrow two."""

    def __init__(self, job: "MainJob") -> None:
        self.job = job
        self.single: dict[str, Any] = {}
        self.four: dict[str, Any] = {}

    def steps(self) -> Iterator[tuple[str, Callable[[], str | None]]]:
        """Every step in order, in words."""
        yield (
            "a run of two GPUs: its price before it is sent, sent twice, one run",
            self.submit_single,
        )
        yield (
            "a run over four nodes waits behind it and says its place",
            self.wait_with_four,
        )
        yield (
            "the log of the first is streamed until it ends, and it ends as finished",
            self.follow_single,
        )
        yield (
            "the four nodes start by themselves, all at once, each with its log",
            self.see_four,
        )
        yield "they are stopped: no pod is left, and the GPUs are free", self.stop_four

    def submit_single(self) -> str:
        """The same key is the same run, and the preview says what is created."""
        asked = self.asked("single-node", "Fine-tune", SINGLE)
        shown = self.call("POST", "/runs/preview/", asked, key="demo-single").json()
        expect(shown["is_possible"], f"It says {shown['problems']}.")
        answers = [
            self.call("POST", "/runs/", asked, key="demo-single") for _ in range(2)
        ]
        expect(
            [one.status_code for one in answers] == [201, 201],
            f"It says {answers[0].text}.",
        )
        self.single, again = (one.json() for one in answers)
        expect(self.single["id"] == again["id"], "One key made two runs.")
        expect(
            self.single["manifests"] == shown["manifests"],
            "What was shown is not what is created.",
        )
        self.until_state(self.single, "running")
        return f"{self.single['name']}, ${shown['usd_per_hour']} an hour"

    def wait_with_four(self) -> str:
        """It needs four, and two are taken."""
        answer = self.call(
            "POST", "/runs/", self.asked("pytorch", "Four nodes", FOUR), key="demo-four"
        )
        expect(answer.status_code == 201, f"It says {answer.text}.")
        self.four = answer.json()
        self.job.until("it waits in the line", self.is_in_line)
        return str((self.seen(self.four)["why"] or {}).get("what"))

    def is_in_line(self) -> bool:
        """Whether the four nodes are told to be first in the line, all of it in one read."""
        found = self.seen(self.four)
        why = found["why"] or {}
        is_first = (found["state"], why.get("outlook"), why.get("position")) == (
            "waiting",
            "wait",
            0,
        )
        return is_first and "number 1 of 1 in the line" in why["line"]

    def follow_single(self) -> str:
        """Until `event: end`; nothing is asked for in between."""
        headers = {"Authorization": f"Bearer {self.job.tokens['Ada']}"}
        address = (
            f"{self.job.demo.url}/api/v1/runs/{self.single['id']}/logs/?follow=true"
        )
        lines, places = 0, set()
        with requests.get(
            address, headers=headers, stream=True, timeout=(5, 30)
        ) as answer:
            expect(
                answer.headers["Content-Type"] == "text/event-stream",
                f"It says {answer.text[:200]}.",
            )
            for line in answer.iter_lines(decode_unicode=True):
                lines += line.startswith("data:")
                places |= {line} if line.startswith("id:") else set()
                if line == "event: end":
                    break
        expect(lines == len(places) > 0, f"{lines} lines of {len(places)} places came.")
        self.until_state(self.single, "finished")
        found = self.seen(self.single)
        # Kubernetes tells times in whole seconds.
        expect(
            found["ran_seconds"] >= SECONDS - 1, f"It ran for {found['ran_seconds']} s."
        )
        return f"{lines} lines, ran for {found['ran_seconds']} s, ${found['cost']}"

    def see_four(self) -> str:
        """Their pods are there together, and each writes."""
        started = time.monotonic()
        self.until_state(self.four, "running")
        # Pods are seen one by one, whatever was seen of the whole.
        self.job.until(
            "its pods are seen", lambda: len(self.seen(self.four)["pods"]) == 4
        )
        pods = self.seen(self.four)["pods"]
        expect([pod["number"] for pod in pods] == [0, 1, 2, 3], f"It shows {pods}.")
        for pod in pods:
            self.job.until(
                f"{pod['name']} has written",
                partial(self.lines_of, self.four, pod["name"]),
            )
        return f"{', '.join(pod['node'] for pod in pods)}; {time.monotonic() - started:.1f} s after the first ended"

    def stop_four(self) -> str:
        """Asked of the cluster, and of the portal."""
        started = time.monotonic()
        for _ in range(2):
            answer = self.call("POST", f"/runs/{self.four['id']}/stop/")
            expect(answer.status_code == 200, f"It says {answer.text}.")
        self.until_state(self.four, "stopped")
        seconds = time.monotonic() - started
        left = self.job.cluster.list(
            POD,
            self.job.namespace,
            label_selector=f"quartermaster.io/run={self.four['name']}",
        )
        expect(not left, f"{len(left)} pods are left.")
        used = [
            resource["total"]
            for flavor in self.job.queue()["status"].get("flavorsUsage", [])
            for resource in flavor["resources"]
            if resource["name"] == "nvidia.com/gpu"
        ]
        expect(
            not any(str(one) != "0" for one in used), f"The queue still uses {used}."
        )
        self.job.until(
            "no GPU is held",
            lambda: self.call("GET", "/work/climate/").json()["held"] == 0,
        )
        return f"{seconds:.1f} s"

    def until_state(self, run: dict[str, Any], state: str) -> None:
        """Wait until the API tells this state of a run."""
        self.job.until(
            f"{run['name']} is {state}",
            lambda: self.seen(run)["state"] == state,
            seconds=30,
        )

    def seen(self, run: dict[str, Any]) -> dict[str, Any]:
        """The run as the API tells it now."""
        found: dict[str, Any] = self.call("GET", f"/runs/{run['id']}/").json()
        return found

    def lines_of(self, run: dict[str, Any], pod: str) -> list[Any]:
        """The lines of a pod's log; none before it has started."""
        answer = self.call("GET", f"/runs/{run['id']}/logs/?pod={pod}").json()
        return list(answer.get("lines", []))

    def place(self) -> dict[str, Any]:
        """Climate's place, as Ada's client is told of it."""
        places: list[dict[str, Any]] = self.call("GET", "/places/").json()["results"]
        return next(one for one in places if one["namespace"] == self.job.namespace)

    def missing(self, template: str) -> str:
        """What the cluster lacks for a template; empty when it is offered."""
        return next(
            str(one["missing"])
            for one in self.place()["templates"]
            if one["slug"] == template
        )

    def asked(
        self, template: str, title: str, values: dict[str, Any]
    ) -> dict[str, Any]:
        """A submission for the place that Ada's client is told."""
        # A new cluster is asked within seconds what it can run.
        self.job.until(f"{template} is offered", lambda: not self.missing(template))
        place = self.place()
        return {
            "tenancy": place["tenancy"],
            "template": template,
            "title": title,
            "flavor": place["flavors"][0]["flavor"],
            "values": values,
        }

    def call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        key: str = "",
    ) -> requests.Response:
        """A call with Ada's token."""
        return self.job.call("Ada", method, path, body, key=key)


SECONDS = int(str(SINGLE["program"][1]))  # type: ignore[index]
