"""Azure OpenAI as the portal sets it up and takes it down."""

from datetime import UTC, datetime
from typing import Any

import pytest

from connectors.azure.cognitive_services import AzureCognitiveServices
from connectors.azure.session import DONE
from connectors.errors import PermanentError, TemporaryError
from tests.sandbox.azure.running import GROUP, Running

QUOTA = "OpenAI.Standard.gpt-4o"


@pytest.fixture
def openai(azure: Running) -> AzureCognitiveServices:
    return AzureCognitiveServices(azure.session())


@pytest.fixture
def account(openai: AzureCognitiveServices) -> AzureCognitiveServices:
    """With an account named `research`."""
    openai.begin_create_account(GROUP, "research", location="eastus")
    return openai


def deploy(openai: AzureCognitiveServices, name: str = "chat", **changes: Any) -> Any:
    given = {
        "model": "gpt-4o",
        "version": "2024-08-06",
        "sku": "Standard",
        "capacity": 30,
        **changes,
    }
    return openai.begin_deploy(GROUP, "research", name, **given)


def used(openai: AzureCognitiveServices) -> tuple[int, int, int]:
    row = next(row for row in openai.usages("eastus") if row.name == QUOTA)
    return row.used, row.limit, row.left


def test_an_account_is_closed_and_without_keys(account: AzureCognitiveServices) -> None:
    found = account.account(GROUP, "research")
    assert found is not None
    assert (found.name, found.location, found.state) == (
        "research",
        "eastus",
        "Succeeded",
    )
    assert found.endpoint == "https://research.openai.azure.com/"
    assert (found.is_open, found.has_keys) == (False, False)
    assert account.accounts() == [found]
    assert account.account(GROUP, "nothing") is None


def test_an_account_may_be_open_and_called_otherwise(
    openai: AzureCognitiveServices,
) -> None:
    openai.begin_create_account(
        GROUP, "research", location="eastus", domain="vision-lab", is_open=True
    )
    found = openai.account(GROUP, "research")
    assert found is not None
    assert (found.is_open, found.endpoint) == (
        True,
        "https://vision-lab.openai.azure.com/",
    )


def test_the_same_once_more_is_one_account(account: AzureCognitiveServices) -> None:
    account.begin_create_account(GROUP, "research", location="eastus")
    assert len(account.accounts()) == 1


def test_a_model_is_deployed_changed_and_taken_out(
    account: AzureCognitiveServices,
) -> None:
    deploy(account)
    found = account.deployment(GROUP, "research", "chat")
    assert found is not None
    assert (found.model, found.version, found.sku, found.capacity) == (
        "gpt-4o",
        "2024-08-06",
        "Standard",
        30,
    )
    assert used(account) == (30, 450, 420)
    deploy(account, capacity=10)
    assert [one.capacity for one in account.deployments(GROUP, "research")] == [10]
    account.begin_delete_deployment(GROUP, "research", "chat")
    assert account.deployments(GROUP, "research") == []
    assert account.begin_delete_deployment(GROUP, "research", "chat") == DONE
    assert account.deployment(GROUP, "research", "chat") is None
    assert account.deployments(GROUP, "nothing") == []
    assert account.begin_delete_deployment(GROUP, "nothing", "chat") == DONE


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"capacity": 451}, "quota"),
        ({"model": "gpt-9"}, "model_not_available"),
        ({"version": "1999-01-01"}, "model_not_available"),
        ({"capacity": 0}, "invalid"),
        ({"sku": "Imaginary"}, "invalid"),
    ],
)
def test_what_azure_refuses_has_a_code(
    account: AzureCognitiveServices, change: dict[str, Any], code: str
) -> None:
    with pytest.raises(PermanentError) as refused:
        deploy(account, **change)
    assert refused.value.code == code


def test_an_account_does_one_thing_at_a_time(
    azure: Running, account: AzureCognitiveServices
) -> None:
    azure.pace(60)
    operation = deploy(account)
    with pytest.raises(TemporaryError):
        deploy(account, "another")
    azure.advance(61)
    assert account.session.poll(operation.token).is_done
    assert not deploy(account, "another").is_done


def test_a_deleted_account_is_purged_before_its_name_is_free(
    account: AzureCognitiveServices,
) -> None:
    deploy(account)
    account.begin_delete_account(GROUP, "research")
    deleted = account.deleted_accounts()
    assert [(one.name, one.location, one.resource_group) for one in deleted] == [
        ("research", "eastus", GROUP)
    ]
    assert deleted[0].purged_at is not None
    assert deleted[0].purged_at > datetime.now(UTC)
    assert used(account)[0] == 30
    with pytest.raises(PermanentError) as refused:
        account.begin_create_account(GROUP, "research", location="eastus")
    assert refused.value.code == "soft_deleted"
    with pytest.raises(PermanentError) as taken:
        account.begin_create_account(
            GROUP, "another", location="eastus", domain="research"
        )
    assert taken.value.code == "name_taken"
    account.begin_purge_account(GROUP, "research", "eastus")
    assert (used(account)[0], account.deleted_accounts()) == (0, [])
    account.begin_create_account(GROUP, "research", location="eastus")


def test_what_is_gone_is_deleted_and_purged_once_more(
    openai: AzureCognitiveServices,
) -> None:
    assert openai.begin_delete_account(GROUP, "research") == DONE
    assert openai.begin_purge_account(GROUP, "research", "eastus") == DONE


def test_a_region_has_so_many_accounts(
    azure: Running, account: AzureCognitiveServices
) -> None:
    azure.azure.usage.raise_limit("eastus", "OpenAI.S0.AccountCount", 1)
    with pytest.raises(PermanentError) as refused:
        account.begin_create_account(GROUP, "another", location="eastus")
    assert refused.value.code == "quota"


def test_models_and_what_is_left_of_them(account: AzureCognitiveServices) -> None:
    deploy(account, capacity=400)
    assert account.left("eastus", "gpt-4o", "2024-08-06") == {
        "Standard": 50,
        "GlobalStandard": 1000,
    }
    assert account.left("eastus", "gpt-9", "1") == {}
    models = {(one.name, one.version, one.sku): one for one in account.models("eastus")}
    one = models["gpt-4o", "2024-08-06", "Standard"]
    assert (one.quota, one.is_default, one.least, one.most) == (QUOTA, True, 1, 1000)
    assert not models["gpt-4o", "2024-11-20", "GlobalStandard"].is_default
    assert ("gpt-4o", "2024-11-20", "GlobalStandard") not in {
        (each.name, each.version, each.sku) for each in account.models("westeurope")
    }
    # Numbers of accounts are no tokens.
    assert all("Count" not in one.name for one in account.usages("eastus"))


@pytest.mark.parametrize("name", ["a'b", "a/b", "..", "", "a b"])
def test_a_name_has_no_quotes_and_no_slashes(
    openai: AzureCognitiveServices, name: str
) -> None:
    calls: list[Any] = [
        lambda: openai.account(GROUP, name),
        lambda: openai.begin_create_account(GROUP, name, location="eastus"),
        lambda: openai.begin_delete_account(name, "research"),
        lambda: openai.begin_purge_account(GROUP, "research", name),
        lambda: openai.deployments(GROUP, name),
        lambda: openai.deployment(GROUP, "research", name),
        lambda: deploy(openai, name),
        lambda: openai.begin_delete_deployment(GROUP, "research", name),
        lambda: openai.usages(name),
        lambda: openai.models(name),
        lambda: openai.left(name, "gpt-4o", "1"),
    ]
    for call in calls:
        with pytest.raises(PermanentError) as refused:
            call()
        assert refused.value.code == "bad_name"
