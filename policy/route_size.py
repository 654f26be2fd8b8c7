"""How large an ask is for the routes: itself, with what the team and the person were granted before. Pure.

A route with a size is for people who must see large asks. Seven GPUs and then seven more are one ask of fourteen to
them, whichever team asks and whoever approved the first seven. What the people of a route have approved themselves
does not count again, and neither does what was granted before that: they have seen it in the sum.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from ui.amounts import listed
from ui.amounts import usd as usd_words

if TYPE_CHECKING:
    from policy.document import Route
    from policy.rules import Ask


@dataclass(frozen=True, kw_only=True, slots=True)
class Earlier:
    """Other asks of one kind that are held, waiting, or were granted within the window, added up.

    `seats` are the steps that approved them, or that will if they wait; `first` and `last` are when they were granted.
    """

    first: datetime
    last: datetime
    gpus: int
    usd: Decimal
    granted: bool
    of_team: bool
    of_person: bool
    seats: tuple[str, ...] = ()
    offering: str = "gpus"
    environment: str = ""
    flavor: str = ""
    tier: str = "standard"


@dataclass(frozen=True, kw_only=True, slots=True)
class RouteSize:
    """What a route was chosen by; `words` say why it is more than the single ask, and are empty when it is not."""

    gpus: int
    usd: Decimal
    words: str = ""


def choose(
    routes: Iterable["Route"], ask: "Ask", usd: Decimal, earlier: Sequence[Earlier]
) -> tuple["Route | None", RouteSize]:
    """The first route that takes the ask or the sum it belongs to, and the size that it was chosen by."""
    alone = RouteSize(gpus=ask.gpus, usd=usd)
    for route in routes:
        if route.takes(alone.gpus, alone.usd):
            return route, alone
        for of_person in (False, True):
            size = _sum(
                alone,
                _not_seen(route, earlier, of_person=of_person),
                of_person=of_person,
            )
            if route.takes(size.gpus, size.usd):
                return route, size
    return None, alone


def _not_seen(
    route: "Route", earlier: Sequence[Earlier], *, of_person: bool
) -> list[Earlier]:
    """What of the team's (or the person's) earlier asks the people of a route have not approved or seen in a sum."""
    needed = Counter(step.by for step in route.steps)
    granted: list[Earlier] = []
    waiting: list[Earlier] = []
    for each in sorted(earlier, key=lambda each: each.last):
        is_theirs = each.of_person if of_person else each.of_team
        if not is_theirs or not route.where.matches(
            each.offering, each.environment, each.flavor, each.tier
        ):
            continue
        if needed <= Counter(each.seats):
            granted = [] if each.granted else granted
        elif each.granted:
            granted.append(each)
        else:
            waiting.append(each)
    return granted + waiting


def _sum(alone: RouteSize, earlier: Sequence[Earlier], *, of_person: bool) -> RouteSize:
    granted = [each for each in earlier if each.granted]
    waiting = [each for each in earlier if not each.granted]
    # What takes no GPUs is told apart: the sum of money is of both, and "with the 4 granted" would not account for it.
    of_gpus, of_others = (
        [each for each in granted if bool(each.gpus) is has_gpus]
        for has_gpus in (True, False)
    )
    parts = [_granted_words(of_gpus)] if of_gpus else []
    if of_others:
        other = " for other things" if of_gpus or alone.gpus else ""
        parts.append(f"{_granted_words(of_others)}{other}")
    if waiting:
        parts.append(f"the {_amount(waiting)} that wait")
    gpus = alone.gpus + sum(each.gpus for each in earlier)
    usd = alone.usd + sum((each.usd for each in earlier), Decimal(0))
    whose = " of one person over all their teams" if of_person else ""
    said = f"{_size(gpus, usd)}{whose} with {listed(parts)}" if parts else ""
    return RouteSize(gpus=gpus, usd=usd, words=said)


def _granted_words(granted: Sequence[Earlier]) -> str:
    first, last = (
        min(each.first for each in granted),
        max(each.last for each in granted),
    )
    when = f"on {last:%a} {last.day} {last:%b}" if first.date() == last.date() else ""
    return f"the {_amount(granted)} granted {when or f'since {first:%a} {first.day} {first:%b}'}"


def _amount(of: Sequence[Earlier]) -> str:
    gpus = sum(each.gpus for each in of)
    return (
        f"{gpus:,}" if gpus else usd_words(sum((each.usd for each in of), Decimal(0)))
    )


def _size(gpus: int, usd: Decimal) -> str:
    amount = f"{gpus:,} GPU{'s' if gpus != 1 else ''}, " if gpus else ""
    return f"{amount}{usd_words(usd)}"
