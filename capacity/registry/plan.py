"""What is to be done next so that a team's group, and no other, has its role on the registry. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Step(StrEnum):
    """What a worker does now."""

    GRANT = "grant"
    WITHDRAW = "withdraw"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Grant:
    """A role of a group on the registry, under a condition where it holds for some repositories alone."""

    role: str
    group: str
    condition: str = ""

    @property
    def is_like(self) -> tuple[str, str, str]:
        """By which two are compared: Azure may write the blanks of a condition otherwise."""
        return self.role, self.group, "".join(self.condition.split())


def next_step(
    wanted: Grant | None, observed: Iterable[Grant]
) -> tuple[Step, Grant | None]:
    """The one thing that brings the registry nearer to what is wanted; None for no access any more."""
    like = wanted.is_like if wanted is not None else None
    there = list(observed)
    # What is wrong goes first: a role of another condition has the name of the one that is wanted.
    for one in there:
        if one.is_like != like:
            return Step.WITHDRAW, one
    return (Step.NOTHING, None) if wanted is None or there else (Step.GRANT, wanted)
