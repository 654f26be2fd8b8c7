"""Drafts that are activated at the same moment: one comes into force, and each number is given once."""

from collections.abc import Callable

from django.db import connection

from accounts.roles import Role
from approvals.policy_desk import actions as policy_actions
from policy.models import PolicyDraft, PolicyVersion
from tests import factories
from tests.approvals.policies import WHY, usual
from tests.faults.calling import at_once
from tests.scene import NOW
from web.refusals import Refused

ROUNDS = 4


def outcome(act: Callable[[], PolicyVersion]) -> str:
    """What came of it, on a connection of this thread."""
    try:
        return str(act())
    except Refused as refused:
        return refused.code
    finally:
        connection.close()


def activation(draft: PolicyDraft) -> Callable[[], str]:
    """A second person puts it in force; who, is somebody new for each."""
    second = factories.person("", Role.PLATFORM_LEAD)
    return lambda: outcome(
        lambda: policy_actions.activate(
            draft.pk, by=second, expected_version=1, now=NOW
        )
    )


def test_of_two_drafts_activated_at_once_one_comes_into_force(
    transactional_db: None,
) -> None:
    author = factories.person("", Role.PLATFORM_LEAD)
    for number in range(2, 2 + ROUNDS):
        drafts = [
            policy_actions.draft(
                by=author, now=NOW, said=usual(automatic_days=number + days), why=WHY
            )
            for days in (0, 5)
        ]
        assert sorted(at_once([activation(draft) for draft in drafts])) == [
            f"Policy {number}",
            "base_is_old",
        ]
    assert [each.number for each in PolicyVersion.objects.order_by("number")] == list(
        range(1, 2 + ROUNDS)
    )


def test_one_draft_activated_by_two_people_at_once_becomes_one_version(
    transactional_db: None,
) -> None:
    author = factories.person("", Role.PLATFORM_LEAD)
    draft = policy_actions.draft(
        by=author, now=NOW, said=usual(automatic_gpus=4), why=WHY
    )
    assert sorted(at_once([activation(draft), activation(draft)])) == [
        "Policy 2",
        "draft_closed",
    ]
