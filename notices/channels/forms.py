"""What a platform lead says about a channel; every rule is the action's."""

from typing import Any

from django import forms

from notices.kinds import Way
from notices.models import CHANNEL_KINDS, CHAT_WAYS, WEBHOOK_EVENTS, Channel
from web.edits import KeepsOthersEdits
from web.fields import StrictForm


class AnyChannelForm(KeepsOthersEdits, StrictForm):
    """What every channel has; its address is asked for and never shown again.

    `told` is the field of what it is told; `label` and `help_text` are of the address that is asked for first, and
    `off_help` is of the switch.
    """

    told = ""
    label = ""
    help_text = ""
    off_help = "A channel that is switched off is told nothing but tests."
    field_order = ("way", "name", "url", "kinds", "events", "enabled")

    name = forms.CharField(
        label="Name", max_length=60, help_text="As people call the place."
    )
    url = forms.CharField(
        max_length=2000,
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "inputmode": "url"}
        ),
    )
    enabled = forms.BooleanField(label="Switched on", required=False, initial=True)

    def __init__(
        self, *args: Any, channel: Channel | None = None, **kwargs: Any
    ) -> None:
        if channel is not None:
            kwargs["initial"] = {
                "name": channel.name,
                self.told: getattr(channel, self.told),
                "enabled": channel.enabled,
            }
        super().__init__(*args, **kwargs)
        url = self.fields["url"]
        url.label, url.help_text = self.label, self.help_text
        if channel is not None:
            self.fields.pop("way", None)
            url.required = False
            url.label = "New address of its webhook"
            url.help_text = f"Empty keeps {channel.address}."

    @property
    def choices(self) -> forms.BoundField:
        """What it may be told."""
        return self[self.told]


class ChannelForm(AnyChannelForm):
    """A channel of Teams or of Slack."""

    told = "kinds"
    label = "Address of its webhook"
    help_text = (
        "From Teams: Workflows, “Send webhook alerts to a channel”. From Slack: Incoming webhooks. "
        "Whoever knows it can write there, so it is not shown again."
    )

    way = forms.ChoiceField(
        label="It is a channel of",
        choices=CHAT_WAYS,
        widget=forms.RadioSelect,
        initial=Way.TEAMS.value,
    )
    kinds = forms.MultipleChoiceField(
        label="It is told",
        choices=CHANNEL_KINDS,
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "required": "Choose at least one thing to tell the channel about."
        },
    )


class WebhookForm(AnyChannelForm):
    """A receiver of events."""

    also = AnyChannelForm.also | {"token"}
    told = "events"
    label = "Address of its receiver"
    help_text = (
        "It begins with https:// and is not shown again, as it may hold a secret."
    )

    off_help = "A webhook that is switched off is told nothing but tests."

    name = forms.CharField(
        label="Name", max_length=60, help_text="Of the program, such as “Ticket robot”."
    )
    events = forms.MultipleChoiceField(
        label="It is told when",
        choices=WEBHOOK_EVENTS,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one event."},
    )
