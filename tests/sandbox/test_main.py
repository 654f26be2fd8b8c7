"""The whole sandbox as a process: start, readiness, restart, end."""

import json
import signal
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from sandbox import world
from sandbox.azure_world import RESOURCE_GROUP, SUBSCRIPTION_ID
from sandbox.world import person_id
from tests.services.process import wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ADA = person_id(1)
CLUSTER = (
    f"/subscriptions/{SUBSCRIPTION_ID}/resourceGroups/{RESOURCE_GROUP}/providers/Microsoft.ContainerService"
    "/managedClusters/training-eastus"
)
POOLS = f"{CLUSTER}/agentPools?api-version=2026-08-01"
POOL = f"{CLUSTER}/agentPools/kept?api-version=2026-08-01"


@contextmanager
def started(data: Path, *options: str) -> Iterator[dict[str, Any]]:
    """Run `python -m sandbox` until ready; end it with SIGTERM and check how it ended."""
    command = [sys.executable, "-m", "sandbox", "--data", str(data), *options]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if line != "sandbox ready\n":
                process.kill()
                pytest.fail(f"{line!r} {process.communicate()[1]}")
            yield json.loads((data / "sandbox.json").read_text())
        finally:
            process.send_signal(signal.SIGTERM)
            rest, errors = process.communicate(timeout=20)
    assert (process.returncode, rest) == (0, "")
    assert "Traceback" not in errors


def client(described: dict[str, Any], secret: str) -> httpx.Client:
    """A client that trusts the sandbox's CA only."""
    context = ssl.create_default_context(cafile=described["ca"])
    return httpx.Client(
        verify=context,
        trust_env=False,
        headers={"Authorization": f"Bearer {secret}"},
        timeout=20,
    )


def test_it_serves_everything_it_writes_down(tmp_path: Path) -> None:
    with started(tmp_path) as described:
        entra = described["entra"]
        assert set(entra) == {
            "authority",
            "graph",
            "sign_in",
            "tenant_id",
            "client_id",
            "client_secret",
            "admin_secret",
        }
        with client(described, entra["admin_secret"]) as admin:
            assert (
                admin.get(
                    f"{entra['authority']}/v2.0/.well-known/openid-configuration"
                ).status_code
                == 200
            )
            assert (
                admin.get(f"{entra['graph']}/users/{ADA}").json()["displayName"]
                == "Ada Okafor"
            )
        azure = described["azure"]
        assert set(azure) == {
            *(
                "arm",
                "prices",
                "registry",
                "authority",
                "tenant_id",
                "subscription_id",
                "resource_group",
            ),
            *("client_id", "client_secret", "token_file", "admin_secret"),
        }
        with client(described, azure["admin_secret"]) as admin:
            pools = admin.get(f"{azure['arm']}{POOLS}").json()["value"]
            assert {pool["name"]: pool["properties"]["count"] for pool in pools}[
                "h100"
            ] == 2
            assert (
                admin.get(f"{azure['prices']}/api/retail/prices").json()["Count"] == 100
            )
        assert set(described["kubernetes"]) == {"training-eastus", "dev-eastus"}
        for name, nodes in (("training-eastus", 6), ("dev-eastus", 9)):
            cluster = described["kubernetes"][name]
            config = yaml.safe_load(Path(cluster["admin_kubeconfig"]).read_text())
            assert config["clusters"][0]["cluster"]["server"] == cluster["server"]
            with client(described, config["users"][0]["user"]["token"]) as admin:
                assert (
                    len(admin.get(f"{cluster['server']}/api/v1/nodes").json()["items"])
                    == nodes
                )
            with client(described, cluster["tokens"]["quartermaster"]) as portal:
                assert (
                    portal.get(f"{cluster['server']}/api/v1/nodes").status_code == 403
                )
            with client(described, "guessed") as nobody:
                assert (
                    nobody.get(f"{cluster['server']}/api/v1/nodes").status_code == 401
                )


def test_files_with_secrets_are_private(tmp_path: Path) -> None:
    with started(tmp_path):
        secret = [
            path
            for path in tmp_path.iterdir()
            if path.name not in ("ca.pem", "server.pem")
        ]
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in secret}
    assert set(modes.values()) == {0o600}
    assert {
        "sandbox.json",
        "credentials.json",
        "server-key.pem",
        "entra-signing-key.pem",
    } <= set(modes)


@pytest.mark.slow
def test_a_restart_keeps_state_secrets_and_certificates(tmp_path: Path) -> None:
    with started(tmp_path) as first:
        server = first["kubernetes"]["dev-eastus"]["server"]
        with client(first, first["entra"]["admin_secret"]) as admin:
            admin.patch(
                f"{first['entra']['graph']}/users/{ADA}", json={"accountEnabled": False}
            )
        with client(
            first, first["kubernetes"]["dev-eastus"]["tokens"]["admin"]
        ) as admin:
            body = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "kept"},
            }
            assert (
                admin.post(f"{server}/api/v1/namespaces", json=body).status_code == 201
            )
        with client(first, first["azure"]["admin_secret"]) as admin:
            said = {"properties": {"vmSize": "Standard_NC4as_T4_v3", "count": 1}}
            assert (
                admin.put(f"{first['azure']['arm']}{POOL}", json=said).status_code
                == 201
            )
        ca = (tmp_path / "ca.pem").read_bytes()
    with started(tmp_path) as second:
        assert (tmp_path / "ca.pem").read_bytes() == ca
        assert second["entra"]["client_secret"] == first["entra"]["client_secret"]
        assert (
            second["kubernetes"]["dev-eastus"]["tokens"]
            == first["kubernetes"]["dev-eastus"]["tokens"]
        )
        server = second["kubernetes"]["dev-eastus"]["server"]
        with client(second, second["entra"]["admin_secret"]) as admin:
            answer = admin.get(
                f"{second['entra']['graph']}/users/{ADA}?$select=accountEnabled"
            )
            assert answer.json()["accountEnabled"] is False
        with client(
            second, second["kubernetes"]["dev-eastus"]["tokens"]["admin"]
        ) as admin:
            assert admin.get(f"{server}/api/v1/namespaces/kept").status_code == 200
        assert second["azure"]["client_secret"] == first["azure"]["client_secret"]
        with client(second, second["azure"]["admin_secret"]) as admin:
            # Begun before the end of the first, and over in the second.
            address = f"{second['azure']['arm']}{POOL}"
            wait_until(
                lambda: (
                    admin.get(address).json()["properties"]["provisioningState"]
                    == "Succeeded"
                ),
                what="the pool is there",
            )
            assert admin.get(address).json()["properties"]["count"] == 1


def test_the_portals_pod_has_a_token_of_its_cluster(tmp_path: Path) -> None:
    with started(tmp_path) as described:
        azure = described["azure"]
        form = {
            "grant_type": "client_credentials",
            "client_id": azure["client_id"],
            "scope": "https://management.azure.com/.default",
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": Path(azure["token_file"]).read_text(),
        }
        with client(described, "none") as pod:
            answer = pod.post(
                f"{azure['authority']}/{azure['tenant_id']}/oauth2/v2.0/token",
                data=form,
            )
        assert answer.status_code == 200
        with client(described, answer.json()["access_token"]) as portal:
            assert portal.get(f"{azure['arm']}{POOLS}").status_code == 200


def test_people_lose_the_clusters_with_their_account(tmp_path: Path) -> None:
    with started(tmp_path) as described:
        cluster = described["kubernetes"]["dev-eastus"]
        with client(described, cluster["tokens"]["ada@example.com"]) as ada:
            assert ada.get(f"{cluster['server']}/api/v1/nodes").status_code == 403
            with client(described, described["entra"]["admin_secret"]) as admin:
                admin.patch(
                    f"{described['entra']['graph']}/users/{ADA}",
                    json={"accountEnabled": False},
                )
            assert ada.get(f"{cluster['server']}/api/v1/nodes").status_code == 401


def test_the_sign_in_page_can_be_had_without_tls(tmp_path: Path) -> None:
    with started(tmp_path, "--port-sign-in", "0") as described:
        authority = described["entra"]["authority"]
        with client(described, "none") as browser:
            metadata = browser.get(
                f"{authority}/v2.0/.well-known/openid-configuration"
            ).json()
            page = metadata["authorization_endpoint"]
            assert page.startswith("http://localhost:")
            assert metadata["token_endpoint"].startswith("https://localhost:")
            assert browser.get(page).status_code == 400
            assert browser.get(page.replace("authorize", "token")).status_code == 404


def test_a_taken_port_is_said_in_one_line(tmp_path: Path) -> None:
    with started(tmp_path / "one") as described:
        port = described["entra"]["authority"].split(":")[2].partition("/")[0]
        command = [
            sys.executable,
            "-m",
            "sandbox",
            "--data",
            str(tmp_path / "two"),
            "--port-entra",
            port,
        ]
        ended = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=20, check=False
        )
    assert ended.returncode == 1
    assert "Address already in use" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_world_of_ones_own(tmp_path: Path) -> None:
    person = {
        "oid": ADA,
        "name": "Zoe Only",
        "mail": "zoe@example.com",
        "title": "Lead",
        "roles": ["TeamLead"],
    }
    cluster = {
        "name": "lab",
        "region": "local",
        "node_groups": [{"name": "cpu", "nodes": 1}],
    }
    path = tmp_path / "world.json"
    path.write_text(
        json.dumps({"people": [person], "groups": [], "clusters": [cluster]})
    )
    with started(tmp_path / "data", "--world", str(path)) as described:
        assert set(described["kubernetes"]) == {"lab"}
        with client(described, described["entra"]["admin_secret"]) as admin:
            people = admin.get(f"{described['entra']['graph']}/users").json()["value"]
    assert [row["displayName"] for row in people] == ["Zoe Only"]


def test_a_world_with_a_typing_error_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    path.write_text(json.dumps({"people": [{"oid": "x", "nmae": "y"}], "groups": []}))
    with pytest.raises(ValueError, match="nmae"):
        world.load(path)
