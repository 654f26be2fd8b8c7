"""Policies and drafts that tests begin with."""

from dataclasses import replace
from typing import Any

from accounts.models import User
from approvals.policy_desk import actions as policy_actions
from policy.document import Policy, to_json
from policy.models import PolicyDraft, PolicyVersion
from tests.scene import NOW, Scene

WHY = "Teams wait for what is always approved."


def usual(**numbers: Any) -> dict[str, Any]:
    """The first policy's document with other thresholds."""
    policy = Policy()
    return to_json(replace(policy, thresholds=replace(policy.thresholds, **numbers)))


def drafted(by: User, **numbers: Any) -> PolicyDraft:
    """A draft of the first policy with other thresholds and a reason."""
    return policy_actions.draft(by=by, now=NOW, said=usual(**numbers), why=WHY)


def in_force(scene: Scene, **numbers: Any) -> PolicyVersion:
    """A version that Priya wrote and Marcus activated."""
    return activated(drafted(scene.priya, **numbers), by=scene.marcus)


def activated(draft: PolicyDraft, *, by: User, **more: Any) -> PolicyVersion:
    """What becomes of a draft."""
    return policy_actions.activate(
        draft.pk, by=by, expected_version=draft.version, now=NOW, **more
    )
