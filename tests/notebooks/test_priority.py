"""With which priority the servers of a profile run, and what their people read about it."""

import pytest

from notebooks.profiles.document import read
from notebooks.profiles.priority import goes_first_words, priority_of
from tests.notebooks.documents import CPU


@pytest.mark.parametrize(
    ("overrides", "priority"),
    [
        pytest.param("{}", 0, id="pods without a class have the lowest"),
        pytest.param("{priority_class_name: exploratory}", 1_000, id="its class"),
        pytest.param(
            "{extra_labels: {kueue.x-k8s.io/priority-class: scheduled-training}, "
            "priority_class_name: exploratory}",
            100_000,
            id="Kueue's label before the class",
        ),
        pytest.param("{priority_class_name: theirs}", 0, id="a class of nobody's"),
    ],
)
def test_a_profile_says_with_which_priority_its_servers_run(
    overrides: str, priority: int
) -> None:
    assert priority_of(read(f"{CPU}overrides: {overrides}\n")) == priority


def test_a_server_whose_profile_is_gone_has_the_lowest() -> None:
    assert priority_of(None) == 0


def test_only_below_the_usual_priority_runs_are_named() -> None:
    assert goes_first_words(0).startswith("Runs of your team usually")
    assert goes_first_words(1_000).startswith("Work of your team with a higher")
