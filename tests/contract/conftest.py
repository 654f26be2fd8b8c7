"""The cluster under test: a sandbox on a free port over TLS, or a real one when `make live-test` names it."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import urllib3
import yaml

from connectors.kubernetes import Cluster, ref_of
from sandbox import certificates
from sandbox.kubernetes import Cluster as Sandbox
from sandbox.kubernetes import Identity, NodeSpec
from sandbox.serving import Served, listen, port_of
from tests.contract import live
from tests.contract.raw import Raw
from tests.serving import serving

DEPLOY = Path(__file__).parents[2] / "deploy" / "kubernetes"
TOKENS = {
    "admin": Identity("admin", ("system:masters",)),
    "quartermaster": Identity("quartermaster"),
    # Whom no admission policy of deploy/kubernetes is about, so that RBAC alone answers.
    "binder": Identity("binder"),
    "member": Identity("member@example.com", ("00000000-0000-4000-9000-000000000001",)),
}


def kubeconfig(path: Path, server: str, ca: Path, token: str) -> Path:
    """Write a kubeconfig file for one token."""
    cluster = {"server": server, "certificate-authority": str(ca)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "under-test", "cluster": cluster}],
        "users": [{"name": "caller", "user": {"token": token}}],
        "contexts": [
            {
                "name": "under-test",
                "context": {"cluster": "under-test", "user": "caller"},
            }
        ],
        "current-context": "under-test",
    }
    path.write_text(yaml.safe_dump(config))
    return path


@dataclass(frozen=True)
class Serving:
    """A sandbox cluster that is served, and the kubeconfig of each of its callers."""

    directory: Path
    cluster: Sandbox
    server: str
    ca: Path

    def config(self, token: str) -> Path:
        """The kubeconfig of one caller."""
        return kubeconfig(self.directory / f"{token}.yaml", self.server, self.ca, token)


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """The sandbox itself, for what cannot be asked of a real cluster; skipped when one is given."""
    if live.kubeconfig():
        pytest.skip("needs the sandbox, which can be told to fail")
    directory, bound = tmp_path_factory.mktemp("sandbox"), listen(0)
    shown = certificates.ensure(directory)
    cluster = Sandbox(
        "under-test", nodes=[NodeSpec("gpu-0", gpus=8)], tokens=TOKENS, cilium=True
    )
    with serving(Served(cluster.app, bound, shown)):
        yield Serving(
            directory, cluster, f"https://127.0.0.1:{port_of(bound)}", shown.ca
        )


@pytest.fixture(scope="session")
def admin_config(request: pytest.FixtureRequest) -> Path:
    """The kubeconfig of an administrator."""
    given = live.kubeconfig()
    if given:
        return given
    served: Serving = request.getfixturevalue("sandbox")
    return served.config("admin")


@pytest.fixture(scope="session")
def installed(admin_config: Path) -> None:
    """What an administrator applies once per cluster; only what is missing is made, and taken away at the end."""
    cluster = Cluster.from_kubeconfig(admin_config)
    for file in sorted(DEPLOY.glob("*.yaml")):
        for manifest in yaml.safe_load_all(file.read_text()):
            metadata = manifest["metadata"]
            if (
                cluster.get(
                    ref_of(manifest), metadata["name"], metadata.get("namespace")
                )
                is None
            ):
                if "namespace" not in metadata:
                    live.note(manifest["kind"], metadata["name"])
                cluster.apply(manifest, manager="kubectl")
    cluster.close()


@pytest.fixture(scope="session")
def provisioner_config(installed: None, admin_config: Path) -> Path:
    """The kubeconfig of the service account that the portal has: what the product does, it does with these rights."""
    admin = Cluster.from_kubeconfig(admin_config)
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 7200},
    }
    where = "/api/v1/namespaces/quartermaster/serviceaccounts/provisioner/token"
    answer = admin._json("POST", where, body=body)
    admin.close()
    config = yaml.safe_load(admin_config.read_text())
    for user in config["users"]:
        user["user"] = {"token": answer["status"]["token"]}
    path = admin_config.with_name("provisioner.yaml")
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture
def provisioner(provisioner_config: Path) -> Iterator[Cluster]:
    """The portal's connector with the portal's own rights."""
    cluster = Cluster.from_kubeconfig(provisioner_config)
    yield cluster
    cluster.close()


@pytest.fixture
def admin(admin_config: Path) -> Iterator[Cluster]:
    """The portal's connector as an administrator."""
    cluster = Cluster.from_kubeconfig(admin_config)
    yield cluster
    cluster.close()


@pytest.fixture
def raw(admin: Cluster) -> Iterator[Raw]:
    """Plain HTTPS with the administrator's credentials, for requests the connector refuses to make."""
    known = admin._configuration
    pool = urllib3.PoolManager(
        ca_certs=known.ssl_ca_cert,
        cert_file=known.cert_file,
        key_file=known.key_file,
        retries=False,
    )
    token = admin._configuration.get_api_key_with_prefix("BearerToken")
    yield Raw(pool, admin.server, token or "")
    pool.clear()


@pytest.fixture
def prefix() -> str:
    """A name that nothing else has."""
    return f"{live.prefix()}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def namespace(admin: Cluster, prefix: str) -> Iterator[str]:
    """A namespace of the test's own, asked to go at its end."""
    admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": prefix}})
    yield prefix
    admin.delete(("v1", "Namespace"), prefix)
