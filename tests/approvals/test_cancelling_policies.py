"""A policy that is to come later is cancelled by one person, with a reason: what two people put in force stays."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from approvals.judging.inputs import policy_in_force
from approvals.policy_desk import actions as policy_actions
from approvals.policy_desk import limits_page
from approvals.policy_desk import page as policy_page
from audit.events import Kind
from audit.models import Event
from notices.models import Notice
from policy.document import Thresholds
from policy.models import PolicyDraft, PolicyVersion
from tests import factories
from tests.approvals.policies import activated, drafted, in_force
from tests.calling import Caller
from tests.scene import DAY, HOUR, NOW, Scene
from web.refusals import Refused

WHY = "The price of A100 is not known before June."


def refused(act: Callable[[], object]) -> Refused:
    """What an act is refused with."""
    with pytest.raises(Refused) as caught, transaction.atomic():
        act()
    return caught.value


def scheduled(scene: Scene, gpus: int = 4, *, days: int = 3) -> PolicyVersion:
    """A policy with other limits that is to come in some days."""
    draft = drafted(scene.priya, automatic_gpus=gpus)
    return activated(draft, by=scene.marcus, active_from=NOW + days * DAY)


def cancel(number: int, *, by: User, **more: Any) -> PolicyVersion:
    """Cancel one, a day later unless told otherwise."""
    return policy_actions.cancel(
        number, **{"by": by, "now": NOW + DAY, "why": WHY, **more}
    )


def numbers(*, days: int) -> int:
    """Which policy is in force then."""
    return policy_in_force(NOW + days * DAY)[0].number


def test_it_never_comes_and_what_is_in_force_stays(scene: Scene) -> None:
    scheduled(scene)
    assert (numbers(days=1), numbers(days=4)) == (1, 2)
    cancel(2, by=scene.priya)
    assert (numbers(days=1), numbers(days=4)) == (1, 1)
    assert limits_page.coming(NOW + DAY) == []
    event = Event.objects.get(kind=Kind.POLICY_CANCELLED)
    assert (event.actor_name, event.details["why"]) == ("Priya Raman", WHY)


def test_what_was_cancelled_stays_on_record(scene: Scene) -> None:
    scheduled(scene)
    cancel(2, by=scene.priya)
    for attack in ("UPDATE {} SET id = id", "DELETE FROM {}"):
        with (
            pytest.raises(DatabaseError, match="are never changed"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(attack.format("policy_policycancellation"))


def test_everybody_who_was_told_of_it_is_told(scene: Scene) -> None:
    scheduled(scene)
    cancel(2, by=scene.marcus)
    told = Notice.objects.filter(kind="policy_activated").order_by("pk")
    titles = {(row.person, row.message["title"]) for row in told}
    for person in (scene.priya, scene.marcus, scene.elena):
        assert (person, "Policy 2 does not come into force") in titles
    assert [*told][-1].message["sentence"] == f"Marcus Weber cancelled it: {WHY}"


def test_one_that_it_was_to_replace_comes_after_all(scene: Scene) -> None:
    scheduled(scene, 4, days=10)
    draft = policy_actions.draft(
        by=scene.priya, now=NOW, base=1, said=drafted(scene.priya).document
    )
    policy_actions.discard(draft.pk, by=scene.priya, now=NOW)
    sooner = policy_actions.draft(by=scene.priya, now=NOW, base=1)
    policy_actions.change(
        sooner.pk,
        by=scene.priya,
        expected_version=1,
        now=NOW,
        said=drafted(scene.priya, automatic_gpus=3).document,
        why="Fewer.",
    )
    sooner.refresh_from_db()
    activated(sooner, by=scene.marcus, active_from=NOW + 5 * DAY)
    assert (numbers(days=6), numbers(days=11)) == (3, 3)
    assert PolicyVersion.objects.get(number=2).never_comes
    cancel(3, by=scene.elena)
    assert (numbers(days=6), numbers(days=11)) == (1, 2)
    assert not PolicyVersion.objects.get(number=2).never_comes


@pytest.mark.parametrize("late", [timedelta(0), timedelta(seconds=59), 5 * DAY])
def test_one_that_is_in_force_or_about_to_be_is_not_cancelled(
    scene: Scene, late: timedelta
) -> None:
    scheduled(scene)
    moment = NOW + 3 * DAY - timedelta(seconds=59) + late
    refusal = refused(lambda: cancel(2, by=scene.priya, now=moment))
    assert (refusal.code, numbers(days=4)) == ("not_to_come", 2)


def test_nothing_is_cancelled_twice_or_that_never_comes(scene: Scene) -> None:
    scheduled(scene)
    cancel(2, by=scene.priya)
    again = refused(lambda: cancel(2, by=scene.marcus))
    assert (again.code, str(again)) == (
        "not_to_come",
        "Policy 2 was cancelled already.",
    )
    factories.policy(Thresholds(automatic_gpus=3), now=NOW)
    assert refused(lambda: cancel(1, by=scene.marcus)).code == "not_to_come"


def test_a_reason_is_needed_and_only_who_activates_cancels(scene: Scene) -> None:
    scheduled(scene)
    assert refused(lambda: cancel(2, by=scene.priya, why=" ")).field == "reason"
    assert refused(lambda: cancel(2, by=scene.ada)).code == "not_an_activator"
    assert numbers(days=4) == 2


def test_its_number_is_not_given_again(scene: Scene) -> None:
    scheduled(scene)
    cancel(2, by=scene.priya)
    assert in_force(scene, automatic_gpus=5).number == 3


def test_a_draft_on_it_is_taken_over_onto_what_is_in_force(scene: Scene) -> None:
    scheduled(scene)
    draft = policy_actions.draft(by=scene.priya, now=NOW, base=2)
    changed = drafted(scene.priya, automatic_gpus=4, automatic_days=9)
    policy_actions.change(
        draft.pk,
        by=scene.priya,
        expected_version=1,
        now=NOW,
        said=changed.document,
        why="Shorter.",
    )
    cancel(2, by=scene.marcus)
    draft.refresh_from_db()
    refusal = refused(lambda: activated(draft, by=scene.marcus))
    assert (refusal.code, str(refusal)) == (
        "base_is_old",
        "Policy 2, on which it was begun, was cancelled. Its author takes the draft over onto Policy 1 first.",
    )
    taken = policy_actions.take_over(
        draft.pk, by=scene.priya, expected_version=draft.version, now=NOW + DAY
    )
    assert (taken.base.number, taken.policy.thresholds.automatic_days) == (1, 9)
    assert taken.policy.thresholds.automatic_gpus == 2


def test_a_draft_with_its_values_has_it_come_after_all(scene: Scene) -> None:
    scheduled(scene)
    cancel(2, by=scene.priya)
    draft = policy_actions.draft(
        by=scene.priya, now=NOW + DAY, base=2, why="After all."
    )
    assert (draft.base.number, draft.policy.thresholds.automatic_gpus) == (1, 4)
    again = policy_actions.activate(
        draft.pk, by=scene.marcus, expected_version=1, now=NOW + DAY
    )
    assert (again.number, numbers(days=2)) == (3, 3)


def test_a_draft_with_the_values_of_an_old_policy_goes_back_to_it(scene: Scene) -> None:
    in_force(scene, automatic_gpus=4)
    draft = policy_actions.draft(by=scene.priya, now=NOW + HOUR, base=1, why="Back.")
    assert (draft.base.number, draft.policy.thresholds.automatic_gpus) == (2, 2)
    back = policy_actions.activate(
        draft.pk, by=scene.marcus, expected_version=1, now=NOW + HOUR
    )
    assert back.policy == PolicyVersion.objects.get(number=1).policy


def browser(user: User) -> Client:
    """A browser in which somebody is signed in."""
    client = Client()
    client.force_login(user)
    return client


def to_come(scene: Scene) -> PolicyVersion:
    """One that is to come by the real clock."""
    now = timezone.now()
    draft = drafted(scene.priya, automatic_gpus=4)
    return policy_actions.activate(
        draft.pk,
        by=scene.marcus,
        expected_version=draft.version,
        now=now,
        active_from=now + DAY,
    )


@pytest.mark.slow
def test_its_page_cancels_it_and_says_so_from_then_on(scene: Scene) -> None:
    to_come(scene)
    page = browser(scene.priya)
    assert 'href="/policy/versions/2/"' in page.get("/policy/").content.decode()
    shown = page.get("/policy/versions/2/").content.decode()
    assert "Cancel policy 2" in shown
    assert "Then policy 1 holds on." in shown
    empty = page.post("/policy/versions/2/cancel", {"reason": ""})
    assert empty.status_code == 422
    done = page.post("/policy/versions/2/cancel", {"reason": WHY})
    assert done.headers["Location"] == "/policy/versions/2/"
    shown = page.get("/policy/versions/2/").content.decode()
    assert ("Cancel policy 2" in shown, "Cancelled by" in shown, WHY in shown) == (
        False,
        True,
        True,
    )
    assert "Cancelled" in page.get("/policy/versions/").content.decode()
    again = page.post("/policy/versions/2/cancel", {"reason": WHY})
    assert again.status_code == 409
    assert "was cancelled already" in again.content.decode()
    assert "comes into force" not in page.get("/policy/").content.decode()


def test_who_reads_alone_is_offered_no_cancelling(scene: Scene) -> None:
    to_come(scene)
    auditor = browser(factories.person("Otto", Role.AUDITOR))
    shown = auditor.get("/policy/versions/2/")
    assert (shown.status_code, "Cancel policy" in shown.content.decode()) == (
        200,
        False,
    )
    assert auditor.post("/policy/versions/2/cancel", {"reason": WHY}).status_code == 403


def test_the_api_cancels_it_once(scene: Scene) -> None:
    to_come(scene)
    caller = Caller(scene.marcus, "write")
    assert caller.get("policy/versions/2/").json()["cancellation"] is None
    done = caller.post("policy/versions/2/cancel/", {"reason": WHY})
    assert done.status_code == 200
    assert done.json()["cancellation"]["reason"] == WHY
    assert done.json()["cancellation"]["by"]["name"] == "Marcus Weber"
    refusal = caller.post("policy/versions/2/cancel/", {"reason": WHY})
    assert (refusal.status_code, refusal.json()["code"]) == (409, "not_to_come")
    assert PolicyDraft.objects.filter(closed_at=None).count() == 0


def later(
    scene: Scene, *, days: int, base: int | None = None, **numbers: int
) -> PolicyVersion:
    """Another policy that is to come, on the newest or on another one."""
    draft = policy_actions.draft(by=scene.priya, now=NOW, base=base)
    policy_actions.change(
        draft.pk,
        by=scene.priya,
        expected_version=1,
        now=NOW,
        said=drafted(scene.priya, **numbers).document,
        why="Other numbers.",
    )
    draft.refresh_from_db()
    return activated(draft, by=scene.marcus, active_from=NOW + days * DAY)


def instead(number: int) -> str:
    """What the page says that holds once it is cancelled."""
    found = PolicyVersion.objects.get(number=number)
    return policy_page.version(found, now=NOW)["instead"]


def test_it_says_what_comes_instead_and_nothing_that_does_not(scene: Scene) -> None:
    scheduled(scene, 4, days=10)
    later(scene, days=5, base=1, automatic_gpus=3)
    later(scene, days=7, automatic_gpus=3, automatic_days=9)
    said = instead(3)
    assert said.startswith("Then policy 1 holds on. Policy 4 comes ")
    assert "Policy 2 comes" not in said
    cancel(3, by=scene.elena)
    assert [numbers(days=days) for days in (6, 8, 11)] == [1, 4, 4]


def test_it_says_that_its_numbers_come_with_one_that_was_begun_on_it(
    scene: Scene,
) -> None:
    scheduled(scene, 4, days=3)
    later(scene, days=5, base=2, automatic_gpus=4, automatic_days=9)
    assert instead(2).endswith(
        "all the same, and has what Policy 2 changes: it was begun on it."
    )
