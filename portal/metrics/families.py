"""What a scrape is made of: families of samples, each with its words. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf

Labels = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Family:
    """A metric with its samples: a value for the values of its labels, in their order.

    Labels have few values, which platform leads choose or the code lists: no person, team or namespace is one. Teams
    come and go by themselves, and more people read a Prometheus than may see every team.
    """

    name: str
    words: str
    samples: Mapping[Labels, float]
    labels: Sequence[str] = ()
    is_counter: bool = False


def of_all(name: str, words: str, value: float) -> Family:
    """A metric of the whole installation, which has one sample."""
    return Family(name=name, words=words, samples={(): value})


def seconds_since(at: datetime | None, *, now: datetime) -> float:
    """How long ago it was, in seconds; infinite for what never was, so that an alert on an age fires for it, too."""
    return inf if at is None else max((now - at).total_seconds(), 0.0)


def age_of(oldest: datetime | None, *, now: datetime) -> float:
    """How old the oldest of some rows is, in seconds; 0 where there is none."""
    return 0.0 if oldest is None else seconds_since(oldest, now=now)
