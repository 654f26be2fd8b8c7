"""Accounts of Azure OpenAI and what is deployed in them, by Microsoft's own client."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.cognitiveservices import CognitiveServicesManagementClient
from azure.mgmt.cognitiveservices.models import (
    Account,
    AccountProperties,
    Deployment,
    DeploymentModel,
    DeploymentProperties,
    Sku,
)

from tests.sandbox.azure.running import GROUP, Running
from tests.sandbox.azure.test_groups import code_of

QUOTA = "OpenAI.Standard.gpt-4o"


@pytest.fixture
def client(azure: Running) -> Any:
    return azure.client(CognitiveServicesManagementClient)


def account(location: str = "eastus", **said: Any) -> Account:
    return Account(
        kind="OpenAI",
        sku=Sku(name="S0"),
        location=location,
        properties=AccountProperties(**said),
    )


def create(client: Any, name: str = "research", **changes: Any) -> Any:
    return client.accounts.begin_create(GROUP, name, account(**changes)).result()


def deploy(client: Any, name: str = "chat", **changes: Any) -> Any:
    given = {
        "model": "gpt-4o",
        "version": "2024-08-06",
        "sku": "Standard",
        "capacity": 30,
        **changes,
    }
    body = Deployment(
        sku=Sku(name=given["sku"], capacity=given["capacity"]),
        properties=DeploymentProperties(
            model=DeploymentModel(
                format="OpenAI", name=given["model"], version=given["version"]
            )
        ),
    )
    return client.deployments.begin_create_or_update(
        GROUP, "research", name, body
    ).result()


def used(client: Any, name: str = QUOTA) -> tuple[float, float]:
    row = next(row for row in client.usages.list("eastus") if row.name.value == name)
    return row.current_value, row.limit


def test_an_account_is_made(azure: Running, client: Any) -> None:
    azure.pace(5)
    poller = client.accounts.begin_create(
        GROUP,
        "research",
        account(custom_sub_domain_name="research", public_network_access="Disabled"),
    )
    assert (
        client.accounts.get(GROUP, "research").properties.provisioning_state
        == "Accepted"
    )
    azure.advance(6)
    made = poller.result().properties
    assert (made.provisioning_state, made.endpoint) == (
        "Succeeded",
        "https://research.openai.azure.com/",
    )
    assert made.public_network_access == "Disabled"
    assert [one.name for one in client.accounts.list()] == ["research"]
    assert [one.name for one in client.accounts.list_by_resource_group(GROUP)] == [
        "research"
    ]


def test_a_domain_is_one_accounts(client: Any) -> None:
    create(client, custom_sub_domain_name="research")
    with pytest.raises(HttpResponseError) as refused:
        create(client, "another", custom_sub_domain_name="research")
    assert code_of(refused) == "CustomDomainInUse"


def test_there_are_thirty_in_a_region(azure: Running, client: Any) -> None:
    azure.azure.usage.raise_limit("eastus", "OpenAI.S0.AccountCount", 1)
    create(client)
    with pytest.raises(HttpResponseError) as refused:
        create(client, "another")
    assert code_of(refused) == "AccountQuotaExceeded"
    assert used(client, "OpenAI.S0.AccountCount") == (1, 1)


def test_a_deleted_account_keeps_its_name_and_its_quota_until_it_is_purged(
    client: Any,
) -> None:
    create(client, custom_sub_domain_name="research")
    deploy(client)
    client.accounts.begin_delete(GROUP, "research").result()
    with pytest.raises(ResourceNotFoundError):
        client.accounts.get(GROUP, "research")
    deleted = list(client.deleted_accounts.list())
    assert [one.name for one in deleted] == ["research"]
    assert deleted[0].properties.scheduled_purge_date
    assert used(client) == (30, 450)
    with pytest.raises(HttpResponseError) as refused:
        create(client, custom_sub_domain_name="research")
    assert code_of(refused) == "FlagMustBeSetForRestore"
    client.deleted_accounts.begin_purge("eastus", GROUP, "research").result()
    assert used(client) == (0, 450)
    create(client, custom_sub_domain_name="research")


def test_a_deleted_account_is_restored_with_what_was_in_it(client: Any) -> None:
    create(client)
    deploy(client)
    client.accounts.begin_delete(GROUP, "research").result()
    create(client, restore=True)
    assert [one.name for one in client.deployments.list(GROUP, "research")] == ["chat"]
    assert list(client.deleted_accounts.list()) == []


def test_what_is_gone_is_deleted_once_more(client: Any) -> None:
    assert client.accounts.begin_delete(GROUP, "research").result() is None
    assert (
        client.deleted_accounts.begin_purge("eastus", GROUP, "research").result()
        is None
    )


def test_a_model_is_deployed_with_its_capacity(client: Any) -> None:
    create(client)
    made = deploy(client)
    assert (made.sku.capacity, made.properties.model.version) == (30, "2024-08-06")
    assert made.properties.rate_limits[0].count == 30_000
    assert used(client) == (30, 450)
    assert deploy(client, capacity=10).sku.capacity == 10
    assert used(client) == (10, 450)
    client.deployments.begin_delete(GROUP, "research", "chat").result()
    assert (list(client.deployments.list(GROUP, "research")), used(client)) == (
        [],
        (0, 450),
    )


def test_quota_is_of_the_region_and_the_model(client: Any) -> None:
    create(client)
    deploy(client, capacity=400)
    with pytest.raises(HttpResponseError) as refused:
        deploy(client, "another", capacity=51)
    assert code_of(refused) == "InsufficientQuota"
    assert "51 new capacity" in str(refused.value)
    assert "available capacity 50" in str(refused.value)
    deploy(client, "global", sku="GlobalStandard", capacity=400)
    deploy(client, "rest", capacity=50)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"model": "gpt-9"}, "DeploymentModelNotSupported"),
        ({"version": "1999-01-01"}, "DeploymentModelNotSupported"),
        (
            {"model": "gpt-4.1-mini", "version": "2025-04-14"},
            "InvalidResourceProperties",
        ),
        ({"capacity": 0}, "InvalidParameter"),
    ],
)
def test_what_cannot_be_deployed_is_refused(
    client: Any, change: dict[str, Any], code: str
) -> None:
    create(client)
    with pytest.raises(HttpResponseError) as refused:
        deploy(client, **change)
    assert code_of(refused) == code


def test_one_thing_at_a_time_in_an_account(azure: Running, client: Any) -> None:
    create(client)
    azure.pace(60)
    body = Deployment(
        sku=Sku(name="Standard", capacity=1),
        properties=DeploymentProperties(
            model=DeploymentModel(format="OpenAI", name="gpt-4o", version="2024-08-06")
        ),
    )
    client.deployments.begin_create_or_update(
        GROUP, "research", "one", body, polling=False
    )
    with pytest.raises(HttpResponseError) as refused:
        client.deployments.begin_create_or_update(GROUP, "research", "two", body)
    assert code_of(refused) == "RequestConflict"


def test_a_deployment_that_fails_is_not_there(azure: Running, client: Any) -> None:
    create(client)
    azure.fault(
        "PUT",
        "deployments/",
        operation={"error": {"code": "InternalServerError", "message": "no"}},
    )
    with pytest.raises(HttpResponseError):
        deploy(client)
    assert (list(client.deployments.list(GROUP, "research")), used(client)) == (
        [],
        (0, 450),
    )


def test_models_and_what_is_left_of_them(client: Any) -> None:
    create(client)
    deploy(client, capacity=400)
    models = {
        (row.model.name, row.model.version) for row in client.models.list("eastus")
    }
    assert {("gpt-4o", "2024-08-06"), ("gpt-4o", "2024-11-20")} < models
    assert ("gpt-4o", "2024-11-20") not in {
        (row.model.name, row.model.version) for row in client.models.list("westeurope")
    }
    left = client.location_based_model_capacities.list(
        "eastus", "OpenAI", "gpt-4o", "2024-08-06"
    )
    assert {
        row.properties.sku_name: row.properties.available_capacity for row in left
    } == {
        "Standard": 50,
        "GlobalStandard": 1000,
    }
