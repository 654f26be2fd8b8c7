"""How a reservation stands, in a word and a sentence."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from capacity.models import Orphan, Reservation
from insights.reservations.presenting import orphan_standing, standing

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
SINCE = (NOW - timedelta(minutes=3)).isoformat()


def row(**fields: Any) -> Reservation:
    """Four machines that Azure holds."""
    usual: dict[str, Any] = {
        "machines": 4,
        "held": 4,
        "used": 3,
        "state": "reserved",
        "generation": 1,
        "observed_generation": 1,
        "requeue_at": NOW,
    }
    return Reservation(**usual | fields)


NEW = {"state": "pending", "held": 0, "used": 0, "observed_generation": 0}


@pytest.mark.parametrize(
    ("fields", "word", "sentence"),
    [
        ({}, "Reserved", "3 of 4 are in use; 1 is idle, and paid."),
        ({"used": 4}, "Reserved", "All 4 are in use."),
        ({"used": 0}, "Reserved", "All 4 are idle, and paid."),
        (
            {"used": 4, "over": 3},
            "Over-allocated",
            "3 run beyond what is reserved, without a guarantee.",
        ),
        (
            {"used": 4, "over": 1},
            "Over-allocated",
            "1 runs beyond what is reserved, without a guarantee.",
        ),
        ({"message": "AKS did not join it."}, "Reserved", "AKS did not join it."),
        (
            NEW,
            "Being reserved",
            "The portal asks Azure for 4 machines: all of them, or none, within seconds.",
        ),
        (
            {**NEW, "operation": {"since": SINCE}},
            "Being reserved",
            "Azure works on 4 machines: all of them, or none. It began 3 min ago.",
        ),
        (
            {
                **NEW,
                "message": "No hardware.",
                "requeue_at": NOW + timedelta(minutes=9),
            },
            "Waits for Azure",
            "No hardware. It is tried again in 9 min.",
        ),
        (
            {"machines": 6, "generation": 2, "operation": {"since": SINCE}},
            "Being changed",
            "Azure works on 4 → 6 machines. It began 3 min ago.",
        ),
        (
            {**NEW, "refused_generation": 1, "refusal": "The quota is full."},
            "Refused",
            "The quota is full. What was granted with it fails, and its budget is free again.",
        ),
        ({"parked_at": NOW, "message": "5 tries ended."}, "Parked", "5 tries ended."),
        (
            {"state": "releasing", "machines": 0, "message": "2 use it."},
            "Being released",
            "2 use it.",
        ),
        (
            {
                "state": "released",
                "machines": 0,
                "held": 0,
                "used": 0,
                "reserved_at": NOW,
                "released_at": NOW,
            },
            "Released",
            "Released on Wed 25 Nov. Nothing of it is left in Azure.",
        ),
        (
            {
                "state": "released",
                "machines": 0,
                "held": 0,
                "used": 0,
                "released_at": NOW,
                "refusal": "No quota.",
            },
            "Refused",
            "No quota. Nothing is reserved.",
        ),
    ],
)
def test_a_reservation_says_how_it_stands(
    fields: dict[str, Any], word: str, sentence: str
) -> None:
    found = standing(row(**fields), NOW, grant_waits=True)
    assert (found.word, found.sentence) == (word, sentence)


def test_what_is_refused_and_no_grant_waits_for_says_what_is_there_and_paid() -> None:
    refused = row(
        held=1,
        used=1,
        refused_generation=1,
        refusal="The quota is full.",
        requeue_at=NOW + timedelta(minutes=5),
    )
    found = standing(refused, NOW, grant_waits=False)
    assert found.word == "Refused"
    assert found.sentence == (
        "The quota is full. Azure has 1 of 4 machines, all of which are paid. It is tried again in 5 min."
    )


@pytest.mark.parametrize(
    ("fields", "word", "sentence"),
    [
        ({"kind": "orphaned"}, "Orphaned", "No team was granted it."),
        (
            {"kind": "orphaned", "tagged_team": "vision"},
            "Orphaned",
            "Tagged for vision.",
        ),
        ({"kind": "orphaned", "associated": 2}, "Orphaned", "2 machines use it."),
        (
            {"kind": "foreign"},
            "Somebody else’s",
            "Without the portal’s mark: the portal never touches it.",
        ),
        (
            {"kind": "missing", "expected": 2},
            "Missing in Azure",
            "The portal has 2 on record",
        ),
        (
            {"kind": "differs", "expected": 2},
            "Size differs",
            "The portal has 2 on record",
        ),
        (
            {
                "kind": "orphaned",
                "release_asked_at": NOW,
                "release_asked_by": "Priya Raman",
            },
            "Being released",
            "Priya Raman had it released.",
        ),
    ],
)
def test_a_difference_says_what_is_wrong(
    fields: dict[str, Any], word: str, sentence: str
) -> None:
    found = orphan_standing(Orphan(**fields))
    assert found.word == word
    assert found.sentence.startswith(sentence)
