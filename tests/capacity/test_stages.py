"""When people are told that a limit comes near."""

from hypothesis import given
from hypothesis import strategies as st

from capacity.chain.stages import HYSTERESIS, Stage, stage_of, told_next


def test_each_stage_begins_at_its_percent() -> None:
    assert [stage_of(percent) for percent in (59, 60, 79, 80, 94, 95, 130)] == [
        *(Stage.NONE, Stage.FILE_INCREASE, Stage.FILE_INCREASE, Stage.ALERT),
        *(Stage.ALERT, Stage.HARD_STOP_NEAR, Stage.HARD_STOP_NEAR),
    ]


def test_what_swings_around_a_stage_is_told_once() -> None:
    told, notices = Stage.NONE, 0
    for percent in (50, 81, 79, 82, 78, 80, 76):
        told, is_told = told_next(told, percent)
        notices += is_told
    assert (told, notices) == (Stage.ALERT, 1)


def test_what_was_left_behind_is_told_again_when_it_comes_back() -> None:
    told, _ = told_next(Stage.ALERT, 75)
    assert told is Stage.FILE_INCREASE
    assert told_next(told, 80) == (Stage.ALERT, True)


@given(st.lists(st.integers(0, 120), max_size=40))
def test_nobody_is_told_twice_of_a_stage_that_was_not_left_behind(
    percents: list[int],
) -> None:
    told, lowest = Stage.NONE, dict[Stage, int]()
    for percent in percents:
        before = told
        told, is_told = told_next(told, percent)
        assert told >= stage_of(percent)
        if is_told:
            assert told > before
            assert lowest.get(told, 0) <= told - HYSTERESIS
            lowest |= {stage: percent for stage in Stage if stage <= told}
        lowest = {stage: min(low, percent) for stage, low in lowest.items()}
