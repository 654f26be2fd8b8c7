"""What the portal is told of Azure: all that it needs, or nothing."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from connectors.azure import retail_prices, session
from portal.env import Environment, read

WHOLE = {
    "QM_AZURE_SUBSCRIPTION_ID": "44444444-4444-4444-8444-444444444444",
    "QM_AZURE_RESOURCE_GROUP": "gpu-platform",
    "QM_AZURE_CLIENT_ID": "55555555-5555-4555-8555-555555555555",
    "QM_AZURE_CREDENTIAL": "client_secret",
    "QM_AZURE_CLIENT_SECRET": "canary",
}


def start(
    patch: pytest.MonkeyPatch, secrets: str | None = None, **changes: str
) -> Environment:
    for name, value in {**WHOLE, **changes}.items():
        patch.setenv(name, value)
    return read(secrets)


def test_a_whole_description_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    found = start(monkeypatch)
    assert found.azure_client_secret.get_secret_value() == "canary"
    assert "canary" not in repr(found)


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"QM_AZURE_RESOURCE_GROUP": ""}, "QM_AZURE_RESOURCE_GROUP must"),
        ({"QM_AZURE_CLIENT_ID": ""}, "QM_AZURE_CLIENT_ID must"),
        ({"QM_AZURE_CLIENT_SECRET": ""}, "QM_AZURE_CLIENT_SECRET must"),
        (
            {"QM_AZURE_CLIENT_ID": "", "QM_AZURE_CLIENT_SECRET": ""},
            "QM_AZURE_CLIENT_ID and QM_AZURE_CLIENT_SECRET must",
        ),
        (
            {"QM_AZURE_CREDENTIAL": "", "QM_AZURE_CLIENT_ID": ""},
            "QM_AZURE_CLIENT_ID must",
        ),
    ],
)
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], missing: str
) -> None:
    with pytest.raises(ValidationError, match=missing) as refused:
        start(monkeypatch, **changes)
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    "changes",
    [
        {
            "QM_AZURE_SUBSCRIPTION_ID": "",
            "QM_AZURE_RESOURCE_GROUP": "",
            "QM_AZURE_CLIENT_ID": "",
        },
        {"QM_AZURE_CREDENTIAL": "workload_identity", "QM_AZURE_CLIENT_SECRET": ""},
        {
            "QM_AZURE_CREDENTIAL": "managed_identity",
            "QM_AZURE_CLIENT_ID": "",
            "QM_AZURE_CLIENT_SECRET": "",
        },
    ],
)
def test_no_more_is_needed(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, str]
) -> None:
    assert start(monkeypatch, **changes).azure_arm_url == session.ARM_URL


def test_the_secret_may_lie_in_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "qm_azure_client_secret").write_text("of a file\n")
    found = start(monkeypatch, str(tmp_path), QM_AZURE_CLIENT_SECRET="")
    assert found.azure_client_secret.get_secret_value() == "of a file"


@pytest.mark.parametrize("name", ["ARM_URL", "AUTHORITY", "PRICES_URL"])
@pytest.mark.parametrize(
    "url", ["http://localhost:1", "https://user@host", "https://host/path", "host"]
)
def test_tokens_go_over_tls_alone(
    monkeypatch: pytest.MonkeyPatch, name: str, url: str
) -> None:
    with pytest.raises(ValidationError):
        start(monkeypatch, **{f"QM_AZURE_{name}": url})


def test_the_public_cloud_is_meant_where_nothing_is_said() -> None:
    def default(name: str) -> Any:
        return Environment.model_fields[name].default

    assert default("azure_arm_url") == session.ARM_URL
    assert default("azure_authority") == session.AUTHORITY
    assert default("azure_token_file") == session.TOKEN_FILE
    assert default("azure_prices_url") == retail_prices.URL


REGISTRY = "/subscriptions/4/resourceGroups/gpu/providers/Microsoft.ContainerRegistry/registries/gpuplatform"


def test_a_registry_is_named_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(monkeypatch, QM_AZURE_REGISTRY=REGISTRY).azure_registry == REGISTRY
    for wrong in (
        "gpuplatform",
        "gpuplatform.azurecr.io",
        f"{REGISTRY}/x",
        REGISTRY.replace("Registry", "Service"),
    ):
        with pytest.raises(ValidationError, match="azure_registry"):
            start(monkeypatch, QM_AZURE_REGISTRY=wrong)


def test_a_registry_needs_a_subscription(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError, match="QM_AZURE_SUBSCRIPTION_ID must"):
        start(monkeypatch, QM_AZURE_REGISTRY=REGISTRY, QM_AZURE_SUBSCRIPTION_ID="")
