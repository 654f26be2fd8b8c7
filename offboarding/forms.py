"""What a page says about a team's leaving: the wish, and what is done about one that was asked for."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.conf import settings

from offboarding.actions import Wish
from offboarding.models import LONGEST_RETENTION
from provisioning.models import Tenancy
from web.fields import MomentField, StrictForm, WholeNumberField, set_choices

WHOLE = "platform"
RUNNING = (
    ("go-on", "Goes on until the date; then it is stopped"),
    ("finish", "Nothing new starts from now on; what runs may finish until the date"),
)
DOING = ("confirm", "withdraw", "restore", "agree")


class LeaveForm(StrictForm):
    """How the team leaves; `token` makes a second sending harmless."""

    cluster = forms.ChoiceField(
        label="What it leaves",
        widget=forms.RadioSelect,
        error_messages={
            "invalid_choice": "Choose one of these.",
            "required": "Choose one of these.",
        },
    )
    leaves_at = MomentField(
        label="Work stops on",
        required=False,
        help_text="UTC. Empty: as soon as it is confirmed.",
    )
    running = forms.ChoiceField(
        label="What still runs",
        widget=forms.RadioSelect,
        choices=RUNNING,
        error_messages={
            "invalid_choice": "Choose one of these.",
            "required": "Choose one of these.",
        },
    )
    retention_days = WholeNumberField(
        label="Kept for",
        most=LONGEST_RETENTION,
        of="days",
        help_text="Until then one click restores everything but the GPUs. After it, everything is deleted.",
    )
    reason = forms.CharField(
        label="Why",
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Say in a sentence why."},
    )
    token = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)

    def __init__(
        self, data: Any = None, *, places: Sequence[Tenancy], **options: Any
    ) -> None:
        usual = {
            "retention_days": settings.ENV.retention_days,
            "running": "go-on",
            "cluster": str(places[0].pk) if len(places) == 1 else "",
        }
        super().__init__(
            data, initial=usual | options.pop("initial", {}), label_suffix="", **options
        )
        set_choices(
            self,
            "cluster",
            [
                *(
                    (str(place.pk), f"{place.cluster.title} · {place.namespace}")
                    for place in places
                ),
                (WHOLE, "The platform altogether: every cluster"),
            ],
        )

    def wish(self, *, now: datetime) -> Wish:
        """What a clean form asks for."""
        said = self.cleaned_data
        whole = said["cluster"] == WHOLE
        return Wish(
            tenancies=() if whole else (int(said["cluster"]),),
            is_whole=whole,
            leaves_at=said["leaves_at"] or now,
            hold=said["running"] == "finish",
            retention_days=said["retention_days"],
            reason=said["reason"],
        )


class DepartureForm(StrictForm):
    """What is done about a departure; `seen` is what the page showed, `name` the team's name as it was typed."""

    do = forms.ChoiceField(choices=[(each, each) for each in DOING])
    seen = forms.CharField(max_length=64, required=False)
    name = forms.CharField(
        label="Type the team’s name to confirm",
        max_length=60,
        error_messages={"required": "Type the team’s name to confirm."},
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, label_suffix="")
        # Only confirming takes the name.
        self.fields["name"].required = data is None or data.get("do") == "confirm"


class ProtectionForm(StrictForm):
    """Whether a place is protected from deletion."""

    is_protected = forms.ChoiceField(choices=[("yes", "yes"), ("no", "no")])
