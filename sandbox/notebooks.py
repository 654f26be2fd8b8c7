"""Stand-ins for the notebook servers of pods: a page at the pod's address while it runs, and activity for its hub."""

import asyncio
import html
import json
import sys
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from sandbox.kubernetes import Cluster
from sandbox.kubernetes.controllers_pods import POD, phase_of
from sandbox.kubernetes.kubelet import is_notebook
from sandbox.kubernetes.store import Change, Obj
from sandbox.serving import Served, listen, serve

USUAL_PORT = 8888
HUB_SECONDS = 5.0
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Notebook {name}</title>
<style>body{{font:16px/1.5 system-ui;max-width:42rem;margin:3rem auto;padding:0 1rem}}dt{{font-weight:600}}</style>
</head><body><h1>Notebook {name}</h1>
<p>This page is the sandbox's stand-in for Jupyter: no kernel runs here, and nothing is computed. The hub, its proxy
and the way here are the real ones.</p>
<dl><dt>Pod</dt><dd>{namespace}/{pod}</dd><dt>Node</dt><dd>{node}</dd><dt>Image</dt><dd>{image}</dd>
<dt>GPUs</dt><dd>{gpus}</dd></dl>
</body></html>
"""


@dataclass(frozen=True)
class Notebook:
    """One pod's server: where it listens, and what its environment says."""

    pod: Obj

    @property
    def uid(self) -> str:
        """Which pod it is; a later one of the same name is another."""
        return str(self.pod["metadata"]["uid"])

    @property
    def host(self) -> str:
        """The pod's own address."""
        return str(self.pod["status"]["podIP"])

    @property
    def container(self) -> Obj:
        """What runs the server."""
        found: Obj = self.pod["spec"]["containers"][0]
        return found

    @property
    def port(self) -> int:
        """Where the container says that it listens."""
        ports = self.container.get("ports") or ()
        return next((int(one["containerPort"]) for one in ports), USUAL_PORT)

    @property
    def environment(self) -> dict[str, str]:
        """What KubeSpawner gives it."""
        return {
            one["name"]: str(one.get("value") or "")
            for one in self.container.get("env") or ()
        }

    @property
    def prefix(self) -> str:
        """Where it answers, with a slash at both ends."""
        return f"/{self.environment.get('JUPYTERHUB_SERVICE_PREFIX', '').strip('/')}/".replace(
            "//", "/"
        )

    def app(self) -> Starlette:
        """Its pages: one, whatever is asked for, and the version for the hub."""
        routes = [
            Route(f"{self.prefix}api", self._version),
            Route(f"{self.prefix}{{rest:path}}", self._page),
            Route("/{rest:path}", lambda _: RedirectResponse(self.prefix)),
        ]
        return Starlette(routes=routes)

    async def _version(self, _request: Request) -> Response:
        return JSONResponse({"version": "sandbox"})

    async def _page(self, _request: Request) -> Response:
        await self.report()
        metadata, limits = (
            self.pod["metadata"],
            (self.container.get("resources") or {}).get("limits") or {},
        )
        gpus = {name: count for name, count in limits.items() if "/" in name}
        shown = {
            "name": self.environment.get("JUPYTERHUB_SERVER_NAME") or "server",
            "namespace": metadata["namespace"],
            "pod": metadata["name"],
            "node": self.pod["spec"].get("nodeName", ""),
            "image": self.container["image"],
            "gpus": ", ".join(f"{count} × {name}" for name, count in gpus.items())
            or "none",
        }
        return HTMLResponse(
            PAGE.format(
                **{name: html.escape(str(value)) for name, value in shown.items()}
            )
        )

    async def report(self) -> None:
        """Tell the hub that somebody is here, as Jupyter does every five minutes; a hub that is away is no matter."""
        env = self.environment
        url, token = (
            env.get("JUPYTERHUB_ACTIVITY_URL", ""),
            env.get("JUPYTERHUB_API_TOKEN", ""),
        )
        if url.startswith("http://127.0.0.1:") and token:
            now = datetime.now(UTC).isoformat()
            servers = {env.get("JUPYTERHUB_SERVER_NAME", ""): {"last_activity": now}}
            body = json.dumps({"last_activity": now, "servers": servers}).encode()
            await asyncio.to_thread(_post, url, token, body)


def _post(url: str, token: str, body: bytes) -> None:
    headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, body, headers)  # noqa: S310 - loopback, see its caller
    try:
        urllib.request.urlopen(request, timeout=HUB_SECONDS).close()  # noqa: S310
    except OSError:
        # Jupyter goes on without its hub, too.
        return


@dataclass
class Notebooks:
    """Serves what runs in these clusters until `stop` is set."""

    clusters: Iterable[Cluster]
    _running: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = field(
        default_factory=dict
    )
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, stop: asyncio.Event) -> None:
        """Start and end servers as pods do, and end all of them at last."""
        deaf = [cluster.store.listen(self._hear) for cluster in self.clusters]
        ending = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                self._changed.clear()
                self._follow()
                changed = asyncio.create_task(self._changed.wait())
                await asyncio.wait(
                    {changed, ending}, return_when=asyncio.FIRST_COMPLETED
                )
                changed.cancel()
        finally:
            ending.cancel()
            for hush in deaf:
                hush()
            self._end(set(self._running))
            await asyncio.gather(*(task for task, _ in self._running.values()))

    def _hear(self, change: Change) -> None:
        if change.resource == ("", "pods") and is_notebook(change.after.obj):
            self._changed.set()

    def _wanted(self) -> Iterator[Notebook]:
        for cluster in self.clusters:
            for pod in cluster.store.objects(POD):
                if is_notebook(pod) and phase_of(pod) == "Running":
                    yield Notebook(pod)

    def _follow(self) -> None:
        self._running = {
            uid: one for uid, one in self._running.items() if not one[0].done()
        }
        wanted = {one.uid: one for one in self._wanted()}
        self._end(set(self._running) - set(wanted))
        for uid, notebook in wanted.items():
            if uid not in self._running:
                stop = asyncio.Event()
                self._running[uid] = asyncio.create_task(_run(notebook, stop)), stop

    def _end(self, uids: set[str]) -> None:
        for uid in uids:
            self._running[uid][1].set()


async def _run(notebook: Notebook, stop: asyncio.Event) -> None:
    try:
        socket = listen(notebook.port, host=notebook.host)
    except OSError as error:
        # Where loopback has one address only (macOS), a hub says of the server that it never showed up.
        sys.stderr.write(
            f"sandbox: no page at {notebook.host}:{notebook.port}: {error}\n"
        )
        await stop.wait()
        return
    served = [Served(notebook.app(), socket, None)]
    await asyncio.gather(serve(served, asyncio.Event(), stop), notebook.report())
