"""A sandbox cluster as a process, and the questions a test asks it past the portal."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import yaml

from connectors.kubernetes import Cluster as Client
from provisioning.desired.manifests import KUEUE, TENANCY_LABEL, tenancy_objects
from provisioning.desired.plan import Key, first_difference
from provisioning.models import Tenancy
from scripts.demo import prepare_cluster
from tests.services.process import wait_until

# What stands for itself of a tenancy; the rest goes with its namespace.
LEFT = ((KUEUE, "ClusterQueue"), ("v1", "Namespace"))
ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass
class World:
    """One cluster, served over TLS by a process of its own."""

    name: str
    folder: Path
    popen: subprocess.Popen[bytes]

    @property
    def kubeconfig(self) -> str:
        """The name of the portal's kubeconfig file in the folder."""
        return f"kubeconfig-{self.name}.yaml"

    def described(self) -> dict[str, Any]:
        """What the sandbox wrote down about its cluster."""
        found: dict[str, Any] = json.loads((self.folder / "sandbox.json").read_text())[
            "kubernetes"
        ][self.name]
        return found

    def admin(self) -> Client:
        """A client that may see everything."""
        return Client.from_kubeconfig(self.described()["admin_kubeconfig"])

    def writes(self) -> int:
        """How many writes the API server has taken since it started."""
        return int(self.switch("GET", "stats")["writes"])

    def switch(self, method: str, what: str, **body: Any) -> dict[str, Any]:
        """Use one of the sandbox's own switches as its administrator."""
        cluster = self.described()
        user = yaml.safe_load(Path(cluster["admin_kubeconfig"]).read_text())["users"][
            0
        ]["user"]
        answer = requests.request(
            method,
            f"{cluster['server']}/sandbox/{what}",
            headers={"Authorization": f"Bearer {user['token']}"},
            json=body or None,
            verify=str(self.folder / "ca.pem"),
            timeout=10,
        )
        assert answer.ok, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def missing(self, tenancy: Tenancy) -> list[str]:
        """What of a tenancy's objects does not stand on the cluster as the database now wants it, in words."""
        client = self.admin()
        desired = tenancy_objects(Tenancy.objects.get(pk=tenancy.pk).desired)
        wrong = []
        for manifest in desired:
            key = Key.of(manifest)
            found = client.get(key.ref, key.name, key.namespace or None)
            difference = (
                "is not there" if found is None else first_difference(manifest, found)
            )
            wrong += [f"{key.kind} {key.name}: {difference}"] if difference else []
        client.close()
        return wrong

    def clear(self) -> None:
        """Take away what the tenancies of earlier tests left, faults included: nobody knows those any more."""
        self.switch("DELETE", "faults")
        client = self.admin()
        for ref in LEFT:
            for found in client.list(ref, label_selector=TENANCY_LABEL):
                client.delete(ref, found["metadata"]["name"])
        wait_until(
            lambda: (
                not any(client.list(ref, label_selector=TENANCY_LABEL) for ref in LEFT)
            ),
            what="an empty cluster",
        )
        client.close()

    def freeze(self) -> None:
        """Stop it in its tracks: connections stay open and nothing answers."""
        os.kill(self.popen.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.popen.pid, signal.SIGCONT)


@contextmanager
def served(name: str, folder: Path, *, forget: bool = False) -> Iterator[World]:
    """A prepared cluster of this name: three nodes of eight A100; one that may `forget` saves nothing meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    node_groups = [
        {"name": "a100", "nodes": 3, "gpus": 8, "accelerator": "nvidia-a100"}
    ]
    clusters = [{"name": name, "region": "eastus", "node_groups": node_groups}]
    (folder / "world.json").write_text(
        json.dumps({"people": [], "groups": [], "clusters": clusters})
    )
    command = [
        sys.executable,
        "-m",
        "sandbox",
        "--data",
        str(folder),
        "--world",
        str(folder / "world.json"),
    ]
    command += ["--forget"] if forget else []
    with (folder / "log").open("wb") as log:
        popen = subprocess.Popen(
            command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT
        )
    world = World(name, folder, popen)
    try:
        wait_until(
            lambda: "sandbox ready" in (folder / "log").read_text(),
            what=f"the sandbox {name}",
        )
        prepare_cluster(world.described()["admin_kubeconfig"])
        yield world
    finally:
        popen.kill()
        popen.wait()
