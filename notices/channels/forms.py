"""What a platform lead says about a channel; every rule is the action's."""

from typing import Any

from django import forms

from notices.kinds import CHOOSABLE, Way
from notices.models import CHANNEL_WAYS, Channel
from web.edits import KeepsOthersEdits
from web.fields import StrictForm

KINDS = [(kind.value, kind.channel_words) for kind in CHOOSABLE]


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
