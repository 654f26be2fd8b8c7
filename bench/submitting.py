"""B21: from the POST of a run until its Workload is on the cluster, beside kubectl's `create` and `get` of its Job."""

import http.client
import json
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any, cast
from urllib.parse import urlsplit

from kubernetes.client import BatchV1Api, CustomObjectsApi

from bench import rig, training
from bench.results import Better, Goal, Measured
from bench.training import GROUP, PLURAL, VERSION, Crew, kubeconfig, official
from connectors.errors import TemporaryError
from connectors.kubernetes import Cluster as Client
from tests.services.process import wait_until

GPUS, PROCESSES, PAIRS, WARM = 6, 4, 15, 3
MOST = 1.5
# The peer, who knows only create and get, asks this often until it has what it created.
PAUSE, LONGEST = 0.002, 60
# Longer than all turns take.
WATCHED = 900
JOB, WORKLOAD = ("batch/v1", "Job"), (f"{GROUP}/{VERSION}", "Workload")


def measure(on: rig.Rig) -> Measured:
    """Fifteen runs and as many plain Jobs of each sort, in turns."""
    return measured(on, pairs=PAIRS)


def measured(on: rig.Rig, *, pairs: int) -> Measured:
    """The portal with web server, clock, watcher and a worker of four processes; kubectl, and a client in Python."""
    with training.crew(on, gpus=GPUS) as crew:
        crew.portal.clock()
        crew.portal.start("watcher", ["manage", "watch_clusters"], {})
        crew.portal.worker(pool=PROCESSES, wait=True)
        crew.portal.web(workers=rig.WORKERS)
        headers, observer = crew.headers(), crew.ground.world.admin()
        through = partial(through_the_portal, crew, headers, observer, Appearing(crew))
        first = through("warm")[1]
        ways: list[Callable[[str], float]] = [partial(plainly, crew, first)]
        if which("kubectl"):
            ways.append(partial(by_kubectl, crew, first))
        for number in range(WARM):
            through(f"warm-{number}")
            for way in ways:
                way(f"warm-{number}")
        turns = [
            (
                through(f"run-{number}")[0],
                *(way(f"plain-{place}-{number}") for place, way in enumerate(ways)),
            )
            for number in range(pairs)
        ]
        observer.close()
    # The last is kubectl, where there is one.
    portal, client, peer = (
        [1000 * turn[column] for turn in turns] for column in (0, 1, -1)
    )
    return Measured(
        what="run submitted until its Workload is seen; peer: kubectl create and get, or a client's without it",
        portal=portal,
        peer=peer,
        unit="ms",
        better=Better.PORTAL_OVER_PEER,
        most=MOST,
        others=[
            Goal(
                "beside the Kubernetes client in Python, ratio",
                statistics.median(portal) / statistics.median(client),
            )
        ],
    )


class Appearing:
    """The Workloads of the cluster as they appear, by a watch that is open before the first run is submitted.

    Whoever asked for a list again and again would take the cluster's one process away from the worker that creates.
    """

    def __init__(self, crew: Crew) -> None:
        """Begin to watch, on a connection of its own."""
        self.client, self.names, self.more = (
            crew.ground.world.admin(),
            set[str](),
            threading.Condition(),
        )
        _, version = self.client.snapshot(WORKLOAD)
        threading.Thread(target=self._follow, args=(version,), daemon=True).start()

    def see(self, name: str) -> None:
        """Wait until a Workload of this Job is there; raises TimeoutError."""
        with self.more:
            if not self.more.wait_for(lambda: name in self.names, LONGEST):
                raise TimeoutError(f"No Workload for {name} within {LONGEST} s.")

    def _follow(self, version: str) -> None:
        # The cluster ends before this does.
        with suppress(TemporaryError):
            self._read(version)

    def _read(self, version: str) -> None:
        for _, found in self.client.watch(WORKLOAD, since=version, seconds=WATCHED):
            with self.more:
                self.names |= {
                    owner["name"] for owner in found["metadata"]["ownerReferences"]
                }
                self.more.notify_all()


def through_the_portal(
    crew: Crew,
    headers: dict[str, str],
    observer: Client,
    appearing: Appearing,
    key: str,
) -> tuple[float, dict[str, Any]]:
    """Submit over the API and see the Workload on the cluster; seconds, and the Job that was sent."""
    asked = {
        "tenancy": crew.tenancy.pk,
        "template": "single-node",
        "title": "Bench",
        "flavor": crew.cluster.flavors.get().name,
        "values": {
            "image": "registry.example.com/train:1",
            "program": ["train.py"],
            "gpus": 1,
            "cpus": 1,
            "memory": 1,
        },
    }
    began = time.perf_counter()
    made = post(
        crew.portal.url, "/api/v1/runs/", asked, {**headers, "Idempotency-Key": key}
    )
    name = made["name"]
    appearing.see(name)
    took = time.perf_counter() - began
    [manifest] = made["manifests"]
    clear(crew, observer, name)
    return took, manifest


def plainly(crew: Crew, pattern: dict[str, Any], name: str) -> float:
    """Create the same Job as a command does, which reads its kubeconfig and connects first; seconds until seen."""
    manifest, namespace = renamed(pattern, name), crew.tenancy.namespace
    began = time.perf_counter()
    with official(crew) as client:
        # Both take and give plain JSON, too, which their types do not say.
        batch, custom = (
            cast("Any", BatchV1Api(client)),
            cast("Any", CustomObjectsApi(client)),
        )
        batch.create_namespaced_job(namespace, manifest)
        see(
            lambda: custom.list_namespaced_custom_object(
                GROUP, VERSION, namespace, PLURAL
            )["items"],
            name,
        )
    took = time.perf_counter() - began
    observer = crew.ground.world.admin()
    clear(crew, observer, name)
    observer.close()
    return took


def by_kubectl(crew: Crew, pattern: dict[str, Any], name: str) -> float:
    """The same with kubectl itself, which is a process for each of the two; seconds."""
    manifest, namespace = renamed(pattern, name), crew.tenancy.namespace
    file = Path(crew.portal.folder) / f"{name}.json"
    file.write_text(json.dumps(manifest))
    base = ["kubectl", "--kubeconfig", kubeconfig(crew), "-n", namespace]
    began = time.perf_counter()
    subprocess.run([*base, "create", "-f", str(file)], check=True, capture_output=True)
    see(
        lambda: json.loads(
            subprocess.run(
                [*base, "get", PLURAL, "-o", "json"], check=True, capture_output=True
            ).stdout
        )["items"],
        name,
    )
    took = time.perf_counter() - began
    observer = crew.ground.world.admin()
    clear(crew, observer, name)
    observer.close()
    return took


def see(workloads: Callable[[], Sequence[Any]], name: str) -> None:
    """Ask until a Workload of this Job is there."""
    until = time.monotonic() + LONGEST
    while not any(
        owner["name"] == name
        for one in workloads()
        for owner in one["metadata"]["ownerReferences"]
    ):
        if time.monotonic() > until:
            raise TimeoutError(f"No Workload for {name} within {LONGEST} s.")
        time.sleep(PAUSE)


def clear(crew: Crew, observer: Client, name: str) -> None:
    """Take the Job away again, so that every one finds the queue as the first did."""
    namespace = crew.tenancy.namespace
    observer.delete(JOB, name, namespace)
    wait_until(
        lambda: not list(observer.list(WORKLOAD, namespace)),
        what="the queue to be empty again",
    )


def renamed(pattern: dict[str, Any], name: str) -> dict[str, Any]:
    """The same object under another name."""
    found: dict[str, Any] = json.loads(
        json.dumps(pattern).replace(pattern["metadata"]["name"], name)
    )
    return found


def post(url: str, path: str, body: object, headers: dict[str, str]) -> dict[str, Any]:
    """One call on a connection of its own; raises RuntimeError when it is refused."""
    connection = http.client.HTTPConnection(str(urlsplit(url).netloc), timeout=LONGEST)
    try:
        connection.request(
            "POST",
            path,
            json.dumps(body),
            {**headers, "Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status >= 300:
        raise RuntimeError(f"{path} answered {answer.status}: {text[:500]!r}")
    found: dict[str, Any] = json.loads(text)
    return found
