"""Bodies of the API that are as large as they may be are understood, or refused, as fast as they are long."""

import json
from io import BytesIO
from time import process_time

import pytest
from rest_framework.exceptions import ParseError

from web.parsing import BoundedJson

NAMES = 40_000


def seconds_for(body: str) -> float:
    """The shortest of five: what else the machine does makes one longer, and none shorter."""
    return min(_seconds_once(body) for _ in range(5))


def _seconds_once(body: str) -> float:
    begun = process_time()
    with pytest.raises(ParseError, match="stands twice"):
        BoundedJson().parse(BytesIO(body.encode()))
    return process_time() - begun


@pytest.mark.slow
def test_a_name_that_stands_twice_among_very_many_is_found_at_once() -> None:
    many = json.dumps(dict.fromkeys(map(str, range(NAMES)), 0))[:-1]
    few = json.dumps(dict.fromkeys(map(str, range(NAMES // 10)), 0))[:-1]
    ends = ', "zz": 0, "zz": 0}'
    # Ten times the names take ten times as long, not a hundred times.
    assert seconds_for(many + ends) < 40 * max(seconds_for(few + ends), 0.001)
