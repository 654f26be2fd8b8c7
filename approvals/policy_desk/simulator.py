"""What a policy would have decided: the asks of the last days, judged again on what was known when they came."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from accounts.models import User
from allocations.budgets.money import NOTHING, Amount
from approvals.judging.inputs import policy_of, stored_in
from approvals.models import Evaluation, Request
from approvals.policy_desk import windows
from approvals.states import State
from policy.boundless import boundless
from policy.document import Policy
from policy.evaluation import Evaluation as Answer
from policy.evaluation import Outcome, evaluate
from policy.models import PolicyVersion
from ui.amounts import hours, usd
from web.refusals import BadInput

BATCH = 1000
LONGEST_DAYS = 365
SHOWN = 200
LEAST_ASKS = 5
AUTOMATIC, PEOPLE, IMPOSSIBLE = (outcome.value for outcome in Outcome)
CANNOT_KNOW = (
    "A replay judges each ask on what was held, free, left and granted when it came; what this policy would have "
    "changed for the asks after it, and asks that were refused at once and never stored, it cannot know."
)


class Differing(NamedTuple):
    """An ask that would have been answered otherwise: before, after, and the rule that makes the difference."""

    request_id: int
    before: str
    after: str
    because: str
    amount: Amount


@dataclass
class Replay:
    """The answers before and after, added up; `differing` holds the newest of what differs."""

    asks: int = 0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    amounts: dict[tuple[str, str], Amount] = field(default_factory=dict)
    differs: int = 0
    gated: int = 0
    differing: list[Differing] = field(default_factory=list)

    def add(self, request_id: int, stored: Mapping[str, Any], answer: Answer) -> None:
        """Count one ask; `stored` is the answer that was given then."""
        before, after = stored["outcome"], answer.outcome.value
        amount = Amount(answer.usd, answer.gpu_hours)
        self.asks += 1
        self.counts[before, after] += 1
        self.amounts[before, after] = self.amounts.get((before, after), NOTHING).plus(
            amount
        )
        self.gated += any(rule.code == "gate" for rule in answer.rules)
        if before == after and (after != PEOPLE or _seats(stored) == _seats_of(answer)):
            return
        self.differs += 1
        self.differing.append(
            Differing(request_id, before, after, because(stored, answer), amount)
        )
        del self.differing[:-SHOWN]

    def moved(
        self, to: str, *, of: tuple[str, ...] = (AUTOMATIC, PEOPLE, IMPOSSIBLE)
    ) -> tuple[int, Amount]:
        """How many asks become `to` that were not before, and their money and GPU-hours."""
        pairs = [(before, to) for before in of if before != to]
        total = NOTHING
        for pair in pairs:
            total = total.plus(self.amounts.get(pair, NOTHING))
        return sum(self.counts[pair] for pair in pairs), total

    @property
    def everything_automatic(self) -> bool:
        """Whether no ask that a policy may approve would reach people any more, of enough to say so."""
        automatic = sum(self.counts[before, AUTOMATIC] for before in Outcome)
        judged = self.asks - self.gated
        return (
            judged >= LEAST_ASKS
            and automatic == judged
            and self.moved(AUTOMATIC)[0] > 0
        )


@dataclass(frozen=True)
class Simulation:
    """A policy beside what was decided: the asks of the last days, and those that wait now as last judged."""

    days: int
    since: datetime
    past: Replay
    waiting: Replay


def simulate(policy: Policy, *, days: int, now: datetime, who: User) -> Simulation:
    """Replay the first answer to every version of what was asked in the last days (1 to 365), of teams `who` sees.

    What fell into the windows then is counted again where this policy's are longer or shorter. One query for each
    thousand asks and one for their windows; nothing is written. Raises BadInput for other days.
    """
    if not 1 <= days <= LONGEST_DAYS:
        raise BadInput(
            f"Write 1 to {LONGEST_DAYS} days.", code="out_of_range", field="days"
        )
    since = now - timedelta(days=days)
    seen = Evaluation.objects.filter(request__in=Request.objects.visible_to(who))
    first = seen.filter(~_another(id__lt=OuterRef("id")), at__gte=since, at__lte=now)
    last = seen.filter(
        ~_another(id__gt=OuterRef("id")), content_version=F("request__content_version")
    )
    waiting = last.filter(request__state=State.WAITING)
    versions = {row.number: policy_of(row) for row in PolicyVersion.objects.all()}
    return Simulation(
        days,
        since,
        past=_replayed(first, policy, versions),
        waiting=_replayed(waiting, policy, versions),
    )


def because(stored: Mapping[str, Any], answer: Answer) -> str:
    """The rule that makes the difference, with its limit then and now; who decides where no rule does."""
    then = {rule["code"]: rule for rule in reversed(stored["rules"])}
    failed = [rule["code"] for rule in stored["rules"] if not rule["holds"]]
    fails = [rule for rule in answer.rules if not rule.holds]
    fresh = [
        rule
        for rule in fails
        if rule.code not in failed or (rule.blocks and not then[rule.code]["blocks"])
    ]
    if fresh:
        limit = then[fresh[0].code]["limit"] if fresh[0].code in then else "no limit"
        return _change(fresh[0].text, limit, fresh[0].limit)
    mended = [rule for rule in answer.rules if rule.holds and rule.code in failed]
    eased = [rule for rule in fails if not rule.blocks and then[rule.code]["blocks"]]
    for rule in (*eased, *mended):
        return _change(rule.text, then[rule.code]["limit"], rule.limit)
    gone = [code for code in failed if code not in {rule.code for rule in answer.rules}]
    if gone:
        return _change(then[gone[0]]["text"], then[gone[0]]["limit"], "no limit")
    return f"decided by: {_who(stored)} → {', then '.join(step.words for step in answer.route)}"


def _change(text: str, before: str, after: str) -> str:
    return f"{text}: {before} → {after}" if before != after else f"{text}: {after}"


def _who(stored: Mapping[str, Any]) -> str:
    return ", then ".join(step["words"] for step in stored.get("steps", ())) or "nobody"


def _seats(stored: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [(step["seat"], step["quorum"]) for step in stored.get("steps", ())]


def _seats_of(answer: Answer) -> list[tuple[str, int]]:
    return [(step.by, step.quorum) for step in answer.route]


def _another(**when: Any) -> Exists:
    same = Q(request=OuterRef("request"), content_version=OuterRef("content_version"))
    return Exists(Evaluation.objects.filter(same, **when))


def _replayed(
    rows: QuerySet[Evaluation], policy: Policy, versions: Mapping[int, Policy]
) -> Replay:
    replay = Replay()
    for batch in _batches(rows):
        gathered = [
            (_judged(*each), versions.get(each[-1]["policy"])) for each in batch
        ]
        for row in windows.counted_by(policy, gathered):
            replay.add(
                row.request_id, row.answer, evaluate(row.ask, row.standing, policy)
            )
    return replay


def _judged(
    request_id: int,
    renews_id: int | None,
    team_id: int,
    person_id: int,
    answer: Any,
    inputs: Any,
) -> windows.Judged:
    return windows.Judged(
        request_id, renews_id, team_id, person_id, answer, *stored_in(inputs)
    )


def _batches(
    rows: QuerySet[Evaluation],
) -> Iterator[list[tuple[int, int | None, int, int, Any, Any]]]:
    """In the order of their making, so that a year of asks is never in memory at once."""
    columns = (
        "id",
        "request_id",
        "request__renews_id",
        "request__team_id",
        "request__requester_id",
        "answer",
        "inputs",
    )
    after = 0
    while True:
        batch = list(
            rows.filter(id__gt=after).order_by("id").values_list(*columns)[:BATCH]
        )
        if batch:
            yield [each[1:] for each in batch]
        if len(batch) < BATCH:
            return
        after = batch[-1][0]


def warnings(policy: Policy, past: Replay) -> tuple[str, ...]:
    """Why putting this policy in force needs a second thought; empty when it does not."""
    found = list(boundless(policy))
    if past.everything_automatic:
        found.append(
            f"Every one of the {past.asks - past.gated} asks that a policy may approve would be automatic."
        )
    if found and past.asks:
        count, amount = past.moved(AUTOMATIC)
        found.append(
            f"Of {past.asks:,} asks, {count:,} become automatic: {usd(amount.usd)}, {hours(amount.gpu_hours)}."
        )
    return tuple(found)
