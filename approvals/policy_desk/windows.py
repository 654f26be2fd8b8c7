"""What the policy alone had granted in a window before a moment, for many asks of long ago at once."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Any, NamedTuple

from django.db.models import Q

from approvals.judging.inputs import GPUS_GIVEN, Given
from approvals.models import Decision
from policy.document import Policy, Thresholds
from policy.evaluation import Ask, Standing

Whose = tuple[str, int]  # "team" or "person", and which
Place = tuple[datetime, int]  # a moment and, of what happened then, the request
NOTHING = Given(0, Decimal(0))


class Judged(NamedTuple):
    """An ask as it was judged: of which request, whose it was, and what the policy looked at."""

    request_id: int
    renews_id: int | None
    team_id: int
    person_id: int
    answer: Any
    ask: Ask
    standing: Standing


@dataclass(frozen=True)
class Granted:
    """What the policy granted to one request: when, to whom, how many GPUs, and which of them it let go on later."""

    at: Place
    whose: tuple[Whose, ...]
    gpus: int
    again: list[tuple[Place, int]] = field(default_factory=list)

    def counts_again(self, *, since: Place, until: Place, goes_on: int) -> int:
        """GPUs that count in renewals and not here, of what was granted since a moment; `goes_on` are renewed now."""
        if self.at < since:
            return 0
        again = sum(gpus for at, gpus in self.again if at < until)
        return min(self.gpus, again + goes_on)


@dataclass(frozen=True)
class Grants:
    """Everything that the policy granted by itself, by whom it was for, oldest first and added up."""

    places: dict[Whose, list[Place]]
    sums: dict[Whose, list[Given]]
    granted: dict[int, Granted]
    renewed: dict[Whose, set[int]]

    @classmethod
    def of(cls, rows: Sequence[Judged], *, longest: timedelta) -> "Grants":
        """Those that may lie in a window of one of these asks; one query."""
        moments = [row.standing.now for row in rows]
        found = Decision.objects.granted_by_policy().filter(
            Q(request__team__in={row.team_id for row in rows})
            | Q(requester__in={row.person_id for row in rows}),
            at__gte=min(moments) - longest,
            at__lte=max(moments),
        )
        by: dict[Whose, list[tuple[Place, Given]]] = defaultdict(list)
        granted: dict[int, Granted] = {}
        renewed: dict[Whose, set[int]] = defaultdict(set)
        columns: tuple[Any, ...] = (
            "at",
            "request_id",
            "request__renews_id",
            "request__team_id",
            "requester_id",
            GPUS_GIVEN,
            "usd",
        )
        for at, request, renews, team, person, gpus, usd in found.order_by(
            "at", "request_id"
        ).values_list(*columns):
            place, whose = (at, request), (("team", team), ("person", person))
            granted[request] = Granted(place, whose, gpus)
            for one in whose:
                by[one].append((place, Given(gpus, usd)))
            first = granted.get(renews)
            if first is not None:
                first.again.append((place, gpus))
                for one in first.whose:
                    renewed[one].add(renews)
        return cls(
            {whose: [place for place, _ in parts] for whose, parts in by.items()},
            {
                whose: list(
                    accumulate((each for _, each in parts), Given.plus, initial=NOTHING)
                )
                for whose, parts in by.items()
            },
            granted,
            renewed,
        )

    def before(self, whose: Whose, row: Judged, *, window: timedelta) -> Given:
        """What was granted within the window before an ask was judged; of the same moment, those asked before."""
        places = self.places.get(whose)
        if places is None:
            return NOTHING
        now = row.standing.now
        since, until = (now - window, 0), (now, row.request_id)
        start, end = bisect_left(places, since), bisect_left(places, until)
        counted = self.sums[whose][end].minus(self.sums[whose][start])
        again = sum(
            self.granted[each].counts_again(
                since=since,
                until=until,
                goes_on=row.ask.gpus if each == row.renews_id else 0,
            )
            for each in self._kept_longer(whose, row)
        )
        return counted.minus(Given(again, Decimal(0)))

    def _kept_longer(self, whose: Whose, row: Judged) -> set[int]:
        """The requests of somebody that were renewed, or that an ask renews."""
        found = self.renewed[whose]
        if row.renews_id is None or row.renews_id not in self.granted:
            return found
        is_theirs = whose in self.granted[row.renews_id].whose
        return found | {row.renews_id} if is_theirs else found


def counted_by(
    policy: Policy, rows: Iterable[tuple[Judged, Policy | None]]
) -> list[Judged]:
    """The asks with what falls into the windows of a policy; `rows` name by which policy each was gathered.

    A query where a window is another one, however many asks; none where all are as they were.
    """
    found = [(row, _limits(policy, row.ask), then) for row, then in rows]
    other = [row for row, limits, then in found if _differs(row, limits, then)]
    if not other:
        return [row for row, _, _ in found]
    longest = max(timedelta(days=limits.window_days) for _, limits, _ in found)
    grants = Grants.of(other, longest=longest)
    return [
        _counted(row, grants, timedelta(days=limits.window_days))
        if _differs(row, limits, then)
        else row
        for row, limits, then in found
    ]


def _differs(row: Judged, limits: Thresholds, then: Policy | None) -> bool:
    # What was gathered before money was counted lacks it.
    known = then is not None and row.standing.recent_team_usd is not None
    return (
        not known
        or then is None
        or _limits(then, row.ask).window_days != limits.window_days
    )


def _limits(policy: Policy, ask: Ask) -> Thresholds:
    return policy.thresholds_for(ask.offering, ask.environment, ask.flavor, ask.tier)


def _counted(row: Judged, grants: Grants, window: timedelta) -> Judged:
    team = grants.before(("team", row.team_id), row, window=window)
    person = grants.before(("person", row.person_id), row, window=window)
    standing = replace(
        row.standing,
        recent_team_gpus=team.gpus,
        recent_person_gpus=person.gpus,
        recent_team_usd=team.usd,
        recent_person_usd=person.usd,
    )
    return row._replace(standing=standing)
