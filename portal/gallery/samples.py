"""What the gallery shows: made-up values for every part, pinned to one moment."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypedDict

from ui.parts import (
    BeforeAfter,
    Capacity,
    Checklist,
    Choice,
    ChoosableRow,
    Columns,
    DocumentChange,
    Entry,
    Event,
    Fact,
    Link,
    Person,
    Rule,
    StepLink,
    Verdict,
    Wait,
)

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


class BadgesAndFigures(TypedDict):
    """Small words and large numbers."""

    states: list[tuple[str, str]]
    events: list[Event]
    pool: Capacity
    full_pool: Capacity
    days: list[int]
    ada: Person
    marcus: Person
    cost: Decimal


class Answers(TypedDict):
    """Verdicts, changes and waits."""

    automatic: Verdict
    people: Verdict
    never: Verdict
    changes: list[BeforeAfter]
    wait: Wait
    change: Wait
    escalate: Wait


class Stories(TypedDict):
    """A timeline, and checklists at work and done."""

    entries: list[Entry]
    busy: Checklist
    calm: Checklist


class Lists(TypedDict):
    """Tables, facts, and links between views."""

    columns: Columns
    rows: list[ChoosableRow]
    facts: list[Fact]
    diff: list[DocumentChange]
    tab_items: list[Link]
    segment_items: list[Link]
    step_items: list[StepLink]
    options: list[Choice]


def _rules(gpus: int) -> list[Rule]:
    return [
        {"mark": "ok", "text": "Budget left", "number": "$8,100 of $12,000"},
        {
            "mark": "ok" if gpus <= 2 else "note",
            "text": f"{gpus} GPUs",
            "number": "people decide above 2",
            "deciding": gpus > 2,
        },
        {"mark": "ok", "text": "Ends", "number": "in 7 of at most 30 days"},
        {"mark": "ok" if gpus <= 6 else "no", "text": "Free now", "number": "6 of 24"},
    ]


BADGES_AND_FIGURES: BadgesAndFigures = {
    "states": [
        ("waiting", "Waiting for approval"),
        ("moving", "Setting up"),
        ("good", "Running"),
        ("ending", "Ending soon"),
        ("bad", "Failed"),
        ("past", "Ended"),
    ],
    "events": [
        {"at": NOW, "text": "Quota set in training-eastus"},
        {"at": NOW, "text": "Approved by Priya Raman"},
    ],
    "pool": {
        "label": "A100 80 GB · training-eastus",
        "unit": "GPUs",
        "total": 24,
        "used": 11,
        "reserved": 5,
        "asked": 3,
        "blocked": 2,
        "href": "#pool",
    },
    "full_pool": {
        "label": "H100 · training-eastus",
        "unit": "GPUs",
        "total": 16,
        "used": 14,
        "asked": 6,
    },
    "days": [62, 70, 75, 20, 8, 81, 92, 95, 88, 90, 31, 12, 86, 91],
    "ada": {"name": "Ada Okafor", "role": "Data scientist"},
    "marcus": {
        "name": "Marcus Weber",
        "role": "Platform lead",
        "away_until": "Mon 24 Nov",
        "stand_in": "Priya Raman",
    },
    "cost": Decimal("1233.12"),
}

ANSWERS: Answers = {
    "automatic": {
        "tone": "good",
        "sentence": "Automatic. Yours in about 5 seconds.",
        "detail": "Inside what Vision may take without asking.",
        "rules": _rules(2),
    },
    "people": {
        "tone": "waiting",
        "sentence": "Platform leads, then engineering leadership decide.",
        "detail": "Usually 3 h; 8 of the last 10 took 1 to 5 h.",
        "rules": _rules(16),
        "hint": {
            "text": "Automatic for 2.",
            "href": "#two",
            "label": "Ask for 2",
        },
    },
    "never": {
        "tone": "bad",
        "sentence": "This can never fit: the pool holds 24 A100.",
        "rules": [
            {"mark": "no", "text": "32 GPUs", "number": "24 exist", "deciding": True}
        ],
    },
    "changes": [
        {"label": "A100 quota", "before": "2", "after": "4"},
        {"label": "Cost a day", "before": "$0", "after": "$176"},
        {"label": "Ends", "before": "", "after": "Fri 28 Nov, 18:00 UTC"},
        {"label": "Cluster", "before": "training-eastus", "after": "training-eastus"},
    ],
    "wait": {
        "kind": "wait",
        "what": "Waits for Priya Raman or Marcus Weber to decide",
        "since": NOW - timedelta(hours=2),
        "place": "2nd of 5",
        "expected": "in about 1 h (8 of the last 10 took 1 to 5 h)",
    },
    "change": {
        "kind": "change",
        "what": "Asks for 16 A100; the team's ceiling is 8",
        "since": NOW - timedelta(days=1),
        "advice": "8 would fit now.",
        "action": {"label": "Ask for 8 instead", "href": "#eight"},
    },
    "escalate": {
        "kind": "escalate",
        "what": "The cluster did not apply the quota three times",
        "since": NOW,
        "advice": "The platform leads were told. Quote 01KAJ7Q2M8.",
        "action": {"label": "Try again", "post": "#retry"},
    },
}

STORIES: Stories = {
    "entries": [
        {
            "phase": "past",
            "title": "Asked for 2 × A100",
            "at": NOW - timedelta(days=2),
            "who": "Ada Okafor",
            "why": "fine-tune the detector for the December release",
        },
        {
            "phase": "past",
            "tone": "good",
            "title": "Approved",
            "at": NOW - timedelta(days=1),
            "who": "policy",
            "why": "inside the automatic limit.",
            "evidence": {"label": "audit 4711", "href": "#audit"},
        },
        {
            "phase": "now",
            "tone": "moving",
            "title": "Setting up in training-eastus",
            "at": NOW,
            "why": "12 s so far, usually 40 s",
        },
        {"phase": "future", "title": "Reminder", "at": NOW + timedelta(days=4)},
        {
            "phase": "future",
            "title": "Ends; data kept until 28 December",
            "at": NOW + timedelta(days=7),
        },
    ],
    "busy": {
        "title": "training-eastus",
        "looked_at": NOW,
        "items": [
            {
                "kind": "Namespace",
                "plain": "the team's space",
                "name": "team-vision",
                "tone": "good",
                "word": "Ready",
                "since": NOW,
                "evidence": "#1",
            },
            {
                "kind": "ClusterQueue",
                "plain": "the team's line",
                "name": "vision",
                "tone": "moving",
                "word": "Applying",
                "since": NOW,
            },
            {
                "kind": "ResourceQuota",
                "plain": "the ceiling",
                "name": "vision-gpus",
                "tone": "bad",
                "word": "Refused",
                "since": NOW,
                "cause": "The cluster answers 403: quartermaster may not patch resourcequotas.",
                "retry": "#retry",
            },
            {
                "kind": "RoleBinding",
                "plain": "who may use it",
                "name": "vision-editors",
                "tone": "waiting",
                "word": "Next",
            },
        ],
    },
    "calm": {
        "title": "dev-eastus",
        "looked_at": NOW,
        "items": [
            {
                "kind": "Namespace",
                "name": "team-vision",
                "tone": "good",
                "word": "Ready",
                "since": NOW,
            }
        ],
    },
}

REQUESTS = [
    (
        "request-17",
        "Ada Okafor",
        2,
        "training-eastus",
        ("moving", "Setting up"),
        "1233.12",
        7,
    ),
    (
        "request-16",
        "Ben Ruiz",
        16,
        "training-eastus",
        ("waiting", "Waiting for approval"),
        "59136",
        14,
    ),
    (
        "request-12",
        "Chloe Lindqvist",
        1,
        "dev-eastus",
        ("ending", "Ending soon"),
        "4.20",
        1,
    ),
]

LISTS: Lists = {
    "columns": [
        "Request",
        "By",
        {"label": "GPUs", "kind": "number"},
        "State",
        {"label": "Cost", "kind": "number"},
        {"label": "Ends", "kind": "end"},
    ],
    "rows": [
        {
            "pk": name,
            "name": name,
            "cells": [
                {"text": name, "href": f"#{name}", "sub": cluster},
                who,
                gpus,
                {"tone": state[0], "word": state[1]},
                {"money": Decimal(cost), "period": "in all"},
                NOW + timedelta(days=days),
            ],
        }
        for name, who, gpus, cluster, state, cost, days in REQUESTS
    ],
    "facts": [
        {"label": "Id", "copyable": "req_01KAJ7Q2M8V5"},
        {
            "label": "Asked by",
            "person": {"name": "Ada Okafor", "role": "Data scientist"},
        },
        {"label": "Cluster", "text": "training-eastus", "href": "#cluster"},
        {"label": "Ends", "at": NOW + timedelta(days=7)},
        {
            "label": "Cost",
            "money": Decimal("176.16"),
            "period": "a day",
            "formula": "2 × $3.67 × 24 h",
        },
    ],
    "diff": [
        {"path": "spec.resourceGroups[0].nominalQuota", "before": "2", "after": "4"},
        {"path": "metadata.labels.generation", "before": None, "after": "7"},
        {"path": "spec.stopPolicy", "before": "Hold", "after": None},
    ],
    "tab_items": [
        {"label": "Overview", "href": "#o", "current": True},
        {"label": "Requests", "href": "#r", "count": 12},
        {"label": "People", "href": "#p", "count": 0},
    ],
    "segment_items": [
        {"label": "Mine", "href": "#m", "current": True},
        {"label": "Team's", "href": "#t"},
        {"label": "All", "href": "#a"},
    ],
    "step_items": [
        {"label": "Team", "href": "#1", "state": "done"},
        {"label": "People", "state": "now"},
        {"label": "Clusters", "state": "next"},
        {"label": "Look and send", "state": "next"},
    ],
    "options": [
        {"value": "t4", "title": "1 × T4", "text": "today, dev-eastus", "figure": "$4"},
        {
            "value": "a100",
            "title": "2 × A100",
            "text": "1 week, training-eastus",
            "figure": "$1,233",
        },
        {
            "value": "h100",
            "title": "8 × H100",
            "text": "none free until Tue 25 Nov",
            "figure": "$6,912",
            "disabled": True,
        },
    ],
}
