"""When to try again: pure."""

from datetime import timedelta

FIRST = timedelta(seconds=30)
FACTOR = 3
LONGEST = timedelta(hours=1)
LONGEST_ASKED = timedelta(hours=6)
MOST_ATTEMPTS = 8
# After the first tries of what nobody said was refused: a receipt that was lost, not a receiver that is away.
SOON = timedelta(seconds=4)
SOON_ATTEMPTS = 3


def wait_after(attempts: int, *, retry_after: float | None, jitter: float) -> timedelta:
    """How long to wait after so many attempts: three times longer each time, up to an hour.

    `jitter` in [0, 1) takes up to half of it away, so that what failed together does not come back together. A
    receiver that asks for more time (`retry_after` in seconds) gets it, up to six hours.
    """
    # Beyond this many the wait is the longest anyway.
    plain = min(FIRST * int(FACTOR ** min(max(attempts - 1, 0), 10)), LONGEST)
    asked = min(timedelta(seconds=retry_after or 0), LONGEST_ASKED)
    return max(plain * (1 - jitter / 2), asked)


def wait_for_receipt(attempts: int, *, jitter: float) -> timedelta:
    """How long to wait after so many attempts when only the receipt was lost: seconds at first, then as ever."""
    if attempts > SOON_ATTEMPTS:
        return wait_after(attempts - SOON_ATTEMPTS, retry_after=None, jitter=jitter)
    return SOON * attempts * (1 - jitter / 2)
