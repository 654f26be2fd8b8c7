"""What the pages about versions and drafts of the policy show."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict

from django.db.models import Exists
from django.urls import reverse

from accounts.models import User
from accounts.roles import Permission
from allocations.budgets.money import Amount
from approvals.judging.inputs import policy_in_force
from approvals.models import Request
from approvals.policy_desk import actions as policy_actions
from approvals.policy_desk import limits_page as policy_page
from approvals.policy_desk import simulator
from approvals.policy_desk.forms import USUAL_DAYS, Number, PolicyForm, SimulationForm
from approvals.policy_desk.simulator import (
    AUTOMATIC,
    IMPOSSIBLE,
    PEOPLE,
    Replay,
    Simulation,
)
from policy.boundless import boundless
from policy.differences import differences
from policy.models import PolicyDraft, PolicyVersion
from ui.amounts import hours, moment, usd
from ui.parts import Badge, BeforeAfter, Cell, Column, Columns, Fact, Figure, Row

MOST_CLOSED = 20
WHAT_A_DRAFT_IS = (
    "A draft is where the policy is changed: it shows what differs and what it would have decided, "
    "and somebody else puts it in force."
)
WORDS = {AUTOMATIC: "Automatic", PEOPLE: "People decide", IMPOSSIBLE: "Not possible"}
TONES = {AUTOMATIC: "good", PEOPLE: "waiting", IMPOSSIBLE: "bad"}


class History(TypedDict):
    """Every version of the policy."""

    columns: Columns
    rows: Sequence[Row]


class VersionPage(TypedDict):
    """The page of one version."""

    version: PolicyVersion
    before: PolicyVersion | None
    state: tuple[str, str]
    diff: Sequence[BeforeAfter]
    rules: Sequence[Fact]
    exceptions: Sequence[Fact]
    deciders: Sequence[Fact]
    facts: Sequence[Fact]
    can_be_cancelled: bool
    instead: str


class Drafts(TypedDict):
    """The drafts of the policy, open and closed."""

    columns: Columns
    open: Sequence[Row]
    closed: Sequence[Row]
    newest: PolicyVersion | None
    what_a_draft_is: str


class ReplayShown(TypedDict):
    """What a draft would have decided of what was asked."""

    days: int
    asks: int
    differs: int
    cannot_know: str
    figures: Sequence[Figure]
    columns: Columns
    matrix: Sequence[Row]
    waiting: int
    waiting_automatic: int
    differing_columns: Columns
    differing: Sequence[Row]


class DraftPage(TypedDict):
    """The page of one draft."""

    draft: PolicyDraft
    newest: PolicyVersion
    is_open: bool
    is_author: bool
    form: PolicyForm | None
    numbers: Sequence[Number]
    diff: Sequence[BeforeAfter]
    base_is_old: bool
    scheduled: PolicyVersion | None
    current: PolicyVersion
    scheduled_words: str
    may_write: bool
    may_activate: bool
    activate_label: str
    warnings: Sequence[str]
    asked: SimulationForm
    replay: ReplayShown | None
    rules: Sequence[Fact]
    exceptions: Sequence[Fact]
    deciders: Sequence[Fact]


def history(now: datetime) -> History:
    """Every version with who wrote and who activated it."""
    in_force, _ = policy_in_force(now)
    rows = PolicyVersion.objects.select_related(
        "proposed_by", "activated_by", "cancellation"
    ).annotate(never=Exists(PolicyVersion.objects.standing().sooner_than_outer()))
    return {
        "columns": [
            "Version",
            "State",
            "Why",
            "Written by",
            "Activated by",
            {"label": "From", "kind": "end"},
        ],
        "rows": [_version_row(each, in_force) for each in rows],
    }


def version(found: PolicyVersion, *, now: datetime) -> VersionPage:
    """One version with what it changed of the one before."""
    policy = found.policy
    before = found.before
    in_force, _ = policy_in_force(now)
    can_be_cancelled = not policy_actions.why_not_cancelled(found, now=now)
    return {
        "version": found,
        "before": before,
        "state": _state(found, in_force, never=found.never_comes),
        "diff": policy_page.changes(before, found),
        "rules": policy_page.rules(policy.thresholds),
        "exceptions": policy_page.exceptions(policy),
        "deciders": policy_page.deciders(policy),
        "facts": [
            {"label": "From", "at": found.active_from},
            {"label": "Why", "text": found.why},
            {
                "label": "Written by",
                "text": found.proposed_by.name
                if found.proposed_by
                else "Quartermaster",
            },
            {
                "label": "Activated by",
                "text": found.activated_by.name
                if found.activated_by
                else "Quartermaster",
            },
            *_cancelled(found),
        ],
        "can_be_cancelled": can_be_cancelled,
        "instead": _instead(found, now=now) if can_be_cancelled else "",
    }


def _cancelled(found: PolicyVersion) -> list[Fact]:
    """Who cancelled a version, when and why; nothing for any other."""
    cancellation = getattr(found, "cancellation", None)
    if cancellation is None:
        return []
    return [
        {"label": "Cancelled by", "text": cancellation.by.name},
        {"label": "Cancelled", "at": cancellation.at},
        {"label": "Because", "text": cancellation.why},
    ]


def _instead(found: PolicyVersion, *, now: datetime) -> str:
    """What holds where a version that is to come does not: the one before it, and those that come all the same."""
    others = PolicyVersion.objects.standing().exclude(pk=found.pk)
    on_it = set(
        PolicyDraft.objects.filter(base=found, became__isnull=False).values_list(
            "became", flat=True
        )
    )
    comes = "".join(
        f" {each} comes {moment(each.active_from, now)} all the same"
        f"{f', and has what {found} changes: it was begun on it' if each.pk in on_it else ''}."
        for each in others.to_come(now)
    )
    return f"Then {str(found.before).lower()} holds on.{comes}"


def drafts() -> Drafts:
    """Drafts that are open, and the last ones that were closed."""
    rows = PolicyDraft.objects.select_related("base", "author", "became")
    closed = rows.filter(closed_at__isnull=False)[:MOST_CLOSED]
    return {
        "columns": [
            "Draft",
            "Written by",
            "On",
            "State",
            {"label": "Saved", "kind": "end"},
        ],
        "open": [_draft_row(each) for each in rows.filter(closed_at=None)],
        "closed": [_draft_row(each) for each in closed],
        "newest": PolicyVersion.objects.standing().order_by("-number").first(),
        "what_a_draft_is": WHAT_A_DRAFT_IS,
    }


def draft(
    found: PolicyDraft,
    *,
    viewer: User,
    now: datetime,
    days: str,
    form: PolicyForm | None,
) -> DraftPage:
    """One draft with its differences, its form for its author, and the replay when days were asked for."""
    policy, (current, in_force) = found.policy, policy_in_force(now)
    newest = PolicyVersion.objects.standing().order_by("-number")[0]
    is_open, is_author = found.closed_at is None, found.author_id == viewer.pk
    # A policy without bounds is shown with what it would have decided, asked for or not.
    days = days or (str(USUAL_DAYS) if is_open and boundless(policy) else "")
    asked = SimulationForm(
        {"days": days} if days else None, initial={"days": USUAL_DAYS}
    )
    replayed = None
    if asked.is_valid():
        replayed = simulator.simulate(
            policy, days=asked.cleaned_data["days"], now=now, who=viewer
        )
    may_write = viewer.may(Permission.MANAGE_POLICY)
    shown = form or (
        PolicyForm(draft=found) if is_open and is_author and may_write else None
    )
    return {
        "draft": found,
        "newest": newest,
        "is_open": is_open,
        "is_author": is_author,
        "form": shown,
        "numbers": shown.numbers(in_force) if shown else [],
        "diff": policy_page.diff_rows(differences(found.base.policy, policy)),
        "base_is_old": is_open and found.base_id not in (newest.pk, current.pk),
        "scheduled": newest if is_open and newest.pk != current.pk else None,
        "current": current,
        "scheduled_words": f"{newest} is to come into force {moment(newest.active_from, now)}. With this draft it "
        "never does.",
        "may_write": may_write,
        "may_activate": viewer.may(Permission.ACTIVATE_POLICY) and not is_author,
        "activate_label": f"Put policy {policy_actions.next_number()} in force",
        "warnings": simulator.warnings(policy, replayed.past if replayed else Replay()),
        "asked": asked,
        "replay": shown_replay(replayed) if replayed else None,
        "rules": policy_page.rules(policy.thresholds),
        "exceptions": policy_page.exceptions(policy),
        "deciders": policy_page.deciders(policy),
    }


def shown_replay(found: Simulation) -> ReplayShown:
    """A simulation as the page shows it: the stakes, the matrix, and the asks that differ."""
    past, waiting = found.past, found.waiting
    return {
        "days": found.days,
        "asks": past.asks,
        "differs": past.differs,
        "cannot_know": simulator.CANNOT_KNOW,
        "figures": [
            _stake("Becomes automatic", *past.moved(AUTOMATIC)),
            _stake("Goes to people", *past.moved(PEOPLE)),
            _stake("Becomes impossible", *past.moved(IMPOSSIBLE)),
        ],
        "columns": [
            "Decided then",
            *(Column(label=WORDS[each], kind="number") for each in WORDS),
        ],
        "matrix": [
            {"cells": [WORDS[before], *(past.counts[before, after] for after in WORDS)]}
            for before in WORDS
        ],
        "waiting": waiting.asks,
        "waiting_automatic": waiting.moved(AUTOMATIC)[0],
        "differing_columns": [
            "Request",
            "Then",
            "With this draft",
            "Because",
            {"label": "In all", "kind": "number"},
        ],
        "differing": differing_rows(past),
    }


def differing_rows(past: Replay) -> list[Row]:
    """The newest asks that would have been answered otherwise, with their teams, in one query."""
    shown = past.differing[::-1]
    rows = Request.objects.filter(
        pk__in={each.request_id for each in shown}
    ).select_related("team", "flavor__cluster")
    known = {row.pk: row for row in rows}
    return [
        {
            "cells": [
                {
                    "text": known[each.request_id].name(),
                    "sub": known[each.request_id].team.name,
                    "href": reverse("request", args=[each.request_id]),
                },
                {"tone": TONES[each.before], "word": WORDS[each.before]},
                {"tone": TONES[each.after], "word": WORDS[each.after]},
                {"text": each.because},
                {"text": usd(each.amount.usd), "sub": hours(each.amount.gpu_hours)},
            ]
        }
        for each in shown
    ]


def _stake(label: str, count: int, amount: Amount) -> Figure:
    note = f"{usd(amount.usd)} · {hours(amount.gpu_hours)}" if count else ""
    return {
        "label": label,
        "value": count,
        "unit": "ask" if count == 1 else "asks",
        "note": note,
    }


def _version_row(each: Any, in_force: PolicyVersion) -> Row:
    tone, word = _state(each, in_force, never=each.never)
    wrote, activated = each.proposed_by, each.activated_by
    return {
        "cells": [
            {"text": str(each), "href": reverse("policy-version", args=[each.number])},
            {"tone": tone, "word": word},
            each.why,
            wrote.name if wrote else "–",
            activated.name if activated else "–",
            each.active_from,
        ]
    }


def _draft_row(each: PolicyDraft) -> Row:
    state: Badge = {
        "tone": "waiting",
        "word": "Open" if each.handed_in_at is None else "Waits for a second person",
    }
    if each.became is not None:
        state = {"tone": "good", "word": f"Became {str(each.became).lower()}"}
    elif each.closed_at is not None:
        state = {"tone": "past", "word": "Thrown away"}
    about: Cell = {
        "text": f"Draft {each.pk}",
        "sub": each.why,
        "href": reverse("policy-draft", args=[each.pk]),
    }
    return {"cells": [about, each.author.name, str(each.base), state, each.updated_at]}


def _state(
    each: PolicyVersion, in_force: PolicyVersion, *, never: bool
) -> tuple[str, str]:
    if each.pk == in_force.pk:
        return "good", "In force"
    if hasattr(each, "cancellation"):
        return "past", "Cancelled"
    if never:
        return "past", "Never in force"
    return (
        ("waiting", "Comes into force")
        if each.number > in_force.number
        else ("past", "Was in force")
    )
