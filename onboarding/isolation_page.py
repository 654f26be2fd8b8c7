"""The page that compares the four levels of isolation and recommends one from three questions."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from onboarding.recommending import LEVELS, QUESTIONS, recommend

ASPECTS = {
    "best_for": "Best for",
    "reaches": "How far a fault reaches",
    "costs": "What it costs",
    "ready": "Until it is there",
    "neighbours": "Neighbours",
    "runs": "Who runs it",
}
COLUMNS = ["", *(level.name for level in LEVELS)]


def question_fields() -> dict[str, forms.ChoiceField]:
    """The three questions as form fields; the first answer is the one that asks for nothing."""
    return {
        question.key: forms.ChoiceField(
            label=question.text,
            choices=question.choices,
            initial=question.choices[0][0],
            required=False,
        )
        for question in QUESTIONS
    }


class QuestionForm(forms.Form):
    """The three questions."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields.update(question_fields())


@require_safe
def isolation(request: HttpRequest) -> HttpResponse:
    """The four levels side by side; with answers in the address, the one that fits and why."""
    said = {question.key: request.GET.get(question.key, "") for question in QUESTIONS}
    known = {
        key: value
        for key, value in said.items()
        if value in dict(question_fields()[key].choices)  # type: ignore[arg-type]
    }
    rows = [
        {"cells": [words, *(getattr(level, name) for level in LEVELS)]}
        for name, words in ASPECTS.items()
    ]
    context = {
        "form": QuestionForm(initial=known),
        "columns": COLUMNS,
        "rows": rows,
        "levels": LEVELS,
        "aspects": ASPECTS,
        "recommendation": recommend(known),
        "is_answered": bool(known),
    }
    return render(request, "onboarding/isolation.html", context)
