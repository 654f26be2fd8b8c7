"""Estimates of waits: by size class, with their spread, of five samples or more, and for what was waited already."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.estimating import MIN_SAMPLES, History, Wait, history_of, size_class

NONE = timedelta(0)
WAITS = st.lists(
    st.builds(
        Wait,
        gpus=st.integers(0, 64),
        length=st.timedeltas(
            min_value=timedelta(minutes=-1), max_value=timedelta(days=9)
        ),
    )
)


def of(*minutes: int, gpus: int = 4) -> History:
    return history_of(
        (Wait(gpus, timedelta(minutes=each)) for each in minutes),
        source="the last 30 days",
    )


def test_below_five_samples_there_is_none() -> None:
    assert of(1, 2, 3, 4).estimate(4, waited=NONE) is None
    assert of(1, 2, 3, 4, 5).estimate(4, waited=NONE) is not None


def test_it_has_the_median_the_spread_the_number_of_samples_and_their_source() -> None:
    found = of(*range(0, 101, 10)).estimate(4, waited=NONE - timedelta(seconds=1))
    assert found is not None
    assert (found.low, found.median, found.high) == tuple(
        timedelta(minutes=each, seconds=1) for each in (10, 50, 90)
    )
    assert (found.samples, found.source) == (11, "the last 30 days")


def test_between_two_samples_it_interpolates() -> None:
    found = of(10, 20, 30, 40, 50, 60).estimate(4, waited=NONE)
    assert found is not None
    assert (found.low, found.median, found.high) == tuple(
        timedelta(minutes=each) for each in (15, 35, 55)
    )


def test_jobs_of_another_size_class_do_not_count() -> None:
    history = history_of(
        [
            *(Wait(1, timedelta(minutes=1)) for _ in range(9)),
            Wait(8, timedelta(hours=9)),
        ],
        source="",
    )
    assert history.estimate(8, waited=NONE) is None
    assert history.estimate(1, waited=NONE) is not None


def test_what_was_waited_already_leaves_out_jobs_that_had_started_by_then() -> None:
    history = of(1, 1, 1, 1, 1, 60, 70, 80, 90, 100)
    found = history.estimate(4, waited=timedelta(minutes=50))
    assert found is not None
    assert (found.median, found.samples) == (timedelta(minutes=30), 5)
    assert history.estimate(4, waited=timedelta(minutes=60)) is None


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [((0,), 0), ((1,), 1), ((2, 4), 2), ((5, 8), 3), ((9, 32), 4), ((33, 999), 5)],
)
def test_size_classes(sizes: tuple[int, ...], expected: int) -> None:
    assert {size_class(each) for each in sizes} == {expected}


@given(
    WAITS,
    st.integers(0, 64),
    st.timedeltas(min_value=NONE, max_value=timedelta(days=9)),
)
def test_an_estimate_is_ordered_never_in_the_past_and_never_of_too_few(
    waits: list[Wait], gpus: int, waited: timedelta
) -> None:
    found = history_of(waits, source="x").estimate(gpus, waited=waited)
    if found is not None:
        assert NONE < found.low <= found.median <= found.high
        assert MIN_SAMPLES <= found.samples <= len(waits)
