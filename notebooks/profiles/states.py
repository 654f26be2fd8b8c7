"""Where a profile is between its first draft and its end, and which moves there are. Pure."""

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    """Whether people can choose a profile."""

    DRAFT = "draft"
    PUBLISHED = "published"
    DEPRECATED = "deprecated"
    RETIRED = "retired"

    @property
    def words(self) -> str:
        """As pages write it."""
        return self.value.capitalize()

    @property
    def tone(self) -> str:
        """The badge's tone."""
        return {
            "draft": "waiting",
            "published": "good",
            "deprecated": "ending",
            "retired": "past",
        }[self.value]


# A deprecated profile can be published again; a retired one never comes back, so that its name means one thing.
LEGAL: Mapping[State, frozenset[State]] = {
    State.DRAFT: frozenset({State.PUBLISHED, State.RETIRED}),
    State.PUBLISHED: frozenset({State.DEPRECATED}),
    State.DEPRECATED: frozenset({State.PUBLISHED, State.RETIRED}),
    State.RETIRED: frozenset(),
}
OFFERED = frozenset({State.PUBLISHED, State.DEPRECATED})
