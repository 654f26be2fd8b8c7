"""Two people have one form open: each saves what they changed, and neither puts back what the other did."""

from typing import Any

import pytest
from django import forms
from django.http import QueryDict

from web.edits import KeepsOthersEdits
from web.fields import AmountField, StrictForm


class Thing(KeepsOthersEdits, StrictForm):
    """Fields of every sort."""

    name = forms.CharField(required=False)
    price = AmountField(required=False)
    note = forms.CharField(widget=forms.Textarea, required=False)
    enabled = forms.BooleanField(required=False)
    way = forms.ChoiceField(choices=[("git", "By Git"), ("api", "By the API")])
    kinds = forms.MultipleChoiceField(
        choices=[("a", "A"), ("b", "B"), ("c", "C")],
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )


BEFORE = {
    "name": "Ada",
    "price": "9.1000",
    "note": "two\nlines",
    "enabled": True,
    "way": "git",
    "kinds": ["a", "b"],
}


def sent(shown: dict[str, Any], **changed: Any) -> QueryDict:
    """What a browser sends of a form that was made from these values, with some of them changed."""
    data = QueryDict(mutable=True)
    data["shown"] = Thing(initial=shown).shown
    for name, value in (shown | changed).items():
        if value is True:
            data[name] = "on"
        elif isinstance(value, list):
            data.setlist(name, value)
        elif value is not False:
            data[name] = str(value).replace("\n", "\r\n")
    return data


def saved(now: dict[str, Any], data: QueryDict) -> dict[str, Any]:
    """What is saved of it once these are the values."""
    form = Thing(data, initial=now)
    assert form.is_valid(), form.errors
    return form.cleaned_data


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("name", "Grace"),
        ("name", ""),
        ("price", "7.0000"),
        ("note", "other\nlines"),
        ("enabled", False),
        ("way", "api"),
        ("kinds", ["c"]),
        ("kinds", []),
    ],
)
def test_what_somebody_else_saved_stays_where_nobody_typed(
    name: str, theirs: Any
) -> None:
    mine = "price" if name != "price" else "name"
    data = sent(BEFORE, **{mine: "5"})
    found = saved(BEFORE | {name: theirs}, data)
    alone = saved(BEFORE | {name: theirs}, sent(BEFORE | {name: theirs}, **{mine: "5"}))
    assert found == alone
    assert str(found[mine]) == "5"


def test_a_tick_that_somebody_else_has_set_stays_set() -> None:
    before = BEFORE | {"enabled": False}
    assert saved(before | {"enabled": True}, sent(before, name="x"))["enabled"]


@pytest.mark.parametrize(
    ("name", "mine", "theirs", "words"),
    [
        ("name", "Mary", "Grace", "to “Grace”."),
        ("name", "Mary", "", "to nothing."),
        ("enabled", True, False, ""),
        ("way", "api", "git", ""),
        ("price", "8", "7.0000", "to “7.0000”."),
        ("kinds", ["a"], ["c"], "to “C”."),
        ("note", "mine", "x" * 90, f"to “{'x' * 60}…”."),
    ],
)
def test_what_both_have_changed_is_refused_once(
    name: str, mine: Any, theirs: Any, words: str
) -> None:
    data = sent(BEFORE, **{name: mine})
    form = Thing(data, initial=BEFORE | {name: theirs})
    if not words:
        # There are two values, and one of them is what it was: both cannot have changed it to different ones.
        assert form.is_valid()
        return
    [problem] = form.errors[name]
    assert words in problem
    assert form[name].value() == mine
    again = sent(BEFORE, **{name: mine})
    again["shown"] = form.shown
    assert saved(BEFORE | {name: theirs}, again)[name] is not None


def test_who_changes_it_to_the_same_has_nothing_to_decide() -> None:
    assert (
        saved(BEFORE | {"name": "Grace"}, sent(BEFORE, name="Grace"))["name"] == "Grace"
    )


@pytest.mark.parametrize(
    "shown", ["", "{", "[]", '{"name": 7}', "7", "[" * 10_000, "[" * 100_000]
)
def test_a_form_that_does_not_say_what_it_showed_counts_as_it_was_sent(
    shown: str,
) -> None:
    data = sent(BEFORE)
    data["shown"] = shown
    found = Thing(data, initial=BEFORE | {"price": "1"})
    assert found.is_valid()
    assert str(found.cleaned_data["price"]) == "9.1000"


def test_a_field_that_nobody_asked_for_is_refused_still() -> None:
    data = sent(BEFORE)
    data["unknown"] = "x"
    assert "unknown" in str(Thing(data, initial=BEFORE).errors)
