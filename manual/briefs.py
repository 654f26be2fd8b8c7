"""What somebody who carries a task out has to know, in words. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

Fact = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Brief:
    """What a task is about.

    `title` is as in a sentence ("a notebook with 1 × T4"), `instruction` one sentence that says what to do, `facts` the
    lines below it. `request` is the number of the request that it is for, which the API and the audit log name.
    """

    title: str
    instruction: str
    facts: Sequence[Fact] = ()
    offering: str = ""
    request: int | None = None
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Instructions:
    """What an offering says to whoever sets something up and takes it down again.

    `thing` is what is taken down ("the volume corpus"), `at` where it is (" in training", or nothing).
    """

    title: str
    set_up: str
    thing: str
    at: str = ""
    facts: Sequence[Fact] = ()

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Instructions":
        """What `to_json` made."""
        return cls(
            **{
                **stored,
                "facts": tuple((label, value) for label, value in stored["facts"]),
            }
        )
