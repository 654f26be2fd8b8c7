"""Roles as the portal gives and withdraws them, what it may do itself, and registries."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from capacity.registry.reconcile import OURS
from connectors.azure.authorization import (
    ACR_PULL,
    OPENAI_USER,
    REPOSITORY_WRITER,
    AzureAuthorization,
    assignment_name,
    of_repositories,
)
from connectors.azure.cognitive_services import AzureCognitiveServices
from connectors.azure.compute import AzureCompute
from connectors.azure.container_registry import AzureContainerRegistry
from connectors.azure.container_service import AzureContainerService, NewPool
from connectors.azure.quota import AzureQuota
from connectors.azure.rights import NEEDED, Permission, missing
from connectors.errors import AnswerLost, PermanentError
from sandbox.azure_world import AZURE_PRINCIPAL_ID, ROLE_ACTIONS, ROLE_ID
from sandbox.world import group_id, person_id
from tests.sandbox.azure.running import GROUP, HERE, INSIDE, Running

REGISTRY = f"{INSIDE}/Microsoft.ContainerRegistry/registries/gpuplatform"
ROLE = Path(__file__).parents[2] / "deploy" / "azure" / "role.json"
NOBODY = "99999999-9999-4999-8999-999999999999"


@pytest.fixture
def roles(azure: Running) -> AzureAuthorization:
    return AzureAuthorization(azure.session())


def test_a_role_is_given_once(roles: AzureAuthorization) -> None:
    made = roles.assign(REGISTRY, ACR_PULL, group_id(1))
    assert (made.scope, made.role, made.principal, made.kind) == (
        REGISTRY,
        ACR_PULL,
        group_id(1),
        "Group",
    )
    assert roles.assign(REGISTRY, ACR_PULL, group_id(1)) == made
    assert roles.assign(REGISTRY + "/", ACR_PULL.upper(), group_id(1).upper()) == made
    assert [one for one in roles.assignments(REGISTRY) if one.role == ACR_PULL] == [
        made
    ]


def test_whoever_gave_it_before_it_is_given(
    azure: Running, roles: AzureAuthorization
) -> None:
    made = roles.assign(REGISTRY, ACR_PULL, group_id(1))
    row = azure.azure.state.get(made.id)
    assert row is not None
    azure.azure.state.remove(made.id)
    other = made.id.rpartition("/")[0] + "/00000000-0000-4000-8000-00000000000a"
    azure.azure.state.put({**row, "id": other, "name": other.rpartition("/")[2]})
    assert roles.assign(REGISTRY, ACR_PULL, group_id(1)).id == other
    roles.withdraw(REGISTRY, ACR_PULL, group_id(1))
    assert roles.assignments(REGISTRY, group_id(1)) == []


def test_a_lost_answer_gives_no_second_role(
    azure: Running, roles: AzureAuthorization
) -> None:
    azure.fault("PUT", "roleAssignments", drop=True)
    with pytest.raises(AnswerLost):
        roles.assign(REGISTRY, ACR_PULL, group_id(1))
    roles.assign(REGISTRY, ACR_PULL, group_id(1))
    assert len(roles.assignments(REGISTRY, group_id(1))) == 1


def test_a_role_is_withdrawn_where_it_was_given(roles: AzureAuthorization) -> None:
    roles.assign(HERE, ACR_PULL, group_id(1))
    roles.assign(REGISTRY, ACR_PULL, group_id(1))
    assert len(roles.assignments(REGISTRY, group_id(1))) == 2
    roles.withdraw(REGISTRY, ACR_PULL, group_id(1))
    roles.withdraw(REGISTRY, ACR_PULL, group_id(1))
    assert [one.scope for one in roles.assignments(REGISTRY, group_id(1))] == [HERE]


def test_what_is_given_below_a_scope_does_not_hold_there(
    roles: AzureAuthorization,
) -> None:
    roles.assign(REGISTRY, ACR_PULL, group_id(1))
    assert roles.assignments(HERE, group_id(1)) == []
    assert {one.role for one in roles.assignments(HERE)} == {ROLE_ID}


def test_people_and_programs_have_roles_too(roles: AzureAuthorization) -> None:
    assert roles.assign(REGISTRY, ACR_PULL, person_id(1), "User").kind == "User"
    assert (
        roles.assign(REGISTRY, ACR_PULL, AZURE_PRINCIPAL_ID, "ServicePrincipal").kind
        == "ServicePrincipal"
    )


@pytest.mark.parametrize(
    ("principal", "kind", "code"),
    [
        (NOBODY, "Group", "principal_not_found"),
        (group_id(1), "User", "principal_not_found"),
        ("ada@example.com", "User", "bad_name"),
        ("' or 1 eq 1", "User", "bad_name"),
    ],
)
def test_who_is_not_there_gets_none(
    roles: AzureAuthorization, principal: str, kind: Any, code: str
) -> None:
    with pytest.raises(PermanentError) as refused:
        roles.assign(REGISTRY, ACR_PULL, principal, kind)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "scope",
    ["", "/", "https://example.com", f"{HERE}/../x", f"{HERE}?x=1", f"{HERE}/%2e"],
)
def test_a_scope_is_an_id(roles: AzureAuthorization, scope: str) -> None:
    for call in (
        lambda: roles.permissions(scope),
        lambda: roles.assignments(scope),
        lambda: roles.withdraw(scope, ACR_PULL, group_id(1)),
    ):
        with pytest.raises(PermanentError) as refused:
            call()
        assert refused.value.code == "bad_name"


def test_the_name_of_an_assignment_is_always_the_same() -> None:
    one = assignment_name(REGISTRY, ACR_PULL, group_id(1))
    assert one == assignment_name(
        REGISTRY.upper(), ACR_PULL.upper(), group_id(1).upper()
    )
    others = {
        assignment_name(HERE, ACR_PULL, group_id(1)),
        assignment_name(REGISTRY, OPENAI_USER, group_id(1)),
        assignment_name(REGISTRY, ACR_PULL, group_id(2)),
    }
    assert len(others | {one}) == 4


def test_a_role_may_hold_for_some_repositories(roles: AzureAuthorization) -> None:
    condition = of_repositories(["vision/", "shared/"])
    assert condition == (
        "((!(ActionMatches{'Microsoft.ContainerRegistry/registries/repositories/content/read'})"
        " AND !(ActionMatches{'Microsoft.ContainerRegistry/registries/repositories/metadata/read'})"
        " AND !(ActionMatches{'Microsoft.ContainerRegistry/registries/repositories/content/write'})"
        " AND !(ActionMatches{'Microsoft.ContainerRegistry/registries/repositories/metadata/write'}))"
        " OR (@Request[Microsoft.ContainerRegistry/registries/repositories:name] StringStartsWithIgnoreCase 'vision/'"
        " OR @Request[Microsoft.ContainerRegistry/registries/repositories:name] StringStartsWithIgnoreCase 'shared/'))"
    )
    made = roles.assign(REGISTRY, REPOSITORY_WRITER, group_id(1), condition=condition)
    assert made.condition == condition


@pytest.mark.parametrize("prefixes", [[], ["it's/"], ["a\nb"]])
def test_a_condition_is_not_broken_out_of(prefixes: list[str]) -> None:
    with pytest.raises(PermanentError) as refused:
        of_repositories(prefixes)
    assert refused.value.code == "bad_name"


def test_registries_say_how_roles_are_given(azure: Running) -> None:
    registries = AzureContainerRegistry(azure.session())
    found = {one.name: one for one in registries.registries()}
    assert {name: one.is_abac for name, one in found.items()} == {
        "gpuplatform": False,
        "gpuplatformabac": True,
    }
    assert registries.registry(GROUP, "GpuPlatform") == found["gpuplatform"]
    assert found["gpuplatform"].login_server == "gpuplatform.azurecr.io"
    assert (found["gpuplatform"].id, found["gpuplatform"].location) == (
        REGISTRY,
        "eastus",
    )
    assert registries.registry(GROUP, "nothing") is None
    with pytest.raises(PermanentError):
        registries.registry(GROUP, "a/b")


# What the portal may do


def everything(azure: Running) -> None:
    """Call each connector's every method once."""
    session = azure.session()
    compute, aks = AzureCompute(session), AzureContainerService(session)
    azure.pace(60)
    compute.sizes("eastus")
    compute.usages("eastus")
    compute.groups()
    group = compute.ensure_group(GROUP, "research", location="eastus", zones=["1"])
    operation = compute.begin_create_reservation(
        GROUP,
        "research",
        "t4",
        location="eastus",
        size="Standard_NC4as_T4_v3",
        capacity=1,
        zone="1",
    )
    azure.advance(61)
    session.poll(operation.token)
    azure.pace(0)
    compute.begin_resize_reservation(GROUP, "research", "t4", 2)
    compute.reservations(GROUP, "research")
    cluster = aks.clusters()[0].name
    pool = NewPool("Standard_NC4as_T4_v3", 1, zones=("1",), reservation_group=group.id)
    session.poll(aks.begin_create_pool(GROUP, cluster, "research", pool).token)
    aks.begin_scale_pool(GROUP, cluster, "research", count=0)
    aks.pools(GROUP, cluster)
    aks.begin_delete_pool(GROUP, cluster, "research")
    compute.begin_delete_reservation(GROUP, "research", "t4")
    compute.begin_delete_group(GROUP, "research")
    quota = AzureQuota(session)
    quota.limits("eastus")
    quota.request_increase("eastus", "Standard NCASv3_T4 Family", 600)
    roles = AzureAuthorization(session)
    roles.permissions(HERE)
    roles.assign(REGISTRY, ACR_PULL, group_id(1))
    roles.withdraw(REGISTRY, ACR_PULL, group_id(1))
    AzureContainerRegistry(session).registries()
    AzureContainerRegistry(session).registry(GROUP, "gpuplatform")
    endpoints(azure, AzureCognitiveServices(session))


def endpoints(azure: Running, openai: AzureCognitiveServices) -> None:
    """The same of Azure OpenAI."""
    poll = openai.session.poll
    openai.models("eastus")
    openai.usages("eastus")
    openai.left("eastus", "gpt-4o", "2024-08-06")
    azure.pace(60)
    steps: list[Any] = [
        lambda: openai.begin_create_account(GROUP, "research", location="eastus"),
        lambda: openai.begin_deploy(
            GROUP,
            "research",
            "chat",
            model="gpt-4o",
            version="2024-08-06",
            sku="Standard",
            capacity=1,
        ),
        lambda: openai.begin_delete_deployment(GROUP, "research", "chat"),
        lambda: openai.begin_delete_account(GROUP, "research"),
        lambda: openai.begin_purge_account(GROUP, "research", "eastus"),
    ]
    for step in steps:
        operation = step()
        assert not poll(operation.token).is_done
        openai.deleted_accounts()
        openai.accounts()
        openai.deployments(GROUP, "research")
        azure.advance(61)
        assert poll(operation.token).is_done
    assert (openai.accounts(), openai.deleted_accounts()) == ([], [])


def test_the_role_allows_exactly_what_the_connectors_do(azure: Running) -> None:
    everything(azure)
    role = json.loads(ROLE.read_text())
    assert role["Actions"] == sorted(azure.azure.asked)
    assert (role["NotActions"], role["DataActions"], role["NotDataActions"]) == (
        [],
        [],
        [],
    )


def test_what_is_needed_is_what_the_role_allows() -> None:
    role = json.loads(ROLE.read_text())
    needed = [action for actions in NEEDED.values() for action in actions]
    assert sorted(needed) == role["Actions"] == list(ROLE_ACTIONS)


def test_the_portal_gives_no_other_role() -> None:
    """The condition of its own assignment names those that it gives, and those alone."""
    condition = (ROLE.parent / "condition.txt").read_text()
    given = {*OURS, OPENAI_USER}
    lists = re.findall(r"GuidEquals \{(.*?)\}", condition)
    assert [set(each.split(", ")) for each in lists] == [given, given]
    assert condition.count("(") == condition.count(")")


def test_the_portal_knows_what_it_may_do(roles: AzureAuthorization) -> None:
    assert missing(roles.permissions(HERE)) == {}
    assert missing(roles.permissions(REGISTRY)) == {}


def test_the_missing_permission_is_named(
    azure: Running, roles: AzureAuthorization
) -> None:
    for row in list(azure.azure.state.all("Microsoft.Authorization/roleAssignments")):
        if row["properties"]["principalId"] == AZURE_PRINCIPAL_ID:
            reader = row["properties"]["roleDefinitionId"].replace(
                ROLE_ID, "acdd72a7-3385-48ef-bd42-f606fba81ae7"
            )
            azure.azure.state.put(
                {**row, "properties": {**row["properties"], "roleDefinitionId": reader}}
            )
    absent = missing(roles.permissions(HERE))
    assert absent["ask for more quota"] == ("Microsoft.Quota/quotas/write",)
    assert "read sizes, quota and what is used of it" not in absent
    assert (
        "Microsoft.Compute/capacityReservationGroups/write"
        in absent["reserve capacity"]
    )


@pytest.mark.parametrize(
    ("permissions", "is_allowed"),
    [
        ([], False),
        ([Permission(("*",))], True),
        ([Permission(("Microsoft.Compute/*",))], True),
        ([Permission(("microsoft.compute/SKUS/read",))], True),
        ([Permission(("*/read",))], True),
        ([Permission(("*/write",))], False),
        ([Permission(("Microsoft.Compute/sku*/read",))], True),
        ([Permission(("Microsoft.Compute/skus",))], False),
        ([Permission(("*",), ("Microsoft.Compute/*",))], False),
        # One role takes nothing from another.
        (
            [
                Permission(("*",), ("Microsoft.Compute/*",)),
                Permission(("Microsoft.Compute/skus/read",)),
            ],
            True,
        ),
        ([Permission(("Microsoft.Compute/skus/[r]ead",))], False),
    ],
)
def test_permissions_are_read_as_azure_reads_them(
    permissions: list[Permission], is_allowed: bool
) -> None:
    needed = {"read sizes": ("Microsoft.Compute/skus/read",)}
    assert (missing(permissions, needed) == {}) is is_allowed
