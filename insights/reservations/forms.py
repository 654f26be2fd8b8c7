"""What the list of reservations is narrowed to, and how many machines go back."""

from collections.abc import Sequence
from typing import Any

from django import forms

from allocations.forms import GIVE_BACK_BUTTON, EndEarlyForm, ReasonField
from allocations.models import Allocation
from capacity.reservations.states import State
from web.fields import WholeNumberField, set_choices

MAX_MACHINES = 1_000
ANY = "any"


class ReservationFilter(forms.Form):
    """What the list of reservations is narrowed to; without a state, to what Azure has or is asked for."""

    team = forms.ChoiceField(label="Team", required=False)
    state = forms.ChoiceField(
        label="State",
        required=False,
        choices=[
            ("", "In Azure, or on the way"),
            *((each.value, each.words) for each in State),
            (ANY, "Any state"),
        ],
    )

    def __init__(self, data: Any, *, teams: Sequence[tuple[str, str]]) -> None:
        super().__init__(data, label_suffix="")
        set_choices(self, "team", [("", "All teams"), *teams])


class MachinesForm(EndEarlyForm):
    """How many machines of which grant go back. `token` makes a second sending harmless."""

    grant = forms.ChoiceField(
        label="Of which grant",
        error_messages={
            "invalid_choice": "Choose one of the grants that are held now.",
            "required": "Choose the grant.",
        },
    )
    machines = WholeNumberField(
        label="Machines to give back",
        most=MAX_MACHINES,
        of="machines",
        error_messages={"required": "Say how many."},
    )
    reason = ReasonField(sent_by=GIVE_BACK_BUTTON)
    token = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)

    def __init__(
        self, data: Any, *, grants: Sequence[tuple[Allocation, str]], is_member: bool
    ) -> None:
        super().__init__(data, is_member=is_member)
        self._grants = {str(one.pk): one for one, _ in grants}
        set_choices(self, "grant", [(str(one.pk), words) for one, words in grants])

    @property
    def chosen(self) -> Allocation:
        """The grant that was chosen."""
        return self._grants[self.cleaned_data["grant"]]
