"""What an approver sees at a glance: what can be approved now, and four tiles: fits, money, use, who is hurt."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NotRequired, TypedDict

from approvals.decisions import route_words
from approvals.decisions.actions import stops
from approvals.models import Request
from approvals.requests import prices
from approvals.requests.actions import Judged
from approvals.states import State
from policy.document import MANAGERS
from policy.evaluation import evaluate
from ui.amounts import moment, usd
from ui.parts import Figure

LONG_REASON = 180


class Rival(TypedDict):
    """Another request that waits for the same GPUs."""

    team: str
    gpus: str
    since: str
    href: str


class Rivals(TypedDict):
    """Who is hurt: what is free afterwards, from when there is enough, and who else waits for it."""

    after: int
    words: str
    grows: NotRequired[bool]
    fits: NotRequired[str]
    rows: Sequence[Rival]
    more: bool


class Primary(TypedDict):
    """The primary button: how many it approves, that these are less than asked, and why not all."""

    count: int
    label: str
    less: bool
    why: str


def possible_now(judged: Judged) -> int:
    """The most units that a vote could approve now: what is free and paid for; 0 when not even one."""
    count = judged.ask.count
    if _is_possible(judged, count):
        return count
    if not judged.wanted.spec.counted:
        return 0
    possible, impossible = 0, count
    while impossible - possible > 1:
        middle = (possible + impossible) // 2
        if _is_possible(judged, middle):
            possible = middle
        else:
            impossible = middle
    return possible if possible >= judged.ask.least else 0


def _is_possible(judged: Judged, count: int) -> bool:
    asked = replace(judged.ask, count=count)
    return not any(
        stops(rule) for rule in evaluate(asked, judged.standing, judged.policy).rules
    )


def primary(
    judged: Judged | None, count: int, rivals: Rivals, hindered: str
) -> Primary:
    """The primary button: approve all, as many as are possible now, or none, and then why and from when.

    `hindered` is what keeps it from being granted though no rule does, in a sentence.
    """
    if hindered:
        why = f"It cannot be granted any more: {hindered}"
        return {"count": 0, "label": "", "less": True, "why": why}
    if judged is None:
        return {"count": count, "label": "Approve", "less": False, "why": ""}
    possible = possible_now(judged)
    if possible == count:
        return {"count": count, "label": "Approve", "less": False, "why": ""}
    missing = next(rule for rule in judged.answer.rules if stops(rule))
    why = rivals.get("fits", "") if missing.code == "free" else ""
    why = why or f"{missing.text[:1].upper()}{missing.text[1:]}: {missing.limit}."
    return {
        "count": possible,
        "label": f"Approve {possible} of {count}" if possible else "",
        "less": True,
        "why": why,
    }


def tiles(
    request: Request,
    judged: Judged | None,
    held: int,
    rivals: Rivals,
    now_possible: Primary,
    hindered: str,
) -> list[Figure]:
    """Fits, money, use and who is hurt, each with one number."""
    return [
        _fits(request, judged, rivals, now_possible, hindered),
        _money(request, judged),
        _use(judged, held),
        _hurt(request, rivals),
    ]


def _fits(
    request: Request,
    judged: Judged | None,
    rivals: Rivals,
    now_possible: Primary,
    hindered: str,
) -> Figure:
    if hindered:
        return {
            "label": "Fits",
            "value": "No",
            "unit": "",
            "note": hindered,
            "tone": "bad",
        }
    if request.flavor is not None and judged is None:
        return {
            "label": "Fits",
            "value": "–",
            "unit": "",
            "note": "There is nothing to decide any more.",
            "tone": "",
        }
    if judged is None or judged.standing.free_gpus is None:
        return {
            "label": "Fits",
            "value": "Yes",
            "unit": "",
            "note": "It takes no GPUs of a pool.",
            "tone": "",
        }
    free, needed = judged.standing.free_gpus, judged.ask.gpus - judged.standing.own_gpus
    fits = free >= needed
    ready = judged.standing.ready_gpus
    return {
        "label": "Fits",
        "value": f"{free} free"
        if ready is None or ready >= free
        else f"{free} can be had",
        "unit": f"{max(needed, 0)} needed",
        "note": _when(judged) if fits else rivals.get("fits") or now_possible["why"],
        "tone": "good" if fits else "bad",
    }


def _when(judged: Judged) -> str:
    """That what fits begins at once, or from when on."""
    now = judged.standing.now
    starts = judged.ask.begins(now)
    if starts > now:
        return f"It fits from {moment(starts, now)} on."
    grows = judged.standing.has_to_grow(judged.ask.gpus)
    return "It fits once the pool has grown." if grows else "It fits now."


def _money(request: Request, judged: Judged | None) -> Figure:
    if judged is None:
        return {
            "label": "Money",
            "value": usd(prices.usd_of(request)),
            "unit": "in all",
            "note": "",
            "tone": "",
        }
    cost = judged.answer.usd
    if not request.is_less:
        cost = prices.told(cost, asked=request.usd)
    budget = [
        r for r in judged.answer.rules if r.code.startswith("budget") and not r.holds
    ]
    first = next(
        (r for r in budget if r.code != "budget_soft"), budget[0] if budget else None
    )
    return {
        "label": "Money",
        "value": usd(cost),
        "unit": f"{usd(judged.answer.usd_per_day)} a day",
        "note": first.text if first else "within the budget",
        "tone": "good"
        if first is None
        else "waiting"
        if first.code == "budget_soft"
        else "bad",
    }


@dataclass(frozen=True)
class Measured:
    """How much of what is held is in use: a number, "–" for none, and what it is worth."""

    value: str
    note: str

    @property
    def words(self) -> str:
        """In one line: "12 %, too early to count", "not measured yet"."""
        return self.note if self.value == "–" else f"{self.value}, {self.note}"


def measured(judged: Judged) -> Measured:
    """The use that the policy counts, else what was measured so far, which is too little for it."""
    if not judged.standing.team_held_gpus:
        return Measured("–", "They hold none.")
    percent = judged.standing.use_percent
    if percent is None:
        return Measured("–", "not measured yet")
    counts = judged.use_percent is not None
    return Measured(f"{percent:.0f} %", "in use" if counts else "too early to count")


def _use(judged: Judged | None, held: int) -> Figure:
    failing = judged is not None and any(
        r.code == "use" and not r.holds for r in judged.answer.rules
    )
    found = measured(judged) if judged else Measured("–", "")
    held = judged.standing.team_held_gpus if judged else held
    return {
        "label": "Use",
        "value": found.value,
        "unit": f"of {held} held" if held else "",
        "note": found.note,
        "tone": "waiting" if failing else "",
    }


def _hurt(request: Request, rivals: Rivals) -> Figure:
    waiting = len(rivals["rows"])
    return {
        "label": "Who is hurt",
        "value": f"{waiting}{' or more' if rivals['more'] else ''}"
        if waiting
        else "Nobody",
        "unit": ("wait" if waiting > 1 else "waits") + " for the same"
        if waiting
        else "",
        "note": rivals["words"],
        "tone": "bad" if rivals["words"] and rivals["after"] < 0 else "",
    }


def mark_of(request: Request) -> str:
    """✓ or ✕ of a request of `queue_beside`: whether its GPUs could be granted now; empty for what takes none.

    They are free and offered, the team stays, and who asked may ask. Money is not looked at.
    """
    flavor, place = request.flavor, request.tenancy
    # Of what begins later its page says it.
    if flavor is None or not request.gpus or request.starts_at is not None:
        return ""
    is_free = flavor.free >= request.gpus_now or request.renews_id
    is_open = not request.why_closed and (place is None or place.is_here)
    return "ok" if is_free and is_open and not request.why_orphaned else "not_now"


def in_the_past(answer: Mapping[str, Any], request: Request) -> str:
    """Who decides, of a request that is decided or over: who decided, or was to."""
    sentence = str(answer["sentence"])
    if request.state == State.WAITING:
        return sentence
    # Those who were not needed for what was granted in the end have decided nothing.
    done = [step for step in request.current_steps if step.done_at is not None]
    if request.state == State.APPROVED and 0 < len(done) < len(answer["route"]):
        return f"{route_words.in_turn(done)} decided."
    return re.sub(
        r" decide(s?)(?=[:.])",
        lambda found: _decided(request.state, one=bool(found[1])),
        sentence,
        count=1,
    )


def who_decides(answer: Mapping[str, Any], request: Request) -> str:
    """The answer of now in one sentence, with those who do decide: later requests of a team change no route."""
    steps = request.current_steps
    seats = [step.seat for step in steps]
    if not seats or MANAGERS in answer["route"] or seats == [*answer["route"]]:
        return str(answer["sentence"])
    return f"{route_words.decide(steps)}, as it was when this was asked."


def _decided(state: str, *, one: bool) -> str:
    if state == State.APPROVED:
        return " decided"
    return " was to decide" if one else " were to decide"
