"""What the sandbox writes down for its users: sandbox.json and kubeconfig files."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sandbox.clusters import ADMIN, HUB, PORTAL, token
from sandbox.credentials import Credentials, write_private
from sandbox.entra.directory import Directory
from sandbox.world import ClusterSpec


@dataclass(frozen=True)
class Handout:
    """Writes into one directory; every file holds secrets and is readable by its owner only."""

    directory: Path
    credentials: Credentials
    ca: str

    def cluster(
        self, spec: ClusterSpec, server: str, directory: Directory
    ) -> dict[str, Any]:
        """Write a cluster's kubeconfig files and return its part of sandbox.json."""
        people = [person.mail for person in directory.people.values()]
        return {
            "server": server,
            "kubeconfig": self._kubeconfig(
                spec, server, PORTAL, f"kubeconfig-{spec.name}.yaml"
            ),
            "admin_kubeconfig": self._kubeconfig(
                spec, server, ADMIN, f"kubeconfig-{spec.name}-admin.yaml"
            ),
            "hub_kubeconfig": self._kubeconfig(
                spec, server, HUB, f"kubeconfig-{spec.name}-hub.yaml"
            ),
            "tokens": {
                user: token(spec, user, self.credentials)
                for user in (PORTAL, ADMIN, *people)
            },
        }

    def summary(self, clusters: dict[str, Any], **parts: dict[str, str]) -> None:
        """Write sandbox.json: the clusters, and the other parts by their name."""
        told = {"ca": str(self.directory / "ca.pem"), "kubernetes": clusters, **parts}
        write_private(
            self.directory / "sandbox.json", json.dumps(told, indent=2) + "\n"
        )

    def federated_token(self, token: str) -> str:
        """Write what a cluster would put into the portal's pod, and return where it is."""
        path = self.directory / "azure-federated-token"
        write_private(path, token)
        return str(path)

    def _kubeconfig(self, spec: ClusterSpec, server: str, user: str, name: str) -> str:
        authority = base64.b64encode(self.ca.encode()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": spec.name,
                    "cluster": {
                        "server": server,
                        "certificate-authority-data": authority,
                    },
                }
            ],
            "users": [
                {"name": user, "user": {"token": token(spec, user, self.credentials)}}
            ],
            "contexts": [
                {"name": spec.name, "context": {"cluster": spec.name, "user": user}}
            ],
            "current-context": spec.name,
        }
        path = self.directory / name
        write_private(path, yaml.safe_dump(config, sort_keys=False))
        return str(path)
