"""The forms of deciding; what they may say is decided by the actions."""

import re
from typing import Any

from django import forms

from approvals.decisions.bulk import Chosen
from approvals.decisions.less import Typed
from approvals.models import Decision
from approvals.requests.actions import MOST_UNITS
from web.fields import LONGEST_TEXT, MomentField, StrictForm, WholeNumberField

SEEN = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")


class DecisionForm(StrictForm):
    """A verdict on the version of a request that the page showed; with `check` it is only looked at."""

    also = StrictForm.also | {"check"}

    VERDICTS = [
        ("approve", "Approve"),
        ("less", "Approve less"),
        ("ask", "Ask"),
        ("reject", "Reject"),
    ]

    do = forms.ChoiceField(choices=VERDICTS, widget=forms.HiddenInput)
    version = forms.IntegerField(
        min_value=1, max_value=2_000_000_000, widget=forms.HiddenInput
    )
    count = WholeNumberField(
        label="How many", most=MOST_UNITS, of="units", required=False
    )
    until = MomentField(label="Until (UTC)", required=False)
    reason_code = forms.ChoiceField(
        label="Because", choices=Decision.Because.choices, required=False
    )
    reason = forms.CharField(label="Reason", required=False, max_length=LONGEST_TEXT)

    def clean(self) -> dict[str, Any]:
        """Raises ValidationError for "less" with an empty field, which must never be taken for all of it."""
        said = super().clean()
        if said.get("do") == "less":
            # A form has a field for each of the two that can be less.
            if "count" in self.data or "until" not in self.data:
                self._check_said("count", "Say how many.")
            if "until" in self.data:
                self._check_said("until", "Say until when.")
        return said

    def _check_said(self, name: str, words: str) -> None:
        if self.cleaned_data.get(name) is None and name not in self.errors:
            self.add_error(name, words)

    @property
    def typed(self) -> Typed | None:
        """How much a form that was sent says to approve instead of all of it; None where it says no such thing."""
        if not self.is_bound or self.data.get("do") != "less":
            return None
        self.is_valid()
        said = self.cleaned_data
        return Typed(said.get("count"), said.get("until"))


class ManyForm(StrictForm):
    """One verdict on several requests, each in the version that the page showed: `seen` is "17:3" for each."""

    also = StrictForm.also | {"seen"}

    do = forms.ChoiceField(
        choices=[("approve", "Approve"), ("reject", "Reject")], widget=forms.HiddenInput
    )
    reason_code = forms.ChoiceField(
        label="Because", choices=Decision.Because.choices, required=False
    )
    reason = forms.CharField(
        label="Note for all of them", required=False, max_length=LONGEST_TEXT
    )

    def pairs(self) -> list[tuple[int, int]]:
        """Each request with the version that was seen."""
        given = self.data.getlist("seen") if hasattr(self.data, "getlist") else []
        found = [SEEN.fullmatch(each) for each in given]
        return [(int(each[1]), int(each[2])) for each in found if each]

    def numbers(self) -> list[int]:
        """The requests."""
        return [pk for pk, _ in self.pairs()]

    def chosen(self) -> list[Chosen]:
        """The verdicts of a clean form."""
        said = self.cleaned_data
        return [
            Chosen(
                pk, version, said["do"], said["reason"], said["reason_code"] or "other"
            )
            for pk, version in self.pairs()
        ]
