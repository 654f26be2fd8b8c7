"""What B23 explains is what clusters really have: recorded Workloads of every kind, each with an answer."""

from collections import Counter

import pytest

from bench.explaining import explain_all, look, recorded, teams_of
from workloads.explaining import UNKNOWN


@pytest.mark.slow
def test_each_recorded_wait_is_explained_and_none_by_the_fallback() -> None:
    patterns = list(recorded())
    found = explain_all(teams_of(len(patterns), 1))
    codes = Counter(one.why.code for one in found)
    assert len(found) == len(patterns) > 20
    assert UNKNOWN not in codes
    assert len(codes) >= 15


@pytest.mark.slow
def test_the_copies_are_as_many_as_were_asked_for_and_differ() -> None:
    teams = teams_of(400, 8)
    names = {one["metadata"]["name"] for team in teams for one in team.workloads}
    assert (len(teams), len(names)) == (8, 400)
    found = explain_all(teams)
    assert {(one.key.namespace, one.key.name) for one in found} == {
        (f"qm-team-{number % 8}-main", f"train-{number:05}") for number in range(400)
    }
    assert len(look([one for team in teams for one in team.workloads])) == 400
