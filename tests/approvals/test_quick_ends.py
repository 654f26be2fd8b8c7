"""Ends that one click chooses: what they are called is what they are."""

from datetime import UTC, datetime

import pytest

from approvals.request_form.quick_ends import quick_end, quick_ends


@pytest.mark.parametrize(
    ("hour", "label", "ends"),
    [
        (0, "Today", datetime(2026, 11, 27, tzinfo=UTC)),
        (19, "Today", datetime(2026, 11, 27, tzinfo=UTC)),
        (20, "Until tomorrow night", datetime(2026, 11, 28, tzinfo=UTC)),
        (23, "Until tomorrow night", datetime(2026, 11, 28, tzinfo=UTC)),
    ],
)
def test_today_is_called_so_while_four_hours_of_it_are_left(
    hour: int, label: str, ends: datetime
) -> None:
    now = datetime(2026, 11, 26, hour, 30, tzinfo=UTC)
    assert quick_ends(now)[0] == ("day", label)
    assert quick_end("day", now) == ends


def test_the_others_are_whole_days_from_the_last_full_hour() -> None:
    now = datetime(2026, 11, 26, 9, 30, tzinfo=UTC)
    assert [label for _, label in quick_ends(now)[1:]] == [
        "3 days",
        "1 week",
        "2 weeks",
    ]
    assert quick_end("7", now) == datetime(2026, 12, 3, 9, tzinfo=UTC)
    assert quick_end("nothing", now) == datetime(2026, 11, 27, 9, tzinfo=UTC)
