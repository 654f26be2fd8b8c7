"""The catalogue by itself: sizes, formulas and titles at their numbers."""

from decimal import Decimal

import pytest

from approvals.requests.actions import LEAST_REASON
from capacity.prices.shipped import VM_GPUS, VM_PRICES
from catalogue.models import is_by_person
from catalogue.offering import DOWN, Gate, Offering, in_sentence
from catalogue.offerings import OFFERINGS
from tests.approvals.shop import BY_PERSON, SPECS

PRICE = Decimal("3.67")
EXPECTED = {
    "gpus": (1, 1, "3.67", "1 × $3.67 per GPU-hour", "1 × A100"),
    "notebook": (1, 1, "3.67", "1 × $3.67 per GPU-hour", "Notebook with 1 × A100"),
    "volume": (
        100,
        0,
        "0.00021918",
        "100 GiB × $0.16 per GiB and month of 730 hours",
        "100 GiB volume corpus",
    ),
    "namespace": (1, 0, "0", "costs nothing", "Development namespace for main"),
    "training": (8, 1, "3.67", "8 × $3.67 per GPU-hour", "8 × A100"),
    "endpoint": (
        2,
        1,
        "3.67",
        "2 × 1 GPU × $3.67 per GPU-hour",
        "Endpoint of 2 × 1 A100 for mistral-7b",
    ),
    "openai": (
        2,
        0,
        "0.036",
        "at most 2k tokens a minute × $0.60 per million tokens, all used",
        "gpt-4o-mini with 2k tokens a minute",
    ),
    "reservation": (
        1,
        1,
        "0.526",
        "1 × Standard_NC4as_T4_v3 × $0.526 an hour, used or not",
        "1 × Standard_NC4as_T4_v3 reserved",
    ),
    "cluster": (
        2,
        1,
        "0.526",
        "2 × Standard_NC4as_T4_v3 × $0.526 an hour, used or not",
        "Cluster of 2 × Standard_NC4as_T4_v3",
    ),
}


@pytest.mark.parametrize("key", OFFERINGS)
def test_every_offering_has_a_size_a_formula_and_a_title(key: str) -> None:
    offering = OFFERINGS[key]
    said = offering.spec.model_validate(SPECS[key])
    size = said.size(price=PRICE, prices=offering.prices)
    shown = offering.title(said, product="A100")
    assert (
        size.count,
        size.gpus_each,
        str(size.usd_per_hour_each),
        size.formula,
        shown,
    ) == EXPECTED[key]


def test_the_charters_eight_offerings_and_reservations_have_their_gates() -> None:
    own = {
        key for key, offering in OFFERINGS.items() if offering.gate is Gate.SELF_SERVICE
    }
    assert own == {"gpus", "notebook", "volume", "namespace"}
    assert set(OFFERINGS) - own == {
        "training",
        "endpoint",
        "openai",
        "reservation",
        "cluster",
    }
    assert {
        key for key, offering in OFFERINGS.items() if is_by_person(offering)
    } == set(BY_PERSON)


def test_every_offering_says_what_follows_and_how_it_is_undone() -> None:
    for offering in OFFERINGS.values():
        assert offering.after
        assert offering.undone.startswith(("Undoing it takes ", "Cannot be undone"))
    assert DOWN not in OFFERINGS["gpus"].after
    assert DOWN in OFFERINGS["namespace"].after


def test_fewer_units_are_the_same_spec_with_another_number() -> None:
    said = OFFERINGS["volume"].spec.model_validate(SPECS["volume"])
    assert said.fewer(7) == {**SPECS["volume"], "gib": 7}
    alone = OFFERINGS["namespace"].spec.model_validate(SPECS["namespace"])
    assert (alone.count, alone.fewer(3)) == (1, dict(SPECS["namespace"]))


def test_what_has_no_price_is_named() -> None:
    said = OFFERINGS["openai"].spec.model_validate(
        {**SPECS["openai"], "model": "gpt-9"}
    )
    with pytest.raises(KeyError, match="gpt-9"):
        said.size(price=PRICE, prices=OFFERINGS["openai"].prices)


def test_every_vm_size_with_a_price_says_how_many_gpus_it_has() -> None:
    assert set(VM_PRICES) == set(VM_GPUS)
    not_reserved = {
        name for name in VM_PRICES if name.startswith("Standard_ND") or "H100" in name
    }
    assert not_reserved
    assert set(OFFERINGS["reservation"].prices) == set(VM_PRICES) - not_reserved


@pytest.mark.parametrize(
    ("shown", "within"),
    [
        ("2 × A100", "2 × A100"),
        ("Notebook with 1 × T4", "a notebook with 1 × T4"),
        ("Endpoint of 2", "an endpoint of 2"),
        ("gpt-4o with 2k", "gpt-4o with 2k"),
    ],
)
def test_a_title_reads_well_within_a_sentence(shown: str, within: str) -> None:
    assert in_sentence(shown) == within


@pytest.mark.parametrize("offering", OFFERINGS.values(), ids=lambda one: one.key)
def test_the_example_of_a_reason_would_be_taken_itself(offering: Offering) -> None:
    assert LEAST_REASON <= len(offering.good_reason) <= 160
    assert offering.good_reason.endswith(".")
