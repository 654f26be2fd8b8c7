"""What the portal is told of Backstage: an address that proves its keys, with a token, or nothing."""

import pytest
from pydantic import ValidationError

from portal.env import Environment, read

WHOLE = {
    "QM_BACKSTAGE_URL": "https://backstage.example.com",
    "QM_BACKSTAGE_CATALOG_TOKEN": "canary",
}


def start(patch: pytest.MonkeyPatch, **changes: str) -> Environment:
    for name, value in {**WHOLE, **changes}.items():
        patch.setenv(name, value)
    return read(None)


def test_with_both_two_plugins_may_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    found = start(monkeypatch)
    assert found.backstage_plugins == ["scaffolder", "mcp-actions"]
    assert found.backstage_scope == "ask"
    assert "canary" not in repr(found)


@pytest.mark.parametrize(
    "address",
    [
        "https://backstage.example.com/",
        "https://backstage.example.com:7007/tools",
        "http://127.0.0.1:7007",
        "http://localhost",
    ],
)
def test_an_address_that_proves_whose_keys_they_are_is_taken(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    assert start(monkeypatch, QM_BACKSTAGE_URL=address).backstage_url == address


@pytest.mark.parametrize(
    "changes",
    [
        {"QM_BACKSTAGE_URL": "http://backstage.example.com"},
        {"QM_BACKSTAGE_URL": "http://127.0.0.1.example.com"},
        {"QM_BACKSTAGE_URL": "https://me:secret@backstage.example.com"},
        {"QM_BACKSTAGE_URL": "https://backstage.example.com?x"},
        {"QM_BACKSTAGE_URL": "backstage.example.com"},
        {"QM_BACKSTAGE_CATALOG_TOKEN": ""},
        {"QM_BACKSTAGE_PLUGINS": '["../auth"]'},
        {"QM_BACKSTAGE_PLUGINS": '["Scaffolder"]'},
        {"QM_BACKSTAGE_SCOPE": "write"},
        {"QM_BACKSTAGE_URL": "", "QM_BACKSTAGE_NOTICES_TOKEN": "canary"},
    ],
)
def test_anything_else_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, str]
) -> None:
    with pytest.raises(ValidationError) as refused:
        start(monkeypatch, **changes)
    assert "canary" not in str(refused.value)
