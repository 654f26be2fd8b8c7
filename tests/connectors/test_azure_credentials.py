"""As whom Azure is called: by a secret, by a token of the cluster, by the machine; and that none of it is logged."""

import base64
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from connectors.azure import pipeline
from connectors.azure.authorization import AzureAuthorization
from connectors.azure.compute import AzureCompute
from connectors.azure.quota import AzureQuota
from connectors.azure.retail_prices import RetailPrices
from connectors.azure.session import AzureSession
from connectors.errors import PermanentError, TemporaryError
from sandbox.azure_world import AZURE_CLIENT_ID, AZURE_PRINCIPAL_ID
from sandbox.entra.daemons import Daemon
from sandbox.entra.keys import SigningKey
from sandbox.world import group_id
from tests.sandbox.azure.running import GROUP, HERE, Running


def used(session: AzureSession) -> int:
    return len(AzureCompute(session).usages("eastus"))


@contextmanager
def machine(status: int, body: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The address at which a machine tells its programs who they are, and what it was asked."""
    seen: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(
                {
                    "path": self.path,
                    **{key.lower(): value for key, value in self.headers.items()},
                }
            )
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/token", seen
        server.shutdown()
        thread.join()


def test_a_secret_is_good(azure: Running) -> None:
    assert used(azure.session()) > 5


@pytest.mark.parametrize("status", [429, 500, 503])
def test_entra_that_fails_comes_back(azure: Running, status: int) -> None:
    azure.entra("POST", "/sandbox/faults", path="oauth2/v2.0/token", status=status)
    with pytest.raises(TemporaryError):
        used(azure.session())
    azure.entra("DELETE", "/sandbox/faults")
    assert used(azure.session()) > 5


@pytest.mark.parametrize(
    "change",
    [
        {"client_secret": "wrong"},
        {"client_id": "99999999-9999-4999-8999-999999999999"},
        {"client_secret": ""},
    ],
)
def test_without_a_token_it_says_so(azure: Running, change: dict[str, str]) -> None:
    with pytest.raises(PermanentError, match="No token for Azure") as refused:
        used(azure.session(**change))
    assert refused.value.code == "credentials"


def test_entra_that_is_not_there_comes_back(azure: Running) -> None:
    with pytest.raises(TemporaryError):
        used(azure.session(authority="https://localhost:1"))


def test_a_token_is_asked_for_once(
    azure: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, made, tokens = azure.session(), list[str](), Daemon.tokens

    def counted(self: Daemon, form: Any) -> str:
        made.append("one")
        return tokens(self, form)

    monkeypatch.setattr(Daemon, "tokens", counted)
    for _ in range(3):
        used(session)
    assert made == ["one"]


def test_a_token_that_azure_refuses_is_renewed_once(azure: Running) -> None:
    session = azure.session()
    used(session)
    azure.admin("POST", "/sandbox/tokens")
    assert used(session) > 5


def test_what_azure_refuses_for_good_is_refused(azure: Running) -> None:
    azure.fault(
        "GET", "/usages", status=401, code="InvalidAuthenticationToken", times=100
    )
    with pytest.raises(PermanentError) as refused:
        used(azure.session())
    assert refused.value.code == "unauthorized"


def test_a_pod_shows_the_token_of_its_cluster(azure: Running, tmp_path: Path) -> None:
    daemon = azure.azure.entra.daemon
    assert daemon is not None
    file = tmp_path / "token"
    file.write_text(daemon.federated_token())
    session = azure.session(
        credential="workload_identity", client_secret="", token_file=file
    )
    assert used(session) > 5


def test_a_pod_without_that_token_is_told_what_is_missing(
    azure: Running, tmp_path: Path
) -> None:
    session = azure.session(
        credential="workload_identity", token_file=tmp_path / "nothing"
    )
    with pytest.raises(PermanentError, match="workload identity") as refused:
        used(session)
    assert refused.value.code == "credentials"


def test_a_cluster_that_entra_does_not_trust_is_refused(
    azure: Running, tmp_path: Path
) -> None:
    daemon = azure.azure.entra.daemon
    assert daemon is not None
    file = tmp_path / "token"
    file.write_text(daemon.federated_token(sub="system:serviceaccount:default:default"))
    session = azure.session(credential="workload_identity", token_file=file)
    with pytest.raises(PermanentError, match="AADSTS700213") as refused:
        used(session)
    assert refused.value.code == "credentials"


def test_a_machine_has_an_identity(
    azure: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = azure.azure.entra.issuer
    token = issuer.key.sign(issuer.arm_token(AZURE_CLIENT_ID, AZURE_PRINCIPAL_ID))
    body = f'{{"access_token": "{token}", "expires_on": "9999999999", "resource": "x", "token_type": "Bearer"}}'
    with machine(200, body) as (address, seen):
        monkeypatch.setenv("IDENTITY_ENDPOINT", address)
        monkeypatch.setenv("IDENTITY_HEADER", "header-canary")
        assert used(azure.session(credential="managed_identity")) > 5
    assert len(seen) == 1
    assert seen[0]["x-identity-header"] == "header-canary"
    assert f"client_id={AZURE_CLIENT_ID}" in seen[0]["path"]
    assert "resource=https://management.azure.com" in seen[0]["path"]


def test_a_machine_without_that_identity_is_refused(
    azure: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with machine(
        400, '{"error": "invalid_request", "error_description": "Identity not found"}'
    ) as (
        address,
        _,
    ):
        monkeypatch.setenv("IDENTITY_ENDPOINT", address)
        monkeypatch.setenv("IDENTITY_HEADER", "header-canary")
        with pytest.raises(PermanentError, match="No token for Azure") as refused:
            used(azure.session(credential="managed_identity"))
    assert refused.value.code == "credentials"


def test_who_may_not_is_told_what(azure: Running) -> None:
    azure.azure.state.resources = {
        key: row
        for key, row in azure.azure.state.resources.items()
        if "roleassignments" not in key
    }
    with pytest.raises(
        PermanentError, match=r"Microsoft\.Compute/locations/usages/read"
    ) as refused:
        used(azure.session())
    assert refused.value.code == "forbidden"


@pytest.mark.slow
def test_no_secret_and_no_token_is_in_any_log(
    azure: Running,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    daemon = azure.azure.entra.daemon
    assert daemon is not None
    file = tmp_path / "token"
    file.write_text(daemon.federated_token())
    given: list[str] = []
    sign = SigningKey.sign

    def kept(self: SigningKey, *said: Any) -> str:
        given.append(sign(self, *said))
        return given[-1]

    monkeypatch.setattr(SigningKey, "sign", kept)
    caplog.set_level(logging.DEBUG)
    assert pipeline.CHATTY[0] in logging.root.manager.loggerDict
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in (
            "azure",
            "msal",
            "urllib3",
            "requests",
            "connectors",
        ):
            caplog.set_level(logging.DEBUG, logger=name)
    sessions = [
        azure.session(),
        azure.session(
            credential="workload_identity", client_secret="", token_file=file
        ),
        azure.session(client_secret="canary-of-a-wrong-secret"),
    ]
    for session in sessions:
        work(azure, session)
    logged = "\n".join(
        f"{record.getMessage()} {record.__dict__}" for record in caplog.records
    )
    assert "Request URL" in logged
    assert any(record.name.startswith("azure.core") for record in caplog.records)
    assert len(given) >= 2
    secrets = [
        *given,
        *(one.rpartition(".")[2] for one in given),
        file.read_text(),
        azure.settings.client_secret,
        "canary-of-a-wrong-secret",
    ]
    for secret in secrets:
        assert secret not in logged
        assert base64.b64encode(secret.encode()).decode() not in logged


def work(azure: Running, session: AzureSession) -> None:
    """Call here and there, with what goes wrong."""
    compute, quota, roles = (
        AzureCompute(session),
        AzureQuota(session),
        AzureAuthorization(session),
    )
    prices = RetailPrices(azure.azure.base, str(azure.ca))
    azure.fault("GET", "/usages", status=503)
    azure.fault("GET", "/quotas", status=429, retry_after=60)
    azure.fault("GET", "/permissions", cut=10)
    calls: list[Callable[[], object]] = [
        lambda: compute.usages("eastus"),
        lambda: quota.limits("eastus"),
        lambda: roles.permissions(HERE),
        lambda: roles.assign(HERE, "7f951dda-4ed3-4680-a7ca-43fe172d538d", group_id(1)),
        lambda: compute.ensure_group(GROUP, "research", location="eastus"),
        lambda: session.poll("nonsense"),
        lambda: prices.prices("eastus", ["Standard_NC4as_T4_v3"]),
    ]
    for call in calls:
        try:
            call()
        except (PermanentError, TemporaryError):
            logging.getLogger("connectors").exception("It went wrong.")
    prices.close()
    azure.admin("POST", "/sandbox/tokens")
    azure.admin("DELETE", "/sandbox/faults")
