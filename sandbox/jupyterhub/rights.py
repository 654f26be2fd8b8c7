"""What the hub may do in the sandbox's cluster: what deploy/jupyterhub ships, bound in each team's namespace."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from sandbox.jupyterhub.environment import ROOT

SHIPPED = ROOT / "deploy" / "jupyterhub" / "rights.yaml"
# The namespaces of teams, and the hub's own, have it or are named.
TEAMS = "quartermaster.io/group"
RBAC = "rbac.authorization.k8s.io"
ROLE, ACCOUNT, NAMESPACE = "jupyterhub-spawner", "hub", "jupyterhub"
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": f"/apis/{RBAC}/v1/clusterroles",
    "RoleBinding": f"/apis/{RBAC}/v1/namespaces/{{namespace}}/rolebindings",
}
CONFLICT = 409


@dataclass(frozen=True)
class Rights:
    """Made by the cluster's administrator; `cluster` is a cluster's part of sandbox.json."""

    cluster: Mapping[str, Any]
    ca: str

    def grant(self) -> None:
        """Make what is missing; what is there stays."""
        self._make(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        )
        account = {"name": ACCOUNT, "namespace": NAMESPACE}
        self._make({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        self._make(yaml.safe_load(SHIPPED.read_text(encoding="utf-8")))
        self._bind(NAMESPACE)
        self.follow()

    def follow(self) -> None:
        """Bind the hub in team namespaces that came meanwhile."""
        found = self._call("GET", f"/api/v1/namespaces?labelSelector={TEAMS}", None)
        for one in found["items"]:
            if "deletionTimestamp" not in one["metadata"]:
                self._bind(one["metadata"]["name"])

    def _bind(self, namespace: str) -> None:
        manifest = {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": ROLE, "namespace": namespace},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": ROLE},
            "subjects": [
                {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
            ],
        }
        self._make(manifest)

    def _make(self, manifest: Mapping[str, Any]) -> None:
        path = PATHS[manifest["kind"]].format(
            namespace=manifest["metadata"].get("namespace", "")
        )
        try:
            self._call("POST", path, manifest)
        except urllib.error.HTTPError as error:
            with error:
                if error.code != CONFLICT:
                    raise

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        headers = {
            "Authorization": f"Bearer {self.cluster['tokens']['admin']}",
            "Content-Type": "application/json",
        }
        content = None if body is None else json.dumps(body).encode()
        url = f"{self.cluster['server']}{path}"
        request = urllib.request.Request(url, content, headers, method=method)  # noqa: S310 - loopback
        trust = ssl.create_default_context(cafile=self.ca)
        with urllib.request.urlopen(request, timeout=10, context=trust) as answer:  # noqa: S310
            return json.load(answer)
