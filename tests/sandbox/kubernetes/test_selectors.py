"""Label and field selectors."""

import pytest

from sandbox.kubernetes.selectors import matches_selector, parse_fields, parse_labels
from sandbox.kubernetes.status import Refusal

LABELS = {"team": "nlp", "tier": "gold"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "team=nlp",
        "team==nlp",
        "team!=vision",
        "team",
        "!gone",
        "team in (nlp,vision)",
        "team notin (vision)",
        "team=nlp,tier in (gold),!gone",
    ],
)
def test_it_selects(text: str) -> None:
    assert parse_labels(text)(LABELS)


@pytest.mark.parametrize(
    "text",
    ["team=vision", "!team", "gone", "team in (vision)", "team notin (nlp)", "a,team"],
)
def test_it_passes_over(text: str) -> None:
    assert not parse_labels(text)(LABELS)


def test_it_refuses_what_it_cannot_read() -> None:
    with pytest.raises(Refusal, match="found '=', expected: ',' or 'end of string'"):
        parse_labels("a=b=c")


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not matches_selector(None, LABELS)
    assert matches_selector({}, LABELS)


@pytest.mark.parametrize(
    ("operator", "values", "selected"),
    [
        ("In", ["nlp"], True),
        ("NotIn", ["nlp"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
    ],
)
def test_expressions_are_read(operator: str, values: list[str], selected: bool) -> None:
    selector = {
        "matchExpressions": [{"key": "team", "operator": operator, "values": values}]
    }
    assert matches_selector(selector, LABELS) is selected


def test_only_a_few_fields_can_be_selected() -> None:
    obj = {"metadata": {"name": "c1"}, "data": {"i": "1"}}
    assert parse_fields("metadata.name=c1", "configmaps")(obj)
    assert not parse_fields("metadata.name!=c1", "configmaps")(obj)
    with pytest.raises(Refusal, match="is not a known field selector"):
        parse_fields("data.i=1", "configmaps")
