"""Reading people and groups over TLS, with everything that can go wrong on the way."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import PermanentError, TemporaryError
from connectors.graph import (
    GRAPH_SCOPE,
    Absence,
    Graph,
    Group,
    Person,
    _absence,
    _is_out,
    _person,
)
from sandbox.world import (
    ARCHIVES,
    CLIENT_ID,
    TENANT_ID,
    archive_id,
    group_id,
    person_id,
)
from tests.sandbox.entra.running import Running, running

ADA, BEN, CHLOE, PRIYA, ELENA = (person_id(number) for number in (1, 2, 3, 4, 6))
NOOR, TOM = person_id(9), person_id(10)
NOBODY = "99999999-9999-4999-8999-999999999999"
# The sandbox's presence goes by the clock on the wall.
NOW, HOUR = datetime.now(UTC).replace(microsecond=0), timedelta(hours=1)


@pytest.fixture
def graph(world: Running) -> Graph:
    entra = world.entra()
    return Graph(
        lambda: entra.app_token(GRAPH_SCOPE),
        world.graph_url,
        str(world.ca),
        lambda: entra.app_token(GRAPH_SCOPE, fresh=True),
    )


@pytest.fixture(scope="module")
def small_pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("pages"), page_size=2) as server:
        yield server


def test_groups_of_a_person_include_nested_ones(graph: Graph) -> None:
    assert graph.groups_of(BEN) == {group_id(number) for number in (1, 7, 8, 9, 11)}


def test_an_overage_is_answered_in_full(graph: Graph) -> None:
    assert len(graph.groups_of(NOOR)) == ARCHIVES + 1


def test_nobody_is_not_taken_for_somebody_in_no_group(graph: Graph) -> None:
    with pytest.raises(PermanentError) as refused:
        graph.groups_of(NOBODY)
    assert refused.value.code == "not_found"


def test_the_tenant_says_which_it_is(graph: Graph) -> None:
    assert graph.tenant_ids() == frozenset({TENANT_ID})


def test_it_sees_removal_from_a_group_at_once(world: Running, graph: Graph) -> None:
    assert group_id(8) in graph.groups_of(BEN)
    world.admin("DELETE", f"/v1.0/groups/{group_id(8)}/members/{BEN}/$ref")
    assert graph.groups_of(BEN).isdisjoint({group_id(7), group_id(8)})
    world.admin(
        "POST", f"/v1.0/groups/{group_id(7)}/members/$ref", **{"@odata.id": f"x/{BEN}"}
    )
    assert group_id(7) in graph.groups_of(BEN)


@pytest.mark.parametrize(
    ("groups", "answer"),
    [
        ([group_id(7)], True),
        ([group_id(3)], False),
        ([], False),
        ([NOBODY, group_id(9)], True),
        ([*(archive_id(number) for number in range(1, 60)), group_id(8)], True),
    ],
)
def test_is_member_knows_nested_groups_and_many(
    graph: Graph, groups: list[str], answer: bool
) -> None:
    assert graph.is_member(BEN, groups) is answer


def test_nobody_is_no_member(graph: Graph) -> None:
    assert not graph.is_member(NOBODY, [group_id(1)])


def test_it_finds_groups_by_the_start_of_a_word(graph: Graph) -> None:
    assert graph.find_groups("visi") == [
        Group(group_id(1), "vision-team", "Computer vision")
    ]
    assert [group.name for group in graph.find_groups("Robotics")] == [
        "robotics-interns",
        "robotics-team",
    ]
    assert len(graph.find_groups("team", limit=3)) == 3


@pytest.mark.parametrize(
    "text",
    ["", "  ", "zzz", 'a"b', "\\", '" OR displayName:"x', "a&$top=0", "{{", "é\r\n"],
)
def test_odd_searches_find_nothing_and_break_nothing(graph: Graph, text: str) -> None:
    assert graph.find_groups(text) == []


def test_it_reads_a_group(graph: Graph) -> None:
    assert graph.group(group_id(2)) == Group(
        group_id(2), "nlp-team", "Natural language processing"
    )
    assert graph.group(NOBODY) is None


@pytest.mark.parametrize("oid", ["x", "..", "a/b", "%2e%2e"])
def test_a_group_id_cannot_reach_another_address(graph: Graph, oid: str) -> None:
    try:
        assert graph.group(oid) is None
    except PermanentError as error:
        assert error.code == "bad_request"  # noqa: PT017


def test_it_reads_a_person_blocked_or_not(graph: Graph) -> None:
    assert graph.person(ADA) == Person(ADA, "Ada Okafor", "ada@example.com", True)
    assert graph.person(TOM) == Person(TOM, "Tom Baker", "tom@example.com", False)
    assert graph.person(NOBODY) is None


def test_it_sees_an_account_that_was_blocked(world: Running, graph: Graph) -> None:
    world.admin("PATCH", f"/v1.0/users/{ADA}", accountEnabled=False)
    person = graph.person(ADA)
    assert person is not None
    assert not person.enabled


def test_members_include_those_of_nested_groups_and_the_blocked(graph: Graph) -> None:
    assert [person.oid for person in graph.members(group_id(7))] == [ADA, BEN]
    assert {person.oid: person.enabled for person in graph.members(group_id(1))}[
        TOM
    ] is False
    assert list(graph.members(NOBODY)) == []


def test_app_roles_are_told_by_the_value_that_a_token_has(
    world: Running, graph: Graph
) -> None:
    world.sandbox.directory.assign(group_id(1), "Auditor")
    world.sandbox.directory.assign(PRIYA, "Auditor")
    found = graph.app_roles(CLIENT_ID)
    seen = [sorted(found[oid]) for oid in (ADA, group_id(1), PRIYA)]
    assert seen == [["DataScientist"], ["Auditor"], ["Auditor", "PlatformLead"]]
    assert not {person_id(5), group_id(4)} & set(found)


def test_app_roles_come_page_by_page(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = graph.app_roles(CLIENT_ID)
    monkeypatch.setattr("connectors.graph.LARGEST_PAGE", 2)
    assert graph.app_roles(CLIENT_ID) == whole
    assert len(whole) == 9


@pytest.mark.parametrize("app", [NOBODY, "x", "', or", "../users"])
def test_an_application_that_is_not_there_is_no_application_without_assignments(
    graph: Graph, app: str
) -> None:
    with pytest.raises(PermanentError) as failed:
        graph.app_roles(app)
    assert failed.value.code == "not_found"


def test_app_roles_need_the_permission_to_read_applications(world: Running) -> None:
    token = world.token(
        kind="graph", claims={"roles": ["User.Read.All", "GroupMember.Read.All"]}
    )
    with pytest.raises(PermanentError) as failed:
        Graph(lambda: token, world.graph_url, str(world.ca)).app_roles(CLIENT_ID)
    assert failed.value.code == "forbidden"


def test_members_come_page_by_page(small_pages: Running) -> None:
    token = small_pages.token(kind="graph")
    asked = Graph(lambda: token, small_pages.graph_url, str(small_pages.ca))
    # The client asks for pages of a hundred; the server's own size shows without $top.
    link = f"/groups/{group_id(1)}/transitiveMembers/microsoft.graph.user"
    headers = {"Authorization": f"Bearer {token}"}
    with small_pages.client() as client:
        first = client.get(f"/v1.0{link}", headers=headers).json()
        second = client.get(first["@odata.nextLink"], headers=headers).json()
    assert [len(first["value"]), len(second["value"])] == [2, 2]
    assert "@odata.nextLink" not in second
    assert [row["id"] for row in first["value"] + second["value"]] == [
        p.oid for p in asked.members(group_id(1))
    ]


def test_members_follow_every_page(
    world: Running, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.graph.PAGE", 1)
    assert [person.oid for person in graph.members(group_id(9))] == [ADA, BEN, CHLOE]


def test_the_manager_chain_goes_to_the_top(graph: Graph) -> None:
    chain = graph.manager_chain(ADA) or []
    assert [person.oid for person in chain] == [CHLOE, PRIYA, ELENA]
    assert chain[0].email == "chloe@example.com"
    assert graph.manager_chain(ELENA) == []
    assert graph.manager_chain(NOBODY) is None


@pytest.mark.parametrize(
    ("mail", "sign_in_name", "address"),
    [
        ("ada@example.com", "a123@example.com", "ada@example.com"),
        (None, "a123@example.com", "a123@example.com"),
        (None, "ada_partner.example#EXT#@example.onmicrosoft.com", ""),
        ("no address", "a123", ""),
        ("x\r\nBcc: y@example.com", None, ""),
        (f"ada@{'x' * 250}.com", "ada@example.com", "ada@example.com"),
        (None, None, ""),
    ],
)
def test_mail_reaches_somebody_at_their_mail_or_at_a_sign_in_name_that_is_an_address(
    mail: str | None, sign_in_name: str | None, address: str
) -> None:
    assert (
        _person({"id": ADA, "mail": mail, "userPrincipalName": sign_in_name}).email
        == address
    )


def set_away(
    world: Running,
    person: str,
    *,
    since: timedelta | None = None,
    until: timedelta | None = None,
) -> None:
    """Somebody's automatic replies, always on unless a start or an end from now is given."""
    setting: dict[str, Any] = {
        "status": "scheduled" if since or until else "alwaysEnabled"
    }
    for name, delta in (
        ("scheduledStartDateTime", since),
        ("scheduledEndDateTime", until),
    ):
        at = NOW + (delta or timedelta(0))
        setting[name] = {
            "dateTime": f"{at:%Y-%m-%dT%H:%M:%S}.0000000",
            "timeZone": "UTC",
        }
    world.admin(
        "PATCH",
        f"/v1.0/users/{person}/mailboxSettings",
        automaticRepliesSetting=setting,
    )


def test_who_is_out_of_office_is_known_with_the_end(
    world: Running, graph: Graph
) -> None:
    set_away(world, BEN)
    set_away(world, CHLOE, since=-HOUR, until=3 * HOUR)
    set_away(world, PRIYA, since=HOUR, until=3 * HOUR)
    found = graph.away([ADA, BEN, CHLOE, PRIYA, BEN], now=NOW)
    assert found == {
        ADA: Absence(False),
        BEN: Absence(True),
        CHLOE: Absence(True, NOW + 3 * HOUR),
        PRIYA: Absence(False),
    }


def test_nobody_is_not_known_about(graph: Graph) -> None:
    assert graph.away([NOBODY], now=NOW) == {}
    assert graph.away([], now=NOW) == {}


def test_without_presence_the_mailboxes_tell(world: Running, graph: Graph) -> None:
    world.admin("POST", "/sandbox/faults", path="getPresencesByUserId", status=403)
    set_away(world, BEN, since=-HOUR, until=HOUR)
    set_away(world, CHLOE, since=HOUR, until=2 * HOUR)
    set_away(world, PRIYA)
    assert graph.away([ADA, BEN, CHLOE, PRIYA], now=NOW) == {
        ADA: Absence(False),
        BEN: Absence(True, NOW + HOUR),
        CHLOE: Absence(False),
        PRIYA: Absence(True),
    }
    assert graph.away([CHLOE], now=NOW + HOUR) == {CHLOE: Absence(True, NOW + 2 * HOUR)}
    assert graph.away([CHLOE], now=NOW + 2 * HOUR) == {CHLOE: Absence(False)}


def test_without_mailboxes_presence_tells_and_one_refusal_is_enough(
    world: Running, graph: Graph
) -> None:
    for person in (BEN, CHLOE):
        set_away(world, person, since=-HOUR, until=HOUR)
    # A second question to a mailbox would be answered, and the end would show.
    world.admin("POST", "/sandbox/faults", path="mailboxSettings", status=403, times=1)
    assert graph.away([ADA, BEN, CHLOE], now=NOW) == {
        ADA: Absence(False),
        BEN: Absence(True),
        CHLOE: Absence(True),
    }


def test_without_any_permission_nothing_is_known_and_nothing_fails(
    world: Running, graph: Graph
) -> None:
    set_away(world, BEN)
    world.admin(
        "POST",
        "/sandbox/faults",
        path="getPresencesByUserId|mailboxSettings",
        status=403,
    )
    assert graph.away([ADA, BEN], now=NOW) == {}


def test_the_permission_itself_is_asked_for(world: Running) -> None:
    token = world.token(kind="graph", claims={"roles": ["User.Read.All"]})
    assert (
        Graph(lambda: token, world.graph_url, str(world.ca)).away([ADA], now=NOW) == {}
    )


def test_absences_are_worth_another_try_when_graph_is_busy(
    world: Running, graph: Graph
) -> None:
    world.admin(
        "POST",
        "/sandbox/faults",
        path="getPresencesByUserId",
        status=429,
        retry_after=3,
    )
    with pytest.raises(TemporaryError) as failed:
        graph.away([ADA], now=NOW)
    assert failed.value.retry_after == 3


def test_many_are_asked_about_in_several_calls(
    world: Running, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.graph.MOST_PRESENCES", 2)
    assert set(graph.away([ADA, BEN, CHLOE, PRIYA, ELENA], now=NOW)) == {
        ADA,
        BEN,
        CHLOE,
        PRIYA,
        ELENA,
    }


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ({"availability": "Away", "activity": "Away"}, False),
        ({"availability": "outOfOffice", "activity": "outOfOffice"}, True),
        (
            {
                "availability": "Offline",
                "activity": "OutOfOffice",
                "outOfOfficeSettings": None,
            },
            True,
        ),
        (
            {
                "availability": "Busy",
                "activity": "InAMeeting",
                "outOfOfficeSettings": {"isOutOfOffice": True},
            },
            True,
        ),
        ({"availability": "PresenceUnknown", "activity": "PresenceUnknown"}, None),
        (
            {
                "availability": "presenceUnknown",
                "outOfOfficeSettings": {"isOutOfOffice": True},
            },
            True,
        ),
    ],
)
def test_presence_is_read_in_both_spellings(
    row: dict[str, Any], answer: bool | None
) -> None:
    assert _is_out(row) is answer


@pytest.mark.parametrize(
    ("end", "until"),
    [
        (
            {"dateTime": "2026-11-28T18:00:00.0000000", "timeZone": "UTC"},
            datetime(2026, 11, 28, 18, tzinfo=UTC),
        ),
        (
            {"dateTime": "2026-11-28T18:00:00", "timeZone": "Europe/Berlin"},
            datetime(2026, 11, 28, 17, tzinfo=UTC),
        ),
        (
            {"dateTime": "2026-11-28T18:00:00", "timeZone": "Pacific Standard Time"},
            None,
        ),
        ({"dateTime": "soon", "timeZone": "UTC"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_an_end_that_cannot_be_read_is_no_end(
    end: object, until: datetime | None
) -> None:
    row = {"status": "scheduled", "scheduledEndDateTime": end}
    assert _absence(row, now=datetime(2026, 11, 20, tzinfo=UTC)) == Absence(True, until)


@pytest.mark.parametrize(
    ("status", "retry_after"), [(429, 17), (503, 2), (500, None), (504, None)]
)
def test_failures_that_pass_say_when_to_come_back(
    world: Running, graph: Graph, status: int, retry_after: int | None
) -> None:
    world.admin(
        "POST",
        "/sandbox/faults",
        path="^/v1.0/",
        status=status,
        retry_after=retry_after,
    )
    with pytest.raises(TemporaryError, match=str(status)) as failed:
        graph.groups_of(ADA)
    assert failed.value.retry_after == retry_after


def test_a_refusal_is_permanent(world: Running) -> None:
    token = world.token(kind="graph", claims={"roles": ["Presence.Read.All"]})
    with pytest.raises(PermanentError, match="Insufficient privileges") as refused:
        Graph(lambda: token, world.graph_url, str(world.ca)).person(ADA)
    assert refused.value.code == "forbidden"


def test_an_old_token_is_renewed_once(world: Running) -> None:
    asked: list[str] = []

    def renew() -> str:
        asked.append("again")
        return world.token(kind="graph")

    old = world.token(kind="graph", claims={"exp": 1})
    graph = Graph(lambda: old, world.graph_url, str(world.ca), renew)
    assert graph.person(ADA)
    assert asked == ["again"]


def test_a_token_that_stays_refused_is_permanent(world: Running) -> None:
    old = world.token(kind="graph", claims={"exp": 1})
    with pytest.raises(PermanentError, match="expired") as refused:
        Graph(lambda: old, world.graph_url, str(world.ca)).person(ADA)
    assert refused.value.code == "unauthorized"


def test_silence_ends_at_the_deadline(
    world: Running, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.person(ADA)
    monkeypatch.setattr("connectors.graph.TIMEOUT", (1.0, 0.2))
    world.admin("POST", "/sandbox/faults", path="^/v1.0/", hang=True)
    with pytest.raises(TemporaryError, match="ReadTimeout"):
        graph.person(ADA)


def test_an_unreachable_graph_is_worth_another_try(world: Running) -> None:
    with pytest.raises(TemporaryError, match="ConnectionError"):
        Graph(lambda: "x", "https://localhost:1/v1.0", str(world.ca)).person(ADA)


def test_the_environments_ca_bundle_and_proxy_do_not_disturb(
    world: Running, graph: Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert graph.person(ADA)


def test_a_next_page_elsewhere_gets_no_token(graph: Graph) -> None:
    with pytest.raises(PermanentError, match="another server"):
        graph._within("https://evil.example/v1.0/groups")
