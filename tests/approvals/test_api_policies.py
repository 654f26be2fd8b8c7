"""The API of the policy: history, drafts with If-Match, the replay, two people, and YAML for Git."""

from dataclasses import fields, replace
from typing import Any

import pytest

from accounts.models import ApiToken
from accounts.roles import Role
from approvals.policy_desk import actions as policy_actions
from policy.document import Policy, Thresholds, read, to_json, write
from policy.models import PolicyDraft, PolicyVersion
from tests import factories
from tests.approvals.policies import WHY, drafted, in_force, usual
from tests.calling import Caller
from tests.scene import NOW, Scene

FIRST = Policy()
DRAFTS = "policy/drafts/"


def begun(caller: Caller, **numbers: Any) -> dict[str, Any]:
    """A draft made over the API."""
    answer = caller.post(DRAFTS, {"document": usual(**numbers), "reason": WHY})
    assert answer.status_code == 201, answer.content
    return dict(answer.json())


@pytest.mark.slow
def test_a_policy_is_drafted_changed_replayed_and_activated_by_two_people(
    scene: Scene,
) -> None:
    factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=4)
    author, second = Caller(scene.priya), Caller(scene.elena)
    draft = begun(author, automatic_gpus=3)
    address = f"{DRAFTS}{draft['id']}/"
    assert author.get(address).headers["ETag"] == '"1"'
    changed = author.send(
        "PATCH",
        address,
        {"document": usual(automatic_gpus=4)},
        key=None,
        **{"If-Match": '"1"'},
    )
    assert (changed.status_code, changed.headers["ETag"]) == (200, '"2"')
    assert second.get(f"{address}diff/").json() == {
        "base": 1,
        "differences": [
            {"place": "GPUs in one request", "before": "2 GPUs", "after": "4 GPUs"}
        ],
    }
    replay = second.post(f"{address}simulate/", {"days": 365}).json()
    assert replay["past"]["counts"] == [
        {
            "before": "people",
            "after": "automatic",
            "asks": 1,
            "usd": "288.00",
            "gpu_hours": "288.00",
        }
    ]
    assert (
        replay["past"]["differing"][0]["why"]
        == "4 GPUs: people decide above 2 → people decide above 4"
    )
    assert (replay["waiting"]["differs"], replay["warnings"]) == (1, [])
    done = second.post(f"{address}activate/", **{"If-Match": '"2"'})
    assert done.status_code == 200
    assert (done.json()["number"], done.json()["activated_by"]["name"]) == (
        2,
        "Elena Petrova",
    )
    assert author.get(address).json()["became"] == 2
    assert [
        each["number"] for each in author.get("policy/versions/").json()["results"]
    ] == [2, 1]
    assert author.get("policy/versions/1/").json()["proposed_by"] is None
    assert (
        Caller(scene.mallory)
        .get("policy/")
        .json()["document"]["thresholds"]["automatic_gpus"]
        == 4
    )


def test_an_author_activates_nothing_by_whichever_token(scene: Scene) -> None:
    draft = begun(Caller(scene.priya), automatic_gpus=4)
    for _ in range(2):  # each caller has a token of its own
        answer = Caller(scene.priya).post(
            f"{DRAFTS}{draft['id']}/activate/", **{"If-Match": '"1"'}
        )
        assert (answer.status_code, answer.json()["code"]) == (403, "same_person")
    assert PolicyVersion.objects.count() == 1


@pytest.mark.parametrize("scope", [ApiToken.Scope.READ, ApiToken.Scope.ASK])
def test_a_token_that_only_asks_or_reads_activates_nothing(
    scene: Scene, scope: str
) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    answer = Caller(scene.marcus, scope).post(
        f"{DRAFTS}{draft.pk}/activate/", **{"If-Match": '"1"'}
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


def test_a_change_says_which_version_it_saw(scene: Scene) -> None:
    draft, caller = drafted(scene.priya, automatic_gpus=4), Caller(scene.priya)
    address = f"{DRAFTS}{draft.pk}/"
    assert caller.patch(address, {"reason": "x"}).status_code == 428
    stale = caller.send(
        "PATCH", address, {"reason": "x"}, key=None, **{"If-Match": '"7"'}
    )
    assert (stale.status_code, stale.json()["code"]) == (412, "stale")
    assert Caller(scene.marcus).post(f"{address}activate/").status_code == 428


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        (
            {"document": {"thresholds": {"automatic_gpu": 1}}},
            ["/document/thresholds/automatic_gpu"],
        ),
        (
            {
                "document": {
                    "thresholds": {"automatic_gpus": "x"},
                    "routes": 1,
                    "more": 2,
                }
            },
            [
                "/document/thresholds/automatic_gpus",
                "/document/routes",
                "/document/more",
            ],
        ),
        (
            {"document": usual(automatic_gpus=9)},
            [
                "/document/thresholds/window_gpus_team",
                "/document/overrides/0/set/window_gpus_team",
            ],
        ),
        (
            {"document": {"thresholds": {"automatic_gpus": True}}},
            ["/document/thresholds/automatic_gpus"],
        ),
        (
            {"document": {"routes": [{"name": "a\0b", "steps": []}]}},
            ["/document/routes/0/name"],
        ),
        (
            {"document": {"routes": [{"name": "\ud800", "steps": []}]}},
            ["/document/routes/0/name"],
        ),
        ({"document": []}, ["/document"]),
        ({"yaml": "a: 1\na: 2"}, ["/yaml"]),
        ({"yaml": "x: &a [1]\ny: *a"}, ["/yaml"]),
        ({"yaml": "[" * 60_000}, ["/yaml"]),
        ({"yaml": 5}, ["/yaml"]),
        ({"yaml": "lapse_days: 7", "document": {}}, ["/yaml"]),
        ({"document": {}, "reason": "x" * 201}, ["/reason"]),
        ({"base": 9}, ["/base"]),
        ({"thresholds": {}}, ["/thresholds"]),
    ],
)
def test_what_is_no_policy_is_refused_with_a_pointer_to_each_place(
    scene: Scene, body: dict[str, Any], pointers: list[str]
) -> None:
    answer = Caller(scene.priya).post(DRAFTS, body)
    assert answer.status_code == 422, answer.content
    assert sorted(error["pointer"] for error in answer.json()["errors"]) == sorted(
        pointers
    )
    assert PolicyDraft.objects.count() == 0


def test_a_megabyte_is_not_even_read(scene: Scene) -> None:
    assert (
        Caller(scene.priya).post(DRAFTS, {"yaml": "a" * 1_000_000}).status_code == 413
    )
    assert (
        Caller(scene.priya)
        .send("PUT", "policy/yaml/", {"yaml": "a" * 1_000_000})
        .status_code
        == 413
    )


def test_yaml_goes_out_to_git_and_comes_in_as_a_draft(scene: Scene) -> None:
    in_force(scene, automatic_gpus=4)
    plain = Caller(scene.mallory).get("policy/yaml/", Accept="text/yaml")
    assert plain.headers["Content-Type"] == "text/yaml; charset=utf-8"
    as_json = Caller(scene.mallory).get("policy/yaml/").json()
    assert (as_json["number"], as_json["yaml"]) == (2, plain.content.decode())
    assert Caller(scene.mallory).get("policy/yaml/?version=1").status_code == 403
    assert (
        read(Caller(scene.priya).get("policy/yaml/?version=1").json()["yaml"]) == FIRST
    )
    assert Caller(scene.priya).get("policy/yaml/?version=9").status_code == 404
    text = write(replace(FIRST, lapse_days=7))
    made = Caller(scene.priya).send(
        "PUT", "policy/yaml/", {"yaml": text, "reason": WHY}
    )
    assert made.status_code == 201
    assert made.headers["Location"] == f"/api/v1/policy/drafts/{made.json()['id']}/"
    assert PolicyDraft.objects.get(pk=made.json()["id"]).policy.lapse_days == 7


def test_the_same_key_makes_one_draft(scene: Scene) -> None:
    caller, body = Caller(scene.priya), {"yaml": write(FIRST)}
    answers = [
        caller.send("PUT", "policy/yaml/", body, key="sha256-of-the-file")
        for _ in range(2)
    ]
    assert answers[0].json() == answers[1].json()
    assert PolicyDraft.objects.count() == 1


def test_drafts_are_taken_over_and_thrown_away(scene: Scene) -> None:
    caller = Caller(scene.priya)
    draft = begun(caller, automatic_gpus=4)
    in_force(scene, automatic_days=7)
    address = f"{DRAFTS}{draft['id']}/"
    refused = Caller(scene.marcus).post(f"{address}activate/", **{"If-Match": '"1"'})
    assert (refused.status_code, refused.json()["code"]) == (409, "base_is_old")
    assert (
        caller.post(f"{address}take-over/", **{"If-Match": '"1"'}).json()["base"] == 2
    )
    assert [
        each["id"] for each in caller.get(f"{DRAFTS}?open=true").json()["results"]
    ] == [draft["id"]]
    assert draft["handed_in_at"] is None
    handed = caller.post(f"{address}hand-in/", **{"If-Match": '"2"'})
    assert handed.json()["handed_in_at"] is not None
    assert caller.delete(address).status_code == 204
    assert caller.get(f"{DRAFTS}?open=true").json()["results"] == []
    again = caller.delete(address)
    assert (again.status_code, again.json()["code"]) == (409, "draft_closed")


@pytest.mark.slow
def test_a_policy_that_makes_all_of_it_automatic_needs_the_tick(scene: Scene) -> None:
    for _ in range(5):
        factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=4)
    draft = drafted(
        scene.priya, automatic_gpus=4, window_gpus_team=100, window_gpus_person=None
    )
    caller, address = Caller(scene.marcus), f"{DRAFTS}{draft.pk}/"
    assert caller.post(f"{address}simulate/").json()["warnings"] == [
        "Every one of the 5 asks that a policy may approve would be automatic.",
        "Of 5 asks, 5 become automatic: $1,440, 1,440 GPU-hours.",
    ]
    refused = caller.post(f"{address}activate/", **{"If-Match": '"1"'})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (
        422,
        "/everything_automatic",
    )
    ticked = caller.post(
        f"{address}activate/", {"everything_automatic": True}, **{"If-Match": '"1"'}
    )
    assert ticked.status_code == 200


@pytest.mark.parametrize("role", [Role.DATA_SCIENTIST, Role.TEAM_LEAD])
def test_others_see_no_draft_and_no_history(scene: Scene, role: Role) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    caller = Caller(factories.person("", role))
    for path in (
        "policy/versions/",
        "policy/versions/1/",
        DRAFTS,
        f"{DRAFTS}{draft.pk}/",
        f"{DRAFTS}999999/",
        f"{DRAFTS}{draft.pk}/diff/",
    ):
        answer = caller.get(path)
        assert (answer.status_code, answer.json()["code"]) == (403, "not_a_reader")


def test_auditors_read_and_change_nothing(scene: Scene) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    caller, address = Caller(factories.person("", Role.AUDITOR)), f"{DRAFTS}{draft.pk}/"
    assert caller.get(address).status_code == 200
    assert caller.post(f"{address}simulate/").status_code == 200
    answers = [
        caller.post(DRAFTS),
        caller.delete(address),
        caller.send("PUT", "policy/yaml/", {"yaml": write(FIRST)}),
        caller.send("PATCH", address, {"reason": "x"}, **{"If-Match": '"1"'}),
        caller.post(f"{address}activate/", **{"If-Match": '"1"'}),
        caller.post(f"{address}take-over/", **{"If-Match": '"1"'}),
    ]
    assert {answer.status_code for answer in answers} == {403}
    assert policy_actions.discard(draft.pk, by=scene.priya, now=NOW).version == 2


def test_every_limit_that_is_in_force_is_shown_also_those_that_the_text_leaves_out(
    scene: Scene,
) -> None:
    stored = PolicyVersion.objects.get(number=1).document["thresholds"]
    assert "window_usd_team" not in stored
    for path in ("policy/", "policy/versions/1/"):
        shown = Caller(scene.priya).get(path).json()["document"]
        assert shown == to_json(Policy())
        assert set(shown["thresholds"]) == {each.name for each in fields(Thresholds)}
