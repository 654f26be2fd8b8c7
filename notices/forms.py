"""What a person says about their notices, and a platform lead about a channel; every rule is the action's."""

from collections.abc import Collection, Mapping
from typing import Any

from django import forms

from notices.kinds import CHOOSABLE, NoticeKind, Pace, Way
from notices.models import CHANNEL_WAYS, Channel
from web.edits import KeepsOthersEdits
from web.fields import StrictForm

HOURS = [(str(hour), f"{hour:02}:00 UTC") for hour in range(24)]
PACES = [(pace.value, pace.words) for pace in Pace]
KINDS = [(kind.value, kind.channel_words) for kind in CHOOSABLE]


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


class ChannelForm(KeepsOthersEdits, StrictForm):
    """A channel; its address is asked for and never shown again."""

    name = forms.CharField(
        label="Name", max_length=60, help_text="As people call the place."
    )
    way = forms.ChoiceField(
        label="It is a channel of",
        choices=CHANNEL_WAYS,
        widget=forms.RadioSelect,
        initial=Way.TEAMS.value,
    )
    url = forms.CharField(
        label="Address of its webhook",
        max_length=2000,
        help_text="From Teams: Workflows, “Send webhook alerts to a channel”. From Slack: Incoming webhooks. "
        "Whoever knows it can write there, so it is not shown again.",
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "inputmode": "url"}
        ),
    )
    kinds = forms.MultipleChoiceField(
        label="It is told",
        choices=KINDS,
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "required": "Choose at least one thing to tell the channel about."
        },
    )
    enabled = forms.BooleanField(label="Switched on", required=False, initial=True)

    def __init__(
        self, *args: Any, channel: Channel | None = None, **kwargs: Any
    ) -> None:
        if channel is not None:
            kwargs["initial"] = {
                "name": channel.name,
                "kinds": channel.kinds,
                "enabled": channel.enabled,
            }
        super().__init__(*args, **kwargs)
        if channel is not None:
            del self.fields["way"]
            self.fields["url"].required = False
            self.fields["url"].label = "New address of its webhook"
            self.fields["url"].help_text = f"Empty keeps {channel.address}."
