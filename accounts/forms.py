"""What a person says about a new token."""

from django import forms

from accounts.actions import LONGEST_TOKEN_DAYS
from accounts.fields import StrictForm, WholeNumberField
from accounts.models import ApiToken


class TokenForm(StrictForm):
    """A name to recognise it by, what it may do, and for how long."""

    name = forms.CharField(
        label="Name", max_length=60, help_text="What will use it, such as “nightly training”."
    )
    scope = forms.ChoiceField(
        label="It may", choices=ApiToken.Scope.choices, initial=ApiToken.Scope.READ, widget=forms.RadioSelect
    )
    days = WholeNumberField(
        label="Days it lives", initial=90, most=LONGEST_TOKEN_DAYS, of="days",
        help_text=f"1 to {LONGEST_TOKEN_DAYS} days. Shorter is safer.",
    )  # fmt: skip
