"""The policy changes by drafts that one person writes and another puts in force, each step on record."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from accounts.models import User
from accounts.roles import Role
from approvals.judging.inputs import policy_in_force
from approvals.policy_desk import actions as policy_actions
from approvals.policy_desk.parsing import NotAPolicy, policy_said
from audit.events import Kind
from audit.models import Event
from notices.models import Delivery, Notice
from policy.differences import differences
from policy.document import Override, Policy, Where, to_json, write
from policy.models import PolicyDraft, PolicyVersion
from portal.pages.home_board import drafts
from tests import factories
from tests.approvals.policies import WHY, activated, drafted, in_force, usual
from tests.scene import DAY, NOW, Scene
from web.refusals import BadInput, Conflict, NoRight, Refused, Stale

FIRST = Policy()


def refused(act: Callable[[], object]) -> Refused:
    """What an act is refused with."""
    with pytest.raises(Refused) as caught, transaction.atomic():
        act()
    return caught.value


def test_a_draft_becomes_the_next_version_when_a_second_person_activates_it(
    scene: Scene,
) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    version = activated(draft, by=scene.marcus)
    assert (version.number, version.why, version.active_from) == (2, WHY, NOW)
    assert (version.proposed_by, version.activated_by) == (scene.priya, scene.marcus)
    assert policy_in_force(NOW)[1].thresholds.automatic_gpus == 4
    draft.refresh_from_db()
    assert (draft.became, draft.closed_at) == (version, NOW)


def test_leadership_may_be_the_second_person(scene: Scene) -> None:
    assert activated(drafted(scene.priya, automatic_gpus=4), by=scene.elena).number == 2


def test_its_author_never_activates_it(scene: Scene) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    assert refused(lambda: activated(draft, by=scene.priya)).code == "same_person"
    assert PolicyVersion.objects.count() == 1


def test_the_database_wants_two_people_too(scene: Scene) -> None:
    with (
        pytest.raises(IntegrityError, match="two_people_put_a_policy_in_force"),
        transaction.atomic(),
    ):
        PolicyVersion.objects.create(
            number=2,
            document=usual(),
            active_from=NOW,
            proposed_by=scene.priya,
            activated_by=scene.priya,
        )


def test_a_platform_lead_cannot_change_somebodys_draft_and_then_activate_it(
    scene: Scene,
) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    refusal = refused(
        lambda: policy_actions.change(
            draft.pk,
            by=scene.marcus,
            expected_version=1,
            said=usual(automatic_gpus=6),
            now=NOW,
        )
    )
    assert (type(refusal), refusal.code) == (NoRight, "not_the_author")


@pytest.mark.parametrize(
    "role",
    [Role.DATA_SCIENTIST, Role.TEAM_LEAD, Role.AUDITOR, Role.ENGINEERING_LEADERSHIP],
)
def test_only_platform_leads_write_drafts(scene: Scene, role: Role) -> None:
    somebody = factories.person("", role)
    draft = drafted(scene.priya, automatic_gpus=4)
    acts: list[Callable[[], object]] = [
        lambda: policy_actions.draft(by=somebody, now=NOW),
        lambda: policy_actions.change(
            draft.pk, by=somebody, expected_version=1, now=NOW, why="Mine."
        ),
        lambda: policy_actions.take_over(
            draft.pk, by=somebody, expected_version=1, now=NOW
        ),
        lambda: policy_actions.discard(draft.pk, by=somebody, now=NOW),
    ]
    assert {refused(act).code for act in acts} == {"not_a_platform_lead"}
    if role is not Role.ENGINEERING_LEADERSHIP:
        assert refused(lambda: activated(draft, by=somebody)).code == "not_an_activator"


def test_who_was_blocked_since_the_page_opened_activates_nothing(scene: Scene) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    scene.marcus.groups_known_at = NOW - timedelta(minutes=6)
    scene.marcus.save()
    assert refused(lambda: activated(draft, by=scene.marcus)).code == "directory_away"


def test_a_version_that_was_not_looked_at_is_not_activated(scene: Scene) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    policy_actions.change(
        draft.pk,
        by=scene.priya,
        expected_version=1,
        said=usual(automatic_gpus=6),
        now=NOW,
    )
    assert isinstance(refused(lambda: activated(draft, by=scene.marcus)), Stale)
    assert isinstance(
        refused(
            lambda: policy_actions.change(
                draft.pk, by=scene.priya, expected_version=1, why="Again.", now=NOW
            )
        ),
        Stale,
    )


def test_of_two_drafts_of_one_base_the_second_is_taken_over_first(scene: Scene) -> None:
    mine = drafted(scene.priya, automatic_gpus=4, automatic_days=10)
    in_force(scene, automatic_days=7, automatic_usd=Decimal(900))
    assert refused(lambda: activated(mine, by=scene.marcus)).code == "base_is_old"
    taken = policy_actions.take_over(
        mine.pk, by=scene.priya, expected_version=1, now=NOW
    )
    assert [each.line for each in differences(taken.base.policy, taken.policy)] == [
        "GPUs in one request: 2 GPUs → 4 GPUs",
        "Time until the end: 7 days → 10 days",
    ]
    assert activated(taken, by=scene.marcus).number == 3
    assert policy_in_force(NOW)[1].thresholds.automatic_usd == 900


def test_what_does_not_fit_the_newest_is_not_taken_over(scene: Scene) -> None:
    mine = drafted(scene.priya, automatic_gpus=5)
    in_force(scene, window_gpus_team=4)
    refusal = refused(
        lambda: policy_actions.take_over(
            mine.pk, by=scene.priya, expected_version=1, now=NOW
        )
    )
    assert refusal.code == "cannot_take_over"
    assert "thresholds.window_gpus_team" in refusal.message


def test_a_draft_that_changes_nothing_or_says_no_reason_is_not_activated(
    scene: Scene,
) -> None:
    assert (
        refused(lambda: activated(drafted(scene.priya), by=scene.marcus)).code
        == "nothing_changes"
    )
    silent = policy_actions.draft(by=scene.priya, now=NOW, said=usual(automatic_gpus=4))
    assert refused(lambda: activated(silent, by=scene.marcus)).code == "reason_needed"


def test_a_policy_may_come_into_force_later_but_never_before_now(scene: Scene) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    codes = [
        refused(partial(activated, draft, by=scene.marcus, active_from=at)).code
        for at in (NOW - DAY, NOW + 91 * DAY)
    ]
    assert codes == ["in_the_past", "too_far_ahead"]
    activated(draft, by=scene.marcus, active_from=NOW + DAY)
    assert [policy_in_force(at)[0].number for at in (NOW, NOW + DAY)] == [1, 2]


def test_what_changes_a_policy_that_comes_later_never_comes_before_it(
    scene: Scene,
) -> None:
    activated(
        drafted(scene.priya, automatic_gpus=6),
        by=scene.marcus,
        active_from=NOW + 40 * DAY,
    )
    draft = drafted(scene.priya, automatic_gpus=6, automatic_days=5)
    refusal = refused(lambda: activated(draft, by=scene.marcus))
    assert (refusal.code, refusal.field) == ("before_its_base", "active_from")
    activated(draft, by=scene.marcus, active_from=NOW + 40 * DAY)
    assert policy_in_force(NOW)[0].number == 1


def test_what_changes_the_policy_in_force_comes_instead_of_a_later_one_and_says_so(
    scene: Scene,
) -> None:
    activated(
        drafted(scene.priya, automatic_gpus=6),
        by=scene.marcus,
        active_from=NOW + 40 * DAY,
    )
    draft = policy_actions.draft(
        by=scene.priya, now=NOW, base=1, said=usual(automatic_days=5), why=WHY
    )
    late = refused(
        lambda: activated(draft, by=scene.marcus, active_from=NOW + 41 * DAY)
    )
    assert (late.code, late.field) == ("after_another", "active_from")
    version = activated(draft, by=scene.marcus)
    assert [policy_in_force(at)[0].number for at in (NOW, NOW + 50 * DAY)] == [3, 3]
    assert (
        policy_in_force(NOW)[1].thresholds.automatic_gpus
        == FIRST.thresholds.automatic_gpus
    )
    event = Event.objects.filter(kind=Kind.POLICY_ACTIVATED).latest("seq")
    assert (event.details["instead_of"], len(event.details["changes"])) == ([2], 1)
    assert (
        "Policy 2 never comes into force." in Notice.objects.latest("id").said.sentence
    )
    assert version.before is not None
    assert (version.before.number, PolicyVersion.objects.get(number=2).never_comes) == (
        1,
        True,
    )


def handed_in(draft: PolicyDraft, *, by: User) -> PolicyDraft:
    return policy_actions.hand_in(
        draft.pk, by=by, expected_version=draft.version, now=NOW
    )


def waits_for(user: User) -> list[PolicyDraft]:
    return list(PolicyDraft.objects.waiting_for(user))


def test_a_draft_that_is_handed_in_is_told_to_everybody_else_who_may_activate_it(
    scene: Scene,
) -> None:
    draft = handed_in(drafted(scene.priya, automatic_gpus=4), by=scene.priya)
    notices = Notice.objects.filter(kind="policy_waits").select_related("person")
    assert {each.person for each in notices} == {scene.marcus, scene.elena}
    said = notices[0].said
    assert (said.title, said.sentence) == (
        "Priya Raman asks you to put a policy in force",
        WHY,
    )
    assert said.facts == (("GPUs in one request", "2 GPUs → 4 GPUs"),)
    assert notices[0].link == f"/policy/drafts/{draft.pk}/"
    assert (waits_for(scene.marcus), waits_for(scene.priya)) == ([draft], [])
    assert [line["what"] for line in drafts(scene.elena)] == [
        "A draft of the policy by Priya Raman waits for you to put it in force"
    ]
    assert drafts(scene.priya) == []
    assert Event.objects.get(kind=Kind.POLICY_HANDED_IN).subject_id == str(draft.pk)
    assert activated(draft, by=scene.marcus).number == 2
    assert waits_for(scene.marcus) == []


@pytest.mark.parametrize("then", ["changed", "thrown away", "activated"])
def test_what_waits_no_more_is_not_told_to_whom_it_was_not_told_yet(
    scene: Scene, then: str
) -> None:
    draft = handed_in(drafted(scene.priya, automatic_gpus=4), by=scene.priya)
    waiting = Delivery.objects.filter(notice__kind="policy_waits")
    assert waiting.count() == 2
    if then == "changed":
        policy_actions.change(
            draft.pk,
            by=scene.priya,
            expected_version=draft.version,
            why="Something else.",
            now=NOW,
        )
    elif then == "thrown away":
        policy_actions.discard(draft.pk, by=scene.marcus, now=NOW)
    else:
        activated(draft, by=scene.marcus)
    assert not waiting.exists()
    assert waits_for(scene.marcus) == []


def test_only_what_could_come_into_force_is_handed_in_and_by_its_author(
    scene: Scene,
) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    same = drafted(scene.priya)
    mute = policy_actions.draft(
        by=scene.priya, now=NOW, said=usual(automatic_gpus=4), why=""
    )
    assert [
        refused(partial(handed_in, each, by=by)).code
        for each, by in (
            (draft, scene.marcus),
            (same, scene.priya),
            (mute, scene.priya),
        )
    ] == ["not_the_author", "nothing_changes", "reason_needed"]
    seen = handed_in(draft, by=scene.priya)
    assert refused(lambda: handed_in(draft, by=scene.priya)).code == "stale"
    assert refused(lambda: handed_in(seen, by=scene.priya)).code == "handed_in_already"
    in_force(scene, automatic_days=7)
    late = drafted(scene.priya, automatic_gpus=4)
    PolicyDraft.objects.filter(pk=late.pk).update(
        base=PolicyVersion.objects.get(number=1)
    )
    assert refused(lambda: handed_in(late, by=scene.priya)).code == "base_is_old"


def test_a_closed_draft_stays_closed(scene: Scene) -> None:
    gone = drafted(scene.priya, automatic_gpus=4)
    policy_actions.discard(gone.pk, by=scene.marcus, now=NOW)
    gone.refresh_from_db()
    for act in (
        lambda: activated(gone, by=scene.marcus),
        lambda: policy_actions.discard(gone.pk, by=scene.marcus, now=NOW),
        lambda: policy_actions.change(
            gone.pk, by=scene.priya, expected_version=2, why="x", now=NOW
        ),
    ):
        refusal = refused(act)
        assert (type(refusal), refusal.code) == (Conflict, "draft_closed")


def test_every_step_is_in_the_audit_log_with_what_changed(scene: Scene) -> None:
    draft = drafted(scene.priya, automatic_gpus=4)
    draft = policy_actions.change(
        draft.pk,
        by=scene.priya,
        expected_version=1,
        said=usual(automatic_gpus=6),
        now=NOW,
    )
    activated(draft, by=scene.marcus)
    other = drafted(scene.priya)
    policy_actions.discard(other.pk, by=scene.priya, now=NOW)
    events = Event.objects.filter(kind__startswith="policy.").order_by("seq")
    assert [(e.kind, e.actor_name, e.details.get("changes")) for e in events] == [
        (Kind.POLICY_DRAFTED, "Priya Raman", ["GPUs in one request: 2 GPUs → 4 GPUs"]),
        (Kind.POLICY_DRAFTED, "Priya Raman", ["GPUs in one request: 4 GPUs → 6 GPUs"]),
        (
            Kind.POLICY_ACTIVATED,
            "Marcus Weber",
            ["GPUs in one request: 2 GPUs → 6 GPUs"],
        ),
        (Kind.POLICY_DRAFTED, "Priya Raman", ["GPUs in one request: 6 GPUs → 2 GPUs"]),
        (Kind.POLICY_DISCARDED, "Priya Raman", None),
    ]


def test_platform_leads_and_leadership_are_told(scene: Scene) -> None:
    in_force(scene, automatic_gpus=4)
    notices = Notice.objects.filter(kind="policy_activated")
    assert {notice.person for notice in notices} == {
        scene.priya,
        scene.marcus,
        scene.elena,
    }
    message = notices[0].message
    assert message["title"] == "Policy 2 is in force"
    assert (
        message["sentence"] == f"Priya Raman wrote it, Marcus Weber activated it: {WHY}"
    )
    assert message["facts"] == [["GPUs in one request", "2 GPUs → 4 GPUs"]]


ALL_OF_IT = {
    "automatic_gpus": 64,
    "automatic_gpu_hours": None,
    "automatic_usd": Decimal(10**9),
    "automatic_days": 90,
    "window_gpus_team": 1000,
    "window_gpus_person": None,
    "window_usd_team": None,
    "window_usd_person": None,
    "automatic_environments": ("dev", "test", "production"),
}


def test_a_policy_without_bounds_needs_a_tick_that_the_audit_log_keeps(
    scene: Scene,
) -> None:
    draft = drafted(scene.priya, **ALL_OF_IT)
    refusal = refused(lambda: activated(draft, by=scene.marcus))
    assert (type(refusal), refusal.field) == (BadInput, "everything_automatic")
    assert (
        "64 GPUs for 90 days ($507,341) would be automatic in dev and test and production."
        in refusal.message
    )
    activated(draft, by=scene.marcus, everything_automatic=True)
    details = Event.objects.get(kind=Kind.POLICY_ACTIVATED).details
    assert details["everything_automatic"] == [
        "64 GPUs for 90 days ($507,341) would be automatic in dev and test and production."
    ]


@pytest.mark.parametrize("window", ["window_usd_team", "window_usd_person"])
def test_a_window_of_money_is_a_bound(scene: Scene, window: str) -> None:
    draft = drafted(scene.priya, **ALL_OF_IT | {window: Decimal(10_000)})
    assert activated(draft, by=scene.marcus).number == 2


def test_an_exception_without_bounds_is_seen_too(scene: Scene) -> None:
    bold = Override(
        where=Where(tiers=("trusted",), environments=("dev",)), set=ALL_OF_IT
    )
    said = to_json(replace(FIRST, overrides=(bold,)))
    draft = policy_actions.draft(by=scene.priya, now=NOW, said=said, why=WHY)
    assert refused(lambda: activated(draft, by=scene.marcus)).message.startswith(
        "64 GPUs for 90 days ($507,341) would be automatic in dev (dev, trusted)."
    )


@pytest.mark.slow
def test_a_policy_on_which_everything_asked_lately_is_automatic_needs_the_tick_too(
    scene: Scene,
) -> None:
    for _ in range(3):
        scene.ask(1)
    for _ in range(3):
        scene.ask(4)
    draft = drafted(
        scene.priya, automatic_gpus=4, window_gpus_team=20, window_gpus_person=None
    )
    refusal = refused(lambda: activated(draft, by=scene.marcus))
    assert refusal.code == "everything_automatic"
    assert (
        "Every one of the 6 asks that a policy may approve would be automatic."
        in refusal.message
    )
    assert "Of 6 asks, 3 become automatic: $864, 864 GPU-hours." in refusal.message
    assert activated(draft, by=scene.marcus, everything_automatic=True).number == 2


BAD: list[Any] = [
    pytest.param(
        "thresholds: {automatic_gpu: 2}",
        "thresholds.automatic_gpu",
        id="a key that is none",
    ),
    pytest.param("threshold: {}", "threshold", id="a part that is none"),
    pytest.param(
        "overrides: [{where: {team: [x]}, set: {}}]",
        "overrides.0.where.team",
        id="a key in a where",
    ),
    pytest.param(
        "overrides: [{where: {}, set: {gpus: 1}}]",
        "overrides.0.set.gpus",
        id="a threshold that is none",
    ),
    pytest.param(
        "thresholds: {automatic_gpus: 9}",
        "thresholds.window_gpus_team",
        id="more in one ask than in all",
    ),
    pytest.param(
        "thresholds: {automatic_days: 91}",
        "thresholds.automatic_days",
        id="longer than the longest",
    ),
    pytest.param("routes: []", "routes", id="nobody decides"),
    pytest.param(
        "routes: [{name: a, steps: []}]", "routes.0.steps", id="nobody decides a route"
    ),
    pytest.param("lapse_days: 0", "lapse_days", id="lapses at once"),
    pytest.param(
        "thresholds: {automatic_gpus: yes}",
        "thresholds.automatic_gpus",
        id="yes for a number",
    ),
    pytest.param(
        "thresholds: {automatic_gpus: -1}",
        "thresholds.automatic_gpus",
        id="below nothing",
    ),
    pytest.param(
        "thresholds: {automatic_usd: .inf}",
        "thresholds.automatic_usd",
        id="without end",
    ),
    pytest.param(
        "thresholds: {automatic_usd: 1e999999999}",
        "thresholds.automatic_usd",
        id="a gigabyte of digits",
    ),
    pytest.param("a: 1\na: 2", "line 2", id="a key said twice"),
    pytest.param("thresholds: {automatic_gpus: 2", "line 1", id="not YAML"),
    pytest.param("[1, 2]", "", id="a list"),
    pytest.param("", "", id="nothing"),
    pytest.param("a: &x [1]\nb: *x", "", id="an alias"),
    pytest.param("[" * 60_000, "", id="deep"),
    pytest.param("- " * 30_000, "", id="deep without brackets"),
    pytest.param("a" * 1_000_000, "", id="a megabyte"),
    pytest.param("!!python/object/apply:os.system ['true']", "line 1", id="an object"),
    pytest.param(
        'lapse_days: 7\nroutes: [{name: "a\\0b", steps: [{by: managers}]}]',
        "routes.0.name",
        id="a NUL",
    ),
    pytest.param(
        "overrides: [{where: {tiers: [gold]}, set: {}}]",
        "overrides.0.where.tiers",
        id="an unknown tier",
    ),
    pytest.param(
        "overrides: [{where: {offerings: [gpu]}, set: {}}]",
        "overrides.0.where.offerings",
        id="a typo",
    ),
    pytest.param(
        "thresholds: {automatic_gpus: %s}" % ("9" * 5000), "", id="five thousand digits"
    ),
    pytest.param("thresholds: {automatic_gpus: 2024-99-99}", "", id="no such day"),
]


@pytest.mark.parametrize(("text", "place"), BAD)
def test_what_is_no_policy_is_refused_at_its_place(text: str, place: str) -> None:
    with pytest.raises(NotAPolicy) as caught:
        policy_said(text)
    assert place in [found for found, _ in caught.value.problems]


def test_a_policy_comes_in_as_it_went_out() -> None:
    policy = replace(
        FIRST,
        overrides=(
            Override(where=Where(tiers=("trusted",)), set={"automatic_gpus": 4}),
        ),
    )
    assert policy_said(write(policy)) == policy == policy_said(to_json(policy))


def test_a_reason_is_one_line_of_bounded_length(scene: Scene) -> None:
    assert (
        policy_actions.draft(by=scene.priya, now=NOW, why="One\n  two").why == "One two"
    )
    for why in ("x" * 201, "a\0b"):
        assert (
            refused(
                partial(policy_actions.draft, by=scene.priya, now=NOW, why=why)
            ).field
            == "reason"
        )


def test_drafts_do_not_pile_up(scene: Scene) -> None:
    base = PolicyVersion.objects.get(number=1)
    PolicyDraft.objects.bulk_create(
        PolicyDraft(
            base=base,
            document=base.document,
            author=scene.priya,
            created_at=NOW,
            updated_at=NOW,
        )
        for _ in range(policy_actions.MOST_DRAFTS)
    )
    assert (
        refused(lambda: policy_actions.draft(by=scene.priya, now=NOW)).code
        == "too_many"
    )


def test_only_what_is_shipped_comes_into_force_without_two_people(scene: Scene) -> None:
    fields = {
        "number": 2,
        "document": usual(),
        "active_from": NOW,
        "why": "An upgrade.",
    }
    with (
        pytest.raises(IntegrityError, match="two_people_put_a_policy_in_force"),
        transaction.atomic(),
    ):
        PolicyVersion.objects.create(**fields)
    with (
        pytest.raises(IntegrityError, match="two_people_put_a_policy_in_force"),
        transaction.atomic(),
    ):
        PolicyVersion.objects.create(**fields, shipped=True, activated_by=scene.priya)
    assert PolicyVersion.objects.create(**fields, shipped=True).policy == Policy()


def test_the_first_policy_says_what_the_product_ships(db: None) -> None:
    assert PolicyVersion.objects.get(number=1).policy == Policy()
