"""Requests, previews and allocations as the portal answers them, for a server that misbehaves."""

from typing import Any

TEAM = {"slug": "vision", "name": "Vision"}
ADA = {"oid": "00000000-0000-4000-8000-000000000001", "name": "Ada Okafor"}
PRIYA = {"oid": "00000000-0000-4000-8000-000000000002", "name": "Priya Raman"}
OPTIONS = [
    {
        "value": "training/a100",
        "label": "A100 · $3.67 per GPU-hour",
        "disabled": False,
        "reason": "",
    },
    {
        "value": "training/t4",
        "label": "T4",
        "disabled": True,
        "reason": "This kind of GPU is not offered now.",
    },
]
RULE = {
    "code": "gpus",
    "holds": True,
    "text": "1 GPU",
    "limit": "people decide above 2",
    "blocks": False,
}
PLAN: dict[str, Any] = {
    "policy": 3,
    "formula": "1 × $3.67 per GPU-hour",
    "after_approval": ["The quota goes up within seconds."],
    "answer": {
        "outcome": "automatic",
        "sentence": "Automatic. Yours in about 5 seconds.",
        "route_size": None,
        "steps": [],
        "rules": [RULE],
        "usd": "264.24",
        "usd_per_day": "88.08",
    },
    "remedies": [],
    "over_budget": "",
    "fits_from": None,
    "quota": {"before": 2, "after": 3},
    "budget": [
        {
            "month": "2026-11",
            "limit_usd": "40000.00",
            "left_after": "39735.760000",
            "gpu_hours_limit": None,
            "gpu_hours_left_after": None,
        }
    ],
    "empty_seats": [],
    "unread_seats": [],
    "usual_seconds": None,
}
PEOPLE = {
    **PLAN,
    "answer": {
        **PLAN["answer"],
        "outcome": "people",
        "sentence": "Platform leads, then managers decide.",
        "route_size": {
            "gpus": 12,
            "usd": "3170.86",
            "words": "It counts with 2 of last week.",
        },
        "steps": [
            {"words": "platform leads", "quorum": 1, "target_hours": 24},
            {"words": "managers", "quorum": 2, "target_hours": 48},
        ],
        "rules": [{**RULE, "holds": False, "text": "12 GPUs"}],
    },
    "remedies": [{"sentence": "Automatic for 2."}],
    "fits_from": "2026-12-01T10:00:00Z",
    "empty_seats": ["managers"],
    "unread_seats": ["platform leads"],
    "usual_seconds": 18_000,
}
IMPOSSIBLE = {
    **PEOPLE,
    "answer": {
        **PEOPLE["answer"],
        "outcome": "impossible",
        "sentence": "Not possible as it stands.",
        "rules": [
            {**RULE, "holds": False, "blocks": True, "text": "the cluster has 24"},
            {**RULE, "holds": False, "text": "1,000 GPUs"},
        ],
    },
}
HELD: dict[str, Any] = {
    "offering": "gpus",
    "id": 41,
    "team": TEAM,
    "what": "2 × A100",
    "where": "Training, East US",
    "state": "held",
    "cluster": "training",
    "flavor": "a100",
    "reference": "request-17",
    "gpus": 2,
    "usd_per_day": "176.16",
    "starts_at": "2026-11-29T10:00:00Z",
    "begun_at": "2026-11-29T10:00:00Z",
    "charged_from": "2026-11-29T10:00:05Z",
    "until": "2026-12-02T10:00:00Z",
}
STEP: dict[str, Any] = {
    "version": 1,
    "position": 0,
    "label": "platform leads",
    "quorum": 1,
    "opened_at": "2026-11-29T10:00:00Z",
    "done_at": None,
    "dropped_at": None,
    "paused_at": None,
    "due_at": "2026-11-30T10:00:00Z",
    "reminded_at": None,
    "escalated_at": None,
    "stand_in": None,
}
WAITING: dict[str, Any] = {
    "id": 17,
    "team": TEAM,
    "requester": ADA,
    "name": "2 × A100",
    "place": "training",
    "count": 2,
    "count_now": 2,
    "approved_count": None,
    "approved_until": None,
    "approved_usd": None,
    "cluster": "training",
    "flavor": "a100",
    "starts_at": None,
    "until": "2026-12-02T10:00:00Z",
    "until_now": "2026-12-02T10:00:00Z",
    "purpose": "training",
    "reason": "For the review.",
    "state": "waiting",
    "stage": "waiting",
    "turn": "approver",
    "usd": "528.48",
    "usd_now": "528.48",
    "formula": "2 × $3.67 per GPU-hour",
    "content_version": 1,
    "created_at": "2026-11-29T10:00:00Z",
    "decided_at": None,
    "tenancy": {"namespace": "qm-vision-main"},
    "versions": [],
    "evaluations": [
        {
            "policy": 3,
            "content_version": 1,
            "at": "2026-11-29T10:00:00Z",
            "answer": PEOPLE["answer"],
        }
    ],
    "steps": [STEP],
    "decisions": [],
    "reroutings": [],
    "tasks": [],
    "renews": None,
    "allocation": None,
    "ended": [],
    "over_budget": "",
    "why_closed": "",
    "still_running": [],
    "next": [
        {"what": "Platform leads decide", "why": "", "at": None},
        {"what": "Should be decided by", "why": "", "at": "2026-11-30T10:00:00Z"},
        {"what": "Then managers decide", "why": "", "at": None},
    ],
    "withdrawn_because": "",
    "why_not_granted": "",
}
DECISION: dict[str, Any] = {
    "by": PRIYA,
    "content_version": 1,
    "verdict": "approve",
    "count": 2,
    "until": "2026-12-02T10:00:00Z",
    "stands_in_for": "",
    "reason": "",
    "at": "2026-11-29T11:00:00Z",
}
SETTING_UP = {
    **WAITING,
    "state": "approved",
    "stage": "setting_up",
    "approved_count": 2,
    "decisions": [DECISION],
    "allocation": {**HELD, "charged_from": None},
    "next": [
        {
            "what": "Setting up on training",
            "why": "Usually a few seconds.",
            "at": None,
        }
    ],
}
GRANTED = {
    **SETTING_UP,
    "stage": "active",
    "allocation": HELD,
    "next": [{"what": "Held", "why": "", "at": None}],
}
REJECTED = {
    **WAITING,
    "state": "rejected",
    "stage": "rejected",
    "decisions": [{**DECISION, "verdict": "reject", "reason": "Not this week."}],
    "next": [],
}
ENDED = {**GRANTED, "stage": "ended", "allocation": None, "next": []}
