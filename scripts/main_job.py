"""The main job, step by step: what people do in forms and scripts over the API, checked on the cluster."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import requests

from connectors.git import Repository
from connectors.git_address import Remote
from connectors.kubernetes import Cluster
from scripts.azure_job import Reserving
from scripts.catalogue_job import Catalogue
from scripts.demo_processes import Demo
from scripts.ending_job import Ending
from scripts.expecting import StepFailed, expect
from scripts.form_browser import FormBrowser
from scripts.notebook_job import Launching
from scripts.pool_job import Growing
from scripts.run_job import Running
from scripts.work_job import Working

CLUSTER = "training-eastus"
CLIMATE, GENOMICS = (f"00000000-0000-4000-9000-{number:012d}" for number in (9, 10))
KINDS = [
    ("v1", "ResourceQuota"),
    ("v1", "LimitRange"),
    ("v1", "ServiceAccount"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "ConfigMap"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("kueue.x-k8s.io/v1beta2", "LocalQueue"),
]
QUEUE = ("kueue.x-k8s.io/v1beta2", "ClusterQueue")
GPU = "nvidia.com/gpu"
PROMISE_SECONDS = 5.0
PAGES = (
    "/",
    "/requests/",
    "/teams/",
    "/teams/vision/",
    "/clusters/",
    "/clusters/training-eastus/",
    "/capacity/",
    "/costs/",
    "/approvals/",
    "/tasks/",
    "/catalogue/",
    "/policy/",
    "/audit/",
    "/help/",
)


class MainJob:
    """The steps, with the people who play them and an administrator's eye on the cluster."""

    def __init__(self, demo: Demo) -> None:
        self.demo = demo
        self.cluster = Cluster.from_kubeconfig(
            demo.sandbox["kubernetes"][CLUSTER]["admin_kubeconfig"]
        )
        self.people: dict[str, FormBrowser] = {}
        self.tokens: dict[str, str] = {}
        self.namespace = ""
        self.sixteen = 0

    def steps(self) -> Iterator[tuple[str, Callable[[], str | None]]]:
        """Every step in order, in words."""
        yield "Ada, Priya and Mallory sign in with Entra ID", self.sign_in
        yield "each makes a token for scripts", self.make_tokens
        yield "Ada brings Climate on board in the wizard", self.onboard
        yield "everything a team needs stands on the cluster", self.objects_stand
        yield "Genomics comes on board by one API call, sent twice", self.onboard_by_api
        yield "two A100: the answer before sending is “automatic”", self.preview_small
        yield "two A100, asked in the form, are on the cluster", self.ask_small
        yield from Working(self).steps()
        yield from Running(self).steps()
        yield "sixteen: told before sending who decides, and why", self.preview_large
        yield (
            "sixteen wait for platform leads, nothing changes on the cluster",
            self.ask_large,
        )
        yield "Priya comments, Ada says it better: judged anew", self.talk
        yield "a session that ends in mid-form loses nothing", self.outlast_the_session
        yield (
            "nobody decides their own request, strangers see nothing",
            self.refuse_wrong_people,
        )
        yield "Priya approves twelve of sixteen on one screen", self.approve_less
        yield (
            "Elena, who never signed in, is mailed and comes by the mail's link",
            self.come_by_mail,
        )
        yield "Elena approves; twelve more are on the cluster", self.approve_finally
        yield "Ada gives four back; the quota goes down", self.give_back
        yield (
            "one A100 for a few seconds ends by itself; the quota goes down",
            self.expire,
        )
        yield "one A100 is booked for later, and begins by itself", self.book
        yield from Catalogue(self).steps()
        yield from Reserving(self).steps()
        yield from Ending(self).steps()
        yield from Launching(self).steps()
        yield from Growing(self).steps()
        yield (
            "a cluster that follows a repository: Climate's namespace there is committed",
            self.by_git,
        )
        yield "a new policy frees what waits, the oldest first", self.free_what_waits
        yield "home and the pages of the rail open for everybody", self.open_pages
        yield "the audit log is whole", self.audit

    def sign_in(self) -> None:
        """Through the sandbox's sign-in page, as a browser would."""
        for name in ("Ada", "Priya", "Mallory"):
            self.sign_in_as(name)

    def sign_in_as(self, name: str) -> None:
        """One person more."""
        browser = FormBrowser(self.demo.url, self.demo.sandbox["ca"])
        browser.get("/requests/")
        browser.press("Sign in")
        page = browser.press(name)
        expect(
            page.status == 200 and page.url.endswith("/requests/"),
            f"{name} is at {page.url}: {page.status}",
        )
        self.people[name] = browser

    def open_pages(self) -> str:
        """On the database of the demo, which is SQLite: not all that PostgreSQL can be asked works there."""
        for name, browser in self.people.items():
            for path in PAGES:
                page = browser.get(path)
                expect(page.status < 500, f"{name} gets {page.status} of {path}.")
        return f"{len(PAGES)} pages, {len(self.people)} people"

    def onboard(self) -> str:
        """Four steps of the wizard, then the page that ticks off what became true."""
        ada = self.people["Ada"]
        ada.get("/teams/new")
        ada.press("Next", name="Climate", entra_group=CLIMATE, cost_centre="CC-4300")
        ada.press("Next", project="forecast", environment="dev", cluster=CLUSTER)
        ada.press("Review", size="none")
        started = time.monotonic()
        page = ada.press("Bring Climate on board")
        expect(
            "/teams/climate/onboarding" in page.url,
            f"The wizard ended at {page.url} ({page.status}).",
        )
        self.until(
            "all objects are true",
            lambda: self.find_namespace() and self.settled("climate"),
        )
        wanted, found = self.wanted(), self.objects()
        expect(found == wanted, f"{found} of {wanted} objects stand on the cluster.")
        seconds = time.monotonic() - started
        expect(
            seconds < PROMISE_SECONDS,
            f"It took {seconds:.1f} s, promised are {PROMISE_SECONDS:.0f} s.",
        )
        return (
            f"{self.namespace}, {found} objects, {seconds:.2f} s after the last click"
        )

    def objects_stand(self) -> str:
        """The group may work, the queue selects this namespace only, GPUs are limited, nothing is open."""
        binding = self.one(
            ("rbac.authorization.k8s.io/v1", "RoleBinding"), "team-users"
        )
        expect(
            binding["subjects"][0]["name"] == CLIMATE,
            "The binding names another group.",
        )
        queue = self.queue()
        selector = queue["spec"]["namespaceSelector"]["matchLabels"]
        expect(
            selector == {"kubernetes.io/metadata.name": self.namespace},
            f"The queue selects {selector}.",
        )
        expect(self.quota() == 0, "A team that asked for nothing has GPUs.")
        expect(
            queue["status"]["conditions"][0]["status"] == "True",
            "The queue is not active.",
        )
        return "namespace, quota, limits, binding, policies, claim, queues"

    def make_tokens(self) -> None:
        """On the tokens page; the secret is shown once."""
        for name, browser in self.people.items():
            self.make_token(name, browser)

    def make_token(self, name: str, browser: FormBrowser) -> None:
        """One person's token."""
        browser.get("/tokens/")
        page = browser.press("Create", name="main job", scope="write", days="7")
        start = page.text.find("qm_")
        expect(start >= 0, f"{name} was shown no token ({page.status}).")
        self.tokens[name] = page.text[start:].split("<")[0].split('"')[0].strip()
        expect(self.call(name, "GET", "/me/").status_code == 200, "It does not work.")

    def onboard_by_api(self) -> str:
        """The same key gives the same answer and one team."""
        body = {
            "name": "Genomics",
            "entra_group": GENOMICS,
            "cost_centre": "CC-4400",
            "project": "variants",
            "environment": "dev",
            "cluster": CLUSTER,
        }
        answers = [
            self.call("Ada", "POST", "/teams/", body, key="genomics-1")
            for _ in range(2)
        ]
        expect(
            [a.status_code for a in answers] == [201, 201],
            f"{[(a.status_code, a.text) for a in answers]}",
        )
        expect(
            answers[0].json() == answers[1].json(),
            "The repetition was answered differently.",
        )
        self.until("Genomics stands", lambda: self.settled("genomics"))
        return "two answers alike, one team"

    def preview_small(self) -> str:
        """Nothing is written by looking."""
        answer = self.preview(2, days=7)
        expect(answer["answer"]["outcome"] == "automatic", str(answer))
        return f"{answer['answer']['sentence']} ${answer['answer']['usd']} in all"

    def ask_small(self) -> str:
        """By the form, as somebody without JavaScript sends it."""
        ada = self.people["Ada"]
        ada.get("/requests/new?team=climate")
        until = (datetime.now(UTC) + timedelta(days=7)).strftime("%Y-%m-%dT%H:%M")
        values = {
            "team": "climate",
            "flavor": f"{CLUSTER}/a100-80gb",
            "gpus": "2",
            "until": until,
        }
        ada.press("Check", **values, purpose="training")
        started = time.monotonic()
        page = ada.press("Ask for 2", **values, purpose="training")
        expect(
            "/requests/" in page.url and page.status == 200,
            f"It ended at {page.url} ({page.status}).",
        )
        self.until("the quota is 2", lambda: self.quota() == 2 and self.nominal() == 2)
        return (
            f"quota and queue say 2, {time.monotonic() - started:.2f} s after sending"
        )

    def preview_large(self) -> str:
        """Who, why, and the nearest that would be automatic."""
        answer = self.preview(16, days=3)
        expect(
            answer["answer"]["route"] == ["platform_leads", "engineering_leadership"],
            str(answer),
        )
        nearest = answer["nearest_automatic"]
        expect(
            nearest is not None and nearest["count"] == 2,
            f"The nearest automatic ask is {nearest}.",
        )
        failing = [
            rule["text"] for rule in answer["answer"]["rules"] if not rule["holds"]
        ]
        return f"{answer['answer']['sentence']} {failing[0]}; automatic with {nearest['count']}"

    def ask_large(self) -> str:
        """With a reason, because people decide."""
        body = self.body(16, days=3) | {
            "reason": "The yearly forecast has to be retrained before the review."
        }
        answer = self.call("Ada", "POST", "/requests/", body, key="sixteen-1")
        expect(
            answer.status_code == 201 and answer.json()["state"] == "waiting",
            answer.text,
        )
        self.sixteen = answer.json()["id"]
        expect(self.quota() == 2, "The quota moved before anybody decided.")
        return f"request {self.sixteen}"

    def talk(self) -> str:
        """A comment tells the others, a change makes a new version."""
        path = f"/requests/{self.sixteen}/"
        said = self.call(
            "Priya",
            "POST",
            f"{path}comments/",
            {"text": "Which forecast?"},
            key="comment-1",
        )
        expect(said.status_code == 201, said.text)
        etag = self.call("Ada", "GET", path).headers["ETag"]
        change = {
            "reason": "The yearly forecast of 2027 has to be retrained before the review."
        }
        changed = self.call("Ada", "PATCH", path, change, etag=etag)
        expect(
            changed.status_code == 200 and changed.json()["state"] == "waiting",
            changed.text,
        )
        return "comment 1, version 2"

    def outlast_the_session(self) -> str:
        """Without JavaScript; with it, see tests/browser/test_session.py."""
        ada, words = self.people["Ada"], "It is for the review on Friday."
        ada.get(f"/requests/{self.sixteen}/")
        ada.lose_session()
        page = ada.press("Comment", text=words)
        expect(
            page.status == 401 and words in page.text,
            f"It ended at {page.url} ({page.status}).",
        )
        ada.press("Sign in again")
        page = ada.press("Ada")
        expect(
            words in page.text, f"What was typed is not on {page.url} ({page.status})."
        )
        page = ada.press("Send it now")
        expect(
            page.status == 200 and words in page.text,
            f"It ended at {page.url} ({page.status}).",
        )
        return "shown, kept over the sign-in, sent"

    def refuse_wrong_people(self) -> str:
        """Its requester, a stranger, and a platform lead with an own request."""
        path = f"/requests/{self.sixteen}/"
        etag = self.call("Ada", "GET", path).headers["ETag"]
        own = self.call("Ada", "POST", f"{path}approve/", {}, etag=etag, key="own-1")
        expect(
            own.status_code == 403 and own.json()["code"] == "self_approval", own.text
        )
        body = self.body(3, days=1) | {
            "reason": "A platform lead needs three for a test."
        }
        mine = self.call("Priya", "POST", "/requests/", body, key="priya-1")
        expect(mine.status_code == 201, mine.text)
        own_path = f"/requests/{mine.json()['id']}/"
        etag = self.call("Priya", "GET", own_path).headers["ETag"]
        refused = self.call(
            "Priya", "POST", f"{own_path}approve/", {}, etag=etag, key="priya-2"
        )
        expect(
            refused.status_code == 403 and refused.json()["code"] == "self_approval",
            refused.text,
        )
        stranger = self.call("Mallory", "GET", path)
        missing = self.call("Mallory", "GET", "/requests/999999/")
        expect(
            stranger.status_code == missing.status_code == 404,
            f"{stranger.status_code} {missing.status_code}",
        )
        return "403, 403, 404"

    def approve_less(self) -> str:
        """In the form of the approval page."""
        priya = self.people["Priya"]
        page = priya.get(f"/approvals/{self.sixteen}/")
        expect(page.status == 200, f"The approval page answers {page.status}.")
        page = priya.press(
            "Approve less", count="12", reason="Twelve fit beside the others."
        )
        expect(
            page.status == 200,
            f"Approving less answers {page.status}: {page.text[:300]}",
        )
        found = self.call("Ada", "GET", f"/requests/{self.sixteen}/").json()
        expect(found["state"] == "waiting", f"It is {found['state']}.")
        expect(self.quota() == 2, "The quota moved before the last step.")
        return "now engineering leadership decides"

    def come_by_mail(self) -> str:
        """Leadership is known from the directory: the mail's button leads to sign in and on to the decision."""
        path = f"/approvals/{self.sixteen}/"
        self.until(
            "Elena is mailed",
            lambda: self.mailed("elena@example.com", path),
            seconds=30,
        )
        elena = FormBrowser(self.demo.url, self.demo.sandbox["ca"])
        elena.get(path)
        elena.press("Sign in")
        page = elena.press("Elena")
        expect(
            page.status == 200 and page.url.endswith(path),
            f"Elena is at {page.url}: {page.status}",
        )
        self.people["Elena"] = elena
        self.make_token("Elena", elena)
        return "mailed, signed in, at the decision"

    def mailed(self, address: str, path: str) -> bool:
        """Whether a mail to this address has this path of the portal in it."""
        inbox = self.demo.sandbox["notices"]["inbox"]
        messages = requests.get(f"{inbox.rstrip('/')}/messages", timeout=10).json()[
            "messages"
        ]
        return any(
            address in str(message) and path in str(message) for message in messages
        )

    def approve_finally(self) -> str:
        """The last step grants."""
        elena = self.people["Elena"]
        elena.get(f"/approvals/{self.sixteen}/")
        started = time.monotonic()
        elena.press("Approve")
        self.until(
            "the quota is 14", lambda: self.quota() == 14 and self.nominal() == 14
        )
        return f"quota 2 → 14, {time.monotonic() - started:.2f} s after the click"

    def give_back(self) -> str:
        """A part of it, early."""
        found = self.call("Ada", "GET", "/allocations/?team=climate").json()["results"]
        twelve = next(row for row in found if row["gpus"] == 12)
        answer = self.call(
            "Ada",
            "POST",
            f"/allocations/{twelve['id']}/give-back/",
            {"gpus": 4},
            key="back-1",
        )
        expect(answer.status_code in (200, 201), answer.text)
        self.until(
            "the quota is 10", lambda: self.quota() == 10 and self.nominal() == 10
        )
        return "quota 14 → 10"

    def expire(self) -> str:
        """By the clock alone."""
        until = datetime.now(UTC) + timedelta(seconds=6)
        body = self.body(1, days=0) | {"until": until.isoformat()}
        answer = self.call("Ada", "POST", "/requests/", body, key="short-1")
        expect(
            answer.status_code == 201 and answer.json()["state"] != "waiting",
            answer.text,
        )
        self.until("the quota is 11", lambda: self.quota() == 11)
        self.until(
            "the quota is 10 again", lambda: self.quota() == 10 and self.nominal() == 10
        )
        late = (datetime.now(UTC) - until).total_seconds()
        return f"quota 10 → 11 → 10, {late:.1f} s after its end"

    def book(self) -> str:
        """Granted now, in force later, and nobody has to come back for it."""
        starts = datetime.now(UTC) + timedelta(seconds=8)
        body = self.body(1, days=0) | {
            "starts_at": starts.isoformat(),
            "until": (starts + timedelta(hours=1)).isoformat(),
        }
        before = self.quota()
        answer = self.call("Ada", "POST", "/requests/", body, key="booked-1")
        expect(
            answer.status_code == 201 and answer.json()["stage"] == "booked",
            answer.text,
        )
        expect(self.quota() == before, "The quota moved before it began.")

        def booked() -> Any:
            asked = self.call("Ada", "GET", f"/requests/{answer.json()['id']}/").json()
            return asked["allocation"]

        # A busy machine keeps the cluster from answering one look, and the next one comes half a minute later.
        try:
            self.until("it has begun", lambda: self.quota() == before + 1, seconds=60)
        except StepFailed as failed:
            raise StepFailed(f"{failed} The booking: {booked()}") from failed
        late = (datetime.now(UTC) - starts).total_seconds()
        held = booked()
        back = self.call(
            "Ada", "POST", f"/allocations/{held['id']}/give-back/", {}, key="booked-2"
        )
        expect(back.status_code == 200, back.text)
        self.until("the quota is as before", lambda: self.quota() == before)
        return f"on the cluster {late:.1f} s after its time had come"

    def by_git(self) -> str:
        """Added by a platform lead, with no cluster behind it; asked for as any other namespace is."""
        added = {
            "name": "inference-westus",
            "title": "Inference, West US",
            "region": "westus",
            "purpose": "inference",
            "delivery": "git",
            "git_url": str(self.demo.repository()),
        }
        answer = self.call("Priya", "POST", "/clusters/", added, key="by-git-1")
        expect(answer.status_code == 201, answer.text)
        until = (datetime.now(UTC) + timedelta(days=7)).isoformat()
        asked = {
            "team": "climate",
            "offering": "namespace",
            "until": until,
            "reason": "The forecast is served from there.",
            "spec": {
                "cluster": "inference-westus",
                "environment": "test",
                "project": "forecast",
            },
        }
        answer = self.call("Ada", "POST", "/requests/", asked, key="by-git-2")
        expect(answer.status_code == 201, answer.text)
        self.until("it is committed", self.committed, seconds=40)
        ready = self.committed()["ready"]
        expect(ready["reason"] == "Committed", f"It says {ready}.")
        repository = self.demo.repository()
        seen = Repository(Remote(str(repository), folder=repository.parent)).look(
            "main"
        )
        namespace = self.committed()["namespace"]
        found = seen.read(
            f"clusters/inference-westus/tenancies/{namespace}/namespace-{namespace}.json"
        )
        expect(
            found is not None and b"quartermaster.io/tenancy" in found,
            "The namespace is not committed.",
        )
        return str(ready["message"])

    def committed(self) -> dict[str, Any]:
        """Climate's tenancy on the cluster that follows a repository, once it is committed; else nothing."""
        rows = self.call(
            "Ada", "GET", "/tenancies/?team=climate&cluster=inference-westus"
        ).json()["results"]
        return dict(rows[0]) if rows and rows[0]["is_settled"] else {}

    def free_what_waits(self) -> str:
        """Two asks wait for people; Priya writes a policy that approves such asks, Elena puts it in force."""
        waiting = []
        for number in (1, 2):
            until = datetime.now(UTC) + timedelta(hours=2)
            body = self.body(3, days=0) | {
                "until": until.isoformat(),
                "reason": "Two hours of a sweep over seeds.",
            }
            answer = self.call("Ada", "POST", "/requests/", body, key=f"line-{number}")
            expect(
                answer.status_code == 201 and answer.json()["state"] == "waiting",
                answer.text,
            )
            waiting.append(answer.json()["id"])
        document = self.call("Priya", "GET", "/policy/").json()["document"]
        document["thresholds"] |= {
            "automatic_gpus": 3,
            "window_gpus_team": 60,
            "window_gpus_person": 60,
        }
        why = "Three GPUs for hours are always approved."
        body = {"document": document, "reason": why}
        draft = self.call("Priya", "POST", "/policy/drafts/", body, key="draft-1")
        expect(draft.status_code == 201, draft.text)
        path = f"/policy/drafts/{draft.json()['id']}/activate/"
        started = time.monotonic()
        tick = {"everything_automatic": True}
        version = self.call("Elena", "POST", path, tick, key="activate-1", etag='"1"')
        expect(version.status_code in (200, 201), version.text)
        self.until(
            "both are granted",
            lambda: all(self.request(pk)["decided_at"] for pk in waiting),
        )
        first, second = (self.request(pk) for pk in waiting)
        expect(
            first["decided_at"] < second["decided_at"],
            f"{first['decided_at']}, {second['decided_at']}",
        )
        expect(
            first["approved_count"] == second["approved_count"] == 3,
            "They were not granted whole.",
        )
        return f"both granted in order, {time.monotonic() - started:.2f} s after it came into force"

    def request(self, pk: int) -> dict[str, Any]:
        """A request as Ada sees it."""
        found: dict[str, Any] = self.call("Ada", "GET", f"/requests/{pk}/").json()
        return found

    def audit(self) -> str:
        """The hash chain, checked by somebody who may."""
        answer = self.call("Priya", "GET", "/events/verify/")
        expect(
            answer.status_code == 200 and answer.json()["broken_at"] is None,
            answer.text,
        )
        return f"{answer.json()['checked']} events, unbroken"

    def preview(self, gpus: int, *, days: int) -> dict[str, Any]:
        """The API's answer to an ask that is not made."""
        answer = self.call(
            "Ada", "POST", "/requests/preview/", self.body(gpus, days=days)
        )
        expect(answer.status_code == 200, answer.text)
        found: dict[str, Any] = answer.json()
        return found

    def body(self, gpus: int, *, days: int) -> dict[str, Any]:
        """An ask for A100s by Climate."""
        until = datetime.now(UTC) + timedelta(days=days)
        return {
            "team": "climate",
            "flavor": f"{CLUSTER}/a100-80gb",
            "gpus": gpus,
            "until": until.isoformat(),
            "purpose": "training",
        }

    def call(
        self,
        who: str,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        key: str = "",
        etag: str = "",
    ) -> requests.Response:
        """One API call with a personal token."""
        headers = {"Authorization": f"Bearer {self.tokens[who]}"}
        headers |= {"Idempotency-Key": key} if key else {}
        headers |= {"If-Match": etag} if etag else {}
        return requests.request(
            method,
            f"{self.demo.url}/api/v1{path}",
            json=body,
            headers=headers,
            timeout=15,
        )

    def until(
        self, words: str, holds: Callable[[], object], *, seconds: float = 20
    ) -> None:
        """Wait until something holds on the cluster; raises StepFailed after so many seconds."""
        deadline = time.monotonic() + seconds
        while not holds():
            expect(
                time.monotonic() < deadline,
                f"After {seconds:.0f} s it is still not so: {words}.",
            )
            time.sleep(0.05)

    def settled(self, team: str) -> bool:
        """Whether everything of a team is true, as the API says."""
        rows = self.call("Ada", "GET", f"/tenancies/?team={team}").json()["results"]
        return bool(rows) and all(row["is_settled"] for row in rows)

    def find_namespace(self) -> bool:
        """Remember Climate's namespace once it is there."""
        found = self.cluster.list(
            ("v1", "Namespace"), label_selector="quartermaster.io/team=climate"
        )
        self.namespace = found[0]["metadata"]["name"] if found else ""
        return bool(found)

    def wanted(self) -> int:
        """How many objects the portal says that Climate's tenancy has."""
        [row] = self.call("Ada", "GET", "/tenancies/?team=climate").json()["results"]
        return len(
            self.call("Ada", "GET", f"/tenancies/{row['id']}/").json()["objects"]
        )

    def objects(self) -> int:
        """How many of a tenancy's objects stand."""
        mine = "quartermaster.io/team=climate"
        inside = sum(
            len(self.cluster.list(kind, self.namespace, label_selector=mine))
            for kind in KINDS
        )
        return 1 + inside + len(self.cluster.list(QUEUE, label_selector=mine))

    def one(self, kind: tuple[str, str], name: str) -> dict[str, Any]:
        """An object of Climate's namespace; raises StepFailed when it is missing."""
        found = self.cluster.get(kind, name, self.namespace)
        expect(found is not None, f"{kind[1]} {name} is missing.")
        return found or {}

    def queue(self) -> dict[str, Any]:
        """Climate's ClusterQueue."""
        return self.cluster.get(QUEUE, self.namespace) or {}

    def quota(self) -> int:
        """GPUs that the namespace's ResourceQuota allows beside those that may be borrowed."""
        hard = self.one(("v1", "ResourceQuota"), "team-quota")["spec"]["hard"]
        return int(hard[f"requests.{GPU}"]) - self.queued("borrowingLimit")

    def nominal(self) -> int:
        """GPUs that the ClusterQueue guarantees."""
        return self.queued("nominalQuota")

    def queued(self, field: str) -> int:
        """GPUs that the ClusterQueue says in one field, over all flavors."""
        flavors = self.queue()["spec"]["resourceGroups"][0]["flavors"]
        return sum(
            int(r[field]) for f in flavors for r in f["resources"] if r["name"] == GPU
        )
