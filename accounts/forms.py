"""What a person says about a new token, a stand-in, a team's tier."""

from django import forms

from accounts.models import ApiToken, Team
from accounts.stand_ins.actions import LONGEST_WHY
from accounts.tokens.actions import LONGEST_TOKEN_DAYS
from accounts.tokens.models import TEAM_SCOPE_CHOICES
from web.fields import MomentField, StrictForm, WholeNumberField


class TokenForm(StrictForm):
    """A name to recognise it by, what it may do, and for how long. `token` makes a second sending harmless."""

    name = forms.CharField(
        label="Name",
        max_length=60,
        help_text="What will use it, such as “nightly training”.",
    )
    scope = forms.ChoiceField(
        label="It may",
        choices=ApiToken.Scope.choices,
        initial=ApiToken.Scope.READ,
        widget=forms.RadioSelect,
    )
    days = WholeNumberField(
        label="It works for",
        initial=90,
        most=LONGEST_TOKEN_DAYS,
        of="days",
        help_text=f"1 to {LONGEST_TOKEN_DAYS} days. Shorter is safer.",
    )
    token = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)


class TeamTokenForm(TokenForm):
    """The same of a team's token, which reads or runs."""

    scope = forms.ChoiceField(
        label="It may",
        choices=TEAM_SCOPE_CHOICES,
        initial=ApiToken.Scope.RUN,
        widget=forms.RadioSelect,
    )


class IdentityForm(StrictForm):
    """An application of Entra ID by its two ids, and what it may do. `token` makes a second sending harmless."""

    name = forms.CharField(
        label="Name",
        max_length=60,
        help_text="What signs in as it, such as “GitHub, main branch”.",
    )
    client_id = forms.CharField(
        label="Client ID",
        max_length=60,
        help_text="The application’s, which Entra ID also calls its application ID.",
    )
    object_id = forms.CharField(
        label="Object ID of the enterprise application",
        max_length=60,
        help_text=(
            "Under Enterprise applications. The object ID under App registrations is another one, "
            "which no token bears."
        ),
    )
    scope = forms.ChoiceField(
        label="It may",
        choices=TEAM_SCOPE_CHOICES,
        initial=ApiToken.Scope.RUN,
        widget=forms.RadioSelect,
    )
    token = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)


class StandInForm(StrictForm):
    """Who, from when until when, and why."""

    to = forms.CharField(
        label="Who",
        max_length=200,
        help_text="Their work address.",
        widget=forms.TextInput(
            attrs={
                "list": "people",
                "autocomplete": "off",
                "placeholder": "name@example.com",
            }
        ),
    )
    starts_at = MomentField(label="From", help_text="UTC.")
    until = MomentField(label="Until", help_text="UTC. At most 90 days later.")
    reason = forms.CharField(
        label="Why",
        max_length=LONGEST_WHY,
        required=False,
        help_text="They read it, and so does the audit log.",
    )


class TierForm(StrictForm):
    """One of the tiers."""

    tier = forms.ChoiceField(
        label="Tier", choices=Team.Tier.choices, widget=forms.RadioSelect
    )


class CostCentreForm(StrictForm):
    """A cost centre and who answers for it."""

    code = forms.CharField(label="Cost centre", max_length=20)
    owner = forms.CharField(
        label="Owner",
        max_length=254,
        required=False,
        help_text="Their work address. They may confirm it, too.",
    )
