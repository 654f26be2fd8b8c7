"""What a queue can ever borrow, as Kueue counts its "maximum capacity". Pure.

Kueue lets a queue have the smaller of its own quota with its borrowing limit, and of all that the queues of its cohort
lend. So a limit of 2 is worth nothing where nobody else has GPUs of that flavor. Queues that are stopped lend, too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Cell = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Lender:
    """A queue of a cluster, by its name there: what it lends of each flavor and resource when it leaves it idle."""

    name: str
    cohort: str
    lends: Mapping[Cell, int]


def lent_to(name: str, cohort: str, lenders: Iterable[Lender]) -> Mapping[Cell, int]:
    """What the other queues of a cohort could lend to this one if all of them were idle."""
    found: Counter[Cell] = Counter()
    for one in lenders:
        if one.cohort == cohort and one.name != name:
            found.update(one.lends)
    return found
