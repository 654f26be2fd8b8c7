"""The pod that KubeSpawner makes from a profile, on the cluster under test: it waits in the queue of its team.

KubeSpawner is the real one, under the configuration that deploy/jupyterhub ships; the hub's account makes the pod.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from audit.actors import PORTAL
from connectors.kubernetes import ref_of
from fleet.models import Flavor
from notebooks.places import flavors_on, place_of
from notebooks.profiles.document import document_from
from notebooks.profiles.spawning import profile_list, refused_here
from provisioning.actions import publish
from sandbox.jupyterhub.environment import PYTHON, install
from tests.contract import live
from tests.contract.raw import Raw, eventually
from tests.contract.test_main_job import (
    GPU,
    POD,
    WORKLOAD,
    Team,
    condition,
    take_jobs,
    team,
    trouble,
)

pytestmark = pytest.mark.slow

__all__ = ["team"]
ROOT = Path(__file__).parents[2]
RIGHTS = ROOT / "deploy" / "jupyterhub" / "rights.yaml"
# The gate that Kueue puts on a plain pod that has to wait.
GATE = "kueue.x-k8s.io/admission"
HUB = "system:serviceaccount:jupyterhub:hub"
# It answers by itself, so that the pod of a real cluster stays.
PROFILE: dict[str, Any] = {
    "slug": "live",
    "title": "Live",
    "image": "registry.k8s.io/pause:3.10",
    "cpus": 0.1,
    "memory": 1,
    "gpus": 1,
    "overrides": {"cmd": ["/pause"]},
}

# KubeSpawner wants to know a cluster before it makes a manifest, and calls none for it.
NOWHERE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "nowhere",
    "contexts": [
        {"name": "nowhere", "context": {"cluster": "nowhere", "user": "nobody"}}
    ],
    "clusters": [{"name": "nowhere", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "nobody", "user": {}}],
}


class Notebooks:
    """Servers of Ada in the team's namespace, with the rights that the hub has there."""

    def __init__(self, team: Team, raw: Raw, folder: Path) -> None:
        self.team, self.folder = team, folder
        self.hub = raw.acting_as(HUB, "system:serviceaccounts:jupyterhub")
        self.namespace = team.tenancy.namespace

    def pod(self, server: str) -> dict[str, Any]:
        """What KubeSpawner sends to the cluster for a server of the profile."""
        flavor = Flavor.objects.get(cluster=self.team.tenancy.cluster)
        document = document_from(PROFILE | {"flavor": flavor.name})
        place = place_of(self.team.row, flavors_on(self.team.tenancy.cluster_id))
        [profile] = profile_list([document], place)
        assert not refused_here(document, place)
        asked = {"profile": profile, "options": {}, "server": server, "user": "ada"}
        config = self.folder / "nowhere.yaml"
        config.write_text(json.dumps(NOWHERE))
        token = self.folder / "token"
        token.write_text("a token of this test")
        known = {"KUBECONFIG": str(config), "QUARTERMASTER_TOKEN_FILE": str(token)}
        made = subprocess.run(
            [str(PYTHON), str(Path(__file__).with_name("kubespawner_pod.py"))],
            input=json.dumps(asked),
            env={
                **os.environ,
                **known,
                "PYTHONPATH": str(ROOT / "integrations" / "jupyterhub"),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        found: dict[str, Any] = json.loads(made.stdout)
        return found

    def start(self, server: str) -> str:
        """Have the hub's account make its pod; the pod's name."""
        wanted = self.pod(server)
        status, made = self.hub.send(
            "POST", f"/api/v1/namespaces/{self.namespace}/pods", wanted
        )
        assert status == 201, made["message"]
        return str(made["metadata"]["name"])

    def stop(self, pod: str) -> None:
        """Delete it, as the hub does."""
        status, said = self.hub.send(
            "DELETE", f"/api/v1/namespaces/{self.namespace}/pods/{pod}"
        )
        assert status == 200, said

    def is_gated(self, pod: str) -> bool:
        """Whether it waits in the queue."""
        found = self.team.admin.get(POD, pod, self.namespace) or {"spec": {}}
        return any(
            gate["name"] == GATE for gate in found["spec"].get("schedulingGates", [])
        )

    def is_admitted(self, pod: str) -> bool:
        """Whether Kueue has admitted it, and lets it go to a node."""
        rows = self.team.admin.list(WORKLOAD, self.namespace)
        mine = [
            one for one in rows if one["metadata"]["ownerReferences"][0]["name"] == pod
        ]
        return any(
            condition(one, "Admitted") == "True" for one in mine
        ) and not self.is_gated(pod)


@pytest.fixture(scope="session")
def kubespawner() -> None:
    """Installed before any test's transaction begins, which the database ends after a minute without a word."""
    install()


@pytest.fixture
def notebooks(
    kubespawner: None, team: Team, raw: Raw, tmp_path: Path
) -> Iterator[Notebooks]:
    """Ada's team holds one GPU, and the hub's account may make pods in its namespace as deploy/jupyterhub says."""
    team.hold(1)
    take_jobs(team)
    admin, role = team.admin, yaml.safe_load(RIGHTS.read_text())
    name = f"{live.prefix()}-hub"
    role["metadata"]["name"] = name
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": team.tenancy.namespace},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": name,
        },
        "subjects": [
            {"kind": "ServiceAccount", "name": "hub", "namespace": "jupyterhub"}
        ],
    }
    live.note("ClusterRole", name)
    for manifest in (role, binding):
        admin.apply(manifest, manager="kubectl")
    yield Notebooks(team, raw, tmp_path)
    admin.delete(ref_of(role), name)


@pytest.mark.timeout(600)
def test_a_notebooks_pod_is_taken_as_its_profile_says_and_admitted(
    notebooks: Notebooks,
) -> None:
    pod = notebooks.start("nb-first")
    try:
        eventually(lambda: notebooks.is_admitted(pod))
    except AssertionError:
        found = notebooks.team.admin.get(POD, pod, notebooks.namespace) or {}
        assert live.kubeconfig() is not None, found
        pytest.skip(f"this Kueue manages no plain pods: {trouble(found)}")
    found = notebooks.team.admin.get(POD, pod, notebooks.namespace) or {}
    [container] = found["spec"]["containers"]
    assert (
        container["resources"]["requests"][GPU]
        == container["resources"]["limits"][GPU]
        == "1"
    )
    labels = found["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "default"
    assert labels["quartermaster.io/team"] == notebooks.team.row.team.slug
    assert labels["hub.jupyter.org/servername"] == "nb-first"


@pytest.mark.timeout(600)
def test_a_second_notebook_waits_behind_a_full_queue_and_starts_when_there_is_room(
    notebooks: Notebooks,
) -> None:
    team = notebooks.team
    spec = team.row.desired
    # The namespace has room for what may be borrowed, and nobody lends.
    lent = tuple(replace(flavor, borrow=1) for flavor in spec.flavors)
    publish(team.row, spec=replace(spec, flavors=lent), actor=PORTAL, now=team.time)
    team.become_true()
    first = notebooks.start("nb-first")
    try:
        eventually(lambda: notebooks.is_admitted(first))
    except AssertionError:
        assert live.kubeconfig() is not None
        pytest.skip("this Kueue manages no plain pods")
    second = notebooks.start("nb-second")
    eventually(
        lambda: bool(notebooks.team.admin.list(WORKLOAD, notebooks.namespace)[1:])
    )
    assert notebooks.is_gated(second)
    notebooks.stop(first)
    eventually(lambda: notebooks.is_admitted(second))


def test_beyond_the_namespaces_quota_a_pod_is_refused_and_does_not_wait(
    notebooks: Notebooks,
) -> None:
    notebooks.start("nb-first")
    wanted = notebooks.pod("nb-second")
    status, said = notebooks.hub.send(
        "POST", f"/api/v1/namespaces/{notebooks.namespace}/pods", wanted
    )
    assert status == 403, said
    assert "exceeded quota: team-quota" in said["message"]


def test_the_hubs_account_makes_no_pod_in_a_namespace_where_it_is_not_bound(
    notebooks: Notebooks, namespace: str
) -> None:
    status, said = notebooks.hub.send(
        "POST", f"/api/v1/namespaces/{namespace}/pods", notebooks.pod("nb-1")
    )
    assert status == 403, said
