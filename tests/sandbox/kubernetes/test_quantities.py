"""Quantities are read and written as a real server did."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.kubernetes.quantities import (
    WRONG_FORMAT,
    WRONG_SUFFIX,
    QuantityError,
    add,
    canonical,
    compare,
    is_whole,
    is_zero,
    largest,
    multiply,
    parse,
    stored,
    subtract,
)

RECORDINGS = Path(__file__).parents[2] / "recordings"


def recorded() -> list[dict[str, Any]]:
    steps = json.loads((RECORDINGS / "02c-ssa-refusals.json").read_text())
    return [step for step in steps if step["name"].startswith("quota-quantity")]


@pytest.mark.parametrize("step", recorded(), ids=lambda step: str(step["note"]))
def test_it_reads_a_recorded_quantity_as_the_server_did(step: dict[str, Any]) -> None:
    ((resource, written),) = step["request"]["body"]["spec"]["hard"].items()
    answer = step["response"]["body"]
    if step["response"]["status"] == 201:
        assert stored(written) == canonical(written) == answer["spec"]["hard"][resource]
    elif step["response"]["status"] == 500:
        with pytest.raises(QuantityError) as refusal:
            parse(written)
        assert answer["message"].endswith(str(refusal.value))
    else:
        assert compare(written, 0) < 0


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("1000", "1k"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("512Gi", "512Gi"),
        ("0.1Gi", "107374182400m"),
        ("1e4", "10e3"),
        ("0.125", "125m"),
        ("00", "0"),
        ("-0.5", "-500m"),
        ("1.G", "1.G"),
        ("100Ki", "100Ki"),
        ("1000E", "1e21"),
        ("512", "512"),
        ("8Ei", "9223372036854775807"),
        ("2048", "2048"),
        ("0.5Ki", "512"),
    ],
)
def test_it_writes_the_canonical_form(written: str, kept: str) -> None:
    assert canonical(written) == kept


def test_resource_lists_round_up_to_thousandths_and_others_to_billionths() -> None:
    assert (canonical("1n"), stored("1n")) == ("1n", "1m")
    assert canonical("0.0000000001") == "1n"
    assert stored("1500u") == "2m"


@pytest.mark.parametrize("written", ["", "abc", True, [], {}, "1 2", "１"])
def test_it_refuses_what_is_no_quantity(written: Any) -> None:
    with pytest.raises(QuantityError, match="regular expression"):
        parse(written)
    assert "regular expression" in WRONG_FORMAT


@pytest.mark.parametrize("written", ["8K", "1ee", "1e99999999", "1mm"])
def test_it_refuses_unknown_suffixes(written: str) -> None:
    with pytest.raises(QuantityError) as refusal:
        parse(written)
    assert str(refusal.value) == WRONG_SUFFIX


def test_it_adds_in_the_format_of_the_first_amount() -> None:
    assert add("1Gi", "512Mi") == "1536Mi"
    assert add("500m", "500m") == "1"
    assert add("0", "1Gi") == "1Gi"
    assert add() == "0"
    assert add("1", "1Gi") == "1073741825"
    assert subtract("1", "1500m") == "-500m"
    assert multiply("1500m", 2) == "3"


def test_it_compares_amounts_not_texts() -> None:
    assert compare("1", "1000m") == 0
    assert compare("1Gi", "1G") == 1
    assert compare("-1", None) == -1
    assert str(parse("+8")) == "+8"
    assert largest("1", "2Gi", "3") == "2Gi"
    assert largest() == "0"
    assert is_zero("0Gi")
    assert not is_zero("1m")
    assert is_whole("1000m")
    assert not is_whole("1.5")
