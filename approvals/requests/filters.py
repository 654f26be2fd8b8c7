"""What the lists of requests are narrowed to."""

from typing import Any

from django import forms

from catalogue.offerings import OFFERINGS
from web.fields import set_choices


class RequestFilter(forms.Form):
    """What the list of requests is narrowed to."""

    whose = forms.ChoiceField(
        label="Whose", required=False, choices=[("", "Everybody’s"), ("mine", "Mine")]
    )
    team = forms.ChoiceField(label="Team", required=False)
    state = forms.ChoiceField(
        label="State",
        required=False,
        choices=[
            ("", "Any state"),
            ("waiting", "Waiting"),
            ("held", "Held now"),
            ("booked", "Booked"),
            ("ended", "Ended"),
            ("rejected", "Rejected"),
            ("withdrawn", "Withdrawn"),
        ],
    )

    def __init__(self, data: Any, *, teams: list[tuple[str, str]]) -> None:
        super().__init__(data, label_suffix="")
        set_choices(self, "team", [("", "All teams"), *teams])


class QueueFilter(RequestFilter):
    """What the queue of an approver is narrowed to."""

    whose = None  # type: ignore[assignment]
    state = None  # type: ignore[assignment]
    offering = forms.ChoiceField(
        label="For",
        required=False,
        choices=[("", "Any offering"), *((o.key, o.name) for o in OFFERINGS.values())],
    )
    size = forms.ChoiceField(
        label="Size",
        required=False,
        choices=[
            ("", "Any size"),
            ("small", "Below 8 GPUs"),
            ("large", "8 GPUs and more"),
        ],
    )
    age = forms.ChoiceField(
        label="Age",
        required=False,
        choices=[
            ("", "Any age"),
            ("day", "Older than a day"),
            ("week", "Older than a week"),
        ],
    )
