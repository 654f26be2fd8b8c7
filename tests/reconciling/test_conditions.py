"""A condition says since when its status is what it is."""

from datetime import UTC, datetime, timedelta

from reconciling.conditions import READY, Condition, find, upsert, without

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
FAILED = {"status": "False", "reason": "WillTryAgain", "message": "No answer."}


def failed() -> list[Condition]:
    return upsert([], READY, **FAILED, now=NOW)


def test_a_new_condition_begins_now() -> None:
    assert failed() == [{"type": "Ready", **FAILED, "since": NOW.isoformat()}]


def test_since_stays_while_the_status_does_whatever_reason_and_message_say() -> None:
    refused = {"status": "False", "reason": "Refused", "message": "Forbidden."}

    assert upsert(failed(), READY, **refused, now=LATER) == [
        {"type": "Ready", **refused, "since": NOW.isoformat()}
    ]


def test_another_status_begins_now() -> None:
    ready = upsert(
        failed(), READY, status="True", reason="AllObjectsTrue", message="", now=LATER
    )

    assert [each["since"] for each in ready] == [LATER.isoformat()]


def test_there_is_one_of_each_type_and_ready_stands_first() -> None:
    both = upsert(
        [], "Drifted", status="True", reason="ChangedElsewhere", message="", now=NOW
    )
    both = upsert(both, READY, **FAILED, now=NOW)
    again = upsert(
        both, "Drifted", status="True", reason="Contested", message="", now=LATER
    )

    assert [(each["type"], each["reason"]) for each in again] == [
        ("Ready", "WillTryAgain"),
        ("Drifted", "Contested"),
    ]


def test_one_is_found_and_taken_out_by_its_type() -> None:
    assert find(failed(), "Drifted") is None
    assert find(failed(), READY) == failed()[0]
    assert without(failed(), READY) == []
