"""A sandbox cluster served in a thread, prepared as an administrator would, and ways to meddle with it."""

import json
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from connectors.kubernetes import Ref, path, ref_of
from sandbox.kubernetes import Cluster, Identity, NodeSpec
from sandbox.kubernetes.store import Change
from sandbox.serving import Served, listen, port_of
from tests.recordings.calling import call
from tests.serving import in_loop, serving

DEPLOY = Path(__file__).parents[2] / "deploy" / "kubernetes"
TAINT = ("sku", "gpu", "NoSchedule")
PORTAL = "quartermaster"
ADMIN = "admin"
MEMBER, GROUP = "member", "00000000-0000-4000-9000-0000000000aa"
NODES = (
    *(
        NodeSpec(
            f"a100-{n}", gpus=8, labels={"accelerator": "nvidia-a100"}, taints=(TAINT,)
        )
        for n in range(3)
    ),
    *(
        NodeSpec(
            f"h100-{n}", gpus=8, labels={"accelerator": "nvidia-h100"}, taints=(TAINT,)
        )
        for n in range(2)
    ),
    NodeSpec("cpu-0"),
)
# Volcano tells no kinds of whole GPUs apart: a cluster with it has one.
GANG_NODES = tuple(one for one in NODES if not one.name.startswith("h100"))


@dataclass
class Kubernetes:
    """A served cluster: the portal reaches it over HTTP, the test past it."""

    cluster: Cluster
    port: int
    loop: AbstractEventLoop

    def kubeconfig(self, folder: Path, token: str = PORTAL) -> str:
        """Write a kubeconfig with this token into a folder and return its name."""
        name = f"kubeconfig-{self.port}-{token}.yaml"
        named = {"cluster": "it", "user": "it"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "clusters": [
                {"name": "it", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}
            ],
            "users": [{"name": "it", "user": {"token": token}}],
            "contexts": [{"name": "it", "context": named}],
        }
        (folder / name).write_text(yaml.safe_dump(config))
        return name

    @property
    def writes(self) -> int:
        """Writes since the test began, the test's own included."""
        return self.cluster.requests["writes"]

    def fail(
        self, where: str = "", method: str = "", times: int = 100, **fault: Any
    ) -> None:
        """Make the next requests that match fail (see sandbox.kubernetes.faults)."""
        self.cluster.faults.add(
            {"match": {"path_regex": where, "method": method}, "times": times, **fault}
        )

    def get(
        self, ref: Ref, name: str, namespace: str | None = None
    ) -> dict[str, Any] | None:
        """An object as an administrator sees it."""
        answer = self._send("GET", path(ref, namespace, name))
        found: dict[str, Any] = answer[1]
        return None if answer[0] == 404 else found

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Create an object as an administrator."""
        self.write(
            "POST",
            path(ref_of(manifest), manifest["metadata"].get("namespace")),
            manifest,
        )

    def patch(
        self,
        ref: Ref,
        name: str,
        namespace: str | None,
        body: Any,
        manager: str = "kubectl-edit",
    ) -> None:
        """Change an object by hand, as another field manager."""
        self.write(
            "PATCH", f"{path(ref, namespace, name)}?fieldManager={manager}", body
        )

    def delete(self, ref: Ref, name: str, namespace: str | None = None) -> None:
        """Delete an object as an administrator."""
        self.write("DELETE", path(ref, namespace, name))

    def all(self, ref: Ref) -> list[dict[str, Any]]:
        """All objects of a kind, in every namespace."""
        items: list[dict[str, Any]] = self._send("GET", path(ref))[1]["items"]
        return items

    def names(self, ref: Ref) -> set[str]:
        """The names of all objects of a kind."""
        return {item["metadata"]["name"] for item in self.all(ref)}

    def write(self, method: str, where: str, body: Any = None) -> None:
        """Any write to any path as an administrator."""
        status, answer = self._send(method, where, body)
        assert status < 400, answer

    def end_watches(self) -> None:
        """End the watches that are open: their time may not be over for long."""
        self.loop.call_soon_threadsafe(self.cluster.end_watches)

    def snapshot(self) -> dict[str, Any]:
        """Everything that is on the cluster now, for `restore`."""
        return in_loop(self.loop, self.cluster.snapshot)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put back what was on the cluster."""
        in_loop(self.loop, lambda: self.cluster.restore(state))

    def terminate(self) -> None:
        """Let the controllers do now what was to come a moment later: namespaces and pods go."""
        in_loop(self.loop, self.cluster.controllers.terminate)

    def forget_versions(self) -> None:
        """Let the API server lose its caches: no watch goes on from a version before now."""
        in_loop(self.loop, self.cluster.store.begin_caching)

    def _send(self, method: str, where: str, body: Any = None) -> tuple[int, Any]:
        kind = (
            "application/merge-patch+json" if method == "PATCH" else "application/json"
        )
        headers = {
            "authorization": f"Bearer {ADMIN}",
            "content-type": kind,
            "accept": "application/json",
        }
        content = b"" if body is None else json.dumps(body).encode()
        answer = call(
            self.cluster.app, method, where, {}, headers, content, loop=self.loop
        )
        return answer.status, answer.json()


@contextmanager
def served(*, queueing: str = "kueue") -> Iterator[Kubernetes]:
    """A cluster of 24 A100 and, with Kueue, 16 H100 on a free port, with the roles of deploy/kubernetes applied."""
    tokens = {
        ADMIN: Identity(ADMIN, ("system:masters",)),
        PORTAL: Identity(PORTAL),
        MEMBER: Identity(MEMBER, (GROUP,)),
    }
    nodes = NODES if queueing == "kueue" else GANG_NODES
    cluster = Cluster("training", nodes=nodes, tokens=tokens, queueing=queueing)
    bound = listen(0)
    with serving(Served(cluster.app, bound, None)) as loop:
        kubernetes = Kubernetes(cluster, port_of(bound), loop)
        in_loop(loop, lambda: cluster.store.listen(_only_in(threading.get_ident())))
        for file in sorted(DEPLOY.glob("*.yaml")):
            for manifest in yaml.safe_load_all(file.read_text()):
                kubernetes.create(manifest)
        yield kubernetes


def _only_in(thread: int) -> Callable[[Change], None]:
    def check(change: Change) -> None:
        assert threading.get_ident() == thread, (
            f"{change.resource} {change.key} was written past the cluster's loop"
        )

    return check
