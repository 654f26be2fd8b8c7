"""What a person says about their notices; every rule is the action's."""

from collections.abc import Collection, Mapping
from typing import Any

from django import forms

from notices.kinds import NoticeKind, Pace
from web.fields import StrictForm

HOURS = [(str(hour), f"{hour:02}:00 UTC") for hour in range(24)]
PACES = [(pace.value, pace.words) for pace in Pace]


class ChoiceForm(StrictForm):
    """How soon to be told about each of these kinds, and when the daily mail comes."""

    digest_hour = forms.ChoiceField(
        label="The daily mail comes at",
        choices=HOURS,
        widget=forms.Select(attrs={"data-utc-hour": True}),
    )

    def __init__(
        self, *args: Any, kinds: Collection[NoticeKind], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._kinds = kinds
        for kind in kinds:
            self.fields[kind.value] = forms.ChoiceField(
                label=kind.words, choices=PACES, widget=forms.RadioSelect
            )

    @property
    def hour(self) -> int:
        """The hour of the daily mail."""
        return int(self.cleaned_data["digest_hour"])

    @property
    def paces(self) -> Mapping[NoticeKind, Pace]:
        """What was chosen."""
        return {kind: Pace(self.cleaned_data[kind.value]) for kind in self._kinds}
