"""The forms about giving back and about money."""

from datetime import date
from typing import Any

from django import forms

from allocations.budgets.actions import Limits
from allocations.models import LONGEST_REASON
from web.edits import KeepsOthersEdits
from web.fields import MOST_GPUS, AmountField, StrictForm, WholeNumberField, set_choices

# The id of the form that has the button and the reason; the amount stands in another.
GIVE_BACK_BUTTON = "give-back-button"


class ReasonField(forms.CharField):
    """Why somebody takes back what another team holds; the form `sent_by` sends it, if it stands elsewhere itself."""

    def __init__(self, *, sent_by: str = "") -> None:
        attrs = {"dir": "auto", "autocomplete": "off"}
        if sent_by:
            attrs["form"] = sent_by
        super().__init__(
            label="Why you take it back",
            max_length=LONGEST_REASON,
            required=False,
            help_text="The team’s members are told, with this.",
            widget=forms.TextInput(attrs=attrs),
        )


class EndEarlyForm(StrictForm):
    """The end of what is held or booked; who `is_member` of the team gives no reason."""

    reason = ReasonField()

    def __init__(self, data: Any = None, *, is_member: bool) -> None:
        super().__init__(data, label_suffix="")
        if is_member:
            del self.fields["reason"]


class LetGoForm(EndEarlyForm):
    """The end of all of it: the reason is all that is sent, and without it this would be refused."""

    def __init__(self, data: Any = None, *, is_member: bool) -> None:
        super().__init__(data, is_member=is_member)
        if not is_member:
            self.fields["reason"].widget.attrs["required"] = True


class GiveBackForm(EndEarlyForm):
    """How many GPUs go back. `token` makes a second sending harmless."""

    gpus = WholeNumberField(label="GPUs to give back", most=MOST_GPUS, of="GPUs")
    reason = ReasonField(sent_by=GIVE_BACK_BUTTON)
    token = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)


def amount_field(label: str, *, of: str, **options: Any) -> AmountField:
    """A number to two places, 0 or more."""
    return AmountField(
        label=label,
        min_value=0,
        max_value=9_999_999_999,
        decimal_places=2,
        max_digits=12,
        error_messages={
            "invalid": f"Write {of}, like 12000 or 12000.50.",
            "max_value": "No limit is that large.",
            "min_value": "A limit is 0 or more.",
        },
        **options,
    )


class BudgetForm(KeepsOthersEdits, StrictForm):
    """A team's limits for one month; a field that is not sent leaves its limit as it is."""

    month = forms.ChoiceField(
        label="Month",
        error_messages={"invalid_choice": "Choose one of these months."},
        widget=forms.HiddenInput,
    )
    limit_usd = amount_field("Money", of="an amount in USD")
    gpu_hours_limit = amount_field(
        "GPU-hours",
        of="GPU-hours",
        required=False,
        help_text="Empty: as many as the money buys.",
    )
    soft_percent = WholeNumberField(
        label="People decide beyond",
        most=100,
        of="percent",
        required=False,
        help_text="Of the money, unless the policy says otherwise; up to there it may approve by itself.",
    )

    def __init__(
        self,
        data: Any = None,
        *,
        months: list[date],
        initial: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=initial, label_suffix="")
        set_choices(
            self, "month", [(month.isoformat(), f"{month:%B %Y}") for month in months]
        )

    @property
    def limits(self) -> Limits:
        """What was sent, for `set_budget`; an empty number of GPU-hours is none, an empty percentage the old one."""
        said = self.cleaned_data
        found = Limits(limit_usd=said["limit_usd"])
        if "gpu_hours_limit" in self.data:
            found["gpu_hours_limit"] = said["gpu_hours_limit"]
        if said["soft_percent"] is not None:
            found["soft_percent"] = said["soft_percent"]
        return found
