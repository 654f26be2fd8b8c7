"""What is to be done next in Azure so that a team's account has the models that are wanted of it. Pure.

One step at a time, from what Azure says now: whoever dies in between is followed by somebody who looks again. An
account does one thing at a time. A deleted account keeps its name and its quota until it is purged, so that nothing is
over before that. https://learn.microsoft.com/azure/ai-services/recover-purge-resources
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Step(StrEnum):
    """What a worker does now."""

    MAKE_ACCOUNT = "make_account"
    GRANT_ROLE = "grant_role"
    WITHDRAW_ROLE = "withdraw_role"
    DEPLOY = "deploy"
    DELETE_DEPLOYMENT = "delete_deployment"
    DELETE_ACCOUNT = "delete_account"
    PURGE = "purge"
    WAIT = "wait"
    NOTHING = "nothing"


@dataclass(frozen=True, kw_only=True)
class Found:
    """A deployment as Azure has it; `is_busy` while Azure works on it, `has_failed` where its last change did."""

    capacity: int
    is_busy: bool = False
    has_failed: bool = False


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What Azure has now: whether the account is there, deleted and not purged, or neither.

    `groups` are those of the groups in question that may call the account's models.
    """

    account: bool = False
    is_deleted: bool = False
    is_busy: bool = False
    has_failed: bool = False
    groups: frozenset[str] = frozenset()
    deployments: Mapping[str, Found] = field(default_factory=dict)

    @property
    def busy(self) -> frozenset[str]:
        """The deployments that Azure works on: it tells the capacity that they will have."""
        return frozenset(name for name, one in self.deployments.items() if one.is_busy)

    @property
    def held(self) -> dict[str, int]:
        """The capacities of the others; none of one that has failed, of which Azure tells what nobody can count on."""
        return {
            name: 0 if one.has_failed else one.capacity
            for name, one in self.deployments.items()
            if not one.is_busy
        }


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Thousands of tokens a minute by deployment, none for no account any more, and the group that may call them.

    What is in `last` is asked for after everything else: Azure refused it.
    """

    capacities: Mapping[str, int]
    group: str
    last: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Next:
    """A step, with the deployment or the group that it is about."""

    step: Step
    about: str = ""


def next_step(wanted: Wanted, observed: Observed) -> Next:
    """The one thing that brings Azure nearer to what is wanted; NOTHING when it is as wanted."""
    if observed.is_busy or observed.busy:
        return Next(Step.WAIT)
    # What has the account's name and is not purged stands in the way of an account, and is the last of one that went.
    if observed.is_deleted and not observed.account:
        return Next(Step.PURGE)
    return _up(wanted, observed) if wanted.capacities else _down(observed)


def _up(wanted: Wanted, observed: Observed) -> Next:
    if not observed.account or observed.has_failed:
        return Next(Step.MAKE_ACCOUNT)
    for group in sorted(observed.groups - {wanted.group}):
        return Next(Step.WITHDRAW_ROLE, group)
    if wanted.group not in observed.groups:
        return Next(Step.GRANT_ROLE, wanted.group)
    for name in sorted(set(observed.deployments) - set(wanted.capacities)):
        return Next(Step.DELETE_DEPLOYMENT, name)
    return _deployments(wanted, observed.deployments)


def _deployments(wanted: Wanted, there: Mapping[str, Found]) -> Next:
    # What gets smaller first: its quota may be what another one lacks.
    def order(name: str) -> tuple[bool, int, str]:
        now = there[name].capacity if name in there else 0
        return name in wanted.last, wanted.capacities[name] - now, name

    for name in sorted(wanted.capacities, key=order):
        found = there.get(name)
        if (
            found is None
            or found.capacity != wanted.capacities[name]
            or found.has_failed
        ):
            return Next(Step.DEPLOY, name)
    return Next(Step.NOTHING)


def _down(observed: Observed) -> Next:
    if not observed.account:
        return Next(Step.NOTHING)
    for group in sorted(observed.groups):
        return Next(Step.WITHDRAW_ROLE, group)
    for name in sorted(observed.deployments):
        return Next(Step.DELETE_DEPLOYMENT, name)
    return Next(Step.DELETE_ACCOUNT)
