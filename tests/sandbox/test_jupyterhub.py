"""The command that runs a hub beside a sandbox: start, its HTTPS, restart on the same data, end."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.sandbox.test_main import ROOT, client, started
from tests.services.process import wait_until

pytestmark = pytest.mark.slow


@contextmanager
def hub(
    sandbox: Path, data: Path, cluster: str = "dev-eastus"
) -> Iterator[dict[str, Any]]:
    """Run `python -m sandbox.jupyterhub` until ready; end it with SIGTERM and check how it ended."""
    command = [
        sys.executable,
        "-m",
        "sandbox.jupyterhub",
        "--sandbox",
        str(sandbox),
        "--data",
        str(data),
    ]
    command += ["--cluster", cluster, "--portal", "http://127.0.0.1:9"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            assert any(line == "jupyterhub ready\n" for line in lines)
            yield json.loads((data / "address.json").read_text())
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    assert process.returncode == 0


def test_it_serves_over_https_and_is_the_same_hub_after_a_restart(
    tmp_path: Path,
) -> None:
    with started(tmp_path / "sandbox") as described:
        seen = []
        for _ in range(2):
            with hub(tmp_path / "sandbox", tmp_path / "hub") as where:
                token = Path(where["token_file"]).read_text()
                headers = {"Authorization": f"token {token}"}
                with client(described, "unused") as browser:
                    answer = browser.post(
                        f"{where['address']}/hub/api/users/ada", headers=headers
                    )
                    assert browser.get(f"{where['address']}/hub/api/").json() == {
                        "version": "6.1.1"
                    }
                assert (
                    httpx.get(
                        f"{where['browser']}/hub/login", trust_env=False
                    ).status_code
                    == 200
                )
                seen.append((answer.status_code, where["browser"], token))
        assert [status for status, *_ in seen] == [201, 409]
        assert seen[0][1:] == seen[1][1:]


def test_the_hub_may_run_pods_in_teams_namespaces_and_nowhere_else(
    tmp_path: Path,
) -> None:
    with (
        started(tmp_path / "sandbox") as described,
        hub(tmp_path / "sandbox", tmp_path / "hub"),
    ):
        cluster = described["kubernetes"]["dev-eastus"]
        server, labels = cluster["server"], {"quartermaster.io/group": "0"}
        kubeconfig = Path(cluster["hub_kubeconfig"]).read_text()
        token = kubeconfig.partition("token: ")[2].split()[0]
        with (
            client(described, cluster["tokens"]["admin"]) as admin,
            client(described, token) as account,
        ):
            for name, marks in (("team", labels), ("other", {})):
                body = {"metadata": {"name": name, "labels": marks}}
                admin.post(f"{server}/api/v1/namespaces", json=body).raise_for_status()

            def answer(namespace: str, what: str) -> int:
                return account.get(
                    f"{server}/api/v1/namespaces/{namespace}/{what}"
                ).status_code

            wait_until(
                lambda: answer("team", "pods") == 200,
                what="its rights in the new namespace",
            )
            assert answer("team", "events") == 200
            assert {
                answer("team", "secrets"),
                answer("other", "pods"),
                answer("kube-system", "pods"),
            } == {403}
            assert account.get(f"{server}/api/v1/pods").status_code == 403
            assert (
                account.post(f"{server}/api/v1/namespaces", json={}).status_code == 403
            )
