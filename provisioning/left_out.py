"""Whether a tenancy waits of which no message tells: it found no slot, or a sweep enqueued all that it may.

While there is one, whoever ends a pass looks for the next. At all other times that would be a query after each pass,
and a second message about what has one already.
"""

from django.core.cache import cache

from web.counters import breaker

KEY = "tenancies-left-out"
# A sweep comes every two seconds, and whoever finds the next one says so anew.
SECONDS = 10


def note() -> None:
    """Have whoever ends a pass look for the next one, for a while."""
    breaker.ask(lambda: cache.set(KEY, 1, timeout=SECONDS), otherwise=None)


def is_noted() -> bool:
    """Whether somebody was left out a moment ago, as far as is known: while the cache does not answer, it is."""
    return breaker.ask(lambda: cache.get(KEY) is not None, otherwise=True)
