"""The application's app roles: Graph and the tokens say the same of who is assigned them."""

import jwt
import pytest

from sandbox.entra.tokens import SERVICE_PRINCIPAL
from sandbox.world import CLIENT_ID, group_id, person_id, role_id
from tests.sandbox.entra.running import Running
from tests.sandbox.entra.test_graph_answers import error_of, get
from tests.sandbox.entra.test_tokens import redeem

HERE = f"/servicePrincipals(appId='{CLIENT_ID}')"
ASSIGNED = f"/servicePrincipals/{SERVICE_PRINCIPAL}/appRoleAssignedTo"
BEN, ELENA = person_id(2), person_id(6)
LEADERSHIP, AUDITOR = role_id(4), role_id(5)


def in_token(world: Running, person: int) -> list[str]:
    """The app roles of a sign-in."""
    claims = jwt.decode(
        redeem(world, person).json()["id_token"], options={"verify_signature": False}
    )
    return list(claims.get("roles", ()))


def assigned(world: Running, principal: str) -> list[str]:
    rows = get(world, ASSIGNED).json()["value"]
    return [row["appRoleId"] for row in rows if row["principalId"] == principal]


def assign(world: Running, principal: str, role: str) -> str:
    body = {
        "principalId": principal,
        "resourceId": SERVICE_PRINCIPAL,
        "appRoleId": role,
    }
    return str(world.admin("POST", f"/v1.0{ASSIGNED}", **body).json()["id"])


def test_the_service_principal_names_its_roles(world: Running) -> None:
    row = get(world, HERE, {"$select": "id,appRoles"}).json()
    assert set(row) == {"@odata.context", "id", "appRoles"}
    assert row["id"] == SERVICE_PRINCIPAL
    assert set(row["appRoles"][0]) == {
        "allowedMemberTypes",
        "description",
        "displayName",
        "id",
        "isEnabled",
        "origin",
        "value",
    }
    assert {role["id"]: role["value"] for role in row["appRoles"]}[
        LEADERSHIP
    ] == "EngineeringLeadership"


def test_an_assignment_is_shaped_like_graphs(world: Running) -> None:
    (row,) = [
        row
        for row in get(world, f"{HERE}/appRoleAssignedTo").json()["value"]
        if row["principalId"] == ELENA
    ]
    assert len(row.pop("id")) == 43
    assert row == {
        "deletedDateTime": None,
        "appRoleId": LEADERSHIP,
        "createdDateTime": "2026-01-05T08:00:00Z",
        "principalDisplayName": "Elena Petrova",
        "principalId": ELENA,
        "principalType": "User",
        "resourceDisplayName": "Quartermaster",
        "resourceId": SERVICE_PRINCIPAL,
    }


def test_what_is_assigned_and_withdrawn_is_so_in_graph_and_in_the_next_token(
    world: Running,
) -> None:
    assert (in_token(world, 2), assigned(world, BEN)) == (
        ["DataScientist"],
        [role_id(1)],
    )
    made = assign(world, BEN, AUDITOR)
    assert (in_token(world, 2), assigned(world, BEN)) == (
        ["DataScientist", "Auditor"],
        [role_id(1), AUDITOR],
    )
    world.admin("DELETE", f"/v1.0{ASSIGNED}/{made}")
    assert (in_token(world, 2), assigned(world, BEN)) == (
        ["DataScientist"],
        [role_id(1)],
    )


def test_a_groups_role_is_in_the_tokens_of_its_direct_members_only(
    world: Running,
) -> None:
    robotics, interns = group_id(7), group_id(8)
    assign(world, robotics, AUDITOR)
    assert (in_token(world, 1), in_token(world, 2)) == (
        ["DataScientist", "Auditor"],
        ["DataScientist"],
    )
    assert assigned(world, robotics) == [AUDITOR]
    assert assigned(world, interns) == []


def test_assignments_come_page_by_page(world: Running) -> None:
    first = get(world, ASSIGNED, {"$top": "2"}).json()
    assert len(first["value"]) == 2
    rest = get(world, first["@odata.nextLink"].partition("/v1.0")[2]).json()
    assert not {row["id"] for row in rest["value"]} & {
        row["id"] for row in first["value"]
    }


def test_assignments_outlive_the_server(world: Running) -> None:
    directory = world.sandbox.directory
    directory.assign(BEN, "Auditor")
    saved = directory.snapshot()
    directory.withdraw(BEN, "Auditor")
    directory.restore(saved)
    assert directory.roles_of(BEN) == ["DataScientist", "Auditor"]
    directory.restore({key: value for key, value in saved.items() if key != "assigned"})
    assert directory.roles_of(BEN) == ["DataScientist", "Auditor"]


@pytest.mark.parametrize(
    "path",
    [
        "/servicePrincipals(appId='x')",
        f"/servicePrincipals/{CLIENT_ID}/appRoleAssignedTo",
    ],
)
def test_another_application_is_not_there(world: Running, path: str) -> None:
    assert error_of(get(world, path)) == (404, "Request_ResourceNotFound")


def test_only_the_administrator_assigns(world: Running) -> None:
    with world.client() as client:
        token = {"Authorization": f"Bearer {world.token(kind='graph')}"}
        answer = client.post(
            f"/v1.0{ASSIGNED}",
            headers=token,
            json={"principalId": BEN, "appRoleId": AUDITOR},
        )
    assert error_of(answer) == (403, "Authorization_RequestDenied")
