"""The forms about giving back and about money."""

from datetime import date
from typing import Any

from django import forms

from accounts.fields import StrictForm, WholeNumberField

MOST_GPUS = 9_999


class GiveBackForm(StrictForm):
    """How many GPUs go back. `token` makes a second sending harmless."""

    gpus = WholeNumberField(label="GPUs to give back", most=MOST_GPUS, of="GPUs")
    token = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)


class BudgetForm(StrictForm):
    """A team's limit for one month in USD."""

    month = forms.ChoiceField(label="Month", error_messages={"invalid_choice": "Choose one of these months."})
    limit_usd = forms.DecimalField(
        label="Limit", min_value=0, max_value=9_999_999_999, decimal_places=2, max_digits=12,
        error_messages={
            "invalid": "Write an amount in USD, like 12000 or 12000.50.",
            "max_value": "No budget is that large.",
            "min_value": "A limit is 0 or more.",
        },
    )  # fmt: skip

    def __init__(
        self, data: Any = None, *, months: list[date], initial: dict[str, Any] | None = None
    ) -> None:
        super().__init__(data, initial=initial, label_suffix="")
        field = self.fields["month"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - told to the type checker
        field.choices = [(month.isoformat(), f"{month:%B %Y}") for month in months]
