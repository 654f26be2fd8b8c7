"""One of every offering: asked for by page and by API, decided, carried out, and brought to its end."""

import html
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import requests

from scripts.expecting import expect

if TYPE_CHECKING:
    from scripts.main_job import MainJob

A100 = "training-eastus/a100-80gb"
WHY = "The review on Friday needs it, and nothing smaller would do."
NOTE = "Carried out; it is where it was asked for."
SHORT = timedelta(seconds=8)
HOUR = timedelta(hours=1)
TAGS = re.compile(r"<[^>]+>")


class Catalogue:
    """The steps, played by the people of the main job for its team."""

    def __init__(self, job: "MainJob", *, keys: str = "catalogue") -> None:
        self.job, self.keys = job, keys
        self.calls = 0

    def steps(self) -> Iterator[tuple[str, Callable[[], str | None]]]:
        """Every step in order, in words."""
        yield (
            "the catalogue tells nine offerings with their specs and choices",
            self.told,
        )
        yield (
            "a notebook where no hub is connected: refused in words before it is sent",
            self.notebook,
        )
        yield (
            "a volume, asked over the API: stands on the cluster seconds later, over on its date",
            self.volume,
        )
        yield "a namespace on the other cluster: made, let go of early", self.namespace
        yield (
            "a large training, asked in the form: two steps decide; given back",
            self.training,
        )
        yield (
            "an inference endpoint: approved, carried out in the browser, given back",
            self.endpoint,
        )
        yield (
            "an Azure OpenAI endpoint that cannot be had: its money is free again",
            self.openai,
        )
        yield "a new cluster: approved, carried out, over on its date", self.cluster

    def told(self) -> str:
        """As Backstage would read it."""
        found = self.get("Ada", "/offerings/")["results"]
        expect(len(found) == 9, f"{len(found)} offerings are told.")
        expect(
            all(row["spec"]["properties"] for row in found), "An offering has no spec."
        )
        choices = self.get("Ada", "/offerings/namespace/options/?team=climate")[
            "choices"
        ]["cluster"]
        free = [line["value"] for line in choices if not line["disabled"]]
        expect({"dev-eastus", "training-eastus"} <= set(free), f"It offers {choices}.")
        return ", ".join(row["key"] for row in found)

    def notebook(self) -> str:
        """Refused before it is sent, in words, while no hub is connected that could start it."""
        until = (datetime.now(UTC) + HOUR).isoformat()
        spec = {"flavor": A100, "gpus": 1, "profile": "a100"}
        body = {
            "team": "climate",
            "offering": "notebook",
            "spec": spec,
            "until": until,
            "reason": WHY,
        }
        answer = self.job.call("Ada", "POST", "/requests/preview/", body)
        expect("no JupyterHub" in answer.text, answer.text)
        return str(answer.json()["detail"])

    def volume(self) -> str:
        """Automatic, for a few seconds: nobody makes it, a person takes it down."""
        started = time.monotonic()
        spec = {
            "cluster": "training-eastus",
            "name": "tiles",
            "gib": 200,
            "access": "ReadWriteMany",
        }
        number = self.ask("volume", spec, length=SHORT)
        self.stage(number, "active", "ending_soon")
        seconds = time.monotonic() - started
        claim = self.job.one(("v1", "PersistentVolumeClaim"), "volume-tiles")
        expect(
            claim["spec"]["resources"]["requests"]["storage"] == "200Gi",
            f"The cluster has {claim}.",
        )
        rows = self.get("Ada", "/allocations/?team=climate&held=true")["results"]
        expect(
            "200 GiB volume tiles" in [row["what"] for row in rows],
            f"The team holds {rows}.",
        )
        self.stage(number, "ended")
        self.take_down(number)
        self.says(
            number,
            "Approved",
            "Set up on Training, East US",
            "Its time was over",
            "Taken down",
        )
        return f"its claim stands {seconds:.1f} s after it was asked for"

    def namespace(self) -> str:
        """Made by the portal itself, seconds later, and ended at the team's wish."""
        started = time.monotonic()
        spec = {"cluster": "dev-eastus", "environment": "test", "project": "forecast"}
        number = self.ask("namespace", spec)
        self.stage(number, "active")
        seconds = time.monotonic() - started
        self.post("Ada", f"/requests/{number}/let-go/", {})
        self.stage(number, "ended")
        self.take_down(number)
        self.says(
            number, "Set up on Development, East US", "Let go early", "Taken down"
        )
        return f"stands {seconds:.1f} s after it was asked for"

    def training(self) -> str:
        """Eight for an hour: platform leads, then engineering leadership."""
        number = self.ask_in_the_form("training", flavor=A100, gpus="8")
        self.approve(number)
        self.job.until("the quota is 18", lambda: self.job.quota() == 18)
        self.give_back(number, 10)
        self.stage(number, "ended")
        return self.says(
            number,
            "Approved as platform leads",
            "Approved as engineering leadership",
            "Gave back",
        )

    def endpoint(self) -> str:
        """Production, so people decide however small it is."""
        spec = {
            "flavor": A100,
            "model": "mistral-7b",
            "gpus_per_replica": 1,
            "replicas": 2,
        }
        number = self.ask("endpoint", spec)
        self.approve(number)
        self.job.until("the quota is 12", lambda: self.job.quota() == 12)
        priya, task = self.job.people["Priya"], self.task(number)
        priya.get(f"/tasks/{task['id']}/")
        priya.press("Done", note=NOTE)
        self.stage(number, "active")
        self.give_back(number, 10)
        self.take_down(number)
        return self.says(number, "Carried out", "Gave back", "Taken down")

    def openai(self) -> str:
        """What Azure refuses for good, nobody pays for: it has no Azure OpenAI in this region."""
        before = self.held()
        spec = {
            "region": "swedencentral",
            "model": "gpt-4o-mini",
            "thousand_tokens_per_minute": 10,
        }
        number = self.ask("openai", spec)
        self.approve(number)
        self.stage(number, "failed")
        self.job.until(
            f"${before} are set aside as before", lambda: self.held() == before
        )
        return self.says(
            number, "Could not be set up", "not available for resource type"
        )

    def cluster(self) -> str:
        """As long as a demo is."""
        spec = {
            "region": "eastus",
            "vm_size": "Standard_NC4as_T4_v3",
            "nodes": 2,
            "purpose": "development",
        }
        number = self.ask("cluster", spec, length=SHORT)
        self.approve(number)
        self.finish(number)
        self.stage(number, "ended")
        self.take_down(number)
        return self.says(number, "Carried out", "Its time was over", "Taken down")

    def ask(
        self,
        key: str,
        spec: dict[str, Any],
        *,
        team: str = "climate",
        length: timedelta = HOUR,
    ) -> int:
        """Ask over the API; returns the request's number."""
        until = (datetime.now(UTC) + length).isoformat()
        body = {
            "team": team,
            "offering": key,
            "spec": spec,
            "until": until,
            "reason": WHY,
        }
        preview = self.job.call("Ada", "POST", "/requests/preview/", body)
        expect(preview.status_code == 200, preview.text)
        made = self.post("Ada", "/requests/", body)
        outcome = made["evaluations"][0]["answer"]["outcome"]
        expect(
            outcome == preview.json()["answer"]["outcome"],
            "The preview said something else.",
        )
        return int(made["id"])

    def ask_in_the_form(self, key: str, **values: str) -> int:
        """Ask for an hour as somebody without JavaScript does; returns the request's number."""
        ada, until = (
            self.job.people["Ada"],
            (datetime.now(UTC) + HOUR).strftime("%Y-%m-%dT%H:%M"),
        )
        ada.get(f"/requests/new/{key}?team=climate")
        ada.press("Check", team="climate", until=until, **values)
        has_reason = 'name="reason"' in ada.page.text
        page = ada.press("Ask for", **({"reason": WHY} if has_reason else {}))
        found = re.search(r"/requests/(\d+)/$", page.url)
        expect(found is not None, f"It ended at {page.url} ({page.status}).")
        return int(found[1]) if found else 0

    def approve(self, number: int) -> None:
        """Platform leads, then engineering leadership, as far as the route goes."""
        for who in ("Priya", "Elena"):
            answer = self.job.call(who, "GET", f"/requests/{number}/")
            if answer.json()["state"] == "waiting":
                etag = answer.headers["ETag"]
                path = f"/requests/{number}/approve/"
                voted = self.job.call(who, "POST", path, {}, etag=etag, key=self.key())
                expect(voted.status_code == 200, voted.text)
        state = self.get("Ada", f"/requests/{number}/")["state"]
        expect(state == "approved", f"Request {number} is {state}.")

    def task(self, number: int, kind: str = "set_up") -> dict[str, Any]:
        """The request's task of a kind, once it is there."""
        found: list[dict[str, Any]] = []

        def there() -> bool:
            rows = self.get("Priya", f"/tasks/?request={number}")["results"]
            found[:] = [row for row in rows if row["kind"] == kind]
            return bool(found)

        self.job.until(f"request {number} has a task", there)
        return found[0]

    def finish(self, number: int, kind: str = "set_up") -> None:
        """Take the task and carry it out, over the API."""
        task = self.task(number, kind)
        self.post("Priya", f"/tasks/{task['id']}/take/", {"version": task["version"]})
        self.post("Priya", f"/tasks/{task['id']}/done/", {"note": NOTE})

    def take_down(self, number: int) -> None:
        """What follows the end."""
        self.finish(number, "take_down")

    def give_back(self, number: int, quota: int) -> None:
        """All of it; the quota goes down."""
        held = self.get("Ada", f"/requests/{number}/")["allocation"]
        self.post("Ada", f"/allocations/{held['id']}/give-back/", {})
        self.job.until(f"the quota is {quota}", lambda: self.job.quota() == quota)

    def stage(self, number: int, *stages: str) -> None:
        """Wait until people see one of these states."""
        self.job.until(
            f"request {number} is {stages[0]}",
            lambda: self.get("Ada", f"/requests/{number}/")["stage"] in stages,
        )

    def says(self, number: int, *words: str) -> str:
        """The request's timeline has all of these, in this order."""
        page = self.job.people["Ada"].get(f"/requests/{number}/")
        expect(
            page.status == 200, f"The page of request {number} answers {page.status}."
        )
        said, at = plain(page.text), 0
        for word in words:
            found = said.find(word, at)
            expect(
                found >= 0,
                f"The timeline of request {number} does not say “{word}” there: {said[:1500]}",
            )
            at = found
        return f"request {number}: {', '.join(words)}"

    def held(self) -> str:
        """USD set aside this month."""
        rows = self.get("Ada", "/teams/climate/budgets/")["results"]
        now = f"{datetime.now(UTC):%Y-%m}"
        return str(
            next(row["held_usd"] for row in rows if str(row["month"]).startswith(now))
        )

    def get(self, who: str, path: str) -> dict[str, Any]:
        """A call that reads."""
        return self._checked(self.job.call(who, "GET", path))

    def post(self, who: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """A call that does something, once."""
        return self._checked(self.job.call(who, "POST", path, body, key=self.key()))

    def key(self) -> str:
        """A new Idempotency-Key."""
        self.calls += 1
        return f"{self.keys}-{self.calls}"

    def _checked(self, answer: requests.Response) -> dict[str, Any]:
        expect(
            answer.ok,
            f"{answer.request.method} {answer.url}: {answer.status_code} {answer.text}",
        )
        found: dict[str, Any] = answer.json()
        return found


def plain(text: str) -> str:
    """What a page says, from its timeline on, without its tags."""
    return " ".join(
        html.unescape(
            TAGS.sub(" ", text.partition("What happened and what comes")[2])
        ).split()
    )
