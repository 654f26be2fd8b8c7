"""A policy as somebody says it, taken or refused with every place that is wrong."""

from collections.abc import Mapping
from typing import Any

from accounts.models import Team
from catalogue.offerings import OFFERINGS
from policy.document import Policy, Where, policy_from, read, write
from web.documents import LARGEST, DocumentRefused
from web.refusals import BadDocument

Said = str | Mapping[str, Any]
ENVIRONMENTS = ("dev", "test", "production")


class NotAPolicy(BadDocument):
    """A document that is no policy."""

    def __init__(self, problems: tuple[tuple[str, str], ...]) -> None:
        super().__init__(problems, code="not_a_policy")


def policy_said(said: Said) -> Policy:
    """The policy of a YAML text or a JSON document; raises NotAPolicy naming every place that is wrong."""
    try:
        policy = read(said) if isinstance(said, str) else policy_from(said)
    except DocumentRefused as refused:
        raise NotAPolicy(refused.problems) from refused
    if unknown := tuple(_unknown_names(policy)):
        raise NotAPolicy(unknown)
    if len(write(policy).encode()) > LARGEST:
        raise NotAPolicy((("", "Written out, the policy is larger than 64 kB."),))
    return policy


def _unknown_names(policy: Policy) -> list[tuple[str, str]]:
    """Names that nothing has, so that a misspelt one never means nothing in silence; flavors may come later."""
    parts: list[tuple[str, Where]] = [
        (f"overrides.{at}.where", each.where)
        for at, each in enumerate(policy.overrides)
    ]
    parts += [
        (f"routes.{at}.where", each.where) for at, each in enumerate(policy.routes)
    ]
    known: dict[str, tuple[str, ...]] = {
        "offerings": tuple(OFFERINGS),
        "environments": ENVIRONMENTS,
        "tiers": tuple(Team.Tier.values),
    }
    return [
        (
            f"{place}.{name}",
            f"There is no “{value[:40]}”; known are: {', '.join(names)}.",
        )
        for place, where in parts
        for name, names in known.items()
        for value in getattr(where, name)
        if value not in names
    ]
