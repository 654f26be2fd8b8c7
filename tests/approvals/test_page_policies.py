"""The pages of the policy: history, drafts, the replay, two people, and YAML in and out."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from accounts.roles import Role
from approvals.policy_desk import actions as policy_actions
from approvals.policy_desk.forms import PolicyForm
from policy.document import Policy, read, write
from policy.models import PolicyDraft, PolicyVersion
from tests import factories
from tests.approvals.policies import WHY, drafted, in_force, usual
from tests.scene import NOW, Scene

FIRST = Policy()


def as_(user: User) -> Client:
    """A browser in which somebody is signed in."""
    client = Client()
    client.force_login(user)
    return client


def filled(draft: PolicyDraft, **changed: Any) -> dict[str, Any]:
    """What the form of a draft sends when some of its fields are written over."""
    form = PolicyForm(draft=draft)
    sent = {bound.name: bound.value() for bound in form}
    return {
        name: value
        for name, value in (sent | changed).items()
        if value is not None and value is not False
    }


def text_of(response: Any) -> str:
    """The page's text."""
    return str(response.content.decode())


def test_the_history_says_who_wrote_and_who_activated_each_and_what_it_changed(
    scene: Scene,
) -> None:
    in_force(scene, automatic_gpus=4)
    browser = as_(scene.priya)
    listed, shown = (
        text_of(browser.get("/policy/versions/")),
        text_of(browser.get("/policy/versions/2/")),
    )
    for words in ("Priya Raman", "Marcus Weber", WHY, "In force"):
        assert words in listed
        assert words in shown
    assert "Was in force" in listed
    assert '<del dir="auto">2 GPUs</del>' in shown
    assert '<ins dir="auto">4 GPUs</ins>' in shown
    assert "It was the first." in text_of(browser.get("/policy/versions/1/"))
    assert browser.get("/policy/versions/3/").status_code == 404


@pytest.mark.slow
def test_a_draft_is_begun_written_and_activated_by_two_people(scene: Scene) -> None:
    author, second = as_(scene.priya), as_(scene.marcus)
    begun = author.post("/policy/drafts/")
    draft = PolicyDraft.objects.get()
    address = f"/policy/drafts/{draft.pk}/"
    assert (begun.status_code, begun.headers["Location"]) == (302, address)
    sent = filled(draft, automatic_gpus="4", automatic_gpu_hours="", reason=WHY)
    assert author.post(address, sent).status_code == 302
    draft.refresh_from_db()
    assert draft.policy == replace(
        FIRST,
        thresholds=replace(
            FIRST.thresholds, automatic_gpus=4, automatic_gpu_hours=None
        ),
    )
    assert "somebody else activates it" in text_of(author.get(address))
    assert "Put policy 2 in force" in text_of(second.get(address))
    done = second.post(
        f"{address}activate", {"version": draft.version, "active_from": ""}
    )
    assert done.headers["Location"] == "/policy/versions/2/"
    assert "Activated" in text_of(second.get(address))


def test_the_form_shows_the_value_in_force_beside_each_number(scene: Scene) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    shown = text_of(as_(scene.priya).get(f"/policy/drafts/{draft.pk}/"))
    assert "In force: 2 GPUs." in shown
    assert "In force: $1,500." in shown
    assert "In force: dev or test." in shown


def test_the_author_activates_nothing_whatever_they_send(scene: Scene) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    answer = as_(scene.priya).post(
        f"/policy/drafts/{draft.pk}/activate", {"version": 1}
    )
    assert answer.status_code == 403
    assert "Two people put a policy in force" in text_of(answer)
    assert PolicyVersion.objects.count() == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("automatic_gpus", "many", "Write a number, like 16."),
        ("automatic_gpus", "", "Write a number."),
        ("automatic_gpus", "7", "One ask may have 7 GPUs, more than all of a team"),
        ("automatic_days", "91", "Longer than what is possible at all (90 days)."),
        ("least_use_percent", "101", "Write a percentage from 0 to 100."),
        (
            "overrides",
            "- {where: {tier: [x]}, set: {}}",
            "overrides.0.where.tier: There is no such key.",
        ),
        (
            "overrides",
            "- {where: {}, set: {automatic_gpus: x}}",
            "overrides.0.set.automatic_gpus: Write a whole",
        ),
        ("overrides", "- [", "This is not YAML that can be read."),
        ("overrides", "just words", "overrides: Write a list."),
        ("routes", "", "The last route must take every ask"),
        ("routes", "- name: x\n  name: y", "line 2: “name” is said twice."),
        ("routes", "[" * 60_000, "Nested deeper than 20 levels."),
        ("automatic_environments", ["moon"], "cannot be chosen here"),
        ("automatik", "1", "There is no field “automatik” here."),
    ],
)
def test_what_cannot_be_taken_is_said_at_its_place_and_nothing_is_lost(
    scene: Scene, field: str, value: Any, words: str
) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    sent = filled(draft, reason="Kept as typed.") | {field: value}
    answer = as_(scene.priya).post(f"/policy/drafts/{draft.pk}/", sent)
    assert answer.status_code == 422
    assert words in text_of(answer).replace("&#x27;", "'")
    assert "Kept as typed." in text_of(answer)
    draft.refresh_from_db()
    assert draft.version == 1


def test_saving_a_draft_that_has_changed_since_is_refused_and_nothing_is_lost(
    scene: Scene,
) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    sent = filled(draft, automatic_gpus="5")
    policy_actions.change(
        draft.pk, by=scene.priya, expected_version=1, why="From elsewhere.", now=NOW
    )
    answer = as_(scene.priya).post(f"/policy/drafts/{draft.pk}/", sent)
    assert answer.status_code == 412
    assert 'value="5"' in text_of(answer)


def test_the_replay_stands_beside_what_was_decided(scene: Scene) -> None:
    for gpus in (4, 2):
        factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=gpus)
    draft = drafted(scene.priya, automatic_gpus=4)
    address = f"/policy/drafts/{draft.pk}/"
    assert "Nothing is changed." in text_of(as_(scene.marcus).get(address))
    shown = " ".join(text_of(as_(scene.marcus).get(f"{address}?days=365")).split())
    for words in (
        "1 of 2 asks would have been decided otherwise.",
        "4 GPUs: people decide above 2 → people decide above 4",
        "1 request waits now; 1 of them would be automatic.",
        "$288 · 288 GPU-hours",
        "it cannot know",
    ):
        assert words in shown
    assert (
        as_(scene.marcus).get(f"{address}?days=3").status_code == 200
    )  # no such choice: no replay


def test_a_policy_without_bounds_is_warned_of_and_ticked(scene: Scene) -> None:
    draft = drafted(
        scene.priya,
        automatic_gpus=64,
        automatic_gpu_hours=None,
        automatic_usd=Decimal(10**9),
        automatic_days=90,
        window_gpus_team=1000,
        window_gpus_person=None,
        window_usd_team=None,
        window_usd_person=None,
    )
    address, browser = f"/policy/drafts/{draft.pk}/", as_(scene.marcus)
    assert (
        "64 GPUs for 90 days ($507,341) would be automatic in dev and test."
        in text_of(browser.get(address))
    )
    refused = browser.post(f"{address}activate", {"version": 1})
    assert refused.status_code == 422
    assert "Tick that this is meant." in text_of(refused)
    assert 'name="everything_automatic"' in text_of(refused)
    assert (
        browser.post(
            f"{address}activate", {"version": 1, "everything_automatic": "on"}
        ).status_code
        == 302
    )


def test_a_draft_of_an_old_policy_is_taken_over_by_its_author(scene: Scene) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    in_force(scene, automatic_days=7)
    address = f"/policy/drafts/{draft.pk}/"
    assert "A newer policy came" in text_of(as_(scene.marcus).get(address))
    assert (
        as_(scene.marcus).post(f"{address}take-over", {"version": 1}).status_code == 403
    )
    assert (
        as_(scene.priya).post(f"{address}take-over", {"version": 1}).status_code == 302
    )
    draft.refresh_from_db()
    assert draft.base.number == 2


def test_a_draft_waits_for_a_second_person_once_its_author_says_so(
    scene: Scene,
) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    address, author = f"/policy/drafts/{draft.pk}/", as_(scene.priya)
    assert "until then nobody knows that it waits" in text_of(author.get(address))
    assert author.post(f"{address}hand-in", {"version": 1}).status_code == 302
    seen = author.get(address)
    assert "Waits for a second person" in text_of(seen)
    assert "They were told" in text_of(seen)
    counts = [
        {row["label"]: row["count"] for row in page.context["rail"]}["Policy"]
        for page in (seen, as_(scene.marcus).get(address), as_(scene.elena).get("/"))
    ]
    assert counts == [0, 1, 1]


def test_a_draft_that_cannot_come_into_force_yet_says_what_it_lacks(
    scene: Scene,
) -> None:
    author = as_(scene.priya)
    same = drafted(scene.priya)
    mute = policy_actions.draft(
        by=scene.priya, now=NOW, said=usual(automatic_gpus=4), why=""
    )
    for draft, lacks in ((same, "once it changes the"), (mute, "Say above why")):
        shown = text_of(author.get(f"/policy/drafts/{draft.pk}/"))
        assert lacks in shown
        assert "hand-in" not in shown


def test_a_draft_is_thrown_away_or_copied_by_other_platform_leads(scene: Scene) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    browser = as_(scene.marcus)
    assert browser.post("/policy/drafts/", {"copy": draft.pk}).status_code == 302
    copied = PolicyDraft.objects.get(author=scene.marcus)
    assert copied.policy == draft.policy
    assert browser.post("/policy/drafts/", {"base": 99}).status_code == 422
    assert browser.post("/policy/drafts/", {"copy": 999_999}).status_code == 404
    assert (
        browser.post(f"/policy/drafts/{draft.pk}/discard", {"version": 1}).status_code
        == 302
    )
    assert "Thrown away" in text_of(browser.get("/policy/drafts/"))


def test_yaml_goes_out_and_comes_in_again(scene: Scene) -> None:
    in_force(scene, automatic_gpus=4)
    out = as_(scene.mallory).get("/policy/export.yaml")
    assert out.headers["Content-Type"] == "text/yaml; charset=utf-8"
    assert read(text_of(out)).thresholds.automatic_gpus == 4
    browser = as_(scene.priya)
    old = text_of(browser.get("/policy/export.yaml?version=1"))
    assert read(old) == FIRST
    assert browser.get("/policy/export.yaml?version=9").status_code == 404
    assert browser.get("/policy/export.yaml?version=x").status_code == 404
    file = SimpleUploadedFile("policy.yaml", old.encode())
    assert (
        browser.post(
            "/policy/import", {"file": file, "yaml": "", "reason": WHY}
        ).status_code
        == 302
    )
    assert (
        browser.post("/policy/import", {"yaml": old, "reason": ""}).status_code == 302
    )
    assert [draft.policy for draft in PolicyDraft.objects.filter(closed_at=None)] == [
        FIRST,
        FIRST,
    ]


def test_yaml_that_is_no_policy_is_answered_with_its_places_and_stays_in_the_box(
    scene: Scene,
) -> None:
    browser = as_(scene.priya)
    text = "thresholds:\n  automatic_gpu: 2\nroutes: []\n"
    for sent in (
        {"yaml": text},
        {"yaml": "", "file": SimpleUploadedFile("p.yaml", text.encode())},
    ):
        answer = browser.post("/policy/import", sent)
        assert answer.status_code == 422
        assert "<code>thresholds.automatic_gpu</code> There is no such key." in text_of(
            answer
        )
        assert "automatic_gpu: 2" in text_of(answer)
    for raw in (b"", b"\xff\xfe\x00", b"- " * 30_000, b"a: 1\na: 2\n"):
        answer = browser.post(
            "/policy/import", {"file": SimpleUploadedFile("p.yaml", raw)}
        )
        assert answer.status_code == 422
    large = {"file": SimpleUploadedFile("p.yaml", b"a" * 1_000_000)}
    assert browser.post("/policy/import", large).status_code == 413
    assert PolicyDraft.objects.count() == 0


PAGES = (
    "versions/",
    "versions/1/",
    "drafts/",
    "drafts/{}/",
    "export.yaml?version=1",
    "import",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "seen"),
    [
        (Role.PLATFORM_LEAD, [200, 200, 200, 200, 200, 200]),
        (Role.ENGINEERING_LEADERSHIP, [200, 200, 200, 200, 200, 403]),
        (Role.AUDITOR, [200, 200, 200, 200, 200, 403]),
        (Role.TEAM_LEAD, [403, 403, 403, 403, 403, 403]),
        (Role.DATA_SCIENTIST, [403, 403, 403, 403, 403, 403]),
    ],
)
def test_leads_and_auditors_see_drafts_and_others_the_policy_in_force(
    scene: Scene, role: Role, seen: list[int]
) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    in_force(scene, automatic_gpus=3)
    browser = as_(factories.person("", role))
    assert [
        browser.get("/policy/" + page.format(draft.pk)).status_code for page in PAGES
    ] == seen
    first = text_of(browser.get("/policy/"))
    assert ("/policy/drafts/" in first) is (seen[2] == 200)
    assert "/policy/export.yaml" in first


def test_an_auditor_changes_nothing(scene: Scene) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    browser = as_(factories.person("", Role.AUDITOR))
    address = f"/policy/drafts/{draft.pk}/"
    answers = [
        browser.post("/policy/drafts/"),
        browser.post(address, filled(draft)),
        *(
            browser.post(f"{address}{do}", {"version": 1})
            for do in ("take-over", "hand-in", "discard", "activate")
        ),
        browser.post("/policy/import", {"yaml": write(FIRST)}),
    ]
    assert {answer.status_code for answer in answers} == {403}
    assert (
        '<form method="post"' not in text_of(browser.get(address)).partition("<main")[2]
    )


def test_the_lists_take_as_many_queries_for_fifty_as_for_five(scene: Scene) -> None:
    browser = as_(scene.priya)
    counts = []
    for more in (5, 45):
        for _ in range(more):
            PolicyDraft.objects.create(
                base=PolicyVersion.objects.get(number=1),
                document=usual(),
                author=scene.priya,
                created_at=NOW,
                updated_at=NOW,
            )
        with CaptureQueriesContext(connection) as queries:
            browser.get("/policy/drafts/")
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 12
