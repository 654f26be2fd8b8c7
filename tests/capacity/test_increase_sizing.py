"""From vCPUs to machines and GPUs, which limit is suggested, and how often Azure is asked about a request."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.increases.sizing import (
    MAX_VCPUS,
    MachineSize,
    max_limit,
    more_machines,
    suggested,
)
from capacity.increases.states import LONGEST_PAUSE, State, next_look
from capacity.increases.words import Told, sentence

NC24 = MachineSize(vcpus=24, gpus=1, name="Standard_NC24ads_A100_v4")
NC96 = MachineSize(vcpus=96, gpus=4, name="Standard_NC96ads_A100_v4")
D2 = MachineSize(vcpus=2, gpus=0, name="Standard_D2s_v5")
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("sizes", "before", "after", "words"),
    [
        ([NC24], 192, 384, "8 more Standard_NC24ads_A100_v4 (8 GPUs)"),
        ([NC24], 192, 216, "1 more Standard_NC24ads_A100_v4 (1 GPU)"),
        ([NC24], 192, 215, "0 more Standard_NC24ads_A100_v4"),
        # What was left over counts once it makes a whole machine.
        ([NC24], 215, 216, "1 more Standard_NC24ads_A100_v4 (1 GPU)"),
        (
            [NC96, NC24],
            0,
            96_000,
            "4,000 more Standard_NC24ads_A100_v4 (4,000 GPUs) or 1,000 more Standard_NC96ads_A100_v4 (4,000 GPUs)",
        ),
        ([D2], 0, 4, "2 more Standard_D2s_v5"),
        ([], 0, 4, ""),
    ],
)
def test_a_limit_is_told_in_machines_and_gpus(
    sizes: list[MachineSize], before: int, after: int, words: str
) -> None:
    assert more_machines(sizes, before=before, after=after) == words


@pytest.mark.parametrize(
    ("limit", "expected", "wanted"),
    [
        (192, None, 384),
        (192, 150.0, 384),
        (192, 192.0, 384),
        (192, 192.5, 216),
        (192, 500.0, 504),
        (192, 504.0001, 504),
        (100, None, 216),
        (0, None, 24),
        (1, None, 24),
        (192, 10.0**7, 19_200),
        (99_999, None, MAX_VCPUS),
    ],
)
def test_what_is_suggested_is_expected_in_whole_machines_or_double(
    limit: int, expected: float | None, wanted: int
) -> None:
    asked = suggested([NC24], limit=limit, expected=expected)
    assert asked == wanted


@given(
    st.integers(0, MAX_VCPUS - 1),
    st.none() | st.floats(0, 10**9),
    st.lists(st.sampled_from([NC24, NC96])),
)
def test_what_is_suggested_may_be_asked_for(
    limit: int, expected: float | None, sizes: list[MachineSize]
) -> None:
    assert limit < suggested(sizes, limit=limit, expected=expected) <= max_limit(limit)


@pytest.mark.parametrize(
    ("limit", "most"),
    [(0, MAX_VCPUS), (1, 100), (192, 19_200), (1_000, MAX_VCPUS), (50_000, MAX_VCPUS)],
)
def test_nobody_asks_for_more_than_a_hundred_times_as_much(
    limit: int, most: int
) -> None:
    assert max_limit(limit) == most


def test_azure_is_asked_often_at_first_and_every_hour_in_the_end() -> None:
    waits = [
        next_look(timedelta(minutes=minutes))
        for minutes in (0, 4, 5, 59, 60, 719, 720, 9000)
    ]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1], waits[-2]) == (
        timedelta(seconds=20),
        LONGEST_PAUSE,
        LONGEST_PAUSE,
    )


@pytest.mark.parametrize(
    ("state", "message", "words"),
    [
        (State.NEW, "", "The portal sends it now."),
        (
            State.NEW,
            "Azure answered 503.",
            "It is not sent yet, and tried again: Azure answered 503.",
        ),
        (
            State.SENT,
            "In progress.",
            "Azure has had it since Wed 25 Nov, 12:00 UTC. “In progress.” Some are",
        ),
        (State.SENT, "", "Azure has had it since Wed 25 Nov, 12:00 UTC. Some are"),
        (State.GRANTED, "", "Azure granted it on Wed 25 Nov, 12:00 UTC."),
        (
            State.REFUSED,
            "No.",
            "Azure refused it on Wed 25 Nov, 12:00 UTC: No. A support request in Azure",
        ),
        (
            State.FAILED,
            "No right.",
            "The portal gave it up on Wed 25 Nov, 12:00 UTC: No right.",
        ),
        (State.WITHDRAWN, "", "It was withdrawn on Wed 25 Nov, 12:00 UTC."),
    ],
)
def test_each_state_has_a_sentence(state: State, message: str, words: str) -> None:
    assert sentence(Told(state=state, message=message, since=NOW), NOW).startswith(
        words
    )
