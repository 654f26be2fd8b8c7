"""What became of an ask from one version to another, in words."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from approvals.revisions import Said, changes, in_words
from catalogue.offerings import OFFERINGS
from tests.scene import NOW

GPUS = OFFERINGS["gpus"]
FIRST = Said(
    spec={"flavor": "training/a100", "gpus": 5, "purpose": "training"},
    until=NOW + timedelta(days=3),
    reason="Retrain.",
    usd=Decimal("360.00"),
)


def test_only_what_differs_is_said_in_the_order_of_the_form() -> None:
    then = replace(
        FIRST,
        spec={**FIRST.spec, "gpus": 3},
        until=NOW + timedelta(days=4),
        usd=Decimal("288.00"),
    )
    assert [
        change.words for change in changes(FIRST, then, offering=GPUS, now=NOW)
    ] == [
        "GPUs: 5 → 3",
        "Until: Mon 23 Nov, 12:00 UTC → Tue 24 Nov, 12:00 UTC",
        "Cost: $360 → $288",
    ]


def test_the_same_is_no_change_even_where_the_price_became_another() -> None:
    assert (
        changes(
            FIRST,
            replace(FIRST, usd=Decimal(1), reason=" Retrain. "),
            offering=GPUS,
            now=NOW,
        )
        == []
    )


def test_a_reason_is_named_and_shown_beside_the_other_but_not_put_into_a_line() -> None:
    found = changes(FIRST, replace(FIRST, reason=""), offering=GPUS, now=NOW)
    assert [(c.label, c.before, c.after) for c in found] == [("Why", "Retrain.", "–")]
    assert in_words(found) == "the reason"


def test_what_one_version_did_not_say_is_shown_as_nothing() -> None:
    volume = OFFERINGS["volume"]
    before = replace(FIRST, spec={"gib": 100})
    after = replace(FIRST, spec={"gib": 65_536, "name": "corpus"})
    assert [c.words for c in changes(before, after, offering=volume, now=NOW)] == [
        "Name: – → corpus",
        "Size in GiB: 100 → 65,536",
    ]
