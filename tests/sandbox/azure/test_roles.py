"""Roles and registries, by Microsoft's own clients."""

import uuid
from typing import Any

import pytest
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.mgmt.authorization.v2022_04_01 import AuthorizationManagementClient
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.containerregistry import ContainerRegistryManagementClient

from sandbox.azure_world import AZURE_PRINCIPAL_ID, ROLE_ID
from sandbox.world import group_id, person_id
from tests.sandbox.azure.running import GROUP, HERE, INSIDE, Running
from tests.sandbox.azure.test_groups import code_of

REGISTRY = f"{INSIDE}/Microsoft.ContainerRegistry/registries/gpuplatform"
PULL = "7f951dda-4ed3-4680-a7ca-43fe172d538d"


@pytest.fixture
def client(azure: Running) -> Any:
    return azure.client(AuthorizationManagementClient)


def assign(client: Any, **changes: Any) -> Any:
    given = {
        "role": PULL,
        "principal": group_id(1),
        "scope": REGISTRY,
        "name": str(uuid.uuid4()),
        **changes,
    }
    body = {
        "role_definition_id": f"{HERE}/providers/Microsoft.Authorization/roleDefinitions/{given['role']}",
        "principal_id": given["principal"],
        "principal_type": given.get("kind", "Group"),
    }
    return client.role_assignments.create(given["scope"], given["name"], body)


def test_an_assignment_is_there_once_it_is_made(client: Any) -> None:
    made = assign(client, name="00000000-0000-4000-8000-00000000000a")
    assert (made.scope, made.principal_id, made.principal_type) == (
        REGISTRY,
        group_id(1),
        "Group",
    )
    assert made.role_definition_id.endswith(PULL)
    assert assign(client, name="00000000-0000-4000-8000-00000000000a").id == made.id
    assert client.role_assignments.get(REGISTRY, made.name).id == made.id


def test_the_same_under_another_name_exists(client: Any) -> None:
    made = assign(client)
    with pytest.raises(ResourceExistsError) as refused:
        assign(client)
    assert code_of(refused) == "RoleAssignmentExists"
    assert made.name.replace("-", "") in str(refused.value)


def test_a_name_stays_with_what_it_assigns(client: Any) -> None:
    name = str(uuid.uuid4())
    assign(client, name=name)
    with pytest.raises(HttpResponseError) as refused:
        assign(client, name=name, principal=group_id(2))
    assert code_of(refused) == "RoleAssignmentUpdateNotPermitted"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"principal": "99999999-9999-4999-8999-999999999999"}, "PrincipalNotFound"),
        ({"kind": "User"}, "UnmatchedPrincipalType"),
        (
            {"role": "99999999-9999-4999-8999-999999999999"},
            "RoleDefinitionDoesNotExist",
        ),
    ],
)
def test_what_is_not_there_is_not_assigned(
    client: Any, change: dict[str, str], code: str
) -> None:
    with pytest.raises(HttpResponseError) as refused:
        assign(client, **change)
    assert code_of(refused) == code


def test_assignments_are_found_above_and_below_a_scope(client: Any) -> None:
    made = assign(client)
    person = assign(client, principal=person_id(1), kind="User", scope=HERE)
    at = [
        row.id
        for row in client.role_assignments.list_for_scope(REGISTRY, filter="atScope()")
    ]
    assert {made.id, person.id} < set(at)
    above = [
        row.id
        for row in client.role_assignments.list_for_scope(HERE, filter="atScope()")
    ]
    assert person.id in above
    assert made.id not in above
    theirs = list(
        client.role_assignments.list_for_scope(
            HERE, filter=f"principalId eq '{group_id(1)}'"
        )
    )
    assert [row.id for row in theirs] == [made.id]


def test_an_assignment_is_withdrawn(client: Any) -> None:
    made = assign(client)
    assert client.role_assignments.delete(REGISTRY, made.name).id == made.id
    assert client.role_assignments.delete(REGISTRY, made.name) is None
    with pytest.raises(ResourceNotFoundError):
        client.role_assignments.get(REGISTRY, made.name)


def test_roles_are_found_by_their_name(azure: Running, client: Any) -> None:
    token = {"Authorization": f"Bearer {azure.azure.admin_secret}"}
    at = f"{HERE}/providers/Microsoft.Authorization/roleDefinitions"
    with azure.http() as http:
        asked = {"api-version": "2022-04-01", "$filter": "roleName eq 'AcrPull'"}
        rows = http.get(at, params=asked, headers=token).json()["value"]
    assert [row["name"] for row in rows] == [PULL]


def test_the_portals_application_may_do_what_its_role_says(azure: Running) -> None:
    with azure.http() as http:
        token = (
            azure.credential().get_token("https://management.azure.com/.default").token
        )
        answer = http.get(
            f"{HERE}/providers/Microsoft.Authorization/permissions",
            params={"api-version": "2022-04-01"},
            headers={"Authorization": f"Bearer {token}"},
        )
    rows = answer.json()["value"]
    assert [tuple(row["actions"]) for row in rows] == [azure.azure.spec.role_actions]


def test_who_has_no_role_may_do_nothing(azure: Running, client: Any) -> None:
    own = client.role_assignments.list_for_scope(
        HERE, filter=f"principalId eq '{AZURE_PRINCIPAL_ID}'"
    )
    held = list(own)
    assert [row.role_definition_id.rpartition("/")[2] for row in held] == [ROLE_ID]
    client.role_assignments.delete_by_id(held[0].id)
    with pytest.raises(HttpResponseError) as refused:
        list(azure.client(ComputeManagementClient).usage.list("eastus"))
    assert (refused.value.status_code, code_of(refused)) == (403, "AuthorizationFailed")
    assert "'Microsoft.Compute/locations/usages/read'" in str(refused.value)
    assert azure.azure.spec.client_id in str(refused.value)


def test_registries_say_how_roles_are_given(azure: Running) -> None:
    registries = azure.client(ContainerRegistryManagementClient).registries
    modes = {
        one.name: str(one.properties.role_assignment_mode.value)
        for one in registries.list()
    }
    assert modes == {
        "gpuplatform": "LegacyRegistryPermissions",
        "gpuplatformabac": "AbacRepositoryPermissions",
    }
    one = registries.get(GROUP, "GpuPlatform")
    assert (one.properties.login_server, one.location) == (
        "gpuplatform.azurecr.io",
        "eastus",
    )
    assert [each.name for each in registries.list_by_resource_group(GROUP)] == sorted(
        modes
    )
    with pytest.raises(ResourceNotFoundError):
        registries.get(GROUP, "nothing")
