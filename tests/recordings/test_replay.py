"""The sandbox answers recorded exchanges of a real cluster alike, step by step."""

import pytest

from tests.recordings.differences import NOT_ALIKE
from tests.recordings.replaying import Player, steps_of
from tests.recordings.surroundings import HOOKS

RECORDINGS = (
    "01-discovery",
    "02a-ssa-golden",
    "02b-ssa-semantics",
    "02c-ssa-refusals",
    "03-list-watch",
    "03b-watch-bookmark",
    "03c-expired",
    "04-namespace-life",
    "05-resourcequota",
    "06-limitrange",
    "07-rbac",
    "08-delete",
    "09-kueue-objects",
    "12-nodes",
    "20-drift-holes",
)
# Field managers are named after who calls: later recordings were made with another client.
AGENTS = {"20-drift-holes": "Python-urllib/3.12"}


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_fresh_cluster_answers_as_recorded(name: str) -> None:
    player = Player(agent=AGENTS.get(name, "python-urllib3/2.6.0"))
    player.cluster.has_visibility = player.cluster.has_jobset = False
    hooks = dict(HOOKS.get(name, {}))
    listed = NOT_ALIKE.get(name, {})
    unlike: list[str] = []
    alike: list[str] = []
    for number, step in enumerate(steps_of(name)):
        if hook := hooks.pop(step["name"], None):
            hook(player)
        lines = player.play(step)
        title = f"{name}[{number}] {step['name']}"
        if lines and number not in listed:
            unlike.append("\n  ".join([title, *lines[:5]]))
        if not lines and number in listed:
            alike.append(f"{title} matches now: take it off the list")
    assert not unlike + alike, "\n".join(unlike + alike)
    assert not hooks, f"hooks that never ran: {sorted(hooks)}"


def test_every_exception_names_a_step_that_exists() -> None:
    for name, listed in NOT_ALIKE.items():
        assert set(listed) <= set(range(len(steps_of(name)))), name
