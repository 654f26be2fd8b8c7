"""Graph's own shapes: selections, searches, refusals."""

import json
from typing import Any

import httpx
import pytest

from sandbox.world import group_id, person_id
from tests.sandbox.entra.running import Running

ADA = person_id(1)
EVENTUAL = {"ConsistencyLevel": "eventual"}


def get(
    world: Running,
    path: str,
    query: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    """Call Graph as the application."""
    with world.client() as client:
        known = {"Authorization": f"Bearer {world.token(kind='graph')}"}
        return client.get(f"/v1.0{path}", headers=known | (headers or {}), params=query)


def error_of(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal, whose shape is checked."""
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) == {"code", "message", "innerError"}
    return answer.status_code, error["code"]


def test_select_gives_what_was_asked_for(world: Running) -> None:
    row = get(world, f"/users/{ADA}", {"$select": "displayName,accountEnabled"}).json()
    row.pop("@odata.context")
    assert row == {"id": ADA, "displayName": "Ada Okafor", "accountEnabled": True}


def test_a_person_is_found_by_principal_name(world: Running) -> None:
    assert get(world, "/users/ada@example.com").json()["id"] == ADA


def test_the_manager_of_the_top_is_missing(world: Running) -> None:
    assert (
        get(world, f"/users/{ADA}/manager").json()["displayName"] == "Chloe Lindqvist"
    )
    assert error_of(get(world, f"/users/{person_id(6)}/manager")) == (
        404,
        "Request_ResourceNotFound",
    )


def test_levels_cut_the_chain(world: Running) -> None:
    row = get(
        world, f"/users/{ADA}", {"$expand": "manager($levels=2;$select=id)"}, EVENTUAL
    ).json()
    assert row["manager"]["manager"]["id"] == person_id(4)
    assert "manager" not in row["manager"]["manager"]


def test_search_needs_the_consistency_header(world: Running) -> None:
    query = {"$search": '"displayName:vision"'}
    assert error_of(get(world, "/groups", query)) == (400, "Request_UnsupportedQuery")
    assert [
        row["id"] for row in get(world, "/groups", query, EVENTUAL).json()["value"]
    ] == [group_id(1)]


def test_people_are_searched_and_filtered(world: Running) -> None:
    found = get(world, "/users", {"$search": '"mail:noor"'}, EVENTUAL).json()["value"]
    assert [row["displayName"] for row in found] == ["Noor Haddad"]
    found = get(world, "/users", {"$filter": "startswith(displayName,'Ma')"}).json()[
        "value"
    ]
    assert [row["displayName"] for row in found] == ["Marcus Weber", "Mallory Finch"]
    found = get(world, "/users", {"$filter": "mail eq 'ben@example.com'"}).json()[
        "value"
    ]
    assert [row["displayName"] for row in found] == ["Ben Ruiz"]


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("/users/nobody", {}, (404, "Request_ResourceNotFound")),
        ("/groups/x", {}, (400, "Request_BadRequest")),
        ("/groups", {"$filter": "1 eq 1; drop"}, (400, "BadRequest")),
        ("/groups", {"$top": "0"}, (400, "Request_UnsupportedQuery")),
        ("/groups", {"$top": "many"}, (400, "BadRequest")),
        ("/groups", {"$skiptoken": "%%"}, (400, "BadRequest")),
        (
            f"/users/{ADA}",
            {"$expand": "manager($levels=max)"},
            (400, "Request_UnsupportedQuery"),
        ),
        ("/nothing", {}, (404, "BadRequest")),
    ],
)
def test_refusals_have_graphs_shape(
    world: Running, path: str, query: dict[str, str], expected: tuple[int, str]
) -> None:
    assert error_of(get(world, path, query)) == expected


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer x.y.z", "Basic eDp5"])
def test_without_a_good_token_nothing_is_told(world: Running, header: str) -> None:
    with world.client() as client:
        answer = client.get("/v1.0/groups", headers={"Authorization": header})
    assert error_of(answer) == (401, "InvalidAuthenticationToken")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_persons_own_token_does_not_read_the_directory(world: Running) -> None:
    with world.client() as client:
        token = world.token(kind="graph", person=ADA)
        answer = client.get(
            "/v1.0/groups", headers={"Authorization": f"Bearer {token}"}
        )
    assert error_of(answer) == (403, "Authorization_RequestDenied")


def test_an_application_cannot_change_the_directory(world: Running) -> None:
    headers = {"Authorization": f"Bearer {world.token(kind='graph')}"}
    with world.client() as client:
        answer = client.patch(
            f"/v1.0/users/{ADA}", headers=headers, json={"accountEnabled": False}
        )
    assert error_of(answer) == (403, "Authorization_RequestDenied")


def test_at_most_twenty_groups_are_checked_at_once(world: Running) -> None:
    headers = {"Authorization": f"Bearer {world.token(kind='graph')}"}
    with world.client() as client:
        path = f"/v1.0/users/{ADA}/checkMemberGroups"
        answer = client.post(
            path, headers=headers, json={"groupIds": [group_id(1)] * 21}
        )
    assert error_of(answer) == (400, "Request_BadRequest")


def test_everybody_is_at_work(world: Running) -> None:
    assert (
        get(world, f"/users/{ADA}/presence").json()["outOfOfficeSettings"][
            "isOutOfOffice"
        ]
        is False
    )


def test_presence_and_automatic_replies_have_graphs_shape(world: Running) -> None:
    world.admin(
        "POST",
        "/sandbox/away",
        person="ada@example.com",
        until="2099-11-28T18:00:00+01:00",
    )
    presence = get(world, f"/users/{ADA}/presence").json()
    assert {
        "id",
        "availability",
        "activity",
        "outOfOfficeSettings",
        "statusMessage",
    } < set(presence)
    assert (presence["activity"], presence["outOfOfficeSettings"]["isOutOfOffice"]) == (
        "OutOfOffice",
        True,
    )
    reply = get(world, f"/users/{ADA}/mailboxSettings/automaticRepliesSetting").json()
    end = {"dateTime": "2099-11-28T17:00:00.0000000", "timeZone": "UTC"}
    assert (reply["status"], reply["scheduledEndDateTime"]) == ("scheduled", end)
    world.admin("POST", "/sandbox/away", person=ADA)
    assert (
        get(world, f"/users/{ADA}/mailboxSettings/automaticRepliesSetting").json()[
            "status"
        ]
        == "alwaysEnabled"
    )
    world.admin("POST", "/sandbox/away", person=ADA, back=True)
    assert (
        get(world, f"/users/{ADA}/mailboxSettings/automaticRepliesSetting").json()[
            "status"
        ]
        == "disabled"
    )


@pytest.mark.parametrize("ids", [[], ["x"], [ADA] * 651, ADA, None])
def test_presences_are_asked_for_by_up_to_650_ids(world: Running, ids: object) -> None:
    headers = {"Authorization": f"Bearer {world.token(kind='graph')}"}
    with world.client() as client:
        answer = client.post(
            "/v1.0/communications/getPresencesByUserId",
            headers=headers,
            json={"ids": ids},
        )
    assert error_of(answer) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ({"status": "sometimes"}, (400, "BadRequest")),
        ({"status": "scheduled"}, (400, "BadRequest")),
        (None, (400, "BadRequest")),
    ],
)
def test_automatic_replies_that_cannot_be_are_refused(
    world: Running, setting: object, expected: tuple[int, str]
) -> None:
    headers = {"Authorization": f"Bearer {world.sandbox.admin_secret}"}
    with world.client() as client:
        path = f"/v1.0/users/{ADA}/mailboxSettings"
        answer = client.patch(
            path, headers=headers, json={"automaticRepliesSetting": setting}
        )
    assert error_of(answer) == expected


def test_who_is_away_is_still_away_after_a_restart(world: Running) -> None:
    world.admin("POST", "/sandbox/away", person=ADA, until="2099-11-28T18:00:00+00:00")
    state = json.loads(json.dumps(world.sandbox.snapshot()))
    world.admin("POST", "/sandbox/away", person=ADA, back=True)
    assert not world.sandbox.directory.is_away(ADA)
    world.sandbox.restore(state)
    assert world.sandbox.directory.is_away(ADA)


def test_changes_make_the_state_worth_saving(world: Running) -> None:
    def dirty() -> bool:
        return world.sandbox.dirty

    world.sandbox.snapshot()
    assert not dirty()
    world.admin("PATCH", f"/v1.0/users/{ADA}", accountEnabled=False)
    assert dirty()
    assert world.sandbox.snapshot()["enabled"][ADA] is False
