"""Notebooks in a real JupyterHub: launched from a profile's card, waited for, opened, warned, kept, stopped."""

import html
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from scripts.expecting import StepFailed, expect
from scripts.form_browser import FormBrowser
from scripts.packages import ROOT

if TYPE_CHECKING:
    from scripts.main_job import MainJob

POD = ("v1", "Pod")
PROFILE, TEAM = "a100", "climate"
GPU, QUEUE = "nvidia.com/gpu", "kueue.x-k8s.io/queue-name"
# What workers do by the clock, done for a moment that has not come yet.
RECLAIM = """
from datetime import datetime
from notebooks.hubs.models import Hub
from notebooks.servers.ending import reclaim_idle
from notices.delivery import deliver_due
from notices.servers import outside

at = datetime.fromisoformat("{}")
# Until then the hub goes on to say how its servers are used.
Hub.objects.exclude(followed_at=None).update(followed_at=at)
reclaim_idle(now=at)
deliver_due(now=lambda: at, outside=outside())
"""
IDLE, KEPT = timedelta(minutes=60), timedelta(hours=2)
OWN_GPUS_SECONDS = 40


class Launching:
    """The steps, played by Ada for Climate; JupyterHub is begun with the demo and installed meanwhile."""

    def __init__(self, job: "MainJob") -> None:
        self.job = job
        self.number = 0

    def steps(self) -> Iterator[tuple[str, Callable[[], str | None]]]:
        """Every step in order, in words."""
        yield "JupyterHub answers, and is connected to the cluster", self.connect
        yield (
            "a notebook is launched from its profile's card while the queue is full: it waits",
            self.launch,
        )
        yield "the queue has room: it starts by itself, as its profile says", self.start
        yield "its address opens the notebook, after signing in at the hub", self.open
        yield "nobody uses it: Ada is warned with what it cost, and keeps it", self.keep
        yield (
            "nobody uses it for longer: it is stopped, and its GPU is free",
            self.reclaim,
        )
        yield (
            "a notebook with GPUs of its own: launched by a worker, stopped with its end",
            self.own_gpus,
        )

    def connect(self) -> str:
        """As a platform lead does it once; its page says the version."""
        self.job.demo.connect_hub()
        self.job.until(
            "the hub is observed",
            lambda: self.hub()["reachable"] is not None,
            seconds=60,
        )
        hub = self.hub()
        expect(hub["reachable"], f"The portal cannot work with it: {hub['message']}")
        return f"JupyterHub {hub['version']}"

    def launch(self) -> str:
        """In the form, sent twice; what the team holds is busy, and nothing is lent."""
        self.lend(0)
        self.work(self.job.nominal())
        ada = self.job.people["Ada"]
        page = ada.get(f"/teams/{TEAM}/notebooks")
        card = next(
            (form for form in page.forms() if form.values.get("profile") == PROFILE),
            None,
        )
        if card is None:
            said = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.text)).split())
            raise StepFailed(
                f"No card launches {PROFILE}: {said[said.find('Launch a notebook') :]}"
            )
        values = {
            "profile": PROFILE,
            "token": card.values["token"],
            "options.image": "jax",
            "title": "Explore",
        }
        page = ada.press("Launch", **values)
        self.number = int(page.url.rstrip("/").rpartition("/")[2])
        ada.get(f"/teams/{TEAM}/notebooks")
        again = ada.press("Launch", **values)
        expect(
            again.url == page.url, f"Sent twice it led to {page.url} and {again.url}."
        )
        self.job.until(
            "its pod waits in the line, as API and page say", self.is_in_line
        )
        return str((self.seen()["why"] or {}).get("what"))

    def is_in_line(self) -> bool:
        """Whether API and page say the same of its place; what one says may have passed when the other is asked."""
        why = self.seen()["why"] or {}
        is_first = (why.get("outlook"), why.get("position")) == ("wait", 0)
        page = self.job.people["Ada"].get(f"/notebooks/{self.number}")
        return (
            is_first
            and "number 1 of 1 in the line" in why["line"]
            and html.escape(why["what"]) in page.text
        )

    def start(self) -> str:
        """What ran before ends; nobody does anything for the notebook."""
        started = time.monotonic()
        self.work(0)
        self.until_state("ready")
        seconds = time.monotonic() - started
        [pod] = self.pods()
        container, labels = pod["spec"]["containers"][0], pod["metadata"]["labels"]
        resources = container["resources"]
        expect(
            container["image"] == "registry.example.com/notebook/jax:0.9",
            f"It runs {container['image']}.",
        )
        expect(resources["limits"] == resources["requests"], f"It has {resources}.")
        expect(resources["limits"][GPU] == "1", f"It has {resources}.")
        expect(
            (labels[QUEUE], labels["team"]) == ("default", TEAM), f"It has {labels}."
        )
        expect(
            pod["spec"]["nodeSelector"]["accelerator"] == "nvidia-a100",
            f"It has {pod['spec']}.",
        )
        return (
            f"ready {seconds:.1f} s after there was room, on {pod['spec']['nodeName']}"
        )

    def open(self) -> str:
        """At the hub's own address, where Entra ID says who one is."""
        address = str(self.seen()["address"])
        expect(address.startswith(self.job.demo.hub_opened_at), f"It is at {address}.")
        browser = FormBrowser(self.job.demo.hub_opened_at, self.job.demo.sandbox["ca"])
        browser.get("/hub/oauth_login")
        browser.press("Ada")
        page = browser.get(address)
        expect(
            page.status == 200 and page.url == address,
            f"It ended at {page.url} ({page.status}).",
        )
        [pod] = self.pods()
        expect(pod["metadata"]["name"] in page.text, f"It shows {page.text[:300]}.")
        return address

    def keep(self) -> str:
        """An hour passes on the clock that the task is given."""
        ada = self.job.people["Ada"]
        self.pass_time(IDLE)
        self.job.until(
            "Ada is mailed",
            lambda: self.job.mailed("ada@example.com", f"/notebooks/{self.number}"),
        )
        page = ada.get(f"/notebooks/{self.number}")
        expect(
            "Ready, idle" in page.text and "unless you use it or keep it" in page.text,
            page.text[-3000:],
        )
        page = ada.press("Keep for 2 hours")
        expect(
            "Kept until" in page.text and "Ready, idle" not in page.text,
            page.text[-3000:],
        )
        self.pass_time(IDLE + timedelta(minutes=30))
        expect(self.seen()["state"] == "ready", "It was stopped although it is kept.")
        return "warned by mail and page, kept for two hours"

    def reclaim(self) -> str:
        """Another notice comes first, then its time to answer."""
        for passed in (IDLE + KEPT, IDLE + KEPT + timedelta(hours=1)):
            self.pass_time(passed)
        self.until_state("stopped")
        found = self.seen()
        expect(
            found["stop_reason"] == "idle",
            f"It was stopped because of {found['stop_reason']}.",
        )
        self.job.until("its pod is gone", lambda: not self.pods())
        self.job.until(
            "no GPU is held", lambda: self.call("GET", f"/work/{TEAM}/")["held"] == 0
        )
        return str(found["sentence"])

    def own_gpus(self) -> str:
        """Nobody carries it out; it is over when what was granted is."""
        started, before = time.monotonic(), self.job.quota()
        until = datetime.now(UTC) + timedelta(seconds=OWN_GPUS_SECONDS)
        spec = {"flavor": "training-eastus/a100-80gb", "gpus": 1, "profile": PROFILE}
        body = {
            "team": TEAM,
            "offering": "notebook",
            "spec": spec,
            "until": until.isoformat(),
        }
        body["reason"] = "A first look at the new images, for an afternoon."
        made = self.call("POST", "/requests/", body, key="notebook-own")
        if made["state"] == "waiting":
            path = f"/requests/{made['id']}/"
            etag = self.job.call("Priya", "GET", path).headers["ETag"]
            voted = self.job.call(
                "Priya",
                "POST",
                f"{path}approve/",
                {},
                etag=etag,
                key="notebook-own-yes",
            )
            expect(voted.status_code == 200, voted.text)
        self.job.until("it is launched", lambda: self.newest() != self.number)
        self.number = self.newest()
        self.until_state("ready")
        seconds = time.monotonic() - started
        expect(
            self.job.quota() == before + 1,
            f"The quota is {self.job.quota()}, {before} before.",
        )
        self.until_state("stopped", seconds=OWN_GPUS_SECONDS + 30)
        self.job.until("its pod is gone", lambda: not self.pods())
        self.job.until("the quota is as before", lambda: self.job.quota() == before)
        expect(self.seen()["stop_reason"] == "end", f"It says {self.seen()}.")
        return f"ready {seconds:.1f} s after it was asked for; stopped with what carried it"

    def seen(self) -> dict[str, Any]:
        """The notebook as Ada's client is told of it."""
        return self.call("GET", f"/notebooks/{self.number}/")

    def newest(self) -> int:
        """The newest of Ada's notebooks."""
        return int(self.call("GET", "/notebooks/?mine=true")["results"][0]["id"])

    def hub(self) -> dict[str, Any]:
        """The hub as Priya's client is told of it."""
        return self.call("GET", "/hubs/training-eastus/", who="Priya")

    def pods(self) -> list[dict[str, Any]]:
        """The pods of notebooks in the namespace, asked of the cluster."""
        rows = self.job.cluster.list(
            POD, self.job.namespace, label_selector="component=singleuser-server"
        )
        return list(rows)

    def until_state(self, state: str, *, seconds: float = 40) -> None:
        """Wait until the API tells this state of the notebook."""
        self.job.until(
            f"the notebook is {state}",
            lambda: self.seen()["state"] in (state, "failed"),
            seconds=seconds,
        )
        expect(self.seen()["state"] == state, self.seen()["sentence"])

    def pass_time(self, passed: timedelta) -> None:
        """Have idle notebooks seen to as of a moment ahead; the demo's own clock goes on as it does."""
        at = (datetime.now(UTC) + passed).isoformat()
        command = [
            sys.executable,
            "manage.py",
            "shell",
            "-v",
            "0",
            "-c",
            RECLAIM.format(at),
        ]
        subprocess.run(command, cwd=ROOT, env=self.job.demo.environment(), check=True)

    def lend(self, percent: int) -> None:
        """Say how much of what others leave free a queue may borrow."""
        answer = self.job.call(
            "Priya", "PATCH", "/clusters/training-eastus/", {"borrow_percent": percent}
        )
        expect(answer.status_code == 200, answer.text)
        self.job.until(
            "the queue says so",
            lambda: self.job.queued("borrowingLimit") == 0,
            seconds=60,
        )

    def work(self, gpus: int) -> None:
        """Have the sandbox run something that takes so many GPUs; 0 ends it."""
        said = {"namespace": self.job.namespace, "flavor": "a100-80gb", "gpus": gpus}
        said |= {"name": "busy", "priority": 1000}
        self.job.cluster._json("POST", "/sandbox/workloads", body=said)

    def call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        key: str = "",
        who: str = "Ada",
    ) -> dict[str, Any]:
        """A call that works, with somebody's token."""
        answer = self.job.call(who, method, path, body, key=key)
        expect(answer.ok, f"{method} {path}: {answer.status_code} {answer.text}")
        found: dict[str, Any] = answer.json()
        return found
